//! What the program asked for, in its order.

use crate::allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER, SMALL_SIZE};
use crate::event::Action;
use crate::frames::{StackId, Symbols};
use crate::replay::{Allocation, Replay};
use crate::trace::{DeviceTrace, Event, Segment, Settings, Tags};
use crate::units::Stream;

/// One thing that the program did, or that happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It asked for memory and got it: the number of the allocation.
    Malloc(u32),
    /// It asked for memory and got none.
    Failed,
    /// It freed an allocation, which no other stream used.
    Free(u32),
    /// It freed an allocation that other streams still used.
    FreeLater(u32),
    /// Those streams were done with the allocation.
    Settled(u32),
    /// It called `empty_cache`.
    EmptyCache,
}

/// An act at an event of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The event.
    pub(super) event: u32,
    /// The first of the events of the driver that belong to it, which directly precede it.
    pub(super) driver_from: u32,
    pub(super) act: Act,
}

/// What a program asked of the allocator of one device, and the state that it began with.
#[derive(Debug)]
pub struct Requests<'a> {
    pub(super) trace: &'a DeviceTrace,
    pub(super) tags: &'a Tags,
    pub(super) replay: &'a Replay,
    /// The segments at the start.
    pub(super) start: Vec<Segment>,
    pub(super) steps: Vec<Step>,
    /// The memory that the process could have, if the trace tells.
    capacity: Option<u64>,
}

impl<'a> Requests<'a> {
    /// Reads the requests of a device's trace. `settings` are those that it was recorded under.
    pub fn of(
        trace: &'a DeviceTrace,
        (symbols, tags): (&Symbols, &'a Tags),
        replay: &'a Replay,
        settings: &Settings,
    ) -> Self {
        let start = replay.segments_at(0);
        let mut new = Self { trace, tags, replay, start, steps: Vec::new(), capacity: None };
        let reserved: Vec<u64> = new.reserved();
        let failed = |(event, before): (Event, &u64)| {
            (event.action == Action::Oom).then(|| before.saturating_add(event.address.0))
        };
        new.capacity = trace.events.iter().zip(&reserved).find_map(failed);
        let (mut driver_from, mut has_frees, mut asked_last) = (None, false, None);
        for (event, found) in (0..).zip(trace.events.iter()) {
            let from = driver_from.unwrap_or(event);
            match found.action {
                Action::SegmentAlloc | Action::SegmentMap | Action::SegmentFree | Action::SegmentUnmap => {
                    driver_from.get_or_insert(event);
                    has_frees |= matches!(found.action, Action::SegmentFree | Action::SegmentUnmap);
                    continue;
                }
                Action::Snapshot | Action::UserDefined | Action::Annotate | Action::Other => continue,
                Action::Alloc | Action::Oom | Action::FreeRequested | Action::FreeCompleted => {}
            }
            let is_request = matches!(found.action, Action::Alloc | Action::Oom);
            // What the program released itself comes before what this request took.
            let released = has_frees.then(|| new.released(symbols, settings, from..event, is_request, &reserved));
            let own_from = released.flatten().map_or(from, |until| {
                new.steps.push(Step { event: until, driver_from: from, act: Act::EmptyCache });
                until
            });
            let releases = released == Some(None) || found.action == Action::Oom;
            (driver_from, has_frees) = (None, false);
            let Some(act) = new.act(event, found.action) else { continue };
            // A request that makes room waits for all streams. What was done with then was not before.
            let is_settled = |step: &&Step| matches!(step.act, Act::Settled(_)) && Some(step.event) > asked_last;
            let settled = if releases { new.steps.iter().rev().take_while(is_settled).count() } else { 0 };
            let at = new.steps.len() - settled;
            asked_last = if is_request { Some(event) } else { asked_last };
            new.steps.insert(at, Step { event, driver_from: own_from, act });
        }
        // Released after the last request.
        if let (Some(from), true) = (driver_from, has_frees) {
            let event = trace.events.len() as u32;
            new.steps.push(Step { event, driver_from: from, act: Act::EmptyCache });
        }
        new
    }

    /// Returns the number of requests for memory, with those that failed.
    pub fn len(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.act, Act::Malloc(_) | Act::Failed)).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory that the process could have, if the trace tells: what it had reserved when a request failed, and
    /// what the device had free then.
    pub fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    pub(super) fn allocation(&self, number: u32) -> Option<Allocation> {
        self.replay.allocations.get(number)
    }

