//! Memory that rises for a moment, such as when a checkpoint is saved: the peak of the run is that moment's alone.
//!
//! A spike belongs to one line: memory that many lines hold at the peak and seldom otherwise is the activations of the
//! largest batch.

use rustc_hash::FxHashMap;

use super::RuleContext;
use super::lines::by_line;
use super::thresholds::{SPIKE_LENGTH_PERCENT, SPIKE_MEAN_PERCENT, SPIKE_PERCENT, is_share};
use analysis::peak::held_at;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use replay::Change;
use trace::frames::{FrameId, StackId};
use trace::units::{Bytes, Count};

/// A line that holds much at the peak.
#[derive(Debug)]
struct Line {
    bytes: u64,
    stack: StackId,
    /// The sum of its live bytes over all positions.
    area: f64,
}

/// The run without a line.
#[derive(Debug, Default)]
struct Without {
    /// The largest sum of requested bytes.
    peak: u64,
    /// The positions around the peak between which the line holds at least half of what it holds at the peak.
    window: (u32, u32),
    /// The number of positions at which it holds that much.
    long: u32,
    /// The most that it holds at any position.
    most: u64,
}

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let (usage, end) = (context.case.usage, context.case.replay.positions());
    let Some((frame, line)) = momentary(context) else { return Vec::new() };
    let without = without(context, frame, line.bytes);
    let height = usage.peak_bytes.saturating_sub(without.peak);
    let (from, until) = without.window;
    // A line that holds more at another moment does not make the peak.
    let is_highest = without.most <= line.bytes;
    let is_short = is_share((end - end.min(until - from.min(until))).into(), end.into(), 100 - SPIKE_LENGTH_PERCENT);
    // A spike that ended in a failure is the subject of the verdict.
    let has_failed = context.failures.iter().any(|(failure, _)| (from..=until.saturating_add(1)).contains(failure));
    if !is_share(height, usage.peak_bytes, SPIKE_PERCENT) || until >= end || !is_short || has_failed || !is_highest {
        return Vec::new();
    }
    let percent = match u64::from(without.long) * 100 / u64::from(end.max(1)) {
        0 => "less than 1 %".to_owned(),
        percent => format!("{percent} %"),
    };
    let message = format!(
        "The peak of requested memory, {}, is a short spike: {} holds up to {} between events {} and {}, and at least half of \
         it for {percent} of the run. Without that line, the peak would be {}, {} less.",
        Bytes(usage.peak_bytes),
        context.line(line.stack),
        Bytes(line.bytes),
        Count(from.into()),
        Count(until.into()),
        Bytes(without.peak),
        Bytes(height),
    );
    let finding = Finding::new(FindingCode::Spike, message)
        .at(usage.peak_position)
        .with_bytes(height)
        .with_evidence(Evidence::Site(line.stack.0))
        .with_remedy(Remedy::advice(
            "Do that line's work in parts: copy a checkpoint to the host tensor by tensor, compute a large temporary result in \
             chunks.",
        ));
    vec![finding]
}

/// Returns the line that holds most at the peak among those that hold little on average over the run.
fn momentary(context: &RuleContext<'_>) -> Option<(FrameId, Line)> {
    let (usage, positions) = (context.case.usage, f64::from(context.case.replay.positions()) + 1.0);
    let held = by_line(context, &held_at(context.case.replay, usage.peak_position));
    let much = held.iter().filter(|(_, held)| is_share(held.bytes, usage.peak_bytes, SPIKE_PERCENT));
    let lines =
        much.filter_map(|(frame, held)| Some(((*frame)?, Line { bytes: held.bytes, stack: held.stack, area: 0.0 })));
    let mut lines: FxHashMap<FrameId, Line> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    for (stack, site) in usage.iter() {
        if let Some(line) = context.frame(stack).and_then(|frame| lines.get_mut(&frame)) {
            line.area += site.area;
        }
    }
    let is_momentary = |line: &Line| line.area / positions * 100.0 <= line.bytes as f64 * SPIKE_MEAN_PERCENT as f64;
    let lines = lines.into_iter().filter(|(_, line)| is_momentary(line));
    lines.max_by_key(|(frame, line)| (line.bytes, std::cmp::Reverse(*frame)))
}

