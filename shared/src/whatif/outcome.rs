//! What a run comes to.

use serde::{Deserialize, Serialize};

use crate::allocator::Stats;

/// Why a run ended before the trace did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A request failed that was served in the recording.
    Failed,
    /// A request was served that failed in the recording.
    Served,
}

/// What a run comes to, up to its end or to where it stopped. All sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// The most bytes that were reserved from the driver.
    pub peak_reserved: u64,
    /// The most bytes in live allocations, with rounding.
    pub peak_allocated: u64,
    /// The most bytes in allocations that were live or waited for a stream.
    pub peak_active: u64,
    /// The most bytes at once that were reserved and in no active allocation: cached, and lost to fragmentation.
    pub most_unused: u64,
    /// The bytes that are reserved at the end.
    pub reserved_end: u64,
    /// The segments at the end; an expandable one does not count.
    pub segments_end: u64,
    /// Calls that took memory from the driver.
    pub device_allocs: u64,
    /// Calls that gave memory back to the driver.
    pub device_frees: u64,
    /// Requests that released the cache and tried again.
    pub retries: u64,
    /// Requests that failed.
    pub ooms: u64,
    /// The event at which it stopped, since the program would have gone on differently; `None` at the end of the trace.
    pub stopped_at: Option<u32>,
    /// Why it stopped.
    pub stopped_why: Option<Why>,
}

impl Outcome {
    /// Whether a request fails: for lack of memory, or since the driver refuses something else.
    pub fn fails(&self) -> bool {
        self.ooms > 0 || self.stopped_why == Some(Why::Failed)
    }

    /// Returns the calls that took memory from the driver or gave it back.
    pub fn driver_calls(&self) -> u64 {
        self.device_allocs.saturating_add(self.device_frees)
    }

    pub(super) fn of(stats: &Stats, stop: Option<(u32, Why)>) -> Self {
        let bytes = |number: i64| number.max(0) as u64;
        Self {
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
}
