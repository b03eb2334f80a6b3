//! Extending a replay: each new event is paired and sized as it comes, at a cost that does not depend on how many came
//! before.
//!
//! The result is that of [`Replay::build`] for a trace that begins with a known state and misses no event. Where events
//! are missing, `build` can look at what comes later; extending can't. It learns of allocations whose events are
//! missing from the next recorded state, which takes effect with the event after it. The state between a gap and such a
//! recorded state follows from the latter: see [`rewind_state`].

use super::allocations::{Allocation, Allocations};
use super::checkpoints::Checkpoints;
use super::effects::Effects;
use super::forward::{ActiveBlock, Forward, Step};
use super::resync::{Differences, NewBlock};
use super::segments::{Ranges, ReservedRange, SegmentChange, SegmentHistory};
use super::sizes::pool_number;
use super::{Mismatches, Replay};
use crate::index::{Index, IndexInput, KnownState};
use trace::order::SortFew;
use trace::units::PoolId;
use trace::{Column, DeviceTrace, Event, Segment, Settings, Tag, Tags};

/// The state from which a [`Replay`] is extended.
#[derive(Debug, Default)]
pub(super) struct Extender {
    /// The allocator after the last event.
    forward: Forward,
    /// A recorded state that takes effect with the next event.
    pending: Option<Vec<Segment>>,
    /// The recorded states that differed from the replayed ones.
    corrections: Vec<KnownState>,
    /// Bytes of memory for these states.
    kept: usize,
}

impl Index<IndexInput<'_>> for Replay {
    /// Adds the new events, and applies each recorded state with the event after it, as far as it differs. A state
    /// before the first event is the start.
    fn extend(&mut self, IndexInput { trace, tags, settings, states }: IndexInput<'_>) {
        let mut extender = self.extender.take().unwrap_or_else(|| Box::new(Extender::at_end(self)));
        extender.forward.set(settings);
        let end = trace.events.len() as u32;
        for KnownState { position, segments } in states {
            extender.events(self, trace, tags, position.min(end));
            if self.positions() > 0 {
                extender.pending = Some(segments);
            } else {
                extender.start(&segments, self, tags);
            }
        }
        extender.events(self, trace, tags, end);
        self.extender = Some(extender);
    }

    /// Builds the replay of a trace that ends with its segments. The override finds a start that nothing recorded; any
    /// recorded states are left out.
    fn build(IndexInput { trace, tags, settings, .. }: IndexInput<'_>) -> Self {
        Self::build(trace, tags, settings)
    }

    fn bytes(&self) -> usize {
        // Four numbers of eight bytes and less for each allocation, and as many again that are kept at checkpoints.
        const ALLOCATION: usize = 3 * 8 + 5 * 4 + 2 + 4;
        let clock = self.clock.as_ref().map_or(0, |clock| clock.len() * 8);
        self.allocations.len() * ALLOCATION
            + self.event_allocation.len() * 5
            + self.unrecorded.len() * 8
            + self.segments.bytes()
            + clock
            + self.extender.as_ref().map_or(0, |extender| extender.bytes())
    }
}

impl Default for Replay {
    /// The replay of no events, with nothing reserved at the start.
    fn default() -> Self {
        Self::from_start(Ranges::default())
    }
}

impl Replay {
    fn from_start(ranges: Ranges) -> Self {
        let allocations = Allocations::default();
        Self {
            checkpoints: Checkpoints::build(&allocations),
            allocations,
            event_allocation: Column::default(),
            pools: vec![PoolId::default()],
            mismatches: Mismatches::default(),
            effects: Column::default(),
            unrecorded: Vec::new(),
            segments: SegmentHistory::begin(ranges),
            clock: None,
            extender: None,
        }
    }

    /// Returns the recorded states that differed from the replayed ones, each with the position before the event with
    /// which it took effect. With the state at the start, they are what the replay can be extended from again.
    pub fn corrections(&self) -> &[KnownState] {
        self.extender.as_ref().map_or(&[], |extender| &extender.corrections)
    }

    /// Removes and returns the recorded state that would take effect with the next event.
    pub fn take_pending_state(&mut self) -> Option<Vec<Segment>> {
        self.extender.as_mut()?.pending.take()
    }

    /// Applies a recorded state at the last position of a trace that has ended. An allocation that the last event made
    /// and the state does not have counts as never made. Returns whether the state differed.
    pub fn end_with(&mut self, segments: Vec<Segment>, trace: &DeviceTrace, tags: &mut Tags) -> bool {
        let Some(mut extender) = self.extender.take() else { return false };
        let position = self.positions();
        let is_different = extender.correct(&segments, position, self, tags);
        extender.keep(KnownState { position, segments });
        self.find_effects(trace, position.saturating_sub(1) as usize);
        self.checkpoints = Checkpoints::build(&self.allocations);
        self.extender = Some(extender);
        is_different
    }