/// Follows the run with and without a line. `bytes` is what it holds at the peak.
fn without(context: &RuleContext<'_>, frame: FrameId, bytes: u64) -> Without {
    let (trace, replay, usage) = (context.case.trace, context.case.replay, context.case.usage);
    let mut is_own: Vec<bool> = Vec::new();
    for (stack, _) in usage.iter() {
        let i = stack.0 as usize;
        is_own.resize(is_own.len().max(i + 1), false);
        if let Some(known) = is_own.get_mut(i) {
            *known = context.frame(stack) == Some(frame);
        }
    }
    let (mut requested, mut stacks) = (replay.allocations.requested.reader(), replay.allocations.stack.reader());
    let (mut own, mut others) = (0_u64, 0_u64);
    let mut found = Without::default();
    let (mut since, mut is_over) = (None, false);
    // The position up to which `long` is counted, while the line holds that much.
    let mut last: Option<u32> = None;
    let start = (0..replay.allocations.made_by(0)).map(|number| (0, Change::Begin(number)));
    let mut visit = |position: u32, change: Change| {
        let (number, begins) = match change {
            Change::Begin(number) => (number as usize, true),
            Change::End(number) => (number as usize, false),
            Change::Freed(_) | Change::Reserved(_) => return,
        };
        let stack = stacks.get(number).unwrap_or(0) as usize;
        let size = requested.get(number).unwrap_or(0);
        let sum = if is_own.get(stack).copied().unwrap_or(false) { &mut own } else { &mut others };
        *sum = if begins { sum.saturating_add(size) } else { sum.saturating_sub(size) };
        (found.peak, found.most) = (found.peak.max(others), found.most.max(own));
        // The stretch of half the height that the peak lies in.
        if own >= bytes / 2 {
            found.long += position.saturating_sub(last.replace(position).unwrap_or(position));
            since.get_or_insert(position);
            if !is_over && position >= usage.peak_position {
                found.window = (since.unwrap_or(position), position);
            }
        } else {
            is_over |= position > usage.peak_position;
            found.long += position.saturating_sub(last.take().unwrap_or(position));
            since = None;
        }
    };
    start.for_each(|(position, change)| visit(position, change));
    replay.changes(trace, 0, u32::MAX, visit);
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    /// Steps of 60 MiB beside weights of 100 MiB. After the middle one, `clone` holds 80 MiB until `freed` more steps
    /// are over.
    fn found(freed: usize, end: &str) -> Vec<String> {
        let mut lines = "segment_alloc 0x10000000 524288000\nalloc 0x10000000 104857600 weights@/m/a.py:1\n".to_owned();
        for step in 0..100 {
            lines += "alloc 0x18000000 62914560 step@/m/a.py:2\nfree 0x18000000\n";
            if step == 50 {
                lines += "alloc 0x20000000 83886080 clone@/m/a.py:3\n";
            }
            if step == 50 + freed {
                lines += "free 0x20000000\n";
            }
        }
        trace(&(lines + end)).messages(FindingCode::Spike)
    }

    #[test]
    fn what_is_there_for_a_moment_only_is_found() {
        assert_eq!(
            found(2, ""),
            [
                "The peak of requested memory, 240 MiB, is a short spike: m/a.py:3 (clone) holds up to 80.0 MiB between events \
                 156 and 162, and at least half of it for 2 % of the run. Without that line, the peak would be 160 MiB, \
                 80.0 MiB less."
            ]
        );
    }

    #[test]
    fn what_stays_or_does_not_raise_the_peak_is_no_spike() {
        // It holds for a third of the run.
        assert_eq!(found(35, ""), [""; 0]);
        // It is freed before the next step begins.
        assert_eq!(found(0, ""), [""; 0]);
    }

    #[test]
    fn a_line_that_holds_more_at_another_moment_makes_no_spike() {
        // With smaller tensors, at the end.
        let later = "free 0x10000000\nalloc 0x20000000 94371840 clone@/m/a.py:3\nfree 0x20000000\n\
                     alloc 0x10000000 1000 b@/m/a.py:4\nfree 0x10000000\n";
        assert_eq!(found(2, later), [""; 0]);
        assert_eq!(found(2, &later.replace("94371840", "83886080")).len(), 1);
    }

    #[test]
    fn what_ended_in_a_failure_is_no_spike() {
        let lines = "segment_alloc 0x10000000 524288000\n".to_owned()
            + &"alloc 0x10000000 1000 step@/m/a.py:2\nfree 0x10000000\n".repeat(50)
            + "alloc 0x10000000 83886080 clone@/m/a.py:3\n";
        let spikes = |end: &str| trace(&format!("{lines}{end}free 0x10000000\n")).messages(FindingCode::Spike).len();
        assert_eq!(spikes(""), 1);
        assert_eq!(spikes("oom 100 300000000\n"), 0);
        assert_eq!(trace(&lines).messages(FindingCode::Spike).len(), 0);
    }
}
