//! The state at one position: sums, and the event that led to it.

use serde::{Deserialize, Serialize};

use super::EventRow;

/// Sums over the allocator's state at one position, in bytes unless said otherwise.
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

/// Totals at a position, and the event that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateAt {
    /// The position.
    pub position: u32,
    /// Microseconds since the trace's first event.
    pub time_us: f64,
    /// Microseconds since the epoch; 0 where the layout has no times.
    pub wall_us: i64,
    /// The sums.
    pub totals: Totals,
    /// The event that led here; none at the start.
    pub event: Option<EventRow>,
}
