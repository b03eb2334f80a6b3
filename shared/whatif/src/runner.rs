//! Lets the allocator answer the requests of a trace.

use std::collections::BTreeMap;

use super::device::Device;
use super::outcome::outcome_of;
use super::requests::{Act, Asked, RequestStep, Requests, Source};
use super::reserved_curve::ReservedCurve;
use super::run_trace::{stack_at_start, stack_of};
use super::terms::Terms;
use allocator::{AllocError, DeviceAllocator, DriverError, Filter, FreeError, MisuseError, Request, TraceSink};
use query::whatif::{Outcome, Why};
use trace::Segment;
use trace::frames::StackId;
use trace::units::{Address, Stream};

/// The first of the streams that are held in place of the program's streams, far from any of those.
const HELD: i64 = i64::MAX / 2;

/// Where the segments of the start lie in a run under other terms.
const START: u64 = 0x1000_0000_0000;

/// A run under way.
pub(super) struct Runner<'r, S: TraceSink> {
    pub(super) requests: &'r Requests,
    pub(super) allocator: DeviceAllocator<Device, S>,
    /// Where each allocation lies now, by number; 0 if it has no memory.
    addresses: Vec<u64>,
    /// The bytes that the process can have. If what was reserved before the first event takes more, the program would not have got there.
    room: u64,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// As in the recording, apart from addresses.
    Same,
    /// The program would have gone on differently.
    Other(Why),
}

impl<'r, S: TraceSink> Runner<'r, S> {
    /// Begins a run with the state that the trace began with, its segments moved by `by` bytes.
    pub(super) fn new(
        requests: &'r Requests,
        terms: &Terms,
        (device, start, by): (Device, &[Segment], u64),
        sink: S,
    ) -> Result<Self, DriverError> {
        let mut allocator = DeviceAllocator::new(device, sink, terms.profile, terms.config.clone());
        let mut addresses = vec![0; requests.asked.len()];
        let mut waiting = BTreeMap::new();
        for live in &requests.live {
            let address = live.address.0.wrapping_add(by);
            if let Some(place) = addresses.get_mut(live.number as usize) {
                *place = address;
            }
            if live.is_waiting {
                waiting.insert(address, held(live.number));
            }
        }
        for stream in waiting.values() {
            allocator.driver_mut().hold(*stream);
        }
        allocator.adopt(start, |address| waiting.get(&address).copied().unwrap_or(Stream(HELD)))?;
        Ok(Self { requests, allocator, addresses, room: terms.room() })
    }

    /// Runs to the end, or to where the program would have gone on differently: at event 0, if it can't have started.
    /// Calls `watch` after each
    /// step with its event.
    pub(super) fn run(&mut self, mut watch: impl FnMut(&DeviceAllocator<Device, S>, u32)) -> Outcome {
        let mut most_unused = 0;
        let requests = self.requests;
        if self.room < requests.needed_at_start() {
            return outcome_of(&self.allocator.stats(), Some((0, Why::AtStart)));
        }
        let stop = requests.steps.iter().find_map(|step| {
            let done = self.step(step);
            let reserved = self.allocator.reserved();
            most_unused = most_unused.max(reserved.saturating_sub(self.allocator.active()));
            watch(&self.allocator, step.event);
            match done {
                Ok(StepOutcome::Same) => None,
                Ok(StepOutcome::Other(why)) => Some((step.event, why)),
                Err(_) => Some((step.event, Why::Failed)),
            }
        });
        Outcome { most_unused, ..outcome_of(&self.allocator.stats(), stop) }
    }

    /// Does what the program did.
    pub(super) fn step(&mut self, step: &RequestStep) -> Result<StepOutcome, AllocError> {
        let stack = stack_of(step);
        match step.act {
            Act::Malloc(number) => self.malloc(number, stack),
            Act::Failed(number) => self.fail(number, stack),
            Act::Free(number) => {
                // One that was never served has nothing to free.
                let address = Address(self.take(number));
                let _: Result<(), FreeError> = self.allocator.free(address, stack);
                Ok(StepOutcome::Same)
            }
            Act::FreeLater(number) => {
                let address = Address(self.take(number));
                let stream = held(number);
                self.allocator.driver_mut().hold(stream);
                let _: Result<(), MisuseError> = self.allocator.record_stream(address, stream);
                let _: Result<(), FreeError> = self.allocator.free(address, stack);
                Ok(StepOutcome::Same)
            }
            Act::Settled(number) => {
                self.allocator.driver_mut().release(held(number));
                self.allocator.settle()?;
                Ok(StepOutcome::Same)
            }
            Act::EmptyCache => {
                self.allocator.empty_cache(stack)?;
                Ok(StepOutcome::Same)
            }
            Act::Begin => {
                self.allocator.empty_cache(stack)?;
                self.allocator.reset_peak_stats();
                let can_start = self.room >= self.requests.needed(self.allocator.reserved());
                Ok(if can_start { StepOutcome::Same } else { StepOutcome::Other(Why::AtStart) })
            }
            Act::LeavePool(source) | Act::EndPool(source) => {
                let pool = self.requests.sources.get(source as usize).copied().unwrap_or_default().pool;
                let _: Result<(), MisuseError> = self.allocator.release_pool(pool);
                if matches!(step.act, Act::EndPool(_)) {
                    self.allocator.empty_pool_cache(pool, stack)?;
                }
                Ok(StepOutcome::Same)
            }
        }
    }

