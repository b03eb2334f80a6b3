//! Lets the allocator answer the requests of a trace.

use super::device::Device;
use super::outcome::{Outcome, Why};
use super::requests::{Act, Requests, Step};
use crate::allocator::{
    AllocError, AllocatorConfig, DeviceAllocator, DriverError, Filter, FreeError, MisuseError, Profile, Request,
    TraceSink,
};
use crate::frames::StackId;
use crate::trace::Segment;
use crate::units::{Address, PoolId, Stream};

/// The streams that other streams' work is held on begin here, far from those of a program.
const HELD: i64 = i64::MAX / 2;

/// Where the segments of the start lie in a run under other terms.
const START: u64 = 0x1000_0000_0000;

/// Bytes of a device on which nothing is short: more than any device has.
pub const AMPLE: u64 = 1 << 40;

/// What a run is repeated under.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The release whose decisions are made.
    pub profile: &'static Profile,
    /// The allocator's settings.
    pub config: AllocatorConfig,
    /// The bytes of the device that this process can have.
    pub capacity: u64,
}

/// A run under way.
pub(super) struct Runner<'a, 'r, S: TraceSink> {
    pub(super) requests: &'r Requests<'a>,
    pub(super) allocator: DeviceAllocator<Device, S>,
    /// Where each allocation lies now, by number; 0 if it has no memory.
    addresses: Vec<u64>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// As in the recording, apart from addresses.
    Same,
    /// The program would have gone on differently.
    Other(Why),
}

impl<'a, 'r, S: TraceSink> Runner<'a, 'r, S> {
    /// Begins a run with the state that the trace began with, its segments moved by `by` bytes.
    pub(super) fn new(
        requests: &'r Requests<'a>,
        terms: &Terms,
        (device, start, by): (Device, &[Segment], u64),
        sink: S,
    ) -> Result<Self, DriverError> {
        let mut allocator = DeviceAllocator::new(device, sink, terms.profile, terms.config.clone());
        let mut addresses = vec![0; requests.replay.allocations.len()];
        let at_start = requests.replay.active_at(0);
        let mut waiting = std::collections::BTreeMap::new();
        for &number in &at_start {
            let Some(allocation) = requests.allocation(number) else { continue };
            let address = allocation.address.0.wrapping_add(by);
            if let Some(place) = addresses.get_mut(number as usize) {
                *place = address;
            }
            if !allocation.is_allocated_at(0) {
                waiting.insert(address, held(number));
            }
        }
        for stream in waiting.values() {
            allocator.driver_mut().hold(*stream);
        }
        allocator.adopt(start, |address| waiting.get(&address).copied().unwrap_or(Stream(HELD)))?;
        Ok(Self { requests, allocator, addresses })
    }

    /// Runs to the end, or to where the program would have gone on differently.
    pub(super) fn run(mut self) -> Outcome {
        let stop = self.requests.steps.iter().find_map(|step| match self.step(step) {
            Ok(Done::Same) => None,
            Ok(Done::Other(why)) => Some((step.event, why)),
            Err(_) => Some((step.event, Why::Failed)),
        });
        Outcome::of(&self.allocator.stats(), stop)
    }

    /// Does what the program did.
    pub(super) fn step(&mut self, step: &Step) -> Result<Done, AllocError> {
        match step.act {
            Act::Malloc(number) => self.malloc(step.event, number),
            Act::Failed => self.fail(step.event),
            Act::Free(number) => {
                // One that was never served has nothing to free.
                let address = Address(self.take(number));
                let _: Result<(), FreeError> = self.allocator.free(address, StackId(0));
                Ok(Done::Same)
            }
            Act::FreeLater(number) => {
                let address = Address(self.take(number));
                let stream = held(number);
                self.allocator.driver_mut().hold(stream);
                let _: Result<(), MisuseError> = self.allocator.record_stream(address, stream);
                let _: Result<(), FreeError> = self.allocator.free(address, StackId(0));
                Ok(Done::Same)
            }
            Act::Settled(number) => {
                self.allocator.driver_mut().release(held(number));
                self.allocator.settle()?;
                Ok(Done::Same)
            }
            Act::EmptyCache => {
                self.allocator.empty_cache(StackId(0))?;
                Ok(Done::Same)
            }
        }
    }

