//! The report of a file as text: what was live at the peak, from which line, and the findings; in full, or in brief.

use std::fmt;

use super::file_diagnosis::{no_device, write_row};
use super::{CategoryReport, DeviceReport, FileReport, PoolReport};
use query::finding::FindingCode;
use trace::text::Escaped;
use trace::units::{Bytes, Count, Micros, counted};

/// Number of lines shown for the peak, in full and in brief. The JSON has more.
const LINES: usize = 12;
const BRIEF_LINES: usize = 6;

/// A report in brief: what went wrong or was found, the peak, and the lines that held it.
#[derive(Debug)]
pub struct Brief<'a, T>(&'a T);

impl FileReport {
    /// Returns the report in brief, as text.
    pub fn brief(&self) -> Brief<'_, Self> {
        Brief(self)
    }

    /// Writes what kind of file it is, and what is wrong with it.
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Escaped(&self.path), self.format)?;
        if let Some(protocol) = self.protocol {
            write!(f, " (protocol {protocol})")?;
        }
        if let Some(compression) = self.compression {
            write!(f, ", {compression}")?;
        }
        writeln!(f)?;
        for finding in self.findings.iter().filter(|finding| finding.code != FindingCode::OutOfMemory) {
            writeln!(f, "  ! {}", finding.message)?;
        }
        if self.devices.is_empty() {
            writeln!(f, "  {}", no_device(self.findings.iter().map(|finding| finding.code.name())))?;
        }
        Ok(())
    }
}

impl fmt::Display for Brief<'_, FileReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        report.write_head(f)?;
        for device in &report.devices {
            write!(f, "\n{}  pools, categories, every finding: add -v\n", device.brief())?;
        }
        report.host_memory.iter().try_for_each(|host| write!(f, "\n{host}"))
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.devices.iter().try_for_each(|device| write!(f, "\n{device}"))?;
        self.host_memory.iter().try_for_each(|host| write!(f, "\n{host}"))
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events: u64 = self.events.iter().map(|(_, count)| u64::from(*count)).sum();
        writeln!(
            f,
            "Device {}: {}, {}",
            self.device,
            counted(events, "event"),
            counted(self.unique_stacks.into(), "distinct stack")
        )?;
        let (start, end) = (&self.start, &self.end);
        self.write_peak(f)?;
        writeln!(f, "  start  {} allocated of {} reserved", Bytes(start.allocated_bytes), Bytes(start.reserved_bytes))?;
        writeln!(
            f,
            "  end    {} allocated of {} reserved, in {} with {}",
            Bytes(end.allocated_bytes),
            Bytes(end.reserved_bytes),
            counted(end.segments.into(), "segment"),
            counted(end.blocks.into(), "block")
        )?;
        for (name, pool) in [("small", &end.small), ("large", &end.large)] {
            if pool.segments > 0 {
                writeln!(f, "    {name}  {pool}")?;
            }
        }
        writeln!(f, "  verdict  {}", self.verdict.in_brief())?;
        for remedy in &self.verdict.remedies {
            writeln!(f, "    {}: {}", remedy.mark(), remedy.text)?;
        }
        for finding in &self.diagnosis.findings {
            if finding.code != FindingCode::OutOfMemory.name() {
                writeln!(f, "  ! {}", finding.message)?;
            }
        }
        self.held_at_the_peak(f)?;
        self.outside.iter().try_for_each(|outside| outside.fmt(f))
    }
}

