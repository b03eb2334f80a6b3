//! Memory by line: each line of the program with all of its stacks.

use serde::{Deserialize, Serialize};

use super::{Class, ColorBy, FrameText, MissingText, Paint, Question, RangeAmounts};
use crate::term::is_any_category;
use trace::totals::{Amount, difference};

/// The moment that memory is listed for, or the two moments between which its growth is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// The position.
    pub at: u32,
    /// An earlier position: the growth since then is listed.
    pub since: Option<u32>,
}

/// The active memory of some allocations at the position of [`Moments`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// At the position.
    pub now: Amount,
    /// At the earlier position; zero without one.
    pub before: Amount,
}

impl Memory {
    /// Returns the bytes by which it grew; all of it without an earlier position.
    pub const fn growth(&self) -> i64 {
        difference(self.now.bytes, self.before.bytes)
    }

    /// Returns the number of allocations by which it grew.
    pub const fn count_growth(&self) -> i64 {
        difference(self.now.count as u64, self.before.count as u64)
    }

    /// Adds other memory.
    pub const fn plus(&mut self, other: Self) {
        self.now.plus(other.now);
        self.before.plus(other.before);
    }

    /// Returns what is left without other memory, which is part of it.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self { now: self.now.less(other.now), before: self.before.less(other.before) }
    }
}

/// Asks for the active memory by line at a position, or its growth between two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinesQuery {
    /// When.
    pub moments: Moments,
    /// The maximum number of rows.
    pub rows: u32,
    /// Search terms, all of which an allocation must match to be counted.
    pub filter: Vec<String>,
}

impl Question for LinesQuery {
    type Answer = Lines;

    fn needs_categories(&self) -> bool {
        is_any_category(&self.filter, None)
    }
}

/// A line of the program with its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineRow {
    /// The number of its first stack, which identifies the line.
    pub stack: u32,
    /// Its text.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The number of its stacks that have memory here.
    pub stacks: u32,
    /// The memory of all of its stacks.
    pub memory: Memory,
}

/// Memory by line. The rows and the rest add up to the total.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The query.
    pub query: LinesQuery,
    /// The lines with the most memory, or with the largest growth, first.
    pub rows: Vec<LineRow>,
    /// The number of other lines.
    pub others: u32,
    /// Their memory.
    pub rest: Memory,
    /// The memory of all lines.
    pub total: Memory,
}

/// Asks for the details of one line of call sites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineQuery {
    /// The number of any of its stacks.
    pub stack: u32,
    /// When.
    pub moments: Moments,
    /// A range of positions whose sums are wanted.
    pub range: Option<(u32, u32)>,
    /// Search terms, all of which an allocation must match to be counted in [`LineDetail::memory`] and
    /// [`LineDetail::stacks`].
    pub filter: Vec<String>,
}

impl Question for LineQuery {
    type Answer = Box<LineDetail>;

    fn needs_categories(&self) -> bool {
        is_any_category(&self.filter, None)
    }
}

/// One stack of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackRow {
    /// Its number.
    pub stack: u32,
    /// Its memory.
    pub memory: Memory,
    /// The line that called the line; empty if none did.
    pub caller: String,
}

/// The details of one line. Numbers are those of all of its stacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineDetail {
    /// The query.
    pub query: LineQuery,
    /// The number of its first stack, which identifies the line.
    pub stack: u32,
    /// Its text.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// Its memory at the moment, or the two moments, of the query.
    pub memory: Memory,
    /// The stacks with that memory, the largest first.
    pub stacks: Vec<StackRow>,
    /// The number of further stacks with memory, and their sum.
    pub other_stacks: (u32, Memory),
    /// The largest of its active allocations at the position: number and requested bytes.
    pub largest: Vec<(u32, u64)>,
    /// The largest sum of its requested bytes that was active at once, and its position.
    pub peak: (u64, u32),
    /// All allocations in the trace.
    pub all: Amount,
    /// Those that are never freed in the trace.
    pub live_at_end: Amount,
    /// Its sums over the range of the query.
    pub range: Option<RangeAmounts>,
    /// The frames of its largest stack, innermost first.
    pub frames: Vec<FrameText>,
    /// Why there are none, if so: the reason that holds for the most bytes at the position.
    pub missing: Option<MissingText>,
}

/// Asks for the next allocation of a line of call sites, in the order in which allocations were made. The answer is `None` if
/// the line has no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineStepQuery {
    /// The line, by one of its stacks.
    pub stack: u32,
    /// The allocation to start from; `None` starts from the position.
    pub from: Option<u32>,
    /// The position to start from.
    pub position: u32,
    /// Whether to search forward in time, or backward.
    pub forward: bool,
}

impl Question for LineStepQuery {
    type Answer = Option<LineStep>;
}

/// An allocation of a line of call sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineStep {
    /// The allocation. The first comes again after the last.
    pub allocation: u32,
    /// The position right after it was made; 0 if it was active at the start.
    pub position: u32,
    /// Its place among the line's allocations, from 1.
    pub number: u32,
    /// The number of the line's allocations.
    pub of: u32,
    /// The positions between which the line has memory, from its first allocation to its last free.
    pub life: (u32, u32),
}

/// Asks for the classes of a colouring with their memory at a position, or its growth between two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassesQuery {
    /// When.
    pub moments: Moments,
    /// What colours represent.
    pub color_by: ColorBy,
    /// Search terms, all of which an allocation must match to be counted.
    pub filter: Vec<String>,
    /// A search term. What it does not match has classes of its own.
    pub highlight: Option<String>,
}

impl Question for ClassesQuery {
    type Answer = Classes;

    fn needs_categories(&self) -> bool {
        self.color_by == ColorBy::Category || is_any_category(&self.filter, self.highlight.as_ref())
    }
}

/// The classes of a colouring with their memory at a moment, or its growth between two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classes {
    /// The query.
    pub query: ClassesQuery,
    /// The classes, in the stacking order of the timeline.
    pub classes: Vec<Class>,
    /// The memory of each.
    pub memory: Vec<Memory>,
}
