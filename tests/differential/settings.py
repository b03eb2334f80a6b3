"""Makes settings strings: valid ones, with the options that they set, and odd ones."""

from releases import KEY_SINCE, TRIED_BEFORE, has


def division(r):
    return r.choice((1, 2, 4, 8, 16, 32, 64))


def roundup(r):
    """Returns the scalar form or a list: sparse boundaries, any order, `>` anywhere."""
    if r.random() < 0.3:
        return str(division(r))
    keys = [str(1 << k) for k in r.sample(range(18), r.randrange(0, 6))]
    if r.random() < 0.7:
        keys.sort(key=int)
    if r.random() < 0.6:
        keys.insert(len(keys) if r.random() < 0.8 else r.randrange(len(keys) + 1), ">")
    return "[" + ",".join(f"{k}:{0 if r.random() < 0.1 else division(r)}" for k in keys) + "]"


def value(r, key):
    """Returns a value for `key` that every supported release accepts."""
    if key == "max_split_size_mb":
        return r.choice((21, 22, 25, 30, 32, 40, 64, 100, 200))
    if key == "max_non_split_rounding_mb":
        return r.choice((21, 22, 30, 40, 64, 1000))
    if key == "large_segment_size_mb":
        return r.choice((11, 12, 13, 15, 20, 21, 32, 40))
    if key == "garbage_collection_threshold":
        return r.choice((0.0001, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999))
    if key == "per_process_memory_fraction":
        return r.choice((0.0, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0))
    if key == "roundup_power2_divisions":
        return roundup(r)
    if key == "expandable_segments_reserve":
        return r.choice(("0.02", "0.1", "0.25", "0.5", "0.999", "1.0", "2", "1G", ".05g", "0.3G", "x", "0", "nan", "0x1p-1"))
    if key == "backend":
        return "native"
    return r.choice(("True", "True", "False"))


def good(r, likely, torch, at_start):
    """Returns a valid string and its options. Each key of `likely` (key to probability) is present or not."""
    unknown = {k for k, since in KEY_SINCE.items() if not has(torch, since)}
    chosen = [k for k, p in likely.items() if r.random() < p and not (k in unknown and (at_start or k not in TRIED_BEFORE))]
    r.shuffle(chosen)
    options = {k: value(r, k) for k in chosen}
    # A split limit below the size of a segment would be refused.
    if options.get("large_segment_size_mb", 20) > 20:
        for key in ("max_split_size_mb", "max_non_split_rounding_mb"):
            if key in options:
                options[key] = max(options[key], options["large_segment_size_mb"] + 1)
    blank = " " if r.random() < 0.05 else ""
    return ("," + blank).join(f"{k}:{blank}{v}" for k, v in options.items()), options


# Strings that PyTorch refuses or reads in an odd way. `%` stands for a valid string: it shows what is applied before an
# error, and what is not.
ODD = (
    "", " ", ",", ":", "[", "]", "[]", "foo", "foo:1", "foo:[1,2]", "%,foo:1", "foo:1,%", "%,", "%,,", ",%", "%;%", "% %", "%,%", "\t%\n",
    "max_split_size_mb", "max_split_size_mb:", "max_split_size_mb:abc", "max_split_size_mb:19", "max_split_size_mb:20", "max_split_size_mb:20abc",
    "max_split_size_mb:-1", "max_split_size_mb:99999999999999999999999", "max_split_size_mb:18446744073709551615", "max_split_size_mb=40",
    "max_split_size_mb:4.5e1", "max_split_size_mb:+40", "max_split_size_mb:0x40", "MAX_SPLIT_SIZE_MB:40", "max_split_size_mb:4 0", "max_split_size_mb:[40]",
    "max_split_size_mb:40,max_split_size_mb:50", "%,max_split_size_mb:1", "max_non_split_rounding_mb:19", "max_non_split_rounding_mb:20", "max_non_split_rounding_mb:x",
    "garbage_collection_threshold:0", "garbage_collection_threshold:1", "garbage_collection_threshold:1.0", "garbage_collection_threshold:0.5x",
    "garbage_collection_threshold:-0.5", "garbage_collection_threshold:nan", "garbage_collection_threshold:inf", "garbage_collection_threshold:abc",
    "garbage_collection_threshold:.5", "garbage_collection_threshold:5e-1", "garbage_collection_threshold:0,5", "%,garbage_collection_threshold:7",
    "roundup_power2_divisions:0", "roundup_power2_divisions:1", "roundup_power2_divisions:3", "roundup_power2_divisions:", "roundup_power2_divisions:abc",
    "roundup_power2_divisions:[", "roundup_power2_divisions:[]", "roundup_power2_divisions:[64:8", "roundup_power2_divisions:[64:8,", "roundup_power2_divisions:[>:2]",
    "roundup_power2_divisions:[>:2,64:8]", "roundup_power2_divisions:[65:8]", "roundup_power2_divisions:[64:7]", "roundup_power2_divisions:[64:0]",
    "roundup_power2_divisions:[0:4]", "roundup_power2_divisions:[64 8]", "roundup_power2_divisions:[64:8 128:4]", "roundup_power2_divisions:[64:8]%",
    "roundup_power2_divisions:[x:8]", "roundup_power2_divisions:[64:x]", "roundup_power2_divisions:[64]", "roundup_power2_divisions:[:8]", "roundup_power2_divisions:[>8]",
    "roundup_power2_divisions:64:8", "roundup_power2_divisions:[65536:2]", "roundup_power2_divisions:[64:8,64:2]", "roundup_power2_divisions:[128:8,64:2]",
    "roundup_power2_divisions:-4", "roundup_power2_divisions:[1:2,2:4,4:8,8:16,16:32,32:1,65536:2]",
    "expandable_segments:true", "expandable_segments:1", "expandable_segments:", "expandable_segments", "expandable_segments:True:False", "expandable_segments:[True]",
    "expandable_segments:True,max_split_size_mb", "expandable_segments:True,foo:3,large_segment_size_mb:40",
    "large_segment_size_mb:10", "large_segment_size_mb:11", "large_segment_size_mb:x", "large_segment_size_mb:30,max_split_size_mb:25", "max_split_size_mb:25,large_segment_size_mb:30",
    "per_process_memory_fraction:0.5", "per_process_memory_fraction:1.5", "per_process_memory_fraction:-1", "per_process_memory_fraction:x", "per_process_memory_fraction:nan",
    "graph_capture_record_stream_reuse:1", "release_lock_on_cudamalloc:x", "release_lock_on_cudamalloc:True", "release_lock_on_hipmalloc:True",
    "backend:foo", "backend:native", "backend:", "backend", "pinned_use_cuda_host_register:True", "pinned_num_register_threads:3", "pinned_num_register_threads:4",
    "pinned_num_register_threads:256", "pinned_use_background_threads:True", "pinned_use_background_threads:x", "pinned_reserve_segment_size_mb:0", "pinned_reserve_segment_size_mb:5",
)  # fmt: skip


def odd(r, likely, torch):
    """Returns an odd string."""
    return r.choice(ODD).replace("%", good(r, likely, torch, False)[0])
