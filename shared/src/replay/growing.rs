//! A replay that grows with its trace: each event is paired, sized and filed as it comes, at a cost that does not depend
//! on how many came before.
//!
//! What is found is what [`Replay::build`] finds of a trace that begins with a known state and misses nothing. Where events
//! are missing, a trace that has ended can be read from behind; here, what no event made is told of by the next state that
//! is written, and counts from the event behind it. What was held between a gap and such a state follows from the state,
//! backwards: see [`rewound`].

use super::allocations::{Allocation, Allocations};
use super::checkpoints::Checkpoints;
use super::forward::{Forward, Step};
use super::resync::Begun;
use super::segments::{Range, Ranges, SegmentChange, SegmentHistory};
use super::sizes::pool_number;
use super::{Mismatches, Replay};
use crate::trace::{Column, DeviceTrace, Event, Segment, Settings, Tag, Tags};
use crate::units::PoolId;

/// What a replay is carried on from.
#[derive(Debug, Default)]
pub struct Growth {
    forward: Forward,
    /// A state that was written and counts from the next event on.
    written: Option<Vec<Segment>>,
}

impl Growth {
    /// A device of which nothing is known yet: the replay of no events, and what it is carried on from.
    pub fn begin(settings: &Settings) -> (Self, Replay) {
        (Self { forward: Forward::new(settings), written: None }, Replay::from_start(Ranges::default()))
    }

    /// A state that was written after all events so far. Where no event has come, it is the start; else it counts from
    /// the next event on, as far as it says something else than what is held.
    pub fn believe(&mut self, segments: Vec<Segment>, replay: &mut Replay, tags: &mut Tags) {
        if replay.positions() > 0 {
            self.written = Some(segments);
            return;
        }
        let mut ranges = Ranges::default();
        for segment in segments.iter().filter(|segment| segment.size > 0) {
            ranges.add(Range::of(segment));
        }
        self.forward.clear();
        *replay = Replay::from_start(ranges);
        let begun = self.forward.differ(&segments).begun;
        // Pools are numbered as for a file: from the highest address down.
        for one in begun.iter().rev() {
            self.pool(one.range, replay);
        }
        for one in &begun {
            self.begin_one(one, 0, replay, tags);
        }
        replay.checkpoints = Checkpoints::build(&replay.allocations);
    }

    /// Makes a state that of the last position, of a trace to which nothing comes any more: what the last event made and the
    /// state does not have was never there. Whether it said anything new.
    pub(crate) fn settle(&mut self, segments: &[Segment], replay: &mut Replay, tags: &mut Tags) -> bool {
        let is_new = self.correct(segments, replay.positions(), replay, tags);
        replay.checkpoints = Checkpoints::build(&replay.allocations);
        is_new
    }

    /// The state that counts from the next event on, if there is one, which is forgotten.
    pub(crate) fn take_written(&mut self) -> Option<Vec<Segment>> {
        self.written.take()
    }

    /// Other settings, from now on.
    pub(crate) fn set(&mut self, settings: &Settings) {
        self.forward.set(settings);
    }

    /// What is held now.
    pub fn forward(&self) -> &Forward {
        &self.forward
    }

    /// Takes in the events that `trace` has beyond those of the replay, up to position `to`. Gives the state that counted
    /// from the first of them, with the position before it, where it was not what was held.
    pub fn extend(
        &mut self,
        replay: &mut Replay,
        trace: &DeviceTrace,
        tags: &mut Tags,
        to: u32,
    ) -> Option<(u32, Vec<Segment>)> {
        let first = replay.positions();
        let mut corrected = None;
        for event in trace.events.iter_from(first as usize).take(to.saturating_sub(first) as usize) {
            let position = replay.positions() + 1;
            if let Some(segments) = self.written.take()
                && self.correct(&segments, position, replay, tags)
            {
                corrected = Some((position - 1, segments));
            }
            let number = self.event(&event, position, replay, tags);
            replay.event_allocation.push(number);
        }
        replay.mismatches = self.forward.mismatches();
        replay.checkpoints.extend(&replay.allocations);
        extend_clock(&mut replay.clock, trace, first, replay.event_allocation.len());
        corrected
    }

