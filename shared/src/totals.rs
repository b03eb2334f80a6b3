//! Sums over the allocator's state: what is allocated, active, reserved and free at one position.

use serde::{Deserialize, Serialize};

/// Sums over the allocator's state at one position, in bytes unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Requested by active allocations: what the program asked for.
    pub requested: u64,
    /// In allocated blocks.
    pub allocated: u64,
    /// In active blocks: allocated, or waiting for a stream.
    pub active: u64,
    /// In segments.
    pub reserved: u64,
    /// In gaps: reserved, and in no active block. What is reserved less what is active, unless trace and segments
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
    /// Lost to rounding: what active blocks hold beyond what was requested.
    pub fn rounding(&self) -> u64 {
        self.active.saturating_sub(self.requested)
    }
}
