//! One step laid over another: what grew.

use serde::{Deserialize, Serialize};

use super::{Paint, Question};
use trace::totals::{Amount, difference};

/// Asks for one step over another, line by line. Steps are places in the list of steps, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareStepsQuery {
    /// The step that is compared with.
    pub earlier: u32,
    /// The step that is compared.
    pub later: u32,
    /// Whether peaks are compared, not ends.
    pub by_peak: bool,
    /// The maximum number of lines.
    pub rows: u32,
}

impl Question for CompareStepsQuery {
    type Answer = Box<StepComparison>;
}

/// The requested memory of some allocations in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMemory {
    /// Active where the step ends.
    pub end: Amount,
    /// The most bytes that were active at once in the step.
    pub peak: u64,
}

impl StepMemory {
    /// Returns the bytes that are compared.
    pub const fn bytes(&self, by_peak: bool) -> u64 {
        if by_peak { self.peak } else { self.end.bytes }
    }

    /// Adds or removes an allocation.
    pub const fn change(&mut self, bytes: u64, is_begin: bool) {
        if is_begin {
            self.end.add(bytes);
        } else {
            self.end = self.end.less(Amount { bytes, count: 1 });
        }
    }

    /// Adds other memory. Peaks that were reached at different moments add up to more than was ever active.
    pub const fn plus(&mut self, other: Self) {
        self.end.plus(other.end);
        self.peak = self.peak.saturating_add(other.peak);
    }
}

/// A line in both steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedLine {
    /// The number of its first stack, which identifies the line.
    pub stack: u32,
    /// Its text.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// Its memory in the earlier step.
    pub earlier: StepMemory,
    /// Its memory in the later step.
    pub later: StepMemory,
}

/// Returns by how many bytes a later step has more than an earlier one.
pub const fn step_growth(earlier: &StepMemory, later: &StepMemory, by_peak: bool) -> i64 {
    difference(later.bytes(by_peak), earlier.bytes(by_peak))
}

/// Returns what is remarkable about a line: it holds memory in one of two steps only.
pub const fn step_mark(earlier: &StepMemory, later: &StepMemory) -> Option<&'static str> {
    match (earlier.peak, later.peak) {
        (0, 1..) => Some("new"),
        (1.., 0) => Some("gone"),
        _ => None,
    }
}

/// One of the two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedStep {
    /// Its number: the annotation's, or counted from 1.
    pub number: u64,
    /// The position at which it begins.
    pub from: u32,
    /// The position at which it ends.
    pub to: u32,
    /// Whether its beginning and its end lie in the trace.
    pub is_whole: bool,
    /// The memory of all lines: its peak is that of their sum.
    pub memory: StepMemory,
    /// The first position that has that peak.
    pub peak_position: u32,
}

/// Two steps, line by line. At their ends, the lines and the rest add up to the memory of the steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepComparison {
    /// The query.
    pub query: CompareStepsQuery,
    /// How the steps were found: "from optimizer.step".
    pub source: String,
    /// The number of all steps.
    pub count: u32,
    /// The earlier step.
    pub earlier: ComparedStep,
    /// The later step.
    pub later: ComparedStep,
    /// The lines with memory in either step, the largest growth first.
    pub lines: Vec<ComparedLine>,
    /// The number of other lines.
    pub others: u32,
    /// Their memory in the earlier and in the later step.
    pub rest: (StepMemory, StepMemory),
}
