//! What a run used, from its counters.

use allocator::StatArray;
use format::sweep::Run;

use crate::workloads::{JobError, Outcome};

/// Reads the counters of a run. An error other than that memory ran out is returned: it says nothing about the value.
pub(in crate::cli) fn measured(value: &str, outcome: &Outcome) -> Result<Run, String> {
    let failed_request = match &outcome.error {
        None => None,
        Some(JobError::OutOfMemory(failed)) => Some(failed.rounded),
        Some(error) => return Err(format!("{error}.")),
    };
    let stats = &outcome.stats;
    let peak = |stat: StatArray| stat.all.peak.max(0) as u64;
    let count = |count: i64| count.max(0) as u64;
    Ok(Run {
        value: value.to_owned(),
        fits: failed_request.is_none() && stats.num_ooms == 0,
        peak_reserved: peak(stats.reserved_bytes),
        peak_allocated: peak(stats.allocated_bytes),
        device_allocs: count(stats.num_device_alloc),
        device_frees: count(stats.num_device_free),
        retries: count(stats.num_alloc_retries),
        ooms: count(stats.num_ooms),
        failed_request,
        events: outcome.events,
    })
}
