//! The report of pinned host memory: its sums and peaks, and the call sites that hold it.

use std::fmt;

use serde::Serialize;

use super::{LineReport, StackReport, by_line, largest};
use analysis::best_frames::BestFrames;
use analysis::host_memory::sums;
use analysis::peak::Held;
use query::HostMemory as Sums;
use trace::frames::{StackId, Symbols};
use trace::order;
use trace::units::{Bytes, Count, counted};
use trace::{BlockState, HostMemory};

/// Number of lines that the text shows. The JSON has more.
const LINES: usize = 6;

/// The report of pinned host memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// The largest call sites at the end.
    pub stacks: Vec<StackReport>,
    /// Bytes of all other call sites at the end.
    pub other_bytes: u64,
    /// The lines at the end, for people: stacks with the same line are merged.
    #[serde(skip)]
    pub lines: Vec<LineReport>,
}

impl HostReport {
    /// Reports on pinned host memory; `None` if the file says nothing about it.
    pub(super) fn new(host: &HostMemory, symbols: &Symbols, best_frames: &BestFrames) -> Option<Self> {
        let sums = sums(host)?;
        let held = held(host);
        let stacks = largest(symbols, &held);
        let total = held.iter().fold(0_u64, |sum, held| sum.saturating_add(held.bytes));
        let listed = stacks.iter().fold(0_u64, |sum, stack| sum.saturating_add(stack.bytes));
        let other_bytes = total.saturating_sub(listed);
        Some(Self { sums, stacks, other_bytes, lines: by_line(symbols, best_frames, &held) })
    }
}

/// Returns what each stack holds at the end, largest first.
fn held(host: &HostMemory) -> Vec<Held> {
    let blocks = host.segments.iter().flat_map(|segment| &segment.blocks);
    let active = blocks.filter(|block| block.state != BlockState::Inactive);
    let mut by_stack: Vec<(StackId, (u64, u32))> = active.map(|block| (block.stack, (block.requested, 1))).collect();
    order::merge(&mut by_stack, |sum, one| *sum = (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    let mut held: Vec<Held> =
        by_stack.into_iter().map(|(stack, (bytes, count))| Held { stack, bytes, count }).collect();
    held.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.stack.cmp(&b.stack)));
    held
}

impl fmt::Display for HostReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums { allocated_bytes, waiting_bytes, reserved_bytes, segments, events, .. } = self.sums;
        writeln!(f, "Pinned host memory: {}", counted(events, "event"))?;
        if let (Some(active), Some(reserved)) = (self.sums.peak_active_bytes, self.sums.peak_reserved_bytes) {
            writeln!(f, "  peak   {} in use, {} reserved", Bytes(active), Bytes(reserved))?;
        }
        write!(f, "  end    {} allocated", Bytes(allocated_bytes))?;
        if waiting_bytes > 0 {
            write!(f, ", {} waiting for the device,", Bytes(waiting_bytes))?;
        }
        writeln!(f, " of {} reserved, in {}", Bytes(reserved_bytes), counted(segments.into(), "segment"))?;
        if !self.lines.is_empty() {
            writeln!(f, "  in use at the end, by line:")?;
        }
        for line in self.lines.iter().take(LINES) {
            writeln!(f, "  {:>10} {:>9} ×  {}", Bytes(line.bytes), Count(line.count.into()), line.label)?;
        }
        let rest = self.lines.get(LINES..).unwrap_or(&[]);
        if !rest.is_empty() {
            let bytes = rest.iter().fold(0_u64, |sum, line| sum.saturating_add(line.bytes));
            let count = rest.iter().map(|line| u64::from(line.count)).sum();
            let others = counted(rest.len() as u64, "other line");
            writeln!(f, "  {:>10} {:>9} ×  {others}", Bytes(bytes), Count(count))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_lists_the_lines_that_hold_memory() {
        let lines = "segment_alloc 4096 2048
                     alloc 4096 2048 load@/home/me/data.py:7
                     segment_alloc 65536 512
                     alloc 65536 512
                     free 65536 512";
        let mut snapshot = trace::testing::snapshot(lines);
        let device = snapshot.devices.remove(0);
        snapshot.host = HostMemory { segments: device.segments, events: device.events };
        let best_frames = <BestFrames as replay::index::Index<_>>::build(&snapshot.symbols);
        let report = HostReport::new(&snapshot.host, &snapshot.symbols, &best_frames).expect("a report");
        let want = "\
Pinned host memory: 6 events
  peak   2.50 KiB in use, 2.50 KiB reserved
  end    2.00 KiB allocated of 2.50 KiB reserved, in 2 segments
  in use at the end, by line:
    2.00 KiB         1 ×  load  me/data.py:7
";
        assert_eq!(report.to_string(), want);
        let want = serde_json::json!({
            "allocated_bytes": 2048,
            "waiting_bytes": 0,
            "reserved_bytes": 2560,
            "segments": 2,
            "blocks": 2,
            "events": 6,
            "peak_active_bytes": 2560,
            "peak_reserved_bytes": 2560,
            "stacks": [{"bytes": 2048, "count": 1, "stack": ["/home/me/data.py:7:load"]}],
            "other_bytes": 0,
        });
        assert_eq!(serde_json::to_value(&report).expect("JSON"), want);
    }
}
