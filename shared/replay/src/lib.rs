//! The allocator's exact state at any position of a trace.
//!
//! ```text
//! events + final segments ─► pairing (the allocation of each event)       ─► sizes (exact block sizes)
//!                         └► segments (reserved ranges, from the end back) ─► checkpoints ─► state at a position
//!
//! known state + events    ─► forward (state after each event)             ─► extend ─► state at a position
//! ```
//! [`Replay::build`] is the first path: the trace may begin in the middle, but its segments at the end are known.
//! [`Index::extend`](crate::index::Index::extend) is the second one: it begins with a known state, and the trace grows.
//!
//! A state consists of ranges and active blocks. Everything between them is free, since the allocator always merges
//! free neighbours.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod address_map;
mod allocations;
mod checkpoints;
mod effects;
mod ending;
mod extend;
mod forward;
mod free;
mod gap_list;
pub mod index;
mod large;
mod overlaps;
mod pairing;
mod resync;
mod segments;
mod sizes;
mod sorted;
mod space;
mod state;

pub use allocations::{Allocation, Allocations};
use checkpoints::Checkpoints;
use effects::{BEGINS, ENDS, FREES};
pub use ending::{end, end_of_part};
use extend::Extender;
pub use extend::rewind_state;
pub use forward::{Forward, Sums};
pub use free::whole_pages;
pub use free::{FreeSums, unusable_share};
pub use segments::ReservedRange;
use segments::SegmentHistory;
pub use space::{Space, SpaceRange, SpaceVisitor};
pub use state::{AllocatorState, Gap};

use std::ops::Range;

use trace::event::Action;
use trace::totals::Totals;
use trace::units::{PoolId, Stream};
use trace::{Column, DeviceTrace, Settings, Tag, TagId, Tags};

/// The events, or positions, of a piece of a walk. A browser compiles a function again, with optimizations, once its loops have run
/// often, and uses that from the next call on: a walk in one call would never be fast. What walks is not inlined into its one caller,
/// either, which would be compiled with it.
const PIECE: usize = 1 << 12;

/// The contradictions between a trace and its own segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// Allocations made at an address that was still in use: the free between them is missing.
    pub alloc_over_alloc: u32,
    /// Frees of an address that was already free: the `alloc` between them is missing.
    pub free_without_alloc: u32,
    /// Allocations that are neither freed in the trace nor in the segments at the end.
    pub lost_at_end: u32,
    /// Blocks of the segments that were made after the last event.
    pub made_after_end: u32,
    /// Allocations that lay in no segment when they were made.
    pub outside_segments: u32,
}

impl Mismatches {
    /// Returns their total.
    pub fn total(&self) -> u32 {
        let Self { alloc_over_alloc, free_without_alloc, lost_at_end, made_after_end, outside_segments } = *self;
        [free_without_alloc, lost_at_end, made_after_end, outside_segments]
            .into_iter()
            .fold(alloc_over_alloc, u32::saturating_add)
    }
}

/// One change between two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An allocation begins: it is active and allocated.
    Begin(u32),
    /// `free` was called for an allocation: it is no longer allocated. It may have been made before the trace.
    Freed(u32),
    /// An allocation's block became free: it is no longer active.
    End(u32),
    /// The reserved bytes changed by this number.
    Reserved(i64),
}

/// The index that finds a device's state at any position.
#[derive(Debug)]
pub struct Replay {
    /// All allocations.
    pub allocations: Allocations,
    /// The allocation that each event makes or frees; [`Replay::NONE`] if it does neither.
    pub event_allocation: Column<u32>,
    /// The pools that allocations lie in. The first one is the default pool.
    pub pools: Vec<PoolId>,
    /// The contradictions between trace and segments.
    pub mismatches: Mismatches,
    /// What each event changes: see [`effects`].
    effects: Column<u8>,
    /// Begins, frees and ends that no event records: position and allocation, by position.
    unrecorded: Vec<(u32, u32)>,
    segments: SegmentHistory,
    checkpoints: Checkpoints,
    /// The latest time up to each event; `None` if the times of the trace never fall.
    clock: Option<Column<i64>>,
    /// The state from which it is extended; `None` before it is extended.
    extender: Option<Box<Extender>>,
}

/// A device's trace with its replay: the input of most indexes.
#[derive(Clone, Copy, Debug)]
pub struct Replayed<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// The tags of its events.
    pub tags: &'a Tags,
    /// The allocator's states.
    pub replay: &'a Replay,
}

