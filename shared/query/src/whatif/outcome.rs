//! What a run comes to.

use serde::{Deserialize, Serialize};

use trace::units::Count;

/// Why a run ended before the trace did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A request failed that was served in the recording.
    Failed,
    /// A request was served that failed in the recording.
    Served,
    /// The device is smaller than what was in use before the first event: the run can't begin.
    AtStart,
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
        self.ooms > 0 || matches!(self.stopped_why, Some(Why::Failed | Why::AtStart))
    }

    /// Returns the calls that took memory from the driver or gave it back.
    pub fn driver_calls(&self) -> u64 {
        self.device_allocs.saturating_add(self.device_frees)
    }

    /// Returns what the calls of the driver cost about, in microseconds: the least and the most that follows from published
    /// times of one call. Waiting for the GPU to finish its work, which a call that gives memory back may do, comes on top.
    ///
    /// 50 µs are those of a `cudaMalloc` of up to 512 KiB (University of Virginia, “Memory allocation overhead”). 231 µs are those of
    /// a page of an expandable segment, created, mapped and made accessible, on an A100 (kvcached, `bench_vmm`, means: 193.32,
    /// 1.45 and 35.99 µs); 26 µs, of its unmapping (25.63 µs). The larger a segment, the more a call takes.
    pub fn driver_us(&self) -> (u64, u64) {
        let least = self.device_allocs.saturating_mul(50).saturating_add(self.device_frees.saturating_mul(26));
        (least, self.driver_calls().saturating_mul(231))
    }

    /// Returns [`Self::driver_us`] in words.
    pub fn driver_time(&self) -> String {
        let (least, most) = self.driver_us();
        match most {
            0..1_000 => "less than 1 ms".to_owned(),
            _ => format!("about {} to {} ms", Count(least.div_ceil(1_000)), Count(most.div_ceil(1_000))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_driver_take_time() {
        for (device_allocs, device_frees, want) in [
            (0, 0, "less than 1 ms"),
            (4, 0, "less than 1 ms"),
            (503, 0, "about 26 to 117 ms"),
            (10_000, 10_000, "about 760 to 4,620 ms"),
            (u64::MAX, u64::MAX, "about 18,446,744,073,709,552 to 18,446,744,073,709,552 ms"),
        ] {
            let outcome = Outcome { device_allocs, device_frees, ..Outcome::default() };
            assert_eq!(outcome.driver_time(), want);
        }
    }
}
