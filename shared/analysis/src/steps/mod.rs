//! The steps of a training job, or the requests of a server, derived from its trace.
//!
//! ```text
//! numbered annotations ─┐  ProfilerStep#12, "step 12"
//! optimizer.step        ├► the first that has two steps or more ─► Steps
//! zero_grad             │
//! the allocation pattern┘  the same lines ask for the same sizes, again and again
//! ```
//! A trace without any of these has no steps. All of it takes time proportional to the events, plus one sort.

mod marked;
mod optimizer;
mod pattern;

pub use marked::named_spans;
pub(super) use marked::phases as spans_of_phases;

use std::fmt;

use query::FROM_PATTERN;

use super::stack_traits::{StackTraits, Traits};
use replay::Replayed;
use trace::event::Action;
use trace::frames::Symbols;

/// How the steps of a trace were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// From the names of annotations and marks.
    Annotations,
    /// From the calls of `optimizer.step`: each ends a step.
    Optimizer,
    /// From the calls of `zero_grad`: each ends a step.
    ZeroGrad,
    /// From the allocation pattern: each step begins where least memory is in use.
    Pattern,
}

impl fmt::Display for StepSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Annotations => "from annotations",
            Self::Optimizer => "from optimizer.step",
            Self::ZeroGrad => "from zero_grad",
            Self::Pattern => FROM_PATTERN,
        })
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingStep {
    /// Its number: the annotation's, or counted from 1.
    pub number: u64,
    /// The position at which it begins.
    pub from: u32,
    /// The position at which it ends.
    pub to: u32,
    /// Whether its beginning and its end lie in the trace. A job may have died within its last step.
    pub is_whole: bool,
}

/// The steps of a device's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How they were found.
    pub source: StepSource,
    /// The steps in order. They do not overlap, and there may be events between them.
    pub steps: Vec<TrainingStep>,
}

impl Steps {
    /// Finds the steps of a trace; `None` if nothing in it repeats.
    pub fn of(input: Replayed<'_>, symbols: &Symbols, traits: &StackTraits) -> Option<Self> {
        let found = |source, steps: Option<Vec<TrainingStep>>| steps.map(|steps| Self { source, steps }.cut(input));
        let is_step = |name: &str| marked::is_step(name);
        found(StepSource::Annotations, marked::steps(input, symbols, is_step))
            .or_else(|| found(StepSource::Optimizer, optimizer::steps(input, symbols, traits, Traits::OPTIMIZER)))
            .or_else(|| found(StepSource::Optimizer, marked::steps_until(input, symbols, "Optimizer.step#")))
            .or_else(|| found(StepSource::Annotations, marked::steps(input, symbols, |_| true)))
            .or_else(|| found(StepSource::ZeroGrad, optimizer::steps(input, symbols, traits, Traits::ZERO_GRAD)))
            .or_else(|| found(StepSource::Pattern, pattern::steps(input, symbols, traits)))
    }

    /// Returns whether the steps are annotations of the trace.
    pub fn are_annotated(&self) -> bool {
        self.source == StepSource::Annotations
    }

    /// Marks the last step as not whole if the program allocated nothing after a request had failed in it.
    fn cut(mut self, input: Replayed<'_>) -> Self {
        let asks = [Action::Alloc as u8, Action::Oom as u8];
        let actions = &input.trace.events.action;
        let last = (1..).zip(actions.iter().rev()).find(|(_, action)| asks.contains(action));
        if let (Some(step), Some((from_end, action))) = (self.steps.last_mut(), last)
            && action == Action::Oom as u8
            && step.from as usize <= actions.len() - from_end
        {
            step.is_whole = false;
        }
        self
    }

    /// Returns the step that a position lies in.
    pub fn at(&self, position: u32) -> Option<&TrainingStep> {
        let after = self.steps.partition_point(|step| step.from <= position);
        self.steps.get(after.checked_sub(1)?).filter(|step| position < step.to)
    }

    /// Returns the whole steps that end by a position, without gaps: what comes between two steps belongs to the first
    /// of them, and what comes after the last one to that. None if whole steps don't follow each other.
    pub fn slots(&self, until: u32) -> Vec<TrainingStep> {
        let ends = self.steps.iter().skip(1).map(|next| next.from);
        let ends = ends.chain([until]);
        let slots = self.steps.iter().zip(ends).map(|(step, to)| TrainingStep { to: step.to.max(to), ..*step });
        let is_done = |step: &TrainingStep| step.is_whole && step.to <= until;
        slots.skip_while(|step| !step.is_whole).take_while(is_done).collect()
    }

    /// Returns the step with a number.
    pub fn numbered(&self, number: u64) -> Option<&TrainingStep> {
        self.steps.iter().find(|step| step.number == number)
    }
}

/// Of a hundred allocations of the second step, how many the first one has if it is whole.
const PERCENT_WHOLE: u64 = 90;

/// Makes steps that each end at one of `ends`, which rise, and an unfinished one after the last. `None` for fewer than
/// two ends.
fn ending_at(input: Replayed<'_>, ends: &[u32]) -> Option<Vec<TrainingStep>> {
    let (&first, &last) = (ends.first()?, ends.last()?);
    if ends.len() < 2 {
        return None;
    }
    let made = |position: u32| input.replay.allocations.made_by(position);
    let mut from = first_start(input, first);
    let mut steps: Vec<TrainingStep> = Vec::with_capacity(ends.len() + 1);
    for (&to, number) in ends.iter().zip(1..) {
        steps.push(TrainingStep { number, from, to, is_whole: true });
        from = to;
    }
    // A trace whose older events were dropped begins within a step.
    if let [first, second, ..] = steps.as_mut_slice() {
        let count = |step: &TrainingStep| u64::from(made(step.to) - made(step.from));
        first.is_whole = count(first) * 100 >= count(second) * PERCENT_WHOLE;
    }
    let end = input.replay.positions();
    if made(end) > made(last) {
        steps.push(TrainingStep { number: ends.len() as u64 + 1, from, to: end, is_whole: false });
    }
    Some(steps)
}

/// Returns where the step begins that ends at `first`. What comes before it is the set-up: the second step begins with
/// some call site, and the first step where that call site is seen first.
fn first_start(input: Replayed<'_>, first: u32) -> u32 {
    let allocations = &input.replay.allocations;
    let made = allocations.made_by(first) as usize;
    let stack = allocations.stack.range(made..allocations.len()).find(|stack| *stack != 0);
    let Some(stack) = stack else { return 0 };
    let same = allocations.stack.range(0..made).position(|other| other == stack);
    let begin = same.and_then(|number| allocations.begin.get(number));
    begin.map_or(0, |begin| begin.saturating_sub(1))
}

/// Returns whether an action makes an allocation.
fn is_alloc(action: u8) -> bool {
    action == Action::Alloc as u8
}

#[cfg(test)]
mod tests;
