//! One run of a sweep.

use serde::Serialize;

use trace::units::{Bytes, counted};

/// What a run with one value used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The value of the parameter.
    pub value: String,
    /// Whether no request failed.
    pub fits: bool,
    /// Peak of the bytes taken from the device.
    pub peak_reserved: u64,
    /// Peak of the bytes of live tensors, rounded by the allocator.
    pub peak_allocated: u64,
    /// Calls that took memory from the device.
    pub device_allocs: u64,
    /// Calls that returned memory to the device.
    pub device_frees: u64,
    /// Requests that released cached memory and asked the device again.
    pub retries: u64,
    /// Requests that failed.
    pub ooms: u64,
    /// The bytes of the request that ended the run; `None` if none did.
    pub failed_request: Option<u64>,
    /// Number of events.
    pub events: u64,
}

impl Run {
    /// Returns the value as a number; `None` for a word.
    pub fn number(&self) -> Option<u64> {
        self.value.parse().ok()
    }

    /// Returns the calls of the driver. They cost time.
    pub fn driver_calls(&self) -> u64 {
        self.device_allocs.saturating_add(self.device_frees)
    }

    /// Returns how the run ran out of memory, or `no`.
    pub fn failure(&self) -> String {
        match (self.failed_request, self.ooms) {
            (Some(bytes), _) => format!("a request of {} fails", Bytes(bytes)),
            (None, 0) => "no".to_owned(),
            (None, ooms) => format!("{} caught", counted(ooms, "failure")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_how_it_ran_out_of_memory() {
        let run = Run::default();
        assert_eq!(run.failure(), "no");
        assert_eq!(Run { ooms: 1, ..run.clone() }.failure(), "1 failure caught");
        assert_eq!(Run { ooms: 2, failed_request: Some(3 << 20), ..run }.failure(), "a request of 3.00 MiB fails");
    }

    #[test]
    fn counts_of_calls_never_overflow() {
        let run = Run { device_allocs: u64::MAX, device_frees: 2, ..Run::default() };
        assert_eq!(run.driver_calls(), u64::MAX);
    }
}
