//! The values of the allocator's settings (`CUDAAllocatorConfig`).

use super::rounding::LARGE_BUFFER;
use trace::Divisions;

/// How many addresses an expandable segment reserves (`expandable_segments_reserve`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserve {
    /// A share of the device's memory.
    Share(f64),
    /// A number of bytes.
    Bytes(u64),
}

/// All settings of the native allocator. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The settings string that was set last.
    pub conf: String,
    /// Blocks of at least this size are never split; `u64::MAX` means unlimited.
    pub max_split_size: u64,
    /// A block that is never split serves a request only if the request is smaller by less than this.
    pub max_non_split_rounding: u64,
    /// Share of the limit above which cached blocks are released by age; 0 turns it off.
    pub garbage_collection_threshold: f64,
    /// Number of steps between two powers of two that requests are rounded to.
    pub roundup_power2_divisions: Divisions,
    /// Whether segments are expandable.
    pub expandable_segments: bool,
    /// How many addresses an expandable segment reserves, if the settings string says so; never more than by default.
    pub expandable_segments_reserve: Option<Reserve>,
    /// Size of a segment for requests between 1 and 10 MiB, and of a page of expandable segments of large pools.
    pub large_segment_size: u64,
    /// Share of the device's memory that this process may use, if the settings string says so.
    pub per_process_memory_fraction: Option<f64>,
    /// Whether blocks that several streams used can be reused within a capture.
    pub graph_capture_record_stream_reuse: bool,
    /// Whether the lock is released around `cudaMalloc`. It changes no decision of a single thread.
    pub release_lock_on_cudamalloc: bool,
    /// Whether a request above the limit fails before anything is released (torch 2.12 and later).
    pub throw_on_cudamalloc_oom: bool,
    /// `pinned_use_cuda_host_register`: a setting of the host's allocator, kept for display.
    pub pinned_use_cuda_host_register: bool,
    /// `pinned_num_register_threads`: a setting of the host's allocator, kept for display.
    pub pinned_num_register_threads: u64,
    /// `pinned_max_round_threshold_mb` in bytes: a setting of the host's allocator, kept for display.
    pub pinned_max_round_threshold: u64,
    /// `pinned_max_cached_size_mb` in bytes: a setting of the host's allocator, kept for display.
    pub pinned_max_cached_size: u64,
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            conf: String::new(),
            max_split_size: u64::MAX,
            max_non_split_rounding: LARGE_BUFFER,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; 16],
            expandable_segments: false,
            expandable_segments_reserve: None,
            large_segment_size: LARGE_BUFFER,
            per_process_memory_fraction: None,
            graph_capture_record_stream_reuse: false,
            release_lock_on_cudamalloc: false,
            throw_on_cudamalloc_oom: false,
            pinned_use_cuda_host_register: false,
            pinned_num_register_threads: 1,
            pinned_max_round_threshold: u64::MAX,
            pinned_max_cached_size: u64::MAX,
        }
    }
}

impl AllocatorConfig {
    /// Returns the addresses that an expandable segment reserves on a device of `total` bytes, before rounding to
    /// pages: 9/8 of the memory, or what `expandable_segments_reserve` says.
    pub(super) fn reserve(&self, total: u64) -> u64 {
        let most = total.saturating_add(total / 8);
        match self.expandable_segments_reserve {
            None => most,
            Some(Reserve::Share(share)) => most.min((share * total as f64) as u64),
            Some(Reserve::Bytes(bytes)) => most.min(bytes),
        }
    }
}
