//! The part of a run in which leaks are looked for, and how its memory is counted.

use allocator::rounding::MIN_BLOCK;

/// The positions after the warm-up are divided into this many parts. What is live for less than one does not count as
/// held, so that a step's own rise and fall doesn't look like a trend.
pub(super) const PARTS: usize = 16;

/// The positions that count: from the end of the warm-up to the end.
#[derive(Clone, Copy)]
pub(super) struct LeakSpan {
    pub(super) from: u32,
    pub(super) until: u32,
}

impl LeakSpan {
    pub(super) const fn length(self) -> u32 {
        self.until - self.from
    }

    /// Returns how long an allocation has to live to count as held.
    pub(super) const fn held(self) -> u32 {
        self.length() / PARTS as u32
    }

    /// Returns the position at which part `i` ends.
    pub(super) fn at(self, i: usize) -> u32 {
        self.from + (u64::from(self.length()) * i as u64 / PARTS as u64) as u32
    }
}

/// Returns the bytes that a request takes in whole blocks. A loss of four bytes takes 512.
pub(super) fn block_bytes(requested: u64) -> u64 {
    requested.max(1).checked_next_multiple_of(MIN_BLOCK).unwrap_or(requested)
}
