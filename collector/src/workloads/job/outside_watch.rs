//! Samples the memory beside the allocator while a job runs on a real device.

use std::time::{Duration, Instant};

use allocator::DriverError;
use trace::OutsideSample;

use crate::driver::outside::Outside;

/// The time between two samples. A query of the driver and NVML takes some hundred microseconds.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes a sample every second. Nothing is sampled on a simulated device, whose trace must be reproducible.
#[derive(Default)]
pub(super) struct OutsideWatch {
    next: Option<Instant>,
    is_simulated: bool,
    samples: Vec<OutsideSample>,
}

impl OutsideWatch {
    /// Takes a sample if it is time. `query` asks the device, and is `None` on a simulated one.
    pub(super) fn look(
        &mut self,
        now_us: i64,
        query: impl FnOnce() -> Option<Result<Outside, DriverError>>,
    ) -> Option<OutsideSample> {
        if self.is_simulated || self.next.is_some_and(|next| Instant::now() < next) {
            return None;
        }
        let Some(found) = query() else {
            self.is_simulated = true;
            return None;
        };
        self.next = Instant::now().checked_add(PAUSE);
        let outside = found.ok();
        let others = outside.as_ref().and_then(Outside::others);
        let sample = OutsideSample::new(now_us, [resident(), None, outside.map(|outside| outside.bytes), others]);
        self.samples.push(sample);
        Some(sample)
    }

    /// Returns all samples.
    pub(super) fn finish(self) -> Vec<OutsideSample> {
        self.samples
    }
}

/// Returns the bytes of this process in the host's memory; `None` where the system doesn't tell.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::nvml::ProcessMemory;
    use crate::driver::outside::Holders;

    #[test]
    fn a_device_is_sampled_once_a_second_and_a_simulated_one_never() {
        let mut watch = OutsideWatch::default();
        let processes = vec![ProcessMemory { pid: 7, used: Some(100) }, ProcessMemory { pid: 8, used: Some(30) }];
        let holders = Holders::Known { driver_bytes: 5, processes, this_pid: 7 };
        let sample = watch.look(3, || Some(Ok(Outside { bytes: 50, holders }))).expect("a sample");
        assert_eq!((sample.time_us, sample.outside, sample.others), (3, Some(50), Some(30)));
        assert!(cfg!(not(target_os = "linux")) || sample.resident.is_some_and(|bytes| bytes > 1 << 16), "{sample:?}");
        assert_eq!(watch.look(4, || unreachable!("too early")), None);
        assert_eq!(watch.finish(), [sample]);
        let mut simulated = OutsideWatch::default();
        assert_eq!((simulated.look(1, || None), simulated.look(2, || unreachable!("asked again"))), (None, None));
    }
}