    /// Finds what the events from `first` on change.
    fn find_effects(&mut self, trace: &DeviceTrace, first: usize) {
        let mut effects = Effects::new(trace, &self.allocations, &self.event_allocation);
        for i in first..self.event_allocation.len() {
            let effect = effects.of(i);
            if i < self.effects.len() { self.effects.set(i, effect) } else { self.effects.push(effect) }
        }
    }

    fn free_at(&mut self, number: u32, position: u32) {
        let i = number as usize;
        if self.allocations.freed.get(i) == Some(Allocation::NEVER) {
            self.allocations.freed.set(i, position);
        }
    }

    fn end_at(&mut self, number: u32, position: u32) {
        self.free_at(number, position);
        self.allocations.end.set(number as usize, position);
    }

    /// Returns the state at a position in the form in which states are recorded.
    pub fn segments_at(&self, position: u32) -> Vec<Segment> {
        let state = self.state_at(position);
        state.ranges.iter().enumerate().map(|(i, range)| super::ending::tiled(i, range, &state, self)).collect()
    }
}

impl Extender {
    /// Continues after the last event of a replay that was built at once.
    fn at_end(replay: &Replay) -> Self {
        let mut forward = Forward::default();
        let state = replay.state_at(u32::MAX);
        for range in &state.ranges {
            forward.reserve(*range);
        }
        for &number in &state.active {
            let Some(allocation) = replay.allocations.get(number) else { continue };
            let Allocation { requested, size, stack, .. } = allocation;
            let is_pending = !allocation.is_allocated_at(state.position);
            let block = ActiveBlock { requested, size, stack, number, is_pending, is_large: false };
            forward.open(allocation.address.0, block);
        }
        forward.place_large();
        forward.next = replay.allocations.len() as u32;
        forward.mismatches = replay.mismatches;
        Self { forward, ..Self::default() }
    }

    /// Keeps a recorded state that differed from the replayed one.
    fn keep(&mut self, state: KnownState) {
        self.kept += Segment::memory_of(&state.segments);
        self.corrections.push(state);
    }

    fn bytes(&self) -> usize {
        self.forward.bytes() + self.kept + self.pending.as_deref().map_or(0, Segment::memory_of)
    }

    /// Makes a recorded state the start of a replay without events.
    fn start(&mut self, segments: &[Segment], replay: &mut Replay, tags: &mut Tags) {
        let mut ranges = Ranges::default();
        for segment in segments.iter().filter(|segment| segment.size > 0) {
            ranges.add(ReservedRange::of(segment));
        }
        self.forward.clear();
        *replay = Replay::from_start(ranges);
        let new = Differences::apply(&mut self.forward, segments).allocated;
        // Pools are numbered as for a file: from the highest address down.
        for block in new.iter().rev() {
            Self::pool(block.range, replay);
        }
        for block in &new {
            self.add_block(block, 0, replay, tags);
        }
        replay.checkpoints = Checkpoints::build(&replay.allocations);
    }

    /// Adds the events that `trace` has beyond those of the replay, up to position `to`.
    fn events(&mut self, replay: &mut Replay, trace: &DeviceTrace, tags: &mut Tags, to: u32) {
        let first = replay.positions();
        for event in trace.events.iter_from(first as usize).take(to.saturating_sub(first) as usize) {
            let position = replay.positions() + 1;
            if let Some(segments) = self.pending.take()
                && self.correct(&segments, position, replay, tags)
            {
                self.keep(KnownState { position: position - 1, segments });
            }
            let number = self.event(&event, position, replay, tags);
            replay.event_allocation.push(number);
        }
        replay.mismatches = self.forward.mismatches();
        replay.find_effects(trace, first as usize);
        replay.checkpoints.extend(&replay.allocations);
        extend_clock(&mut replay.clock, trace, first, replay.event_allocation.len());
    }

