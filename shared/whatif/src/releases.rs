//! Who released memory in a recorded run: the program, by `empty_cache` or by giving up a pool, or a request that the device had
//! no room for.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::capacity::GRANULE;
use super::pools::{Pools, is_empty_cache};
use allocator::rounding::{LARGE_BUFFER, MIN_LARGE_ALLOC, SMALL_BUFFER, SMALL_SIZE};
use replay::Replay;
use trace::event::Action;
use trace::frames::{StackId, Symbols};
use trace::{DeviceTrace, Event, Settings};

/// The most memory that a process is believed to have had: 1 PiB. With more, which only a broken trace says, sums would overflow.
const MOST: u64 = 1 << 50;

/// Who released the memory of a run of events of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReleasedBy {
    /// The program, with events up to this one.
    Program(u32),
    /// The request that follows.
    Request,
    /// The request that follows, which releases more afterwards: the run does not end here.
    NextRequestContinuing,
}

/// The releases of a trace.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// By the event that follows a run of events of the driver, if something was released in it.
    runs: FxHashMap<u32, ReleasedBy>,
    /// The memory that the process could have, if the trace shows it.
    pub(super) capacity: Option<u64>,
}

impl Releases {
    /// Reads who released what.
    pub(super) fn of(
        trace: &DeviceTrace,
        symbols: &Symbols,
        replay: &Replay,
        settings: &Settings,
        pools: Option<&Pools>,
    ) -> Self {
        let reserved = reserved(trace, replay);
        let most_reserved = reserved.iter().max().copied().unwrap_or_default();
        let has_stacks = trace.events.stack.iter().any(|stack| stack != 0);
        let known = capacity_when_failed(trace, &reserved, settings);
        let runs = Vec::new();
        Reading { trace, symbols, replay, settings, pools, reserved, most_reserved, has_stacks, known, runs }.read()
    }

    /// Returns who released memory in the run of events of the driver before this event.
    pub(super) fn before(&self, event: u32) -> Option<ReleasedBy> {
        self.runs.get(&event).copied()
    }
}

/// Returns the reserved bytes before each event, and at the end.
fn reserved(trace: &DeviceTrace, replay: &Replay) -> Vec<u64> {
    let mut now = replay.reserved_at_start();
    let mut before = Vec::with_capacity(trace.events.len() + 1);
    for event in trace.events.iter() {
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

/// Returns what the process had when a request failed, with what the device had free then; or less, if that would have been
/// enough: then the process was not allowed to take it.
fn capacity_when_failed(trace: &DeviceTrace, reserved: &[u64], settings: &Settings) -> Option<u64> {
    let most_reserved = reserved.iter().max().copied().unwrap_or_default();
    let failed = trace.events.iter().zip(reserved).filter(|(event, _)| event.action == Action::Oom);
    let of = |(event, before): (Event, &u64)| {
        let wanted = match event.size {
            ..=SMALL_SIZE => SMALL_BUFFER,
            size if size < MIN_LARGE_ALLOC => LARGE_BUFFER,
            size => size.div_ceil(GRANULE).saturating_mul(GRANULE),
        };
        let (had, free) = (*before, event.address.0);
        // An expandable segment may need fewer pages, or more.
        match free >= wanted && !settings.expandable_segments {
            true => had.saturating_add(wanted - GRANULE).max(most_reserved),
            false => had.saturating_add(free),
        }
    };
    failed.map(of).min()
}

/// Who released the memory of a run, as far as the run alone shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Program,
    Request,
    /// The program, if it calls `empty_cache` at all.
    Either,
}

/// A run of events of the driver.
#[derive(Clone, Debug)]
struct DriverRun {
    /// The event that follows.
    event: u32,
    /// The first release, and the event after the last one.
    frees: Range<u32>,
    verdict: Verdict,
    is_ahead: bool,
    /// The event at which a request that is ahead continues to release.
    until: u32,
    /// The bytes that were reserved between the last release and the request that follows.
    taken: u64,
}

/// A trace while it is read.
struct Reading<'a> {
    trace: &'a DeviceTrace,
    symbols: &'a Symbols,
    replay: &'a Replay,
    settings: &'a Settings,
    pools: Option<&'a Pools>,
    /// The reserved bytes before each event.
    reserved: Vec<u64>,
    most_reserved: u64,
    has_stacks: bool,
    /// The memory that the process could have, if a request failed.
    known: Option<u64>,
    runs: Vec<DriverRun>,
}

