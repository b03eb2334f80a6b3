//! A run at one moment, in brief: what a comparison of two runs is made from.

use serde::{Deserialize, Serialize};

use std::collections::BTreeSet;

use super::{Category, FROM_PATTERN, Question, Sealed, StepList};
use trace::order::SortFew;
use trace::totals::{Amount, difference};
use trace::units::Count;

/// Which moment of a run is profiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MomentChoice {
    /// Where most was requested.
    #[default]
    Peak,
    /// The end of the trace.
    End,
    /// Where most was requested in the step with this number.
    Step(u64),
    /// Where the step with this number ends.
    StepEnd(u64),
    /// Where the first annotation with this name ends, or the first instant with it is.
    Mark(String),
    /// Where most was requested within the annotations with this name.
    Phase(String),
    /// After this many events.
    Event(u32),
    /// So many microseconds after the trace begins.
    Time(u64),
}

impl MomentChoice {
    /// Returns the moment at which two runs are compared unless a person names another: the peak of the last whole step that
    /// both have, by when what is allocated once is there; without one, or if their steps are no like units of work, the peak of each;
    /// and the end if not both have a history.
    pub fn common(has_history: bool, a: &WholeSteps, b: &WholeSteps) -> Self {
        let is_found = a.source == FROM_PATTERN || b.source == FROM_PATTERN;
        let [a, b] = [&a.steps, &b.steps];
        let numbers: BTreeSet<u64> = a.iter().map(|(number, _)| *number).collect();
        match b.iter().map(|(number, _)| *number).filter(|number| numbers.contains(number)).max() {
            Some(number) if !is_found || are_steps_alike(a, b) => Self::Step(number),
            _ if has_history => Self::Peak,
            _ => Self::End,
        }
    }
}

/// The steps of a run that lie in its trace from their beginning to their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeSteps {
    /// How they were found.
    pub source: String,
    /// The number of each, and its events.
    pub steps: Vec<(u64, u32)>,
}

impl WholeSteps {
    /// Returns the numbers of the two steps at which a run is compared with itself unless a person names others: the second and the
    /// last. After the first one, what is allocated once is there. `None` if there are fewer than two.
    pub fn early_and_last(&self) -> Option<[u64; 2]> {
        match self.steps.as_slice() {
            [_, (early, _), .., (last, _)] | [(early, _), (last, _)] => Some([*early, *last]),
            _ => None,
        }
    }
}

impl From<&StepList> for WholeSteps {
    fn from(list: &StepList) -> Self {
        let whole = list.steps.iter().filter(|step| step.is_whole);
        let steps = whole.map(|step| (step.number, step.to.saturating_sub(step.from))).collect();
        Self { source: list.source.clone(), steps }
    }
}

/// Returns whether the steps of two runs are like units of work: those in the middle have about as many events. A decoded token is
/// none of a request.
fn are_steps_alike(a: &[(u64, u32)], b: &[(u64, u32)]) -> bool {
    /// How many times as many events a step may have: twice for twice the layers, and again for a batch in parts.
    const MOST_APART: u64 = 4;
    let middle = |steps: &[(u64, u32)]| {
        let mut events: Vec<u32> = steps.iter().map(|(_, events)| *events).collect();
        events.sort_few_by_key(|events| *events);
        u64::from(events.get(events.len() / 2).copied().unwrap_or(0))
    };
    let (a, b) = (middle(a), middle(b));
    a.max(b) <= a.min(b).saturating_mul(MOST_APART)
}

/// Asks for the profile of a run, to compare it with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProfileQuery {
    /// The name of the file or of the job, for [`RunProfile::name`].
    pub name: String,
    /// The moment.
    pub moment: MomentChoice,
}

impl Question for RunProfileQuery {
    type Answer = Sealed<RunProfile>;
}

/// A device of a run at one moment.
///
/// Its lines, what has no stack and what was there when recording began add up to [`ProfiledMemory::allocated`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProfile {
    /// The name of the file or of the job.
    pub name: String,
    /// The device's number.
    pub device: i64,
    /// Under which conditions it ran and was recorded.
    pub conditions: Conditions,
    /// The moment.
    pub moment: ProfiledMoment,
    /// The memory at that moment.
    pub memory: ProfiledMemory,
    /// The most of the whole run.
    #[serde(default)]
    pub most: MostMemory,
    /// The lines that hold memory at that moment, or allocated any in the part of the trace that it stands for.
    pub lines: Vec<ProfiledLine>,
    /// Live tensors that were allocated after recording began, and have no stack.
    pub without_stack: Amount,
    /// Live tensors without a stack that were there when recording began.
    pub at_start: Amount,
    /// The inputs that it allocated in the step of the moment: its batch, or its tokens.
    #[serde(default)]
    pub inputs: Amount,
    /// Live tensors by category, in the order of [`Category::ALL`], without those in `at_start`.
    pub categories: Vec<Amount>,
    /// The memory of each stream that has any, in the order of first use.
    #[serde(default)]
    pub streams: Vec<ProfiledPart>,
    /// The memory of each pool that has any: the default one, and then private ones, as CUDA graphs have them.
    #[serde(default)]
    pub pools: Vec<ProfiledPart>,
}

/// The memory of a stream or of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledPart {
    /// Its name: see [`stream_name`](super::stream_name) and [`pool_name`](super::pool_name).
    pub name: String,
    /// Its live tensors.
    pub held: Amount,
    /// Bytes that are reserved for it.
    pub reserved: u64,
}

