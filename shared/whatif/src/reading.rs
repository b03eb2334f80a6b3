//! Reads from a trace what the program asked for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::openings::{Opening, openings};
use super::pools::Pools;
use super::releases::{ReleasedBy, Releases};
use super::requests::{Act, Asked, LiveAtStart, Recorded, RequestStep, Requests, Source};
use allocator::rounding::SMALL_SIZE;
use replay::{Allocation, Replay};
use trace::event::Action;
use trace::frames::Symbols;
use trace::units::{PoolId, Stream};
use trace::{DeviceTrace, Event, Settings, Tags};

/// A trace while its requests are read.
struct Reader<'a> {
    trace: &'a DeviceTrace,
    tags: &'a Tags,
    replay: &'a Replay,
    /// The pools, if memory was released.
    pools: Option<Pools>,
    releases: Releases,
    /// The private pools that the program gave up so far.
    left: FxHashSet<PoolId>,
    /// The first maps of ranges of addresses, once a request failed.
    openings: Option<Vec<Opening>>,
    /// The index of each source that was met.
    sources: FxHashMap<Source, u32>,
    read: Requests,
}

impl Requests {
    /// Reads the requests of a device's trace. `settings` are those that it was recorded under.
    pub fn of(trace: &DeviceTrace, (symbols, tags): (&Symbols, &Tags), replay: &Replay, settings: &Settings) -> Self {
        let lost = trace.losses.iter().fold(0, |sum, loss| loss.events.saturating_add(sum));
        let read = Self { start: replay.segments_at(0), lost, ..Self::default() };
        let pools = Pools::of(trace, (symbols, tags), replay, settings, &read.start);
        let releases = Releases::of(trace, symbols, replay, settings, pools.as_ref());
        let (left, sources) = (FxHashSet::default(), FxHashMap::default());
        Reader { trace, tags, replay, pools, releases, left, openings: None, sources, read }.read()
    }
}