impl fmt::Display for Brief<'_, DeviceReport> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(device) = self;
        f.write_str(&device.diagnosis.headline())?;
        device.write_peak(f)?;
        let end = &device.end;
        writeln!(
            f,
            "  end    {} allocated of {} reserved, in {}",
            Bytes(end.allocated_bytes),
            Bytes(end.reserved_bytes),
            counted(end.segments.into(), "segment")
        )?;
        if !device.peak_lines.is_empty() {
            writeln!(f, "  live at the peak, by line:")?;
        }
        let whole = device.peak.requested_bytes;
        for line in device.peak_lines.iter().take(BRIEF_LINES) {
            let row = (device.diagnosis.with_call(&line.label), line.bytes);
            write_row(f, row, whole, device.peak_inner_lines.as_ref().filter(|of| of.line == line.label))?;
        }
        let rest = device.peak_lines.get(BRIEF_LINES..).unwrap_or(&[]);
        if !rest.is_empty() {
            let bytes = rest.iter().fold(0u64, |sum, line| sum.saturating_add(line.bytes));
            write_row(f, (counted(rest.len() as u64, "other line").into(), bytes), whole, None)?;
        }
        device.outside.iter().try_for_each(|outside| outside.fmt(f))
    }
}

impl fmt::Display for PoolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", Bytes(self.reserved_bytes), counted(self.segments.into(), "segment"))?;
        let kinds: Vec<String> =
            [(self.expandable_segments, "expandable"), (self.private_segments, "in private pools")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, kind)| format!("{} {kind}", Count(count.into())))
                .collect();
        if !kinds.is_empty() {
            write!(f, " ({})", kinds.join(", "))?;
        }
        for (count, bytes, what) in [
            (self.allocated_blocks, self.allocated_bytes, "live"),
            (self.pending_blocks, self.pending_bytes, "waiting for streams"),
            (self.cached_split_blocks, self.cached_split_bytes, "cached between them"),
        ] {
            if count > 0 {
                write!(f, "; {} in {} {what}", Bytes(bytes), counted(count.into(), "block"))?;
            }
        }
        if self.cached_whole_segments > 0 {
            let segments = counted(self.cached_whole_segments.into(), "whole segment");
            write!(f, "; {} cached in {segments}", Bytes(self.cached_whole_bytes))?;
        }
        Ok(())
    }
}

impl DeviceReport {
    fn write_peak(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peak = Bytes(self.peak.requested_bytes);
        let Some(event) = self.peak.event else { return writeln!(f, "  peak   {peak} requested, at the start") };
        let event = Count(u64::from(event));
        match self.peak.time_us {
            Some(_) => {
                let time = Micros(self.peak.since_start_us);
                writeln!(f, "  peak   {peak} requested, after event {event}, {time} into the trace")
            }
            None => writeln!(f, "  peak   {peak} requested, after event {event}"),
        }
    }

    /// Returns the report in brief, as text.
    pub fn brief(&self) -> Brief<'_, Self> {
        Brief(self)
    }

    fn held_at_the_peak(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.peak_lines.is_empty() {
            return Ok(());
        }
        writeln!(f, "  live at the peak, by line:")?;
        let share = |bytes: u64| bytes as f64 * 100.0 / self.peak.requested_bytes.max(1) as f64;
        for line in self.peak_lines.iter().take(LINES) {
            let (bytes, count) = (Bytes(line.bytes), Count(u64::from(line.count)));
            let label = self.diagnosis.with_call(&line.label);
            writeln!(f, "  {bytes:>10} {:5.1} % {count:>9} ×  {label}", share(line.bytes))?;
        }
        let rest = self.peak_lines.get(LINES..).unwrap_or(&[]);
        if !rest.is_empty() {
            let bytes = rest.iter().fold(0u64, |sum, line| sum.saturating_add(line.bytes));
            let count = Count(rest.iter().map(|line| u64::from(line.count)).sum());
            let others = counted(rest.len() as u64, "other line");
            writeln!(f, "  {:>10} {:5.1} % {count:>9} ×  {others}", Bytes(bytes), share(bytes))?;
        }
        if !self.peak_categories.is_empty() {
            writeln!(f, "  used for, at the peak (guessed): {}", CategoryReport::list(&self.peak_categories))?;
        }
        for missing in &self.missing_stacks {
            writeln!(f, "  {} without a stack: {} {}", Bytes(missing.bytes), missing.reason, missing.remedy)?;
        }
        Ok(())
    }
}
