//! The outcome of a run, from the allocator's statistics.

use allocator::Stats;
use query::whatif::{Outcome, Why};

/// Returns the outcome of a run, without its unused memory.
pub(crate) fn outcome_of(stats: &Stats, stop: Option<(u32, Why)>) -> Outcome {
    let bytes = |number: i64| number.max(0) as u64;
    Outcome {
        peak_reserved: bytes(stats.reserved_bytes.all.peak),
        peak_allocated: bytes(stats.allocated_bytes.all.peak),
        peak_active: bytes(stats.active_bytes.all.peak),
        most_unused: 0,
        reserved_end: bytes(stats.reserved_bytes.all.current),
        segments_end: bytes(stats.segment.all.current),
        device_allocs: bytes(stats.num_device_alloc),
        device_frees: bytes(stats.num_device_free),
        retries: bytes(stats.num_alloc_retries),
        ooms: bytes(stats.num_ooms),
        stopped_at: stop.map(|(event, _)| event),
        stopped_why: stop.map(|(_, why)| why),
    }
}