    /// Adds one event. Returns the allocation that it makes or frees.
    fn event(&mut self, event: &Event, position: u32, replay: &mut Replay, tags: &Tags) -> u32 {
        let number = self.forward.next;
        let tag = tags.get(event.tag);
        match self.forward.step(event, tag.stream, tag.pool) {
            Step::Allocated { size, range, replaced } => {
                if let Some(before) = replaced {
                    replay.end_at(before, position);
                    replay.unrecorded.push((position, before));
                }
                let (flags, pool) = Self::place(range, replay);
                replay.allocations.push(Allocation {
                    address: event.address,
                    requested: event.size,
                    size,
                    begin: position,
                    freed: Allocation::NEVER,
                    end: Allocation::NEVER,
                    tag: event.tag,
                    stack: event.stack,
                    pool,
                    flags,
                });
                number
            }
            Step::FreeRequested(number) => {
                // The state before this event already shows the allocation as freed.
                if replay.allocations.freed.get(number as usize) == Some(position) {
                    return Replay::NONE;
                }
                replay.free_at(number, position);
                number
            }
            Step::FreeCompleted(number) => {
                // Where the state before this event shows the allocation as pending, the event is both changes.
                let here = replay.unrecorded.iter().rev().take_while(|change| change.0 == position);
                if let Some(back) = here.enumerate().find(|(_, change)| change.1 == number).map(|(back, _)| back)
                    && replay.allocations.begin.get(number as usize) != Some(position)
                {
                    replay.unrecorded.remove(replay.unrecorded.len() - 1 - back);
                }
                replay.end_at(number, position);
                number
            }
            Step::Reserved { range, replaced } => {
                for range in replaced {
                    replay.segments.push(SegmentChange { position, range, is_reserved: false });
                }
                replay.segments.push(SegmentChange { position, range, is_reserved: true });
                Replay::NONE
            }
            Step::Released(range) => {
                replay.segments.push(SegmentChange { position, range, is_reserved: false });
                Replay::NONE
            }
            Step::Nothing | Step::Unknown => Replay::NONE,
        }
    }

    /// Applies a recorded state with the event that leads to `position`. Returns whether the state differed.
    fn correct(&mut self, segments: &[Segment], position: u32, replay: &mut Replay, tags: &mut Tags) -> bool {
        let found = Differences::apply(&mut self.forward, segments);
        if found.is_empty() {
            return false;
        }
        for &number in &found.ended {
            replay.end_at(number, position);
            replay.unrecorded.push((position, number));
        }
        let reserved = found.reserved.iter().map(|&range| (range, true));
        for (range, is_reserved) in found.released.iter().map(|&range| (range, false)).chain(reserved) {
            replay.segments.push(SegmentChange { position, range, is_reserved });
        }
        for block in &found.allocated {
            let number = self.add_block(block, position, replay, tags);
            replay.unrecorded.push((position, number));
        }
        for &number in &found.freed {
            replay.free_at(number, position);
            replay.unrecorded.push((position, number));
        }
        true
    }

    /// Adds an allocation that only a recorded state shows. Returns its number.
    fn add_block(&self, block: &NewBlock, position: u32, replay: &mut Replay, tags: &mut Tags) -> u32 {
        let (flags, pool) = Self::place(block.range, replay);
        let stream = block.range.map(|range| range.stream);
        replay.allocations.push(Allocation {
            address: block.address,
            requested: block.requested,
            size: block.size,
            begin: position,
            freed: if block.is_pending { position } else { Allocation::NEVER },
            end: Allocation::NEVER,
            tag: tags.intern(Tag { stream: stream.unwrap_or_default(), ..Tag::default() }),
            stack: block.stack,
            pool,
            flags: flags | Allocation::FLAG_SIZE_WRITTEN,
        })
    }

    /// Returns the flags and the pool that an allocation has from its range.
    fn place(range: Option<ReservedRange>, replay: &mut Replay) -> (u8, u8) {
        let flags = range.as_ref().map_or(0, ReservedRange::flags);
        (flags, Self::pool(range, replay))
    }

    fn pool(range: Option<ReservedRange>, replay: &mut Replay) -> u8 {
        let pool = range.map(|range| range.pool);
        pool.filter(|pool| pool.is_private()).map_or(0, |pool| pool_number(&mut replay.pools, pool))
    }
}

/// Returns the state after the first position of `span` when `segments` is the state after the last one, and no event
/// between them is missing.
pub fn rewind_state(
    trace: &DeviceTrace,
    tags: &mut Tags,
    settings: &Settings,
    span: std::ops::Range<u32>,
    segments: Vec<Segment>,
) -> Vec<Segment> {
    let mut part = DeviceTrace { device: trace.device, segments, ..DeviceTrace::default() };
    part.segments.sort_few_by_key(|segment| segment.address);
    for segment in &mut part.segments {
        segment.blocks.sort_few_by_key(|block| block.address);
    }
    let events = trace.events.iter_from(span.start as usize).take(span.len());
    events.for_each(|event| part.events.push(event));
    Replay::build(&part, tags, settings).segments_at(0)
}

/// Adds the times of the events from `first` to before `to`.
fn extend_clock(known: &mut Option<Column<i64>>, trace: &DeviceTrace, first: u32, to: usize) {
    let times = &trace.events.time_us;
    let before = (first as usize).saturating_sub(1);
    if known.is_none() && times.range(before..to).is_sorted() {
        return;
    }
    // While times only rose, each was the latest so far.
    let known = known.get_or_insert_with(|| times.range(0..first as usize).collect());
    let mut latest = known.len().checked_sub(1).and_then(|last| known.get(last)).unwrap_or(i64::MIN);
    for time in times.range(known.len()..to) {
        latest = latest.max(time);
        known.push(latest);
    }
}
