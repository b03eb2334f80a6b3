//! Steps that need more from one to the next and give it back again, as where sequences or batches become longer.
//!
//! What a line keeps is a leak, which other rules find.

use std::fmt;

use super::RuleContext;
use super::lines::by_line;
use super::thresholds::{GROWTH_PERCENT, STEPS_OF_GROWTH, is_share};
use analysis::peak::held_at;
use analysis::steps::{StepSource, Steps};
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use replay::Change;
use trace::units::{Bytes, Count};

/// Parts that the steps are divided into to see a trend: more of them would not show more.
const PARTS: usize = 32;
/// The rise of each half of the steps is at least one part in this many of the whole: one that has ended is no trend.
const LEAST_PART: u64 = 5;

/// The requested memory of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    number: u64,
    from: u32,
    to: u32,
    /// The least and the most. What the step before left is freed within the step.
    least: u64,
    most: u64,
    /// The first position with the most.
    at: u32,
}

/// Steps that need more and more.
#[derive(Clone, Debug)]
pub(crate) struct StepGrowth {
    first: Peak,
    last: Peak,
    /// The steps from the first to the last.
    steps: u64,
}

impl StepGrowth {
    /// Returns by how many bytes the last peak is above the first.
    fn rise(&self) -> u64 {
        self.last.most.saturating_sub(self.first.most)
    }

    /// Returns by how many bytes the least of the last step is above that of the first.
    fn kept(&self) -> u64 {
        self.last.least.saturating_sub(self.first.least)
    }

    /// Whether most of the rise stays live between the steps, as what somebody keeps does.
    fn is_kept(&self) -> bool {
        self.kept() >= self.rise() / 2
    }

    /// Returns what to do about it.
    pub(crate) fn remedy(&self) -> Remedy {
        Remedy::advice(match self.is_kept() {
            true => {
                "Find what keeps tensors from step to step: a list, a cache, or the graph of a loss that is kept (store .item() or \
                 .detach().cpu())."
            }
            false => {
                "Find what grows from step to step, such as the length of sequences or the size of batches, and cap it."
            }
        })
    }
}

impl fmt::Display for StepGrowth {
    /// Writes how the peak rose, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, steps } = self;
        write!(
            f,
            "the peak of requested memory was {} in step {} and {} in step {}, {} more in each step on average",
            Bytes(first.most),
            Count(first.number),
            Bytes(last.most),
            Count(last.number),
            Bytes(self.rise() / (*steps).max(1)),
        )
    }
}

/// Returns how the peaks of the steps rise. The steps have to be known: what only repeats may be anything.
pub(super) fn step_growth(context: &RuleContext<'_>) -> Option<StepGrowth> {
    let case = context.case;
    let end = context.failed.unwrap_or_else(|| case.replay.positions());
    // What still grows is highest at the end.
    if case.usage.peak_position < end / 4 * 3 {
        return None;
    }
    let steps = case.steps().filter(|steps| steps.source != StepSource::Pattern)?;
    let peaks = peaks(context, steps);
    // The first step also sets up: an optimizer makes its state.
    let peaks = peaks.get(1..)?;
    let (first, last) = (peaks.first()?, peaks.last()?);
    let growth = StepGrowth { first: *first, last: *last, steps: peaks.len().saturating_sub(1) as u64 };
    let rise = growth.rise();
    if peaks.len() < STEPS_OF_GROWTH || !is_share(rise, case.usage.peak_bytes, GROWTH_PERCENT) || !is_trend(peaks) {
        return None;
    }
    (growth.kept() < rise / 2 || context.rising.is_empty()).then_some(growth)
}

