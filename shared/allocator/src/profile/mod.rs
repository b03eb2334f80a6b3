//! The differences between PyTorch's releases as data, with a profile for each release that was compared.

mod candidates;
mod releases;

use super::parse::ErrorKind;

pub use releases::{
    TORCH_2_4, TORCH_2_5, TORCH_2_6, TORCH_2_7, TORCH_2_8, TORCH_2_9, TORCH_2_10, TORCH_2_11, TORCH_2_12, TORCH_2_13,
    TORCH_2_14, TORCH_2_15,
};

/// How blocks of equal size are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The lowest address first.
    Address,
    /// The block that was created first: of a block that is split, the head is the new one.
    BlockAge,
    /// The block of the older segment first, then the lowest address.
    SegmentAge,
}

/// Where a capture finds the state of the random number generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomState {
    /// The first capture allocates it on the capture's stream, before its pool is in force. All graphs share it.
    Shared,
    /// Each capture allocates its own on the default stream, with its pool in force.
    OfGraph,
    /// It needs no memory of the allocator.
    Kept,
}

/// The condition under which the allocator neither waits for streams nor releases cached memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureGuard {
    /// Any open route to a private pool, including that of a `MemPool`.
    AnyRoute,
    /// Only a capture on the request's own stream.
    Capture,
}

/// When a `MemPool` lends its cached blocks to a request that would fail (`use_on_oom`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// After cached memory was released and the device asked again. A pool stays willing after its end, and asking one
    /// of those is an error.
    AfterRetries,
    /// Before anything is released. A pool is willing until its end.
    BeforeRetries,
}

/// How strictly the settings string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separators {
    /// A wrong separator is an error.
    Checked,
    /// Any token counts as the expected separator.
    SteppedOver,
}

/// The places of internal checks in a release's source. Their messages name the place and are compared as text.
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

/// The release since which PyTorch knows a key of the settings string, for keys that not all profiles know.
const SETTINGS_SINCE: [(&str, (u32, u32)); 12] = [
    ("pinned_use_background_threads", (2, 6)),
    ("max_non_split_rounding_mb", (2, 6)),
    ("graph_capture_record_stream_reuse", (2, 9)),
    ("per_process_memory_fraction", (2, 10)),
    ("pinned_reserve_segment_size_mb", (2, 10)),
    ("large_segment_size_mb", (2, 11)),
    ("throw_on_cudamalloc_oom", (2, 12)),
    ("pinned_free_catch_all", (2, 12)),
    ("pinned_max_round_threshold_mb", (2, 13)),
    ("pinned_max_cached_size_mb", (2, 13)),
    ("expandable_segments_reserve", (2, 15)),
    ("expandable_segments_reserve_by_class", (2, 15)),
];