impl Reading<'_> {
    fn read(mut self) -> Releases {
        let mut frees: Option<Range<u32>> = None;
        for (event, found) in (0..).zip(self.trace.events.iter()) {
            match found.action {
                Action::SegmentFree | Action::SegmentUnmap => {
                    frees = Some(frees.map_or(event, |frees| frees.start)..event + 1);
                }
                Action::SegmentAlloc | Action::SegmentMap => {}
                Action::Snapshot | Action::UserDefined | Action::Annotate | Action::Other => {}
                Action::Alloc | Action::Oom | Action::FreeRequested | Action::FreeCompleted => {
                    let Some(released) = frees.take() else { continue };
                    let before = self.runs.last().filter(|run| run.is_ahead && run.frees == released);
                    let run = match before.filter(|_| found.action == Action::FreeCompleted) {
                        Some(before) if event < before.until => DriverRun { event, ..before.clone() },
                        _ => self.run(event, released.clone(), &found),
                    };
                    if run.is_ahead {
                        frees = Some(released);
                    }
                    self.runs.push(run);
                }
            }
        }
        self.finish()
    }

    fn run(&self, event: u32, frees: Range<u32>, found: &Event) -> DriverRun {
        let asked = self.asked_after(event).filter(|(_, asked)| matches!(asked.action, Action::Alloc | Action::Oom));
        let mut run = DriverRun { event, frees, verdict: Verdict::Program, is_ahead: false, until: event, taken: 0 };
        let Some((place, asked)) = asked else { return run };
        let ahead = || self.trace.events.iter_from(event as usize).take(place.saturating_sub(event) as usize);
        let next = ahead().position(|event| matches!(event.action, Action::SegmentFree | Action::SegmentUnmap));
        let goes_on = next.is_some();
        run.until = event.saturating_add(next.unwrap_or_default() as u32);
        let between =
            self.trace.events.iter_from(run.frees.end as usize).take(place.saturating_sub(run.frees.end) as usize);
        let between = between.filter(|event| matches!(event.action, Action::SegmentAlloc | Action::SegmentMap));
        run.taken = between.fold(0, |sum: u64, event| sum.saturating_add(event.size));
        run.verdict = self.verdict(&run, goes_on, (place, &asked));
        run.is_ahead = run.verdict != Verdict::Program && found.action == Action::FreeCompleted && goes_on;
        run
    }

    /// Returns the next event that is neither the driver's nor the end of a wait.
    fn asked_after(&self, event: u32) -> Option<(u32, Event)> {
        let mut events = (event..).zip(self.trace.events.iter_from(event as usize));
        events.find(|(_, event)| matches!(event.action, Action::Alloc | Action::Oom | Action::FreeRequested))
    }

    fn verdict(&self, run: &DriverRun, goes_on: bool, (place, asked): (u32, &Event)) -> Verdict {
        let Some(freed) = self.trace.events.get((run.frees.end as usize).wrapping_sub(1)) else {
            return Verdict::Program;
        };
        // The allocator notes the stack of the request with what it releases for it.
        if freed.stack != StackId(0) && asked.stack != StackId(0) {
            let mut frames = self.symbols.stack(freed.stack).iter();
            let is_call = frames.any(|frame| is_empty_cache(self.symbols, *frame));
            return if is_call || freed.stack != asked.stack { Verdict::Program } else { Verdict::Request };
        }
        // A thread without Python frames, such as autograd's, calls no `empty_cache`.
        if self.has_stacks && asked.stack == StackId(0) {
            return if freed.stack == StackId(0) { Verdict::Request } else { Verdict::Program };
        }
        let is_failed = asked.action == Action::Oom;
        // After `empty_cache`, a request begins with looking for streams that are done, and releases nothing. Nor does a request
        // that the cache serves, or could have served.
        let is_early =
            self.trace.events.get(run.event as usize).is_some_and(|event| event.action == Action::FreeCompleted);
        if (is_early || run.taken == 0) && !is_failed && !goes_on {
            return Verdict::Program;
        }
        let number = self.replay.event_allocation.get(place as usize);
        if self.pools.is_some_and(|pools| pools.could_serve(place, number)) {
            return Verdict::Program;
        }
        if is_failed || self.settings.garbage_collection_threshold > 0.0 {
            return Verdict::Request;
        }
        // The device had room for what the run reserved at another time.
        let before = self.before(run);
        match self.known {
            Some(capacity) if before.saturating_add(run.taken) <= capacity => Verdict::Program,
            Some(_) => Verdict::Request,
            None if before.saturating_add(run.taken) <= self.most_reserved => Verdict::Program,
            None => Verdict::Either,
        }
    }

    /// Returns the bytes that were reserved before a run released any.
    fn before(&self, run: &DriverRun) -> u64 {
        self.reserved.get(run.frees.start as usize).copied().unwrap_or_default()
    }

    fn finish(self) -> Releases {
        let is_default = |event: u32| self.pools.is_none_or(|pools| !pools.of_release(event).is_private());
        let calls = self.runs.iter().any(|run| run.verdict == Verdict::Program && run.frees.clone().any(is_default));
        let by_request = |run: &DriverRun| match run.verdict {
            Verdict::Program => false,
            Verdict::Request => true,
            Verdict::Either => !calls,
        };
        // What a request needed before it released anything is more than there was.
        let ends = self.runs.iter().filter(|run| by_request(run) && !run.is_ahead && run.taken > 0);
        let short =
            ends.map(|run| self.before(run).saturating_add(run.taken).saturating_sub(1) / GRANULE * GRANULE).min();
        let is_clear = self.settings.garbage_collection_threshold == 0.0;
        let short = short.filter(|capacity| is_clear && *capacity >= self.most_reserved);
        let by = |run: &DriverRun| match (by_request(run), run.is_ahead) {
            (false, _) => ReleasedBy::Program(run.frees.end),
            (true, false) => ReleasedBy::Request,
            (true, true) => ReleasedBy::NextRequestContinuing,
        };
        let capacity = self.known.or(short).filter(|capacity| *capacity <= MOST);
        Releases { runs: self.runs.iter().map(|run| (run.event, by(run))).collect(), capacity }
    }
}