    /// One event; the allocation that it makes or frees.
    fn event(&mut self, event: &Event, position: u32, replay: &mut Replay, tags: &Tags) -> u32 {
        let number = self.forward.next;
        let tag = tags.get(event.tag);
        match self.forward.step(event, tag.stream, tag.pool) {
            Step::Made { size, range, over } => {
                if let Some(before) = over {
                    replay.end_at(before, position);
                    replay.unrecorded.push((position, before));
                }
                let (flags, pool) = self.place(range, replay);
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
            Step::Requested(number) => {
                // What the state before this event told is not told again.
                if replay.allocations.freed.get(number as usize) == Some(position) {
                    return Replay::NONE;
                }
                replay.free_at(number, position);
                number
            }
            Step::Completed(number) => {
                // The event tells both where the state before it told that it waits.
                let told = replay.unrecorded.iter().rev().take_while(|told| told.0 == position);
                if let Some(back) = told.enumerate().find(|(_, told)| told.1 == number).map(|(back, _)| back)
                    && replay.allocations.begin.get(number as usize) != Some(position)
                {
                    replay.unrecorded.remove(replay.unrecorded.len() - 1 - back);
                }
                replay.end_at(number, position);
                number
            }
            Step::Taken { range, before } => {
                for range in before {
                    replay.segments.push(SegmentChange { position, range, is_taken: false });
                }
                replay.segments.push(SegmentChange { position, range, is_taken: true });
                Replay::NONE
            }
            Step::GivenBack(range) => {
                replay.segments.push(SegmentChange { position, range, is_taken: false });
                Replay::NONE
            }
            Step::Nothing | Step::Unknown => Replay::NONE,
        }
    }

    /// Makes a state count from the event that leads to `position`. Whether it said anything new.
    fn correct(&mut self, segments: &[Segment], position: u32, replay: &mut Replay, tags: &mut Tags) -> bool {
        let found = self.forward.differ(segments);
        if found.is_empty() {
            return false;
        }
        for &number in &found.ended {
            replay.end_at(number, position);
            replay.unrecorded.push((position, number));
        }
        let taken = found.taken.iter().map(|&range| (range, true));
        for (range, is_taken) in found.given_back.iter().map(|&range| (range, false)).chain(taken) {
            replay.segments.push(SegmentChange { position, range, is_taken });
        }
        for one in &found.begun {
            let number = self.begin_one(one, position, replay, tags);
            replay.unrecorded.push((position, number));
        }
        for &number in &found.freed {
            replay.free_at(number, position);
            replay.unrecorded.push((position, number));
        }
        true
    }

    /// An allocation that a state tells of.
    fn begin_one(&self, one: &Begun, position: u32, replay: &mut Replay, tags: &mut Tags) -> u32 {
        let (flags, pool) = self.place(one.range, replay);
        let stream = one.range.and_then(|i| self.forward.ranges().get(i)).map(|range| range.stream);
        replay.allocations.push(Allocation {
            address: one.address,
            requested: one.requested,
            size: one.size,
            begin: position,
            freed: if one.is_pending { position } else { Allocation::NEVER },
            end: Allocation::NEVER,
            tag: tags.intern(Tag { stream: stream.unwrap_or_default(), ..Tag::default() }),
            stack: one.stack,
            pool,
            flags: flags | Allocation::FLAG_SIZE_WRITTEN,
        })
    }

    /// What an allocation has from the range that it lies in.
    fn place(&self, range: Option<usize>, replay: &mut Replay) -> (u8, u8) {
        let flags = range.and_then(|i| self.forward.ranges().get(i)).map_or(0, Range::flags);
        (flags, self.pool(range, replay))
    }

    fn pool(&self, range: Option<usize>, replay: &mut Replay) -> u8 {
        let pool = range.and_then(|i| self.forward.ranges().get(i)).map(|range| range.pool);
        pool.filter(|pool| pool.is_private()).map_or(0, |pool| pool_number(&mut replay.pools, pool))
    }
}

impl Replay {
    /// Nothing happened yet.
    fn from_start(ranges: Ranges) -> Self {
        let allocations = Allocations::default();
        Self {
            checkpoints: Checkpoints::build(&allocations),
            allocations,
            event_allocation: Column::default(),
            pools: vec![PoolId::default()],
            mismatches: Mismatches::default(),
            unrecorded: Vec::new(),
            segments: SegmentHistory::begin(ranges),
            clock: None,
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

    /// The state at a position as it could be written.
    pub fn segments_at(&self, position: u32) -> Vec<Segment> {
        let state = self.state_at(position);
        state.ranges.iter().enumerate().map(|(i, range)| super::ending::tiled(i, range, &state, self)).collect()
    }

    /// Bytes of memory that it takes, about.
    pub fn bytes(&self) -> usize {
        // Four numbers of eight bytes and less for each allocation, and as many again that are kept at checkpoints.
        const ALLOCATION: usize = 3 * 8 + 5 * 4 + 2 + 4;
        let clock = self.clock.as_ref().map_or(0, |clock| clock.len() * 8);
        self.allocations.len() * ALLOCATION
            + self.event_allocation.len() * 4
            + self.unrecorded.len() * 8
            + self.segments.bytes()
            + clock
    }
}

/// What a device held after the first of `span`'s positions when `segments` are what it held after the last, and no event
/// between them is missing.
pub(crate) fn rewound(
    trace: &DeviceTrace,
    tags: &mut Tags,
    settings: &Settings,
    span: std::ops::Range<u32>,
    segments: Vec<Segment>,
) -> Vec<Segment> {
    let mut part = DeviceTrace { device: trace.device, segments, ..DeviceTrace::default() };
    part.segments.sort_by_key(|segment| segment.address);
    for segment in &mut part.segments {
        segment.blocks.sort_by_key(|block| block.address);
    }
    let events = trace.events.iter_from(span.start as usize).take(span.len());
    events.for_each(|event| part.events.push(event));
    Replay::build(&part, tags, settings).segments_at(0)
}

/// Takes in the times of the entries from `first` to before `to`.
fn extend_clock(known: &mut Option<Column<i64>>, trace: &DeviceTrace, first: u32, to: usize) {
    let times = &trace.events.time_us;
    let before = (first as usize).saturating_sub(1);
    if known.is_none() && times.slices(before..to).flatten().is_sorted() {
        return;
    }
    // Where times did not fall before, all of them are what they are as far as here.
    let known = known.get_or_insert_with(|| times.slices(0..first as usize).flatten().copied().collect());
    let mut latest = known.len().checked_sub(1).and_then(|last| known.get(last)).unwrap_or(i64::MIN);
    for &time in times.slices(known.len()..to).flatten() {
        latest = latest.max(time);
        known.push(latest);
    }
}
