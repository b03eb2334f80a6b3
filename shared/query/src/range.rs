//! The sums over a range of positions.

use serde::{Deserialize, Serialize};

use super::{Paint, Question};
use trace::totals::{Amount, Totals, difference};

/// What the lines of a range are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RangeOrder {
    /// Bytes that were allocated in the range and are still active at its end.
    #[default]
    Kept,
    /// Bytes by which the active memory grew.
    Growth,
    /// Bytes that were allocated in the range and freed in it.
    Churn,
    /// Bytes that were allocated.
    Allocated,
    /// Bytes that were freed.
    Freed,
    /// Time for which freed blocks waited for a stream.
    Waiting,
}

/// Asks for the sums over a range of positions, and those of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeQuery {
    /// The position at which it begins.
    pub from: u32,
    /// The position at which it ends.
    pub to: u32,
    /// The order of the lines.
    pub order: RangeOrder,
    /// The maximum number of lines.
    pub rows: u32,
}

impl Question for RangeQuery {
    type Answer = Box<RangeSums>;
}

/// The sums over some allocations in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeAmounts {
    /// Allocated in the range.
    pub allocated: Amount,
    /// Freed in the range: their blocks became free.
    pub freed: Amount,
    /// Allocated in the range, and still active at its end.
    pub kept: Amount,
    /// The time in the range for which freed blocks waited for a stream, in microseconds, summed over the blocks.
    pub waited_us: u64,
}

impl RangeAmounts {
    /// Returns the allocations that were made and freed in the range.
    pub const fn churned(&self) -> Amount {
        self.allocated.less(self.kept)
    }

    /// Returns the bytes by which the active memory grew.
    pub const fn growth(&self) -> i64 {
        difference(self.allocated.bytes, self.freed.bytes)
    }

    /// Returns what an order compares.
    pub const fn by(&self, order: RangeOrder) -> i64 {
        match order {
            RangeOrder::Kept => difference(self.kept.bytes, 0),
            RangeOrder::Growth => self.growth(),
            RangeOrder::Churn => difference(self.churned().bytes, 0),
            RangeOrder::Allocated => difference(self.allocated.bytes, 0),
            RangeOrder::Freed => difference(self.freed.bytes, 0),
            RangeOrder::Waiting => difference(self.waited_us, 0),
        }
    }

    /// Adds other sums.
    pub const fn plus(&mut self, other: Self) {
        self.allocated.plus(other.allocated);
        self.freed.plus(other.freed);
        self.kept.plus(other.kept);
        self.waited_us = self.waited_us.saturating_add(other.waited_us);
    }

    /// Returns what is left without other sums, which are part of these.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            allocated: self.allocated.less(other.allocated),
            freed: self.freed.less(other.freed),
            kept: self.kept.less(other.kept),
            waited_us: self.waited_us.saturating_sub(other.waited_us),
        }
    }
}

/// The sums over one line of the program in a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeLine {
    /// The number of its first stack, which identifies the line.
    pub stack: u32,
    /// Its text.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// Its sums.
    pub amounts: RangeAmounts,
}

/// Freed blocks that waited for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The number of blocks that waited in the range.
    pub blocks: u32,
    /// The longest wait of one block in the range, in microseconds.
    pub longest_us: u64,
    /// The allocation that waited longest; of several, the one that was made first.
    pub longest: Option<u32>,
    /// The sum of each block's size times the microseconds for which it waited in the range.
    pub byte_us: u128,
}

/// The sums over a range. The lines and the rest add up to `amounts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSums {
    /// The query, with its positions in order and within the trace.
    pub query: RangeQuery,
    /// The time of the first position, in microseconds since the trace begins.
    pub from_us: i64,
    /// The time of the last one.
    pub to_us: i64,
    /// The totals at the first position.
    pub before: Totals,
    /// The totals at the last one.
    pub after: Totals,
    /// The largest sum of requested bytes in the range, and the first position that has it.
    pub peak: (u64, u32),
    /// The sums over all allocations.
    pub amounts: RangeAmounts,
    /// The blocks that waited for a stream.
    pub waits: Waits,
    /// Segments (or parts of expandable ones) that were reserved from the driver: bytes and number.
    pub taken: Amount,
    /// Segments (or parts of expandable ones) that were given back to the driver.
    pub released: Amount,
    /// The lines with the largest sums, by the order of the query. Lines without any are left out.
    pub lines: Vec<RangeLine>,
    /// The number of other lines with allocations that were made, freed or waiting in the range.
    pub others: u32,
    /// Their sums.
    pub rest: RangeAmounts,
}
