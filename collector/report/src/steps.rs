//! One step over another, line by line, for programs and as text.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use analysis::site::label;
use analysis::step_memory::StepSums;
use analysis::steps::TrainingStep;
use doctor::Case;
use query::{StepMemory, step_growth, step_mark};
use replay::Replayed;
use trace::totals::difference;
use trace::units::{Bytes, Count, counted};

/// Number of lines shown as text. The JSON has all of them.
const LINES: usize = 20;

/// The comparison of a step with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepsReport {
    /// How the steps were found: `from optimizer.step`. `None` if the trace has none.
    pub found: Option<String>,
    /// The number of all steps.
    pub count: u32,
    /// The step that is compared with; `None` if the trace has no such step.
    pub earlier: Option<StepReport>,
    /// The step that is compared.
    pub later: Option<StepReport>,
    /// The lines that hold memory in either step, the largest growth at the end first.
    pub lines: Vec<StepLineReport>,
    /// The first and the last number of the steps.
    #[serde(skip)]
    numbers: Option<(u64, u64)>,
    #[serde(skip)]
    wanted: (u64, u64),
    /// Whether the trace has them.
    #[serde(skip)]
    is_known: (bool, bool),
}

/// One of two steps. Sizes are requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Its number: the annotation's, or counted from 1.
    pub number: u64,
    /// The number of events before it.
    pub from: u32,
    /// The number of events before its end.
    pub to: u32,
    /// Whether its beginning and its end lie in the trace.
    pub is_whole: bool,
    /// Active where it ends.
    pub end_bytes: u64,
    /// The most that was active at once.
    pub peak_bytes: u64,
}

/// The memory of a line in two steps. Sizes are requested bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepLineReport {
    /// The line.
    pub line: String,
    /// Active at the end of the earlier step.
    pub earlier_end_bytes: u64,
    /// Active at the end of the later step.
    pub later_end_bytes: u64,
    /// The most that was active at once in the earlier step.
    pub earlier_peak_bytes: u64,
    /// The most that was active at once in the later step.
    pub later_peak_bytes: u64,
    /// By how much more is active at the end.
    pub growth_bytes: i64,
    /// `new` or `gone`, if only one of the steps has the line.
    pub mark: Option<&'static str>,
}

impl StepsReport {
    /// Compares the steps with two numbers, of several with one number the first.
    pub(super) fn of(case: &Case<'_>, wanted: (u64, u64)) -> Self {
        let Case { trace, tags, replay, symbols, roles, .. } = *case;
        let input = Replayed { trace, tags, replay };
        let Some(steps) = roles.steps(input, symbols) else {
            let (found, count, earlier, later) = (None, 0, None, None);
            return Self {
                found,
                count,
                earlier,
                later,
                lines: Vec::new(),
                numbers: None,
                wanted,
                is_known: (false, false),
            };
        };
        let (earlier, later) = (steps.numbered(wanted.0).copied(), steps.numbered(wanted.1).copied());
        let mut report = Self {
            found: Some(steps.source.to_string()),
            count: u32::try_from(steps.steps.len()).unwrap_or(u32::MAX),
            earlier: None,
            later: None,
            lines: Vec::new(),
            numbers: steps.steps.first().zip(steps.steps.last()).map(|(first, last)| (first.number, last.number)),
            wanted,
            is_known: (earlier.is_some(), later.is_some()),
        };
        let (Some(earlier), Some(later)) = (earlier, later) else { return report };
        let mut names: Vec<String> = Vec::new();
        let (mut numbers, mut of_stack) = (FxHashMap::default(), FxHashMap::default());
        let mut sums = |step: &TrainingStep| {
            StepSums::build(input, replay.active_at(step.from), step, |stack| {
                *of_stack.entry(stack).or_insert_with(|| {
                    let name = label(symbols, case.best_frames, stack);
                    *numbers.entry(name.clone()).or_insert_with(|| {
                        names.push(name);
                        names.len() - 1
                    })
                })
            })
        };
        let (before, after) = (sums(&earlier), sums(&later));
        let facts = |step: TrainingStep, memory: StepMemory| StepReport {
            number: step.number,
            from: step.from,
            to: step.to,
            is_whole: step.is_whole,
            end_bytes: memory.end.bytes,
            peak_bytes: memory.peak,
        };
        (report.earlier, report.later) = (Some(facts(earlier, before.all)), Some(facts(later, after.all)));
        let of = |sums: &StepSums<usize>, i: usize| sums.lines.get(&i).copied().unwrap_or_default();
        let lines = names.into_iter().enumerate().map(|(i, line)| {
            let (earlier, later) = (of(&before, i), of(&after, i));
            StepLineReport {
                line,
                earlier_end_bytes: earlier.end.bytes,
                later_end_bytes: later.end.bytes,
                earlier_peak_bytes: earlier.peak,
                later_peak_bytes: later.peak,
                growth_bytes: step_growth(&earlier, &later, false),
                mark: step_mark(&earlier, &later),
            }
        });
        report.lines = lines.filter(|line| line.earlier_peak_bytes > 0 || line.later_peak_bytes > 0).collect();
        report.lines.sort_by(|a, b| {
            let by_size = b.growth_bytes.cmp(&a.growth_bytes).then(b.later_end_bytes.cmp(&a.later_end_bytes));
            by_size.then(b.later_peak_bytes.cmp(&a.later_peak_bytes)).then_with(|| a.line.cmp(&b.line))
        });
        report
    }
}

