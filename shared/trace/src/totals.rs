//! Sums over the allocator's state: allocated, active, reserved and free bytes at one position.

use serde::{Deserialize, Serialize};

/// Sums over the allocator's state at one position, in bytes unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes requested by active allocations.
    pub requested: u64,
    /// Bytes in allocated blocks.
    pub allocated: u64,
    /// Bytes in active blocks: allocated, or waiting for a stream.
    pub active: u64,
    /// Bytes in segments.
    pub reserved: u64,
    /// Bytes in gaps: reserved, and in no active block. This is `reserved` less `active`, unless trace and segments
    /// disagree.
    pub cached: u64,
    /// The largest gap: the largest request that cached memory can still serve.
    pub largest_gap: u64,
    /// Number of segments (mapped ranges of expandable ones).
    pub segments: u32,
    /// Number of active blocks.
    pub blocks: u32,
    /// Number of gaps.
    pub gaps: u32,
}

impl Totals {
    /// Returns the bytes lost to rounding: the size of active blocks less the requested bytes.
    pub fn rounding(&self) -> u64 {
        self.active.saturating_sub(self.requested)
    }
}

/// The requested bytes and the number of some allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Requested bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u32,
}

impl Amount {
    /// Adds one allocation.
    pub const fn add(&mut self, bytes: u64) {
        self.plus(Self { bytes, count: 1 });
    }

    /// Adds other allocations.
    pub const fn plus(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
    }

    /// Returns these allocations without some others, which must be among them.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), count: self.count.saturating_sub(other.count) }
    }
}

/// Returns the difference of two sums of bytes.
pub const fn difference(after: u64, before: u64) -> i64 {
    let apart = after.abs_diff(before);
    let apart = if apart > i64::MAX as u64 { i64::MAX } else { apart as i64 };
    if after < before { -apart } else { apart }
}