impl Replayed<'_> {
    /// Returns the streams of its allocations, in the order of first use.
    pub fn streams(&self) -> Vec<Stream> {
        let mut streams: Vec<Stream> = Vec::new();
        let mut last = None;
        for tag in self.replay.allocations.tag.iter() {
            if last.replace(tag) == Some(tag) {
                continue;
            }
            let stream = self.tags.get(TagId(tag)).stream;
            if !streams.contains(&stream) {
                streams.push(stream);
            }
        }
        streams
    }
}

impl Replay {
    /// No allocation.
    pub const NONE: u32 = u32::MAX;

    /// Builds the index from the segments at the trace's end, in a few passes over the events.
    pub fn build(trace: &DeviceTrace, tags: &mut Tags, settings: &Settings) -> Self {
        let segments = SegmentHistory::build(trace, tags);
        let end_ranges = segments.at(u32::MAX);
        let mut tag_at = |address: u64| {
            let stream = end_ranges.find(address).map(|range| range.stream).unwrap_or_default();
            tags.intern(Tag { stream, ..Tag::default() })
        };
        let pairing = pairing::pair(trace, &mut tag_at);
        let mut new = Self {
            allocations: pairing.allocations,
            event_allocation: pairing.event_allocation,
            pools: Vec::new(),
            mismatches: pairing.mismatches,
            effects: Column::default(),
            unrecorded: pairing.unrecorded,
            segments,
            checkpoints: Checkpoints::default(),
            clock: clock(trace),
            extender: None,
        };
        let completed = sizes::complete(&new, trace, settings);
        let allocations = &mut new.allocations;
        (allocations.size, allocations.flags, allocations.pool) = (completed.size, completed.flags, completed.pool);
        (new.pools, new.effects) = (completed.pools, completed.effects);
        allocations.pack();
        new.mismatches.outside_segments = completed.outside_segments;
        new.checkpoints = Checkpoints::build(&new.allocations);
        new
    }

    /// Returns whether an allocation was made after the start of the trace by an event that was lost.
    pub fn is_unseen(&self, id: u32) -> bool {
        let made_by = self.allocations.begin.get(id as usize).and_then(|begin| begin.checked_sub(1));
        made_by.is_some_and(|event| self.event_allocation.get(event as usize) != Some(id))
    }

    /// Returns the number of events, which is the last position.
    pub fn positions(&self) -> u32 {
        self.event_allocation.len() as u32
    }

    /// Returns the state after the first `position` events (after all events, if there are fewer).
    pub fn state_at(&self, position: u32) -> AllocatorState {
        let position = position.min(self.positions());
        let ranges = self.segments.at(position).to_vec();
        AllocatorState::new(position, ranges, self.active_at(position), &self.allocations)
    }

    /// Returns the numbers of the active allocations at a position, in ascending order.
    pub fn active_at(&self, position: u32) -> Vec<u32> {
        self.checkpoints.active_at(&self.allocations, position)
    }

    /// Returns the pool of an allocation.
    pub fn pool(&self, allocation: &Allocation) -> PoolId {
        self.pools.get(usize::from(allocation.pool)).copied().unwrap_or_default()
    }

    /// Returns the reserved bytes at the start.
    pub fn reserved_at_start(&self) -> u64 {
        self.segments.at(0).iter().fold(0, |sum, range| sum.saturating_add(range.size))
    }

    /// Returns the totals at the start.
    pub fn totals_at_start(&self) -> Totals {
        self.state_at(0).totals
    }

    /// Visits the changes from position `from` to position `to` in order, each with the position that it leads to. This
    /// costs a few nanoseconds an event.
    #[inline]
    pub fn changes(&self, trace: &DeviceTrace, from: u32, to: u32, visit: impl FnMut(u32, Change)) {
        let mut effects = self.effects.reader();
        self.changes_by(trace, from, to, |i| effects.get(i).unwrap_or(0), visit);
    }

    /// Visits the changes, where `effect` returns what each event changes.
    #[inline]
    pub(crate) fn changes_by(
        &self,
        trace: &DeviceTrace,
        from: u32,
        to: u32,
        mut effect: impl FnMut(usize) -> u8,
        mut visit: impl FnMut(u32, Change),
    ) {
        let to = to.min(self.positions());
        for from in (from..to).step_by(PIECE) {
            self.changes_in(trace, from..to.min(from.saturating_add(PIECE as u32)), &mut effect, &mut visit);
        }
    }

