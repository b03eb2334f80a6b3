//! Reads from a trace what the program asked for.

use rustc_hash::FxHashMap;

use super::requests::{Act, Asked, Live, Recorded, Requests, Source, Step};
use crate::allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER, SMALL_SIZE};
use crate::event::Action;
use crate::frames::{StackId, Symbols};
use crate::replay::{Allocation, Replay};
use crate::trace::{DeviceTrace, Event, Settings, Tags};

/// Events after a request that failed in which the range that was reserved for it is looked for.
const LOOKAHEAD: usize = 1 << 12;

/// A trace while its requests are read.
struct Reader<'a> {
    trace: &'a DeviceTrace,
    symbols: &'a Symbols,
    tags: &'a Tags,
    replay: &'a Replay,
    settings: &'a Settings,
    /// The reserved bytes before each event.
    reserved: Vec<u64>,
    /// The index of each source that was met.
    sources: FxHashMap<Source, u32>,
    read: Requests,
}

impl Requests {
    /// Reads the requests of a device's trace. `settings` are those that it was recorded under.
    pub fn of(trace: &DeviceTrace, (symbols, tags): (&Symbols, &Tags), replay: &Replay, settings: &Settings) -> Self {
        let (reserved, sources, read) = (Vec::new(), FxHashMap::default(), Self::default());
        Reader { trace, symbols, tags, replay, settings, reserved, sources, read }.read()
    }
}

impl Reader<'_> {
    fn read(mut self) -> Requests {
        self.read.start = self.replay.segments_at(0);
        self.reserved = self.reserved();
        self.read_allocations();
        let failed = |(event, before): (Event, &u64)| {
            (event.action == Action::Oom).then(|| before.saturating_add(event.address.0))
        };
        self.read.capacity = self.trace.events.iter().zip(&self.reserved).find_map(failed);
        let (mut driver_from, mut has_frees, mut asked_last) = (None, false, None);
        for (event, found) in (0..).zip(self.trace.events.iter()) {
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
            let released = has_frees.then(|| self.released(from..event, is_request));
            let own_from = released.flatten().map_or(from, |until| {
                self.empty_cache(from..until);
                until
            });
            let releases = released == Some(None) || found.action == Action::Oom;
            (driver_from, has_frees) = (None, false);
            let Some(act) = self.act(event, &found) else { continue };
            // A request that makes room waits for all streams. What was done with then was not before.
            let is_settled = |step: &&Step| matches!(step.act, Act::Settled(_)) && Some(step.event) > asked_last;
            let steps = &mut self.read.steps;
            let settled = if releases { steps.iter().rev().take_while(is_settled).count() } else { 0 };
            steps.insert(steps.len() - settled, Step { event, act });
            if is_request {
                self.note(own_from..event + 1);
                asked_last = Some(event);
            }
        }
        // Released after the last request.
        if let (Some(from), true) = (driver_from, has_frees) {
            self.empty_cache(from..self.trace.events.len() as u32);
        }
        self.read
    }

    /// Adds a call of `empty_cache` that released what these events say.
    fn empty_cache(&mut self, driver: std::ops::Range<u32>) {
        self.read.steps.push(Step { event: driver.end, act: Act::EmptyCache });
        self.note(driver);
    }

    /// Notes what the recording has of the next request or `empty_cache`.
    fn note(&mut self, events: std::ops::Range<u32>) {
        let entries = &mut self.read.recorded.entries;
        let before = entries.len();
        let count = events.len();
        let events = self.trace.events.iter_from(events.start as usize).take(count);
        let events = events.filter(|event| Recorded::has(event.action));
        entries.extend(events.map(|event| (event.action, event.address.0, event.size)));
        self.read.recorded.lengths.push((entries.len() - before) as u32);
    }

    /// Reads what was asked for, and what was active at the start.
    fn read_allocations(&mut self) {
        let allocations = &self.replay.allocations;
        self.read.asked.reserve(allocations.len());
        for allocation in allocations.iter() {
            let source = Source { stream: self.tags.get(allocation.tag).stream, pool: self.replay.pool(&allocation) };
            self.ask(allocation.requested, source);
        }
        for number in self.replay.active_at(0) {
            let Some(allocation) = allocations.get(number) else { continue };
            let is_waiting = !allocation.is_allocated_at(0);
            self.read.live.push(Live { number, address: allocation.address, is_waiting });
        }
    }

    fn ask(&mut self, size: u64, source: Source) {
        let sources = &mut self.read.sources;
        let source = *self.sources.entry(source).or_insert_with(|| {
            sources.push(source);
            sources.len() as u32 - 1
        });
        self.read.asked.push(Asked { size, source });
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
    fn released(&self, driver: std::ops::Range<u32>, is_request: bool) -> Option<u32> {
        let (symbols, settings) = (self.symbols, self.settings);
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
        let taken = (until..driver.end).filter_map(event).fold(0_u64, |sum, event| sum.saturating_add(event.size));
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
        let before = self.reserved.get(driver.start as usize).copied().unwrap_or_default();
        let had_room = self.read.capacity.is_none_or(|capacity| before.saturating_add(taken) <= capacity);
        let is_own = asked.action == Action::Oom || !had_room || settings.garbage_collection_threshold > 0.0;
        (!is_own).then_some(until)
    }

    fn act(&mut self, event: u32, found: &Event) -> Option<Act> {
        if found.action == Action::Oom {
            return Some(Act::Failed(self.failed(event, found)));
        }
        let number = self.replay.event_allocation.get(event as usize).filter(|number| *number != Replay::NONE)?;
        let Allocation { freed, end, .. } = self.replay.allocations.get(number)?;
        // Positions count the events before them.
        let (at, is_at_once) = (event + 1, end == freed.saturating_add(1) || end <= freed);
        match found.action {
            Action::Alloc => Some(Act::Malloc(number)),
            Action::FreeRequested if is_at_once => Some(Act::Free(number)),
            Action::FreeRequested => Some(Act::FreeLater(number)),
            Action::FreeCompleted if freed >= at => Some(Act::Free(number)),
            Action::FreeCompleted if is_at_once => None,
            Action::FreeCompleted => Some(Act::Settled(number)),
            _ => None,
        }
    }

    /// Adds what a request that failed asked for, and returns its number.
    fn failed(&mut self, event: u32, found: &Event) -> u32 {
        let tag = self.tags.get(found.tag);
        let source = Source { stream: tag.stream, pool: tag.pool.unwrap_or_default() };
        let number = self.read.asked.len() as u32;
        self.ask(found.size, source);
        // A range that was reserved for it, and got no memory then, gets some later.
        let range = self.trace.events.iter_from(event as usize).take(LOOKAHEAD).find(|later| {
            let is_small = later.size < LARGE_BUFFER;
            let is_same_stream = self.tags.get(later.tag).stream == tag.stream;
            later.action == Action::SegmentMap && is_same_stream && is_small == (found.size <= SMALL_SIZE)
        });
        self.read.recorded.ranges.extend(range.map(|range| (number, range.address.0)));
        number
    }
}
