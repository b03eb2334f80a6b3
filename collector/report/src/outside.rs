//! The memory outside a device's allocator: the largest values of its samples, for the report.

use std::fmt;

use serde::Serialize;

use trace::units::{Bytes, counted};
use trace::{DeviceTrace, OutsideSample};

/// The memory outside a device's allocator. `None` is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OutsideReport {
    /// Number of samples.
    pub samples: u64,
    /// The most bytes of the job's process in the host's memory.
    pub peak_resident_bytes: Option<u64>,
    /// The most bytes of pinned host memory that PyTorch held.
    pub peak_pinned_bytes: Option<u64>,
    /// The most bytes of the device that were neither free nor the allocator's.
    pub peak_outside_bytes: Option<u64>,
    /// The most bytes of the device that other processes used.
    pub peak_others_bytes: Option<u64>,
}

impl OutsideReport {
    /// Reports on a device; `None` if nothing was sampled.
    pub(super) fn of(trace: &DeviceTrace) -> Option<Self> {
        let OutsideSample { resident, pinned, outside, others, .. } = OutsideSample::largest(&trace.outside)?;
        Some(Self {
            samples: trace.outside.len() as u64,
            peak_resident_bytes: resident,
            peak_pinned_bytes: pinned,
            peak_outside_bytes: outside,
            peak_others_bytes: others,
        })
    }
}

impl fmt::Display for OutsideReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  beside the allocator, at most ({}):", counted(self.samples, "sample"))?;
        let lines = [
            (self.peak_resident_bytes, "process memory (resident)"),
            (self.peak_pinned_bytes, "pinned host memory"),
            (self.peak_outside_bytes, "device memory that is neither free nor the allocator's"),
            (self.peak_others_bytes, "device memory of other processes"),
        ];
        for (bytes, what) in lines.into_iter().filter_map(|(bytes, what)| Some((Bytes(bytes?), what))) {
            writeln!(f, "  {bytes:>10}  {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_largest_value_of_each_known_quantity() {
        let sample = |time_us, values| OutsideSample::new(time_us, values);
        let trace = DeviceTrace {
            outside: vec![
                sample(1, [Some(3 << 30), None, Some(5), None]),
                sample(2, [Some(2 << 30), None, Some(7), None]),
            ],
            ..DeviceTrace::default()
        };
        let report = OutsideReport::of(&trace).expect("a report");
        let want = "  beside the allocator, at most (2 samples):
    3.00 GiB  process memory (resident)
         7 B  device memory that is neither free nor the allocator's
";
        assert_eq!(report.to_string(), want);
        let want = serde_json::json!({
            "samples": 2,
            "peak_resident_bytes": 3_u64 << 30,
            "peak_pinned_bytes": null,
            "peak_outside_bytes": 7,
            "peak_others_bytes": null,
        });
        assert_eq!(serde_json::to_value(report).expect("JSON"), want);
        assert_eq!(OutsideReport::of(&DeviceTrace::default()), None);
    }
}