    /// Visits the changes of a piece: of the positions after `piece.start` up to `piece.end`.
    #[inline(never)]
    fn changes_in(
        &self,
        trace: &DeviceTrace,
        piece: Range<u32>,
        effect: &mut impl FnMut(usize) -> u8,
        visit: &mut impl FnMut(u32, Change),
    ) {
        let (from, to) = (piece.start, piece.end);
        let events = &trace.events;
        let mut unrecorded = self.unrecorded.partition_point(|u| u.0 <= from);
        let mut segment = self.segments.changes.partition_point(|c| c.position <= from);
        let place_of = |segment: usize| self.segments.changes.get(segment).map_or(u32::MAX, |c| c.position);
        let mut next_segment = place_of(segment);
        let mut numbers = self.event_allocation.reader();
        for position in from.saturating_add(1)..=to {
            let i = position as usize - 1;
            // A missing free comes before the `alloc` that shows it.
            while let Some(&(_, number)) = self.unrecorded.get(unrecorded).filter(|u| u.0 == position) {
                unrecorded += 1;
                // A recorded state freed it, and this event ends it: both are visited once, below.
                if self.event_allocation.get(i) == Some(number)
                    && events.action.get(i).map(Action::from_code) == Some(Action::FreeCompleted)
                {
                    continue;
                }
                self.unrecorded_changes(number, position, &mut |change| visit(position, change));
            }
            let effect = effect(i);
            if effect != 0 {
                // Each kind of change is visited in one place only, as the visitor is inlined there.
                let number = numbers.get(i).unwrap_or(Self::NONE);
                if effect & FREES != 0 {
                    visit(position, Change::Freed(number));
                }
                if effect & (BEGINS | ENDS) != 0 {
                    visit(position, if effect & BEGINS != 0 { Change::Begin(number) } else { Change::End(number) });
                }
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

    /// Returns the changes of the reserved bytes from position `from` to position `to` in order, each with the position
    /// that it leads to. They are the [`Change::Reserved`] of [`Self::changes`], found without reading events.
    pub fn reserved_changes(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let (to, changes) = (to.min(self.positions()), &self.segments.changes);
        let first = changes.partition_point(|change| change.position <= from);
        let changes = changes.get(first..).unwrap_or(&[]).iter().take_while(move |change| change.position <= to);
        changes.map(|change| (change.position, change.bytes()))
    }

    /// Returns the number of changes of the reserved ranges.
    pub fn segment_changes(&self) -> usize {
        self.segments.changes.len()
    }

    /// Returns the ranges that were reserved from a change of the reserved ranges on, in order; with `None`, those at
    /// the start come first. Memory that is reserved twice comes twice.
    pub fn ranges_reserved_since(&self, change: Option<usize>) -> impl Iterator<Item = ReservedRange> + '_ {
        let at_start = if change.is_none() { self.segments.at(0).to_vec() } else { Vec::new() };
        let changes = self.segments.changes.get(change.unwrap_or(0)..).unwrap_or(&[]);
        let reserved = changes.iter().filter(|change| change.is_reserved);
        at_start.into_iter().chain(reserved.map(|change| ReservedRange { since: change.position, ..change.range }))
    }

    /// Visits the changes of an allocation that no event records. They are rare, so this is not inlined.
    #[cold]
    #[inline(never)]
    fn unrecorded_changes(&self, number: u32, position: u32, visit: &mut dyn FnMut(Change)) {
        let Allocations { begin, freed, end, .. } = &self.allocations;
        let [begins, is_freed, ends] = [begin, freed, end].map(|column| is(column, number, position));
        // Made by the last event and in no segment: it was never active.
        if begins && ends {
            return;
        }
        // It may have been active before, and only have been freed.
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

    /// Returns the time of a position, in microseconds since the trace begins. It never falls.
    pub fn time_at(&self, trace: &DeviceTrace, position: u32) -> i64 {
        let Some(i) = position.min(self.positions()).checked_sub(1) else { return 0 };
        let column = self.clock.as_ref().unwrap_or(&trace.events.time_us);
        column.get(i as usize).map_or(0, |t| t.saturating_sub(trace.start_us()))
    }

    /// Returns the last position whose time is at most `time_us` (since the trace begins): the position at that time.
    pub fn position_at_time(&self, trace: &DeviceTrace, time_us: f64) -> u32 {
        let (mut low, mut high) = (0, self.positions());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time_at(trace, middle + 1) as f64 <= time_us { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Returns whether an allocation's value in a column is this position.
fn is(column: &Column<u32>, number: u32, position: u32) -> bool {
    column.get(number as usize) == Some(position)
}

/// Returns the latest time up to each event; `None` if times never fall.
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