    /// Returns the stream of an event.
    pub(super) fn stream(&self, event: u32) -> Stream {
        let tag = self.trace.events.get(event as usize).map(|event| self.tags.get(event.tag));
        tag.map(|tag| tag.stream).unwrap_or_default()
    }

    /// Returns the reserved bytes before each event.
    fn reserved(&self) -> Vec<u64> {
        let mut now = self.replay.reserved_at_start();
        let mut before = Vec::with_capacity(self.trace.events.len() + 1);
        for event in self.trace.events.iter() {
            before.push(now);
            match event.action {
                Action::SegmentAlloc | Action::SegmentMap => now = now.saturating_add(event.size),
                Action::SegmentFree | Action::SegmentUnmap => now = now.saturating_sub(event.size),
                _ => {}
            }
        }
        before.push(now);
        before
    }

    /// Returns up to where events of the driver are those of an `empty_cache`; `None` if they belong to the request that
    /// follows, which released memory to make room, or collected garbage.
    fn released(
        &self,
        symbols: &Symbols,
        settings: &Settings,
        driver: std::ops::Range<u32>,
        is_request: bool,
        reserved: &[u64],
    ) -> Option<u32> {
        let event = |n: u32| self.trace.events.get(n as usize);
        let is_free =
            |n: &u32| event(*n).is_some_and(|event| matches!(event.action, Action::SegmentFree | Action::SegmentUnmap));
        let last = driver.clone().rfind(is_free)?;
        let until = last + 1;
        if !is_request {
            return Some(until);
        }
        let asked = event(driver.end)?;
        let freed = event(last)?;
        // The allocator notes the stack of the request with what it releases for it.
        if freed.stack != StackId(0) && asked.stack != StackId(0) {
            let is_call = symbols
                .stack(freed.stack)
                .iter()
                .any(|frame| symbols.text(symbols.frame(*frame).name).contains("empty_cache"));
            return (is_call || freed.stack != asked.stack).then_some(until);
        }
        let taken: u64 = (until..driver.end).filter_map(event).map(|event| event.size).sum();
        if taken == 0 && asked.action == Action::Alloc {
            // A request that was served from the cache released nothing.
            return Some(until);
        }
        // A request that the cache could serve released nothing either.
        let could_serve = |freed: &Event| {
            let native_small = if freed.action == Action::SegmentFree { SMALL_BUFFER } else { LARGE_BUFFER - 1 };
            let is_small = freed.size <= native_small;
            let is_same_stream = self.tags.get(freed.tag).stream == self.tags.get(asked.tag).stream;
            // A block that is never split serves only requests close to its size.
            let most = settings.max_split_size.filter(|most| asked.size < *most).unwrap_or(u64::MAX);
            is_same_stream && is_small == (asked.size <= SMALL_SIZE) && (asked.size..most).contains(&freed.size)
        };
        if driver.clone().filter(is_free).filter_map(event).any(|freed| could_serve(&freed)) {
            return Some(until);
        }
        // Only a request that the device had no room for released anything, or one that collected garbage. Without the stacks,
        // and without a request that failed, a trace doesn't tell how much room there was.
        let before = reserved.get(driver.start as usize).copied().unwrap_or_default();
        let had_room = self.capacity.is_none_or(|capacity| before.saturating_add(taken) <= capacity);
        let is_own = asked.action == Action::Oom || !had_room || settings.garbage_collection_threshold > 0.0;
        (!is_own).then_some(until)
    }

    fn act(&self, event: u32, action: Action) -> Option<Act> {
        if action == Action::Oom {
            return Some(Act::Failed);
        }
        let number = self.replay.event_allocation.get(event as usize).filter(|number| *number != Replay::NONE)?;
        let Allocation { freed, end, .. } = self.allocation(number)?;
        // Positions count the events before them.
        let (at, is_at_once) = (event + 1, end == freed.saturating_add(1) || end <= freed);
        match action {
            Action::Alloc => Some(Act::Malloc(number)),
            Action::FreeRequested if is_at_once => Some(Act::Free(number)),
            Action::FreeRequested => Some(Act::FreeLater(number)),
            Action::FreeCompleted if freed >= at => Some(Act::Free(number)),
            Action::FreeCompleted if is_at_once => None,
            Action::FreeCompleted => Some(Act::Settled(number)),
            _ => None,
        }
    }
}
