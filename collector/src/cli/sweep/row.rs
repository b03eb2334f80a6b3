//! One run of a sweep.

use serde::Serialize;
use shared::allocator::StatArray;

use crate::workloads::{JobError, Outcome};

/// What a run of one value used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Row {
    /// The value of the parameter.
    pub(in crate::cli) value: String,
    /// Whether no request failed.
    pub(in crate::cli) fits: bool,
    /// Peak of the bytes taken from the device.
    pub(in crate::cli) peak_reserved: u64,
    /// Peak of the bytes of live tensors, rounded by the allocator.
    pub(in crate::cli) peak_allocated: u64,
    /// Calls that took memory from the device.
    pub(in crate::cli) device_allocs: u64,
    /// Calls that returned memory to the device.
    pub(in crate::cli) device_frees: u64,
    /// Requests that released cached memory and asked the device again.
    pub(in crate::cli) retries: u64,
    /// Requests that failed.
    pub(in crate::cli) ooms: u64,
    /// The bytes of the request that ended the run; `None` if none did.
    pub(in crate::cli) failed_request: Option<u64>,
    /// Number of events.
    pub(in crate::cli) events: u64,
}

impl Row {
    /// Reads the counters of a run. An error other than that memory ran out is returned: it says nothing about the value.
    pub(in crate::cli) fn new(value: &str, outcome: &Outcome) -> Result<Self, String> {
        let failed_request = match &outcome.error {
            None => None,
            Some(JobError::OutOfMemory(failed)) => Some(failed.rounded),
            Some(error) => return Err(format!("{error}.")),
        };
        let stats = &outcome.stats;
        let peak = |stat: StatArray| stat.all.peak.max(0) as u64;
        let count = |count: i64| count.max(0) as u64;
        Ok(Self {
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
}