/// The behaviour of one PyTorch release.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The release: `2.11`.
    pub torch: &'static str,
    /// The release as two numbers, which can be compared: `(2, 11)`.
    pub version: (u32, u32),
    /// The order of cached blocks of equal size.
    pub tie_break: TieBreak,
    /// The condition that stops the later steps of the retries and the processing of events.
    pub capture_guard: CaptureGuard,
    /// Whether a memory fraction of 1.0 counts as a limit.
    pub full_fraction_limits: bool,
    /// Whether `>` in a list of divisions also sets the entry of the last boundary, not only those after it.
    pub rest_overwrites_last_division: bool,
    /// How the settings string is read.
    pub separators: Separators,
    /// Whether a memory fraction refers to the device's memory now, not at the start.
    pub fraction_of_present_memory: bool,
    /// Whether the limit of a fraction is rounded to the nearest byte, not down.
    pub rounds_limit: bool,
    /// Whether the `MemPool` that the program is in restricts what is listed and emptied.
    pub has_pool_contexts: bool,
    /// Whether a `MemPool` and its contexts count as users of their pool until they end. Otherwise its memory stays.
    pub pools_end: bool,
    /// Whether segments of private pools are never expandable.
    pub private_segments_are_native: bool,
    /// Whether releasing cached memory before the last retry, or by age, passes over expandable segments. Otherwise it is
    /// an error to come to one.
    pub releases_pass_over_expandable: bool,
    /// Whether the message of an out-of-memory error names the limit.
    pub names_limit: bool,
    /// Whether new expandable memory is an error while the program is in a `MemPool`.
    pub contexts_refuse_expandable: bool,
    /// When a `MemPool` lends its cached blocks.
    pub lending: Lending,
    /// Whether the borrower's setting of expandable segments applies to the blocks that a `MemPool` lends.
    pub lends_expandable: bool,
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
    /// The options that `MemPool` accepts; `None` if the release has no `MemPool`.
    pub pool_options: Option<&'static [&'static str]>,
    /// Where the state of the random number generator is when a capture begins.
    pub random_state: RandomState,
    /// Whether a request in a `MemPool` on a stream without a capture is an error if `graph_capture_record_stream_reuse`
    /// is set.
    pub reuse_needs_capture: bool,
    /// Whether entries carry the program's metadata (`_set_memory_metadata`).
    pub tags_entries: bool,
    /// Whether entries of a snapshot's history name their pool.
    pub entries_name_pools: bool,
    /// How the first line of the message ends for a size that is too large for a tensor.
    pub size_overflow: &'static str,
    /// The end of the first line of an out-of-memory message.
    pub advice: &'static str,
    /// The end of that line if segments are expandable already.
    pub advice_expandable: &'static str,
    /// The exception in Python if a number in the settings string is out of range at the start.
    pub out_of_range_at_start: ErrorKind,
    /// The word for divisions in messages about `roundup_power2_divisions`.
    pub divisions_word: &'static str,
    /// Where the internal checks of the settings string are in PyTorch's source.
    pub lines: SourceLines,
    /// Whether statistics count rejected requests.
    pub counts_rejections: bool,
    /// Whether statistics count the reserve of each private pool.
    pub counts_private_reserve: bool,
}

impl Profile {
    /// All profiles, oldest first.
    pub const ALL: [&'static Self; 12] = [
        &TORCH_2_4,
        &TORCH_2_5,
        &TORCH_2_6,
        &TORCH_2_7,
        &TORCH_2_8,
        &TORCH_2_9,
        &TORCH_2_10,
        &TORCH_2_11,
        &TORCH_2_12,
        &TORCH_2_13,
        &TORCH_2_14,
        &TORCH_2_15,
    ];

    /// Returns whether the release knows a key of the settings string, if any release does.
    pub fn knows_setting(&self, key: &str) -> bool {
        SETTINGS_SINCE.iter().all(|(name, since)| *name != key || *since <= self.version)
    }

    /// Returns the end of the first line of an out-of-memory message.
    pub fn oom_advice(&self, is_expandable: bool) -> &'static str {
        if is_expandable { self.advice_expandable } else { self.advice }
    }

    /// Returns the profile of a release, or else of the newest release below it (`2.16` reads as 2.15). `None` if the
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
            ("2.4", Some("2.4")),
            ("2.6.0+cu124", Some("2.6")),
            ("2.9.1", Some("2.9")),
            ("2.10.1", Some("2.10")),
            ("2.11", Some("2.11")),
            ("2.14.0", Some("2.14")),
            ("2.15.0+cu132", Some("2.15")),
            ("2.16.0a0", Some("2.15")),
            ("3.0", Some("2.15")),
            ("2.3.1", None),
            ("2", None),
            ("newest", None),
        ];
        for (torch, want) in cases {
            assert_eq!(Profile::of(torch).map(|profile| profile.torch), want, "{torch}");
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_name() {
        for profile in Profile::ALL {
            let (major, minor) = profile.version;
            assert_eq!(profile.torch, format!("{major}.{minor}"));
        }
        assert!(Profile::ALL.is_sorted_by_key(|profile| profile.version));
    }
}
