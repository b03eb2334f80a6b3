//! The differences between PyTorch's releases as data, with a profile for each release that was compared.

use super::parse::ErrorKind;

/// How blocks of equal size are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The lowest address first.
    Address,
    /// The block of the older segment first, then the lowest address.
    SegmentAge,
}

/// What keeps the allocator from waiting for streams and from releasing cached memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureGuard {
    /// Any open route to a private pool, including that of a `MemPool`.
    AnyRoute,
    /// Only a capture on the request's own stream.
    Capture,
}

/// How strictly the settings string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separators {
    /// A wrong separator is an error.
    Checked,
    /// Any token counts as the expected separator.
    SteppedOver,
}

/// Where internal checks are in a release's source. Their messages name the place and are compared as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLines {
    /// The folder that the official binaries were built in.
    pub root: &'static str,
    /// `core/AllocatorConfig.h`: the check that reads a token by number.
    pub token: u32,
    /// `core/AllocatorConfig.h`: the check for the end of a list that is skipped.
    pub list_end: u32,
    /// `core/AllocatorConfig.h`: the check that converts or skips a token.
    pub index: u32,
    /// `core/AllocatorConfig.cpp`: the check for the end of the list of divisions.
    pub divisions: u32,
    /// `cuda/CUDAAllocatorConfig.cpp`: the check that the backend is the one that was loaded.
    pub backend: u32,
}

/// The behaviour of one PyTorch release.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The release: `2.11`.
    pub torch: &'static str,
    /// The order of cached blocks of equal size.
    pub tie_break: TieBreak,
    /// What stops the later steps of the retries and the processing of events.
    pub capture_guard: CaptureGuard,
    /// Whether a memory fraction of 1.0 counts as a limit.
    pub full_fraction_limits: bool,
    /// Whether `>` in a list of divisions also sets the entry of the last boundary, not only those after it.
    pub rest_overwrites_last_division: bool,
    /// How the settings string is read.
    pub separators: Separators,
    /// Settings that this release does not have yet.
    pub unknown_settings: &'static [&'static str],
    /// Whether a memory fraction refers to the device's memory now, not at the start.
    pub fraction_of_present_memory: bool,
    /// Whether the limit of a fraction is rounded to the nearest byte, not down.
    pub rounds_limit: bool,
    /// Whether the `MemPool` that the program is in restricts what is listed and emptied.
    pub has_pool_contexts: bool,
    /// Whether waiting for all streams is an error while a route is open.
    pub refuses_to_wait_in_capture: bool,
    /// Whether the deferred blocks of a capture's pool are settled at its end, if they may be reused.
    pub settles_deferred_at_capture_end: bool,
    /// Whether the stream before a capture becomes current again if ending the capture failed.
    pub restores_stream_on_error: bool,
    /// Whether a graph keeps the pools that were entered in its capture.
    pub graphs_keep_pools: bool,
    /// Whether a new range of addresses that is shorter than the request is released, not kept.
    pub drops_short_ranges: bool,
    /// Whether a page that cannot be created counts as lack of memory, whatever the reason, once a page was created
    /// with a handle that other machines understand. The devices that were compared create such handles.
    pub fabric_failures_are_lack_of_memory: bool,
    /// Whether a graph that is deleted before its capture ended releases its pool.
    pub unfinished_graphs_release: bool,
    /// Whether the newest of several open routes that accept a request wins, not the oldest.
    pub newest_route_wins: bool,
    /// Whether `MemPool` accepts `use_on_oom` and `no_split`.
    pub pools_have_options: bool,
    /// Whether a capture begins with allocating the state of the random number generator.
    pub graphs_keep_random_state: bool,
    /// Whether entries carry the program's metadata (`_set_memory_metadata`).
    pub tags_entries: bool,
    /// The type that a size overflows if it is too large for a tensor, as the message names it.
    pub size_type: &'static str,
    /// The end of the first line of an out-of-memory message.
    pub advice: &'static str,
    /// The end of that line if segments are expandable already.
    pub advice_expandable: &'static str,
    /// The exception in Python if a number in the settings string is out of range at the start.
    pub out_of_range_at_start: ErrorKind,
    /// Where the internal checks of the settings string are in PyTorch's source.
    pub lines: SourceLines,
    /// Whether statistics count rejected requests and the private pools' reserve.
    pub counts_rejections: bool,
}

const ADVICE_2_6: &str = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid \
     fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
const ADVICE_2_11: &str = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid \
     fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
const ADVICE_2_15_EXPANDABLE: &str = "expandable_segments is enabled. If instead the process is running out of virtual address space (VSZ), expandable \
     segments may be over-reserving VA (each segment reserves ~9/8 of device memory, times the number of streams); \
     reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / expandable_segments_reserve_by_class.";