/// Returns the finding that the peaks of the steps rise.
pub(super) fn check(context: &RuleContext<'_>) -> Option<Finding> {
    let growth = context.step_growth()?;
    let StepGrowth { first, last, .. } = growth;
    let (rise, kept) = (growth.rise(), growth.kept());
    let mut message = format!("Steps need more and more: {growth}.");
    let grown = most_grown(context, first.at, last.at);
    if let Some((line, before, after)) = &grown {
        message += &format!(" {line} grew most, from {} to {}.", Bytes(*before), Bytes(*after));
    }
    if growth.is_kept() {
        message += &format!(" {} of it stays live between the steps.", Bytes(kept));
    }
    let severity = if context.failed.is_some() { Severity::Warning } else { Severity::Note };
    let finding = Finding::new(FindingCode::Growth, message)
        .with_severity(severity)
        .at(last.at)
        .with_bytes(rise)
        .with_evidence(Evidence::Window(first.from, last.to))
        .with_remedy(growth.remedy());
    Some(finding)
}

/// Returns the peaks of the whole steps, in one sweep.
fn peaks(context: &RuleContext<'_>, steps: &Steps) -> Vec<Peak> {
    let replay = context.case.replay;
    let mut peaks: Vec<Peak> = (steps.steps.iter().filter(|step| step.is_whole))
        .map(|step| Peak { number: step.number, from: step.from, to: step.to, ..Peak::default() })
        .collect();
    let mut requested = replay.allocations.requested.reader();
    let mut bytes = |id: u32| requested.get(id as usize).unwrap_or(0);
    let mut live = replay.active_at(0).into_iter().fold(0_u64, |sum, id| sum.saturating_add(bytes(id)));
    let mut next = 0;
    replay.changes(context.case.trace, 0, u32::MAX, |position, change| {
        // A step includes the events after its start.
        while peaks.get(next).is_some_and(|peak| peak.to < position) {
            next += 1;
        }
        let now = peaks.get_mut(next).filter(|peak| peak.from < position);
        let before = live;
        match change {
            Change::Begin(id) => live = live.saturating_add(bytes(id)),
            Change::End(id) => live = live.saturating_sub(bytes(id)),
            Change::Freed(_) | Change::Reserved(_) => return,
        }
        let Some(peak) = now else { return };
        if peak.at == 0 {
            // Up to its first change, it holds what was live before.
            (peak.least, peak.most, peak.at) = (before, before, peak.from.max(1));
        }
        peak.least = peak.least.min(live);
        if live > peak.most {
            (peak.most, peak.at) = (live, position);
        }
    });
    peaks.retain(|peak| peak.at > 0);
    peaks
}

/// Returns whether peaks rise all along: of all pairs of parts, the later one is higher in nine of ten or more, and each half
/// adds to the rise.
fn is_trend(peaks: &[Peak]) -> bool {
    let middle = |part: &[Peak]| {
        let mut most: Vec<u64> = part.iter().map(|peak| peak.most).collect();
        most.sort_unstable();
        most.get(most.len() / 2).copied().unwrap_or(0)
    };
    let parts: Vec<u64> = peaks.chunks(peaks.len().div_ceil(PARTS).max(1)).map(middle).collect();
    let (mut rising, mut all) = (0_u32, 0_u32);
    for (i, earlier) in parts.iter().enumerate() {
        for later in parts.iter().skip(i + 1) {
            all += 1;
            rising += u32::from(later > earlier);
        }
    }
    let [first, half, last] =
        [0, parts.len() / 2, parts.len().saturating_sub(1)].map(|i| parts.get(i).copied().unwrap_or(0));
    let least = last.saturating_sub(first) / LEAST_PART;
    let adds = half.saturating_sub(first) >= least && last.saturating_sub(half) >= least;
    rising * 10 >= all * 9 && adds
}

