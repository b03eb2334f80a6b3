//! Pinned host memory: its sums and peaks, and the call sites that hold it.

use std::fmt;

use serde::Serialize;

use super::folding::BestFrames;
use super::peak::Held;
use super::report::{LineReport, StackReport, by_line, largest};
use crate::event::Action;
use crate::frames::{StackId, Symbols};
use crate::order;
use crate::query::HostMemory as Sums;
use crate::trace::{BlockState, Events, HostMemory};
use crate::units::{Bytes, Count, counted};

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

/// Returns the sums of pinned host memory; `None` if the file says nothing about it.
pub fn sums(host: &HostMemory) -> Option<Sums> {
    if host.is_empty() {
        return None;
    }
    let mut sums = Sums { segments: host.segments.len() as u32, ..Sums::default() };
    for segment in &host.segments {
        sums.reserved_bytes = sums.reserved_bytes.saturating_add(segment.size);
        sums.blocks = sums.blocks.saturating_add(segment.blocks.len() as u32);
        for block in &segment.blocks {
            let sum = match block.state {
                BlockState::Allocated => &mut sums.allocated_bytes,
                BlockState::Pending => &mut sums.waiting_bytes,
                BlockState::Inactive => continue,
            };
            *sum = sum.saturating_add(block.size);
        }
    }
    sums.events = host.events.len() as u64;
    if !host.events.is_empty() {
        let active = sums.allocated_bytes.saturating_add(sums.waiting_bytes);
        sums.peak_active_bytes = Some(peak(&host.events, active, (Action::Alloc, Action::FreeCompleted)));
        let ends = (Action::SegmentAlloc, Action::SegmentFree);
        sums.peak_reserved_bytes = Some(peak(&host.events, sums.reserved_bytes, ends));
    }
    Some(sums)
}

/// Returns the largest sum at any position, of a sum that is `end` after the last event, and that `up` raises and `down`
/// lowers. The events are followed back from the end, because the first ones may be missing.
fn peak(events: &Events, end: u64, (up, down): (Action, Action)) -> u64 {
    let (mut now, mut most) = (end, end);
    for i in (0..events.len()).rev() {
        let Some(event) = events.get(i) else { continue };
        if event.action == up {
            now = now.saturating_sub(event.size);
        } else if event.action == down {
            now = now.saturating_add(event.size);
        }
        most = most.max(now);
    }
    most
}

impl HostReport {
    /// Reports on pinned host memory; `None` if the file says nothing about it.
    pub(super) fn new(host: &HostMemory, symbols: &Symbols, telling: &BestFrames) -> Option<Self> {
        let sums = sums(host)?;
        let held = held(host);
        let stacks = largest(symbols, &held);
        let total = held.iter().fold(0_u64, |sum, held| sum.saturating_add(held.bytes));
        let listed = stacks.iter().fold(0_u64, |sum, stack| sum.saturating_add(stack.bytes));
        let other_bytes = total.saturating_sub(listed);
        Some(Self { sums, stacks, other_bytes, lines: by_line(symbols, telling, &held) })
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

    /// Returns pinned memory with the segments and events of a trace.
    fn host(lines: &str) -> HostMemory {
        let device = crate::testing::snapshot(lines).devices.remove(0);
        HostMemory { segments: device.segments, events: device.events }
    }

    #[test]
    fn sums_and_peaks_are_those_of_blocks_and_events() {
        // Events, then allocated, waiting, reserved, peak in use and peak reserved.
        let cases: &[(&str, [u64; 5])] = &[
            ("segment_alloc 4096 1024\nalloc 4096 1024", [1024, 0, 1024, 1024, 1024]),
            ("segment_alloc 4096 1024\nalloc 4096 1024\nfree 4096 1024", [0, 0, 1024, 1024, 1024]),
            (
                "segment_alloc 4096 1024\nalloc 4096 1024\nfree_requested 4096 1024\nsegment_alloc 65536 512
                 segment_free 65536 512",
                [0, 1024, 1024, 1024, 1536],
            ),
        ];
        for (lines, want) in cases {
            let sums = sums(&host(lines)).expect("sums");
            let got = [sums.allocated_bytes, sums.waiting_bytes, sums.reserved_bytes]
                .into_iter()
                .chain([sums.peak_active_bytes.expect("a peak"), sums.peak_reserved_bytes.expect("a peak")]);
            assert_eq!(got.collect::<Vec<_>>(), want, "{lines}");
        }
        assert_eq!(sums(&HostMemory::default()), None);
    }

    #[test]
    fn the_report_lists_the_lines_that_hold_memory() {
        let lines = "segment_alloc 4096 2048
                     alloc 4096 2048 load@/home/me/data.py:7
                     segment_alloc 65536 512
                     alloc 65536 512
                     free 65536 512";
        let mut snapshot = crate::testing::snapshot(lines);
        let device = snapshot.devices.remove(0);
        snapshot.host = HostMemory { segments: device.segments, events: device.events };
        let telling = <BestFrames as crate::index::Index<_>>::build(&snapshot.symbols);
        let report = HostReport::new(&snapshot.host, &snapshot.symbols, &telling).expect("a report");
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

    #[test]
    fn without_events_there_is_no_peak() {
        let host = HostMemory { events: Events::default(), ..host("segment_alloc 4096 1024\nalloc 4096 1024") };
        let sums = sums(&host).expect("sums");
        assert_eq!((sums.allocated_bytes, sums.peak_active_bytes), (1024, None));
    }

    #[test]
    fn absurd_sizes_do_not_overflow() {
        let mut host = host("segment_alloc 4096 1024\nalloc 4096 1024\nfree 4096 1024");
        for i in 0..host.events.len() {
            let event = host.events.get(i).expect("an event");
            host.events.set(i, crate::trace::Event { size: u64::MAX, ..event });
        }
        host.segments[0].size = u64::MAX;
        let sums = sums(&host).expect("sums");
        assert_eq!((sums.peak_active_bytes, sums.peak_reserved_bytes), (Some(u64::MAX), Some(u64::MAX)));
    }
}
