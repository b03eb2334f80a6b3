"""What scripts must know of PyTorch's releases: a new release needs an entry only where it differs from older ones."""

# The release since which PyTorch knows a key of the settings.
KEY_SINCE = {
    "max_non_split_rounding_mb": "2.6",
    "large_segment_size_mb": "2.11",
    "per_process_memory_fraction": "2.10",
    "graph_capture_record_stream_reuse": "2.9",
    "throw_on_cudamalloc_oom": "2.12",
    "expandable_segments_reserve": "2.15",
}
# Keys that older releases get while the program runs, to compare their errors. At the start an unknown key would end the
# process before the first operation.
TRIED_BEFORE = {"max_non_split_rounding_mb", "large_segment_size_mb", "per_process_memory_fraction", "graph_capture_record_stream_reuse"}
# The release since which a `MemPool` has an option.
POOL_OPTION_SINCE = {"use_on_oom": "2.8", "no_split": "2.10"}
# The release since which a `MemPool` object may end while another pool is open.
POOL_MAY_END_BESIDE_OTHERS_SINCE = "2.15"


def has(torch, since):
    """Returns whether a release is `since` or a later one: `has("2.11.0", "2.9")`."""
    return number(torch) >= number(since)


def number(release):
    return tuple(int(part) for part in release.split(".")[:2])