/// torch 2.6.
pub const TORCH_2_6: Profile = Profile {
    torch: "2.6",
    tie_break: TieBreak::Address,
    capture_guard: CaptureGuard::AnyRoute,
    full_fraction_limits: true,
    rest_overwrites_last_division: true,
    separators: Separators::Checked,
    fraction_of_present_memory: true,
    rounds_limit: false,
    has_pool_contexts: true,
    refuses_to_wait_in_capture: true,
    settles_deferred_at_capture_end: false,
    restores_stream_on_error: false,
    graphs_keep_pools: false,
    unfinished_graphs_release: false,
    drops_short_ranges: false,
    fabric_failures_are_lack_of_memory: false,
    newest_route_wins: false,
    pools_have_options: false,
    graphs_keep_random_state: true,
    tags_entries: false,
    size_type: "long",
    advice: ADVICE_2_6,
    advice_expandable: ADVICE_2_6,
    unknown_settings: &[
        "large_segment_size_mb",
        "per_process_memory_fraction",
        "graph_capture_record_stream_reuse",
        "pinned_reserve_segment_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_max_cached_size_mb",
        "pinned_free_catch_all",
        "throw_on_cudamalloc_oom",
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
    ],
    out_of_range_at_start: ErrorKind::Runtime,
    // In this release, only the check of the backend is an internal one.
    lines: SourceLines { root: "/pytorch", token: 0, list_end: 0, index: 0, divisions: 0, backend: 250 },
    counts_rejections: false,
};

/// torch 2.11.
pub const TORCH_2_11: Profile = Profile {
    torch: "2.11",
    tie_break: TieBreak::Address,
    capture_guard: CaptureGuard::AnyRoute,
    full_fraction_limits: false,
    rest_overwrites_last_division: false,
    separators: Separators::SteppedOver,
    fraction_of_present_memory: false,
    rounds_limit: false,
    has_pool_contexts: false,
    refuses_to_wait_in_capture: false,
    settles_deferred_at_capture_end: false,
    restores_stream_on_error: false,
    graphs_keep_pools: false,
    unfinished_graphs_release: false,
    drops_short_ranges: false,
    fabric_failures_are_lack_of_memory: true,
    newest_route_wins: true,
    pools_have_options: true,
    graphs_keep_random_state: true,
    tags_entries: true,
    size_type: "long long",
    advice: ADVICE_2_11,
    advice_expandable: ADVICE_2_11,
    unknown_settings: &[
        "pinned_max_round_threshold_mb",
        "pinned_max_cached_size_mb",
        "pinned_free_catch_all",
        "throw_on_cudamalloc_oom",
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
    ],
    out_of_range_at_start: ErrorKind::Runtime,
    lines: SourceLines { root: "/pytorch", token: 55, list_end: 115, index: 124, divisions: 185, backend: 44 },
    counts_rejections: false,
};

/// torch 2.15.
pub const TORCH_2_15: Profile = Profile {
    torch: "2.15",
    tie_break: TieBreak::SegmentAge,
    capture_guard: CaptureGuard::Capture,
    settles_deferred_at_capture_end: true,
    restores_stream_on_error: true,
    graphs_keep_pools: true,
    unfinished_graphs_release: true,
    rounds_limit: true,
    graphs_keep_random_state: false,
    drops_short_ranges: true,
    fabric_failures_are_lack_of_memory: false,
    advice_expandable: ADVICE_2_15_EXPANDABLE,
    unknown_settings: &[],
    out_of_range_at_start: ErrorKind::Index,
    lines: SourceLines {
        root: "/__w/pytorch/pytorch",
        token: 54,
        list_end: 114,
        index: 123,
        divisions: 213,
        backend: 64,
    },
    counts_rejections: true,
    ..TORCH_2_11
};

impl Profile {
    /// All profiles, oldest first.
    pub const ALL: [&'static Self; 3] = [&TORCH_2_6, &TORCH_2_11, &TORCH_2_15];

    /// Returns the end of the first line of an out-of-memory message.
    pub fn oom_advice(&self, is_expandable: bool) -> &'static str {
        if is_expandable { self.advice_expandable } else { self.advice }
    }

    /// Returns the profile of a release, or else of the newest release below it (`2.12.1` reads as 2.11). `None` if the
    /// text is not a version, or the release is older than the first profile.
    pub fn of(torch: &str) -> Option<&'static Self> {
        let version = |text: &str| {
            let mut parts = text.split(['.', '+', 'a']).map(str::parse::<u32>);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        };
        let wanted = version(torch)?;
        Self::ALL.into_iter().rev().find(|profile| version(profile.torch).is_some_and(|known| known <= wanted))
    }
}

impl Default for &'static Profile {
    fn default() -> Self {
        &TORCH_2_11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_profile_at_or_before_it() {
        let cases = [
            ("2.6", Some("2.6")),
            ("2.6.0+cu124", Some("2.6")),
            ("2.10.1", Some("2.6")),
            ("2.11", Some("2.11")),
            ("2.14.0", Some("2.11")),
            ("2.15.0+cu132", Some("2.15")),
            ("3.0", Some("2.15")),
            ("2.5", None),
            ("2", None),
            ("newest", None),
        ];
        for (torch, want) in cases {
            assert_eq!(Profile::of(torch).map(|profile| profile.torch), want, "{torch}");
        }
    }
}
