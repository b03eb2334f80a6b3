//! The allocator's exact state at any position of a trace.

mod allocations;
mod segments;

pub use allocations::{Allocation, Allocations};
pub use segments::Range;

use crate::query::Totals;
use crate::trace::{Column, DeviceTrace, Settings, Tags};

/// The state at one position.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The position.
    pub position: u32,
    /// What is reserved, by address.
    pub ranges: Vec<Range>,
    /// Numbers of the active allocations, by address.
    pub active: Vec<u32>,
    /// The sums.
    pub totals: Totals,
}

/// Where a trace and its own segments disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// Allocations made at an address that was still in use: the free in between is missing.
    pub alloc_over_alloc: u32,
    /// Allocations of the trace that are not freed in it and that the segments do not hold at the end.
    pub lost_at_end: u32,
    /// Active allocations that lie in no segment at the position where they were made.
    pub outside_segments: u32,
}

/// A device's trace with the index that finds its state anywhere.
#[derive(Debug)]
pub struct Replay {
    /// Every allocation.
    pub allocations: Allocations,
    /// By event: the allocation that it makes or frees; [`Replay::NONE`] where it does neither.
    pub event_allocation: Column<u32>,
    /// Where trace and segments disagree.
    pub mismatches: Mismatches,
}

impl Replay {
    /// No allocation.
    pub const NONE: u32 = u32::MAX;

    /// Builds the index: one pass over the events, one over the allocations.
    pub fn build(_trace: &DeviceTrace, _tags: &Tags, _settings: &Settings) -> Self {
        Self {
            allocations: Allocations::default(),
            event_allocation: Column::default(),
            mismatches: Mismatches::default(),
        }
    }

    /// Number of events: the last position.
    pub fn positions(&self) -> u32 {
        self.event_allocation.len() as u32
    }

    /// The state after the first `position` events (of all events when there are fewer).
    pub fn state_at(&self, _trace: &DeviceTrace, position: u32) -> State {
        State { position, ..State::default() }
    }
}