    fn take(&mut self, number: u32) -> u64 {
        self.addresses.get_mut(number as usize).map(std::mem::take).unwrap_or_default()
    }

    fn malloc(&mut self, number: u32, stack: StackId) -> Result<StepOutcome, AllocError> {
        match self.ask(number, stack) {
            Ok(address) => {
                if let Some(place) = self.addresses.get_mut(number as usize) {
                    *place = address.0;
                }
                Ok(StepOutcome::Same)
            }
            Err(AllocError::Driver(error)) => Err(error.into()),
            Err(_) => Ok(StepOutcome::Other(Why::Failed)),
        }
    }

    fn fail(&mut self, number: u32, stack: StackId) -> Result<StepOutcome, AllocError> {
        match self.ask(number, stack) {
            Ok(address) => {
                let _: Result<(), FreeError> = self.allocator.free(address, stack);
                Ok(StepOutcome::Other(Why::Served))
            }
            Err(AllocError::Driver(error)) => Err(error.into()),
            Err(_) => Ok(StepOutcome::Same),
        }
    }

    /// Asks for what the request of this number asked for.
    fn ask(&mut self, number: u32, stack: StackId) -> Result<Address, AllocError> {
        let asked = self.requests.asked.get(number as usize).copied().unwrap_or(Asked { size: 0, source: 0 });
        let Source { stream, pool } = self.requests.sources.get(asked.source as usize).copied().unwrap_or_default();
        let request = Request { size: asked.size, stream, thread: 1, stack };
        if !pool.is_private() {
            return self.allocator.malloc(Request { thread: 0, ..request });
        }
        if self.allocator.pool_use_count(pool) == 0 {
            self.allocator.create_pool(pool, Default::default());
        }
        // The way to a pool is open for this request only. It can't be open already.
        let _: Result<(), MisuseError> = self.allocator.begin_allocate_to_pool(pool, Filter::Thread(1));
        let served = self.allocator.malloc(request);
        let _: Result<(), MisuseError> = self.allocator.end_allocate_to_pool(pool);
        let _: Result<(), MisuseError> = self.allocator.release_pool(pool);
        served
    }
}

/// Returns the stream that an allocation waits for once it is freed.
fn held(number: u32) -> Stream {
    Stream(HELD + 1 + i64::from(number))
}

impl Requests {
    /// Runs the requests under some terms.
    ///
    /// # Errors
    /// The trace begins in a state that an allocator can't have, or the fraction is not a share.
    pub fn run(&self, terms: &Terms) -> Result<Outcome, DriverError> {
        Ok(self.runner(terms, ())?.run(|_, _| ()))
    }

    /// Runs the requests under some terms, and returns also how the reserved memory went up and down.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with_curve(&self, terms: &Terms) -> Result<(Outcome, ReservedCurve), DriverError> {
        let (mut runner, mut curve) = (self.runner(terms, ())?, ReservedCurve::default());
        curve.note(0, runner.allocator.reserved());
        let outcome = runner.run(|allocator, event| curve.note(event, allocator.reserved()));
        Ok((outcome, curve))
    }

    pub(super) fn runner<S: TraceSink>(&self, terms: &Terms, sink: S) -> Result<Runner<'_, S>, DriverError> {
        // Below all addresses that the device chooses, in the same order.
        let first = self.start.first().map_or(0, |segment| segment.address.0);
        let by = START.wrapping_sub(first);
        let mut start = self.start.clone();
        for segment in &mut start {
            segment.address.0 = segment.address.0.wrapping_add(by);
            segment.stack = stack_at_start(segment.stack);
            for block in &mut segment.blocks {
                block.stack = stack_at_start(block.stack);
                block.address.0 = block.address.0.wrapping_add(by);
            }
        }
        let device = Device::simulated((terms.capacity, terms.held_by_others), &start);
        let mut runner = Runner::new(self, terms, (device, &start, by), sink)?;
        if let Some(fraction) = terms.fraction {
            runner.allocator.set_memory_fraction(fraction).map_err(|error| DriverError::Failed {
                call: "set_per_process_memory_fraction",
                message: error.to_string(),
            })?;
        }
        Ok(runner)
    }
}
