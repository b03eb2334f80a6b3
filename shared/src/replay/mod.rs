//! The allocator's exact state at any position of a trace.
//!
//! ```text
//! events + final segments ─► pairing (which entry makes or frees what) ─► sizes (true block sizes)
//!                         └► segments (what is reserved, rewound)      ─► checkpoints ─► state at a position
//! ```
//! A state is a set of ranges and of active blocks; all between is free, since the allocator always merges free
//! neighbours.

mod allocations;
mod checkpoints;
mod ending;
mod forward;
mod growing;
mod large;
mod pairing;
mod resync;
mod segments;
mod sizes;
mod state;

pub use allocations::{Allocation, Allocations};
use checkpoints::Checkpoints;
pub use ending::end;
pub use forward::{Forward, Sums};
pub use growing::Growth;
pub(crate) use growing::rewound;
pub use segments::Range;
use segments::SegmentHistory;
pub use state::{AllocatorState, Gap};

use crate::event::Action;
use crate::totals::Totals;
use crate::trace::{Column, DeviceTrace, Settings, Tag, Tags};
use crate::units::PoolId;

/// Where a trace and its own segments disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// Allocations made at an address that was still in use: the free in between is missing.
    pub alloc_over_alloc: u32,
    /// Frees of an address that was free already: the `alloc` in between is missing.
    pub free_without_alloc: u32,
    /// Allocations of the trace that are not freed in it and that the segments do not hold at the end.
    pub lost_at_end: u32,
    /// Blocks of the segments that were made after the last entry.
    pub made_after_end: u32,
    /// Allocations that lie in no segment at the position where they were made.
    pub outside_segments: u32,
}

impl Mismatches {
    /// How many there are in all.
    pub fn total(&self) -> u32 {
        let Self { alloc_over_alloc, free_without_alloc, lost_at_end, made_after_end, outside_segments } = *self;
        [free_without_alloc, lost_at_end, made_after_end, outside_segments]
            .into_iter()
            .fold(alloc_over_alloc, u32::saturating_add)
    }
}

/// One thing that changes from a position to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An allocation begins: active, and allocated.
    Begin(u32),
    /// `free` was called for an allocation: no longer allocated. It may have come before the trace.
    Freed(u32),
    /// An allocation's block went back: no longer active.
    End(u32),
    /// Reserved bytes changed by this much.
    Reserved(i64),
}

/// A device's trace with the index that finds its state anywhere.
#[derive(Debug)]
pub struct Replay {
    /// Every allocation.
    pub allocations: Allocations,
    /// By event: the allocation that it makes or frees; [`Replay::NONE`] where it does neither.
    pub event_allocation: Column<u32>,
    /// The pools that allocations lie in; the first is the default one.
    pub pools: Vec<PoolId>,
    /// Where trace and segments disagree.
    pub mismatches: Mismatches,
    /// Begins and ends that no entry records: position and allocation, by position.
    unrecorded: Vec<(u32, u32)>,
    segments: SegmentHistory,
    checkpoints: Checkpoints,
    /// For each event the latest time so far, where the times of the trace don't always rise.
    clock: Option<Column<i64>>,
}

impl Replay {
    /// No allocation.
    pub const NONE: u32 = u32::MAX;

    /// Builds the index: a few passes over the events.
    pub fn build(trace: &DeviceTrace, tags: &mut Tags, settings: &Settings) -> Self {
        let segments = SegmentHistory::build(trace, tags);
        let end_ranges = segments.at(u32::MAX);
        let mut tag_at = |address: u64| {
            let stream = end_ranges.find(address).map(|i| end_ranges.as_slice()[i].stream).unwrap_or_default();
            tags.intern(Tag { stream, ..Tag::default() })
        };
        let pairing = pairing::pair(trace, &mut tag_at);
        let mut new = Self {
            allocations: pairing.allocations,
            event_allocation: pairing.event_allocation,
            pools: Vec::new(),
            mismatches: pairing.mismatches,
            unrecorded: pairing.unrecorded,
            segments,
            checkpoints: Checkpoints::default(),
            clock: clock(trace),
        };
        let completed = sizes::complete(&new, trace, settings);
        let allocations = &mut new.allocations;
        (allocations.size, allocations.flags, allocations.pool) = (completed.size, completed.flags, completed.pool);
        new.pools = completed.pools;
        allocations.pack();
        new.mismatches.outside_segments = completed.outside_segments;
        new.checkpoints = Checkpoints::build(&new.allocations);
        new
    }

    /// Number of events: the last position.
    pub fn positions(&self) -> u32 {
        self.event_allocation.len() as u32
    }

    /// The state after the first `position` events (of all events when there are fewer).
    pub fn state_at(&self, position: u32) -> AllocatorState {
        let position = position.min(self.positions());
        let ranges = self.segments.at(position).as_slice().to_vec();
        AllocatorState::new(position, ranges, self.active_at(position), &self.allocations)
    }

    /// Numbers of the active allocations at a position, rising.
    pub fn active_at(&self, position: u32) -> Vec<u32> {
        self.checkpoints.active_at(&self.allocations, position)
    }

    /// The pool of an allocation.
    pub fn pool(&self, allocation: &Allocation) -> PoolId {
        self.pools.get(usize::from(allocation.pool)).copied().unwrap_or_default()
    }

    /// Reserved bytes at the start.
    pub fn reserved_at_start(&self) -> u64 {
        self.segments.at(0).as_slice().iter().fold(0, |sum, range| sum.saturating_add(range.size))
    }