/// Formats a change: `+1.00 MiB`, `-512 B`.
fn change(bytes: i64) -> String {
    let sign = match bytes {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", Bytes(bytes.unsigned_abs()))
}

impl fmt::Display for StepsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(found), Some((first, last))) = (&self.found, self.numbers) else {
            return writeln!(f, "  steps  Nothing in this trace repeats, so it has no steps.");
        };
        let (Some(earlier), Some(later)) = (&self.earlier, &self.later) else {
            let missing = if self.is_known.0 { self.wanted.1 } else { self.wanted.0 };
            let (missing, first, last) = (Count(missing), Count(first), Count(last));
            return writeln!(f, "  steps  There is no step {missing}: the steps, {found}, are {first} to {last}.");
        };
        writeln!(
            f,
            "  step {} over step {} ({} in all, {found}), by line: growth at the end, end, peak",
            Count(later.number),
            Count(earlier.number),
            counted(self.count.into(), "step")
        )?;
        let row = |f: &mut fmt::Formatter<'_>, growth: i64, end: (u64, u64), peak: (u64, u64), what: &str| {
            let ends = format!("{} to {}", Bytes(end.0), Bytes(end.1));
            let peaks = format!("{} to {}", Bytes(peak.0), Bytes(peak.1));
            writeln!(f, "  {:>11}  {ends:>22}  {peaks:>22}  {what}", change(growth))
        };
        let all = difference(later.end_bytes, earlier.end_bytes);
        let (end, peak) = ((earlier.end_bytes, later.end_bytes), (earlier.peak_bytes, later.peak_bytes));
        row(f, all, end, peak, "all lines")?;
        for line in self.lines.iter().take(LINES) {
            let end = (line.earlier_end_bytes, line.later_end_bytes);
            let peak = (line.earlier_peak_bytes, line.later_peak_bytes);
            let mark = line.mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
            row(f, line.growth_bytes, end, peak, &format!("{}{mark}", line.line))?;
        }
        match self.lines.len().saturating_sub(LINES) {
            0 => Ok(()),
            others => writeln!(f, "  and {}; --json has all", counted(others as u64, "other line")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doctor::testing::TestCase;

    /// Three steps, each of which keeps 1 KiB more.
    fn text(wanted: (u64, u64)) -> String {
        let mut lines = "segment_alloc 0x1000000 20971520".to_owned();
        for step in 0..3 {
            lines += &format!(
                "\nalloc 0x1000000 4096 f@/m/a.py:1\nfree 0x1000000\nalloc {} 1024 keep@/m/a.py:2",
                0x110_0000 + step * 4_096
            );
            lines += "\nalloc 0x1200000 512 step@/v/torch/optim/sgd.py:9 main@/m/a.py:3\nfree 0x1200000";
        }
        StepsReport::of(&TestCase::new(&lines).case(), wanted).to_string()
    }

    #[test]
    fn steps_as_text() {
        let want = "  step 3 over step 1 (3 steps in all, from optimizer.step), by line: growth at the end, end, peak
    +2.00 KiB    1.50 KiB to 3.50 KiB    4.00 KiB to 6.00 KiB  all lines
    +2.00 KiB    1.00 KiB to 3.00 KiB    1.00 KiB to 3.00 KiB  keep  m/a.py:2
          0 B          512 B to 512 B          512 B to 512 B  main  m/a.py:3
          0 B              0 B to 0 B    4.00 KiB to 4.00 KiB  f  m/a.py:1
";
        assert_eq!(text((1, 3)), want);
    }

    #[test]
    fn a_step_that_is_not_there_is_named() {
        assert_eq!(text((1, 9)), "  steps  There is no step 9: the steps, from optimizer.step, are 1 to 3.\n");
        assert_eq!(text((0, 3)), "  steps  There is no step 0: the steps, from optimizer.step, are 1 to 3.\n");
        let none = StepsReport::of(&TestCase::new("alloc 0x1000 512").case(), (1, 2));
        assert_eq!(none.to_string(), "  steps  Nothing in this trace repeats, so it has no steps.\n");
    }
}