impl Reader<'_> {
    fn read(mut self) -> Requests {
        if let Some(pools) = &self.pools {
            for (segment, pool) in self.read.start.iter_mut().zip(pools.at_start()) {
                segment.pool = pool;
            }
        }
        self.read_allocations();
        self.read.capacity = self.releases.capacity;
        let (mut driver_from, mut asked_last) = (None, None);
        for (event, found) in (0..).zip(self.trace.events.iter()) {
            let from = driver_from.unwrap_or(event);
            match found.action {
                Action::SegmentAlloc | Action::SegmentMap | Action::SegmentFree | Action::SegmentUnmap => {
                    driver_from.get_or_insert(event);
                    continue;
                }
                Action::Snapshot | Action::UserDefined | Action::Annotate | Action::Other => continue,
                Action::Alloc | Action::Oom | Action::FreeRequested | Action::FreeCompleted => {}
            }
            let is_request = matches!(found.action, Action::Alloc | Action::Oom);
            // What the program released itself comes before what this request took.
            let by = self.releases.before(event);
            let own_from = match by {
                Some(ReleasedBy::Program(until)) => {
                    self.release(from..until);
                    until
                }
                Some(ReleasedBy::Request | ReleasedBy::NextRequestContinuing) => {
                    self.leave_pools(from..event);
                    from
                }
                None => from,
            };
            let releases = by == Some(ReleasedBy::Request) || found.action == Action::Oom;
            // What was reserved before a stream was done is a request's that waited.
            let is_under_way =
                by == Some(ReleasedBy::NextRequestContinuing) || by.is_none() && found.action == Action::FreeCompleted;
            driver_from = driver_from.filter(|_| is_under_way);
            let Some(act) = self.act(event, &found) else { continue };
            if let (Act::Malloc(number), Some(ReleasedBy::Request)) = (act, by) {
                self.expect_range(number, from, &found);
            }
            // A request that makes room waits for all streams. What was done with then was not before.
            let is_settled = |step: &&RequestStep| matches!(step.act, Act::Settled(_)) && Some(step.event) > asked_last;
            let steps = &mut self.read.steps;
            let settled = if releases { steps.iter().rev().take_while(is_settled).count() } else { 0 };
            steps.insert(steps.len() - settled, RequestStep { event, act });
            if is_request {
                self.note(own_from..event + 1);
                asked_last = Some(event);
            }
        }
        // Released after the last request.
        let end = self.trace.events.len() as u32;
        let is_release = |event: &Event| matches!(event.action, Action::SegmentFree | Action::SegmentUnmap);
        if let Some(from) = driver_from
            && self.trace.events.iter_from(from as usize).any(|event| is_release(&event))
        {
            self.release(from..end);
        }
        self.read.recorded.ranges.sort_unstable();
        self.read
    }

    /// Adds the calls that released what these events say: ends of private pools, and `empty_cache`, which releases the
    /// default pool's memory first and then that of pools that were given up.
    fn release(&mut self, driver: std::ops::Range<u32>) {
        let mut next = driver.start;
        while next < driver.end {
            let (from, pool) = (next, self.pool_of_release(next));
            let is_end = |reader: &Self, pool: PoolId| pool.is_private() && !reader.left.contains(&pool);
            if is_end(self, pool) {
                next = (from..driver.end).find(|event| self.pool_of_release(*event) != pool).unwrap_or(driver.end);
                self.give_up(pool, next, Act::EndPool);
                self.note(from..next);
                continue;
            }
            // It continues as long as no private pool comes twice, and nothing of the default pool after a private one.
            let mut seen = Vec::new();
            next = (from..driver.end)
                .find(|event| {
                    let pool = self.pool_of_release(*event);
                    let is_next =
                        seen.last().is_none_or(|last| *last == pool || pool.is_private() && !seen.contains(&pool));
                    seen.push(pool);
                    !is_next
                })
                .unwrap_or(driver.end);
            self.leave_pools(from..next);
            self.read.steps.push(RequestStep { event: next, act: Act::EmptyCache });
            self.note(from..next);
        }
    }

    /// Gives up the private pools of which a request or `empty_cache` released something.
    fn leave_pools(&mut self, driver: std::ops::Range<u32>) {
        for event in driver.clone() {
            let pool = self.pool_of_release(event);
            if pool.is_private() {
                self.give_up(pool, driver.end, Act::LeavePool);
            }
        }
    }

    /// Gives up a private pool, unless it was given up already or is used later.
    fn give_up(&mut self, pool: PoolId, event: u32, act: impl FnOnce(u32) -> Act) {
        let is_over = self.pools.as_ref().is_none_or(|pools| pools.is_over(pool, event));
        if is_over && self.left.insert(pool) {
            let source = self.source(Source { stream: Stream::default(), pool });
            self.read.steps.push(RequestStep { event, act: act(source) });
        }
    }

    fn pool_of_release(&self, event: u32) -> PoolId {
        self.pools.as_ref().map(|pools| pools.of_release(event)).unwrap_or_default()
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
        for (number, allocation) in (0..).zip(allocations.iter()) {
            let inferred = self.pools.as_ref().and_then(|pools| pools.of_allocation(number));
            let pool = inferred.unwrap_or_else(|| self.replay.pool(&allocation));
            let source = Source { stream: self.tags.get(allocation.tag).stream, pool };
            self.ask(allocation.requested, source);
        }
        for number in self.replay.active_at(0) {
            let Some(allocation) = allocations.get(number) else { continue };
            let is_waiting = !allocation.is_allocated_at(0);
            self.read.live.push(LiveAtStart { number, address: allocation.address, is_waiting });
        }
    }

    fn ask(&mut self, size: u64, source: Source) {
        let source = self.source(source);
        self.read.asked.push(Asked { size, source });
    }

    /// Returns the index of a source.
    fn source(&mut self, source: Source) -> u32 {
        let sources = &mut self.read.sources;
        *self.sources.entry(source).or_insert_with(|| {
            sources.push(source);
            sources.len() as u32 - 1
        })
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
        self.expect_range(number, event, found);
        number
    }

    /// Notes where a request that the device had no room for may have had a range of addresses reserved, from an event on. A
    /// range that got no memory then gets some later.
    fn expect_range(&mut self, number: u32, from: u32, found: &Event) {
        let openings = self.openings.get_or_insert_with(|| openings(self.trace, self.tags, &self.read));
        let kind = (self.tags.get(found.tag).stream, found.size <= SMALL_SIZE);
        let first = openings.partition_point(|opening| opening.event < from);
        let range = openings.iter().skip(first).find(|opening| opening.kind == kind);
        self.read.recorded.ranges.extend(range.map(|range| (number, range.address)));
    }
}