/// Under which conditions a run was made and recorded: what has to be equal for a difference to mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// The PyTorch release; empty if it is not known.
    pub torch: String,
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The device's name; empty if it is not known.
    pub card: String,
    /// The device's memory in bytes; 0 if it is not known.
    pub capacity: u64,
    /// The rank of the process; `None` if it has none.
    pub rank: Option<u32>,
    /// The number of the job's processes; `None` if it is not known.
    #[serde(default)]
    pub ranks: Option<u32>,
    /// Bytes that were reserved when recording began.
    pub reserved_at_start: u64,
    /// Events that are missing.
    pub lost: u64,
    /// Whether the file is damaged or ends too early.
    pub is_damaged: bool,
    /// Whether the trace says how its end came about.
    pub has_history: bool,
    /// Whether its allocations have stacks.
    pub has_stacks: bool,
    /// How the steps were found, such as `from optimizer.step`; empty without any.
    pub steps: String,
    /// Requests that failed.
    pub failed: u64,
}

/// The moment that a profile is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledMoment {
    /// The position.
    pub position: u32,
    /// Microseconds since the trace begins.
    pub time_us: u64,
    /// The number of the step that it lies in, if it was chosen by its step.
    pub step: Option<u64>,
    /// The name of the annotations that it lies in, if it was chosen by them.
    pub phase: Option<String>,
    /// Whether most was requested then, of the run, of the step or within the annotations.
    pub is_peak: bool,
    /// What it is, for a sentence: `the peak of step 12`.
    pub text: String,
}

impl ProfiledMoment {
    /// Returns what it is, with its event: `the peak of step 12, event 3,400`.
    pub fn named(&self) -> String {
        let event = format!("event {}", Count(self.position.into()));
        if self.text == event { event } else { format!("{}, {event}", self.text) }
    }
}

/// The memory of a device at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledMemory {
    /// What live tensors requested.
    pub allocated: u64,
    /// The blocks of live tensors.
    pub blocks: u64,
    /// The blocks of live tensors, and those that wait for a stream.
    pub active: u64,
    /// What the allocator has taken from the driver.
    pub reserved: u64,
    /// What the process has outside the allocator, if it was sampled.
    pub outside: Option<u64>,
}

/// The most memory that a run had, each at a moment of its own, in bytes. 0 if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MostMemory {
    /// What tensors requested, with those that wait for a stream.
    pub allocated: u64,
    /// What the allocator had taken from the driver.
    pub reserved: u64,
}

impl ProfiledMemory {
    /// Returns what is lost to rounding. With [`Self::waiting`], [`Self::gaps`] and `allocated` it adds up to `reserved`.
    pub const fn rounding(&self) -> i64 {
        difference(self.blocks, self.allocated)
    }

    /// Returns what waits for a stream.
    pub const fn waiting(&self) -> i64 {
        difference(self.active, self.blocks)
    }

    /// Returns what is reserved and in no active block. Less than zero if trace and segments disagree.
    pub const fn gaps(&self) -> i64 {
        difference(self.reserved, self.active)
    }
}

/// A line of code in a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledLine {
    /// The function, as recorded.
    pub function: String,
    /// The file, as recorded; empty if it is unknown.
    pub file: String,
    /// The line's number; 0 if it is unknown.
    pub number: u32,
    /// The line for people: `forward  models/gpt.py:54`.
    pub label: String,
    /// One of its stacks, by its number. In an answer it is the first one, which identifies the line.
    pub stack: u32,
    /// Its live tensors at the moment.
    pub held: Amount,
    /// What it allocated in the step of the moment, or up to the moment.
    pub requests: Amount,
    /// A digest of the sizes of those requests, in their order.
    pub sizes: u64,
    /// What most of its live tensors are for, or else what it allocated.
    pub category: Category,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_are_compared_at_their_last_common_step_if_steps_are_alike() {
        let of = |source: &str, steps: &[(u64, u32)]| WholeSteps { source: source.to_owned(), steps: steps.to_vec() };
        let common = |has_history, a: &[(u64, u32)], b: &[(u64, u32)]| {
            MomentChoice::common(has_history, &of(FROM_PATTERN, a), &of(FROM_PATTERN, b))
        };
        let steps = [(1, 90), (2, 100), (3, 100)];
        assert_eq!(common(true, &steps, &[(2, 210), (3, 200), (4, 200)]), MomentChoice::Step(3));
        assert_eq!(common(true, &steps, &[(7, 100)]), MomentChoice::Peak, "none in common");
        assert_eq!(common(true, &steps, &[(1, 20), (2, 20), (3, 20)]), MomentChoice::Peak, "tokens are no requests");
        let other = of("from optimizer.step", &[(1, 20), (2, 20), (3, 20)]);
        let own = of("from optimizer.step", &steps);
        assert_eq!(
            MomentChoice::common(true, &own, &other),
            MomentChoice::Step(3),
            "an optimizer's are, whatever they allocate"
        );
        assert_eq!(common(true, &[], &steps), MomentChoice::Peak);
        assert_eq!(common(false, &[], &[]), MomentChoice::End);
        let own = |steps: &[(u64, u32)]| of("", steps).early_and_last();
        assert_eq!([own(&steps), own(&steps[..2]), own(&steps[..1])], [Some([2, 3]), Some([1, 2]), None]);
    }
}
