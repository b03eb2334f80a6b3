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