    fn take(&mut self, number: u32) -> u64 {
        self.addresses.get_mut(number as usize).map(std::mem::take).unwrap_or_default()
    }

    fn malloc(&mut self, event: u32, number: u32) -> Result<Done, AllocError> {
        let Some(allocation) = self.requests.allocation(number) else { return Ok(Done::Same) };
        let pool = self.requests.replay.pool(&allocation);
        match self.ask(pool, allocation.requested, self.requests.stream(event)) {
            Ok(address) => {
                if let Some(place) = self.addresses.get_mut(number as usize) {
                    *place = address.0;
                }
                Ok(Done::Same)
            }
            Err(AllocError::Driver(error)) => Err(error.into()),
            Err(_) => Ok(Done::Other(Why::Failed)),
        }
    }

    fn fail(&mut self, event: u32) -> Result<Done, AllocError> {
        let Some(found) = self.requests.trace.events.get(event as usize) else { return Ok(Done::Same) };
        let pool = self.requests.tags.get(found.tag).pool.unwrap_or_default();
        match self.ask(pool, found.size, self.requests.stream(event)) {
            Ok(address) => {
                let _: Result<(), FreeError> = self.allocator.free(address, StackId(0));
                Ok(Done::Other(Why::Served))
            }
            Err(AllocError::Driver(error)) => Err(error.into()),
            Err(_) => Ok(Done::Same),
        }
    }

    /// Asks for memory of a pool.
    fn ask(&mut self, pool: PoolId, size: u64, stream: Stream) -> Result<Address, AllocError> {
        let request = Request { size, stream, thread: 1, stack: StackId(0) };
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

/// The step between capacities that are tried: 2 MiB, the unit in which drivers give out memory.
const GRANULE: u64 = 2 << 20;

impl Requests<'_> {
    /// Returns the least memory of a device, in whole granules of 2 MiB, on which no request fails. With one granule less,
    /// one does. A run that stops because a request is served that failed in the recording counts up to there.
    pub fn smallest_capacity(&self, terms: &Terms) -> Result<u64, DriverError> {
        let fits = |granules: u64| -> Result<bool, DriverError> {
            let outcome = self.run(&Terms { capacity: granules * GRANULE, ..terms.clone() })?;
            Ok(outcome.ooms == 0)
        };
        let ample = self.run(&Terms { capacity: AMPLE, ..terms.clone() })?;
        // What it reserves where nothing is short is nearly always enough; a small device also gives short ranges of addresses
        // to expandable segments. Nothing is too little for any request.
        let mut enough = ample.peak_reserved.div_ceil(GRANULE);
        while !fits(enough)? && enough < AMPLE / GRANULE {
            enough += enough / 8 + 1;
        }
        let mut short = 0;
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if fits(middle)? {
                enough = middle;
            } else {
                short = middle;
            }
        }
        Ok(enough * GRANULE)
    }

    /// Runs the requests under other terms.
    pub fn run(&self, terms: &Terms) -> Result<Outcome, DriverError> {
        // Below all addresses that the device chooses, in the same order.
        let first = self.start.first().map_or(0, |segment| segment.address.0);
        let by = START.wrapping_sub(first);
        let mut start = self.start.clone();
        for segment in &mut start {
            segment.address.0 = segment.address.0.wrapping_add(by);
            for block in &mut segment.blocks {
                block.address.0 = block.address.0.wrapping_add(by);
            }
        }
        let device = Device::simulated(terms.capacity, &start);
        Ok(Runner::new(self, terms, (device, &start, by), ())?.run())
    }
}
