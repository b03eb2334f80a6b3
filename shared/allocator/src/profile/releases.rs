//! The profiles: each has what its release changed, and the rest of the release before it.

use super::super::parse::ErrorKind;
use super::{CaptureGuard, Lending, Profile, RandomState, Separators, SourceLines, TieBreak};

const ADVICE_2_6: &str = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid \
     fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
const ADVICE_2_10: &str = "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid \
     fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
const ADVICE_2_11: &str = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid \
     fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
const ADVICE_2_15_EXPANDABLE: &str = "expandable_segments is enabled. If instead the process is running out of virtual address space (VSZ), expandable \
     segments may be over-reserving VA (each segment reserves ~9/8 of device memory, times the number of streams); \
     reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / expandable_segments_reserve_by_class.";

/// torch 2.4.
pub const TORCH_2_4: Profile = Profile {
    torch: "2.4",
    version: (2, 4),
    tie_break: TieBreak::Address,
    capture_guard: CaptureGuard::AnyRoute,
    full_fraction_limits: true,
    rest_overwrites_last_division: true,
    separators: Separators::Checked,
    fraction_of_present_memory: true,
    rounds_limit: false,
    has_pool_contexts: false,
    pools_end: false,
    private_segments_are_native: true,
    releases_pass_over_expandable: false,
    names_limit: false,
    contexts_refuse_expandable: false,
    lending: Lending::AfterRetries,
    lends_expandable: true,
    refuses_to_wait_in_capture: true,
    settles_deferred_at_capture_end: false,
    restores_stream_on_error: false,
    graphs_keep_pools: false,
    unfinished_graphs_release: false,
    drops_short_ranges: false,
    fabric_failures_are_lack_of_memory: false,
    newest_route_wins: false,
    pool_options: None,
    random_state: RandomState::Shared,
    reuse_needs_capture: false,
    tags_entries: false,
    entries_name_pools: false,
    size_overflow: "long\"",
    advice: ADVICE_2_6,
    advice_expandable: ADVICE_2_6,
    out_of_range_at_start: ErrorKind::Runtime,
    divisions_word: "divisons",
    // In these releases, only the check of the backend is an internal one.
    lines: SourceLines { root: "..", token: 0, list_end: 0, index: 0, divisions: 0, backend: 227 },
    counts_rejections: false,
    counts_private_reserve: false,
};

/// torch 2.5.
pub const TORCH_2_5: Profile = Profile {
    torch: "2.5",
    version: (2, 5),
    private_segments_are_native: false,
    releases_pass_over_expandable: true,
    names_limit: true,
    pool_options: Some(&[]),
    ..TORCH_2_4
};

/// torch 2.6.
pub const TORCH_2_6: Profile = Profile {
    torch: "2.6",
    version: (2, 6),
    has_pool_contexts: true,
    pools_end: true,
    lines: SourceLines { root: "/pytorch", backend: 250, ..TORCH_2_5.lines },
    ..TORCH_2_5
};

/// torch 2.7.
pub const TORCH_2_7: Profile = Profile { torch: "2.7", version: (2, 7), contexts_refuse_expandable: true, ..TORCH_2_6 };

/// torch 2.8.
pub const TORCH_2_8: Profile = Profile {
    torch: "2.8",
    version: (2, 8),
    has_pool_contexts: false,
    contexts_refuse_expandable: false,
    refuses_to_wait_in_capture: false,
    pool_options: Some(&["use_on_oom"]),
    divisions_word: "divisions",
    lines: SourceLines { backend: 287, ..TORCH_2_7.lines },
    ..TORCH_2_7
};

/// torch 2.9.
pub const TORCH_2_9: Profile = Profile {
    torch: "2.9",
    version: (2, 9),
    reuse_needs_capture: true,
    size_overflow: "long long",
    lines: SourceLines { backend: 288, ..TORCH_2_8.lines },
    ..TORCH_2_8
};

/// torch 2.10.
pub const TORCH_2_10: Profile = Profile {
    torch: "2.10",
    version: (2, 10),
    full_fraction_limits: false,
    rest_overwrites_last_division: false,
    separators: Separators::SteppedOver,
    fraction_of_present_memory: false,
    fabric_failures_are_lack_of_memory: true,
    newest_route_wins: true,
    pool_options: Some(&["use_on_oom", "no_split"]),
    reuse_needs_capture: false,
    lends_expandable: false,
    tags_entries: true,
    advice: ADVICE_2_10,
    advice_expandable: ADVICE_2_10,
    lines: SourceLines { root: "/pytorch", token: 57, list_end: 117, index: 126, divisions: 162, backend: 44 },
    ..TORCH_2_9
};

/// torch 2.11.
pub const TORCH_2_11: Profile = Profile {
    torch: "2.11",
    version: (2, 11),
    lending: Lending::BeforeRetries,
    advice: ADVICE_2_11,
    advice_expandable: ADVICE_2_11,
    lines: SourceLines { token: 55, list_end: 115, index: 124, divisions: 185, ..TORCH_2_10.lines },
    ..TORCH_2_10
};

/// torch 2.12.
pub const TORCH_2_12: Profile = Profile {
    torch: "2.12",
    version: (2, 12),
    settles_deferred_at_capture_end: true,
    tie_break: TieBreak::BlockAge,
    random_state: RandomState::OfGraph,
    entries_name_pools: true,
    counts_rejections: true,
    ..TORCH_2_11
};

/// torch 2.13.
pub const TORCH_2_13: Profile = Profile {
    torch: "2.13",
    version: (2, 13),
    tie_break: TieBreak::SegmentAge,
    capture_guard: CaptureGuard::Capture,
    rounds_limit: true,
    counts_private_reserve: true,
    fabric_failures_are_lack_of_memory: false,
    lines: SourceLines { root: "/__w/pytorch/pytorch", divisions: 211, ..TORCH_2_12.lines },
    ..TORCH_2_12
};

/// torch 2.14.
pub const TORCH_2_14: Profile = Profile {
    torch: "2.14",
    version: (2, 14),
    graphs_keep_pools: true,
    random_state: RandomState::Kept,
    unfinished_graphs_release: true,
    advice_expandable: "",
    ..TORCH_2_13
};

/// torch 2.15.
pub const TORCH_2_15: Profile = Profile {
    torch: "2.15",
    version: (2, 15),
    restores_stream_on_error: true,
    drops_short_ranges: true,
    advice_expandable: ADVICE_2_15_EXPANDABLE,
    out_of_range_at_start: ErrorKind::Index,
    lines: SourceLines { token: 54, list_end: 114, index: 123, divisions: 213, backend: 64, ..TORCH_2_14.lines },
    ..TORCH_2_14
};