/// Returns the line that holds most more at the second position than at the first, with both; none that keeps what it allocates,
/// which is a finding of its own.
fn most_grown(context: &RuleContext<'_>, first: u32, last: u32) -> Option<(String, u64, u64)> {
    let replay = context.case.replay;
    let before = by_line(context, &held_at(replay, first));
    let after = by_line(context, &held_at(replay, last));
    let held_before = |line| before.iter().find(|(other, _)| *other == line).map_or(0, |(_, held)| held.bytes);
    let kept: Vec<_> = context.rising.iter().map(|candidate| context.frame(candidate.stack)).collect();
    let known = after.iter().filter(|(line, _)| line.is_some() && !kept.contains(line));
    let grown = known
        .map(|(line, held)| (held, held_before(*line)))
        .max_by_key(|(held, before)| held.bytes.saturating_sub(*before))?;
    let (held, before) = grown;
    (held.bytes > before).then(|| (context.line(held.stack), before, held.bytes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use query::finding::FindingCode;

    /// Steps that each hold `size(step)` bytes for a moment, and keep `kept` bytes.
    fn found(steps: u64, size: impl Fn(u64) -> u64, kept: u64) -> Vec<String> {
        let mut lines = "segment_alloc 0x10000000 524288000\nalloc 0x10000000 4194304 model@/m/a.py:1\n".to_owned();
        for step in 0..steps {
            lines += &format!("alloc 0x11000000 {} forward@/m/a.py:5\n", size(step));
            if kept > 0 {
                lines += &format!("alloc {} {kept} log@/m/a.py:9\n", 0x1800_0000 + step * 0x20_0000);
            }
            lines += "alloc 0x17000000 512 step@/v/site-packages/torch/optim/adam.py:9 main@/m/t.py:8\n";
            lines += "free 0x17000000\nfree 0x11000000\n";
        }
        trace(&lines).messages(FindingCode::Growth)
    }

    #[test]
    fn steps_that_need_more_each_time_are_found() {
        assert_eq!(
            found(12, |step| (10 + 5 * step) << 20, 0),
            [
                "Steps need more and more: the peak of requested memory was 19.0 MiB in step 2 and 69.0 MiB in step 12, 5.00 \
                 MiB more in each step on average. m/a.py:5 (forward) grew most, from 15.0 MiB to 65.0 MiB."
            ]
        );
        // Some steps are smaller than the one before.
        assert_eq!(found(40, |step| (20 + 2 * step - 3 * (step % 7 / 6)) << 20, 0).len(), 1);
    }

    #[test]
    fn a_line_that_leaks_is_not_told_as_growth_as_well() {
        let mut lines = "segment_alloc 0x10000000 2147483648\n".to_owned();
        for step in 1..=20_u64 {
            // Three lines need more for a moment, and a fourth keeps more than each of them needs.
            for (i, line) in ["a", "b", "c"].iter().enumerate() {
                let address = 0x2000_0000 + i * 0x1000_0000;
                lines += &format!("alloc {address} {} {line}@/m/a.py:{}\n", (step * 3) << 20, i + 1);
            }
            lines += &format!("alloc {} {} log@/m/a.py:9\n", 0x6000_0000 + step * 0x100_0000, 4 << 20);
            lines += "alloc 0x17000000 512 step@/v/site-packages/torch/optim/adam.py:9 main@/m/t.py:8\n";
            lines += "free 0x17000000\nfree 0x20000000\nfree 0x30000000\nfree 0x40000000\n";
        }
        let found = trace(&lines);
        let [leak] = found.messages(FindingCode::Leak).try_into().unwrap();
        let [growth] = found.messages(FindingCode::Growth).try_into().unwrap();
        assert!(leak.starts_with("m/a.py:9 (log) kept 4.00 MiB more in each step"), "{leak}");
        assert!(growth.contains("grew most") && !growth.contains("m/a.py:9"), "{growth}");
    }

    #[test]
    fn other_steps_are_not() {
        // Equal ones, few, random lengths, a first part that is smaller, and a single rise at the end.
        type Size = fn(u64) -> u64;
        let sizes: [(u64, Size); 5] = [
            (40, |_| 30),
            (5, |step| 10 + 10 * step),
            (60, |step| 10 + (step * step * 7_919 + step * 104_729) % 61),
            (40, |step| if step < 20 { 10 + step } else { 50 }),
            (40, |step| if step == 39 { 90 } else { 30 }),
        ];
        for (steps, size) in sizes {
            assert_eq!(found(steps, |step| size(step) << 20, 0), [""; 0], "{steps}");
        }
        // The rule for leaks reports a leak, so this one does not.
        assert_eq!(found(40, |_| 30 << 20, 2 << 20), [""; 0]);
    }
}
