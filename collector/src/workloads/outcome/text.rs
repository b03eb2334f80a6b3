//! The report of a run as text for a terminal.

use std::fmt;

use trace::units::{Bytes, Micros, counted, counted_as};

use super::report::{Level, Report};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices: String = self.choices.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        writeln!(f, "{}{choices}", self.name)?;
        let device = if self.driver == "sim" { "a simulated device" } else { "a CUDA device" };
        write!(f, "  on {device} of {}, PyTorch {}'s allocator", Bytes(self.capacity_bytes), self.torch)?;
        if !self.conf.is_empty() {
            write!(f, " with {}", self.conf)?;
        }
        writeln!(f, ", seed {}: {}, {}", self.seed, counted(self.events, "event"), Micros(self.elapsed_us))?;
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        if let Some(error) = &self.error {
            writeln!(f, "  Stopped: {error}")?;
        }
        writeln!(f)?;
        writeln!(f, "                   at the end        peak")?;
        for (name, level) in [
            ("allocated", self.allocated),
            ("active", self.active),
            ("requested", self.requested),
            ("reserved", self.reserved),
            ("inactive splits", self.inactive_split),
        ] {
            let Level { now, peak } = level;
            writeln!(f, "  {name:<15} {:>12} {:>11}", Bytes(now), Bytes(peak))?;
        }
        let [retries, ooms, allocs, frees] =
            [self.num_alloc_retries, self.num_ooms, self.num_device_alloc, self.num_device_free]
                .map(|count| count.max(0) as u64);
        writeln!(
            f,
            "  {}, {}; {} of device memory, {}",
            counted_as(retries, "retry", "retries"),
            counted(ooms, "out-of-memory error"),
            counted(allocs, "allocation"),
            counted(frees, "release"),
        )?;
        let torn = self.fragmentation;
        let when = if self.num_ooms > 0 { "when a request failed" } else { "at the end" };
        writeln!(
            f,
            "  fragmentation {when}: {} cached in {} of segments in use, the largest {}; {} cached in whole segments",
            Bytes(torn.split_bytes),
            counted(torn.gaps.into(), "gap"),
            Bytes(torn.largest_gap),
            Bytes(torn.whole_bytes)
        )?;
        if let Some(outside) = &self.outside {
            writeln!(f, "  {outside}")?;
        }
        // What a device's verdict says stands in that device's section.
        if self.trace.devices.iter().all(|device| device.verdict.sentence != self.cause.message) {
            writeln!(f, "\n  Likely cause: {}", self.cause.message)?;
            for remedy in &self.verdict.remedies {
                writeln!(f, "    {}: {}", remedy.mark(), remedy.text)?;
            }
        }
        for finding in self.findings() {
            writeln!(f, "  ! {}", finding.message)?;
        }
        self.trace.devices.iter().try_for_each(|device| write!(f, "\n{}", device.brief()))
    }
}