    /// The sums at the start.
    pub fn totals_at_start(&self) -> Totals {
        self.state_at(0).totals
    }

    /// Visits what changes on the way from position `from` to position `to`, in order, each with the position that it
    /// leads to. Costs a few nanoseconds an event.
    pub fn changes(&self, trace: &DeviceTrace, from: u32, to: u32, mut visit: impl FnMut(u32, Change)) {
        let last = self.positions();
        let to = to.min(last);
        let events = &trace.events;
        let mut unrecorded = self.unrecorded.partition_point(|u| u.0 <= from);
        let mut segment = self.segments.changes.partition_point(|c| c.position <= from);
        let place_of = |segment: usize| self.segments.changes.get(segment).map_or(u32::MAX, |c| c.position);
        let mut next_segment = place_of(segment);
        let (begins, freed, ends) = (&self.allocations.begin, &self.allocations.freed, &self.allocations.end);
        for position in from.saturating_add(1)..=to {
            let i = position as usize - 1;
            // A free that is missing came before the `alloc` that shows it.
            while let Some(&(_, number)) = self.unrecorded.get(unrecorded).filter(|u| u.0 == position) {
                unrecorded += 1;
                // A state told that it was freed, and the event itself ends it: that is told below, once.
                if self.event_allocation.get(i) == Some(number)
                    && events.action.get(i).map(Action::from_code) == Some(Action::FreeCompleted)
                {
                    continue;
                }
                self.unrecorded_changes(number, position, &mut |change| visit(position, change));
            }
            // Each kind of change is visited in one place: the visitor is compiled into each.
            let number = self.event_allocation.get(i).unwrap_or(Self::NONE);
            let (is_freed, change) = match events.action.get(i).map_or(Action::Other, Action::from_code) {
                _ if number == Self::NONE => (false, None),
                Action::Alloc => {
                    (false, (position < last || !is(ends, number, position)).then_some(Change::Begin(number)))
                }
                // What a state told of begins with the event behind it, which may free it.
                Action::FreeRequested => {
                    let gone_or_begun = is(ends, number, position) || is(begins, number, position);
                    (!gone_or_begun && is(freed, number, position), None)
                }
                Action::FreeCompleted if is(ends, number, position) && !is(begins, number, position) => {
                    (is(freed, number, position), Some(Change::End(number)))
                }
                _ => (false, None),
            };
            if is_freed {
                visit(position, Change::Freed(number));
            }
            if let Some(change) = change {
                visit(position, change);
            }
            while next_segment == position {
                if let Some(change) = self.segments.changes.get(segment) {
                    visit(position, Change::Reserved(change.bytes()));
                }
                segment += 1;
                next_segment = place_of(segment);
            }
        }
    }

    /// By how much reserved bytes change on the way from position `from` to position `to`, in order, each with the position
    /// that it leads to: of [`Self::changes`] those of [`Change::Reserved`], found without looking at any event.
    pub fn reserved_changes(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let (to, changes) = (to.min(self.positions()), &self.segments.changes);
        let first = changes.partition_point(|change| change.position <= from);
        let changes = changes.get(first..).unwrap_or(&[]).iter().take_while(move |change| change.position <= to);
        changes.map(|change| (change.position, change.bytes()))
    }

    /// What no entry records of an allocation at a position. Rare: made once for all visitors.
    #[cold]
    #[inline(never)]
    fn unrecorded_changes(&self, number: u32, position: u32, visit: &mut dyn FnMut(Change)) {
        let Allocations { begin, freed, end, .. } = &self.allocations;
        let [begins, is_freed, ends] = [begin, freed, end].map(|column| is(column, number, position));
        // Made by the last entry, and in no segment: it is never there.
        if begins && ends {
            return;
        }
        // It may have been there before, and have been freed only.
        if is_freed && !begins {
            visit(Change::Freed(number));
        }
        if ends {
            visit(Change::End(number));
        }
        if begins {
            visit(Change::Begin(number));
            if is_freed {
                visit(Change::Freed(number));
            }
        }
    }

    /// The time of the state at a position, in microseconds since the trace begins; never falling.
    pub fn time_at(&self, trace: &DeviceTrace, position: u32) -> i64 {
        let Some(i) = position.min(self.positions()).checked_sub(1) else { return 0 };
        let column = self.clock.as_ref().unwrap_or(&trace.events.time_us);
        column.get(i as usize).map_or(0, |t| t.saturating_sub(trace.start_us()))
    }

    /// The last position whose time is at most `time_us` (since the trace begins): the state in force then.
    pub fn position_at_time(&self, trace: &DeviceTrace, time_us: f64) -> u32 {
        let (mut low, mut high) = (0, self.positions());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time_at(trace, middle + 1) as f64 <= time_us { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Whether what a column tells of an allocation was at this position.
fn is(column: &Column<u32>, number: u32, position: u32) -> bool {
    column.get(number as usize) == Some(position)
}

/// The latest time so far by event; nothing where times only rise as they stand.
fn clock(trace: &DeviceTrace) -> Option<Column<i64>> {
    let times = &trace.events.time_us;
    if times.iter().is_sorted() {
        return None;
    }
    let mut latest = times.get(0)?;
    Some(
        times
            .iter()
            .map(|t| {
                latest = latest.max(t);
                latest
            })
            .collect(),
    )
}
