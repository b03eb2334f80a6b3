//! A training or serving program as far as memory is concerned: tensors that come and go, the call stacks that they
//! come from, and a clock.
//!
//! A workload is written once against [`Job`] and runs on any [`Device`]. A simulated device and a real one get the same
//! requests in the same order.

mod call;
mod clock;
mod control;
mod device;
mod error;
mod event_log;
mod memory_watch;
mod outside_watch;
mod pacer;
mod parts;
mod recording_output;
mod rng;
mod stop_signal;

pub use clock::JobClock;
pub use control::{RunControl, Watch};
pub use device::{ClockedSim, Device};
pub use error::JobError;
pub use memory_watch::MemoryWatch;
pub use pacer::Pacer;
pub use parts::PartUse;
pub use recording_output::{Heading as RecordingHeading, RecordingOutput};
pub use stop_signal::StopSignal;

use allocator::{DeviceAllocator, Filter, PoolOptions, Request};
use budget::Part;
use format::export;
use rustc_hash::FxHashSet;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Annotation, DeviceTrace, Snapshot, Stage};

use self::call::Calls;
use self::event_log::EventLog;
use self::outside_watch::OutsideWatch;
use self::parts::Parts;
use self::rng::Rng;
pub(super) use super::call_site::{Call, Site, at};
use super::sites;
use recorder::RecorderStats;

/// Bytes that the device's memory moves in a microsecond: the rate of a kernel that fills a tensor.
const BYTES_PER_US: u64 = 160_000;

/// A tensor's storage on the device. Only [`Job::free`] frees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a tensor that is never freed stays in the trace for good"]
pub(in crate::workloads) struct Tensor {
    address: Address,
    bytes: u64,
    part: Part,
}

/// A program that runs on a device.
pub(in crate::workloads) struct Job<D: Device> {
    allocator: DeviceAllocator<D, EventLog>,
    calls: Calls,
    parts: Parts,
    rng: Rng,
    clock: JobClock,
    pacer: Option<Pacer>,
    stop: StopSignal,
    watch: Option<Watch>,
    memory_watch: Option<MemoryWatch>,
    outside_watch: OutsideWatch,
    annotations: Vec<Annotation>,
    main: Stream,
    graphs: u64,
    pools: u64,
    /// The open attempts, outermost first.
    attempts: Vec<Attempt>,
}

/// The tensors that were allocated within an attempt.
#[derive(Default)]
struct Attempt {
    made: Vec<Tensor>,
    live: FxHashSet<Address>,
}

/// The remains of a job that has ended.
pub(super) struct Ended<D: Device> {
    /// The allocator, for its counters.
    pub(super) allocator: DeviceAllocator<D, EventLog>,
    /// The events that were kept, and the segments at the end.
    pub(super) snapshot: Snapshot,
    /// Number of events, including those that were not kept.
    pub(super) events: u64,
    /// What each part of the program held.
    pub(super) parts: Vec<PartUse>,
    /// The recorder's counters, if the job was recorded.
    pub(super) recorded: Option<RecorderStats>,
    /// Duration in microseconds, on the clock of its events.
    pub(super) elapsed_us: i64,
}

impl<D: Device> Job<D> {
    /// Creates a job that has done nothing yet. `make` creates its allocator.
    pub(super) fn new(
        make: impl FnOnce(EventLog) -> DeviceAllocator<D, EventLog>,
        seed: u64,
        control: RunControl,
    ) -> Self {
        let RunControl { watch, memory_watch, pacer, stop, clock, recording } = control;
        let mut calls = Calls::default();
        let log = EventLog::new(&mut calls.symbols, &clock, recording);
        Self {
            allocator: make(log),
            calls,
            parts: Parts::default(),
            rng: Rng::new(seed),
            clock,
            pacer,
            stop,
            watch,
            memory_watch,
            outside_watch: OutsideWatch::default(),
            annotations: Vec::new(),
            main: Stream(0),
            graphs: 0,
            pools: 0,
            attempts: Vec::new(),
        }
    }

    // --- tensors -----------------------------------------------------------------------------------------------

    /// Allocates a tensor on the main stream; `site` is the operation that makes it.
    pub(in crate::workloads) fn alloc(&mut self, bytes: u64, site: Site) -> Result<Tensor, JobError> {
        self.alloc_on(self.main, bytes, site)
    }

    /// Allocates a tensor on another stream.
    pub(in crate::workloads) fn alloc_on(
        &mut self,
        stream: Stream,
        bytes: u64,
        site: Site,
    ) -> Result<Tensor, JobError> {
        // Roughly the time of the kernel before it, at the rate of the device's memory: the host runs no further ahead.
        let kernel = 8 + self.rng.below(30) + bytes / BYTES_PER_US;
        self.wait(kernel as i64);
        self.pause()?;
        let stack = self.stack(site);
        self.look_at_memory();
        let address = self.allocator.malloc(Request { size: bytes, stream, thread: 0, stack })?;
        let tensor = Tensor { address, bytes, part: self.parts.current };
        self.parts.add(bytes);
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.made.push(tensor);
            attempt.live.insert(address);
        }
        Ok(tensor)
    }

    fn look_at_memory(&mut self) {
        if let Some(watch) = &mut self.memory_watch {
            watch.look(&self.allocator);
        }
        let (reserved, now_us) = (self.allocator.reserved(), self.clock.now_us());
        let sample = self.outside_watch.look(now_us, || self.allocator.driver_mut().outside(reserved));
        if let (Some(sample), Some(recording)) = (sample, self.allocator.sink_mut().recording()) {
            recording.outside(sample);
        }
    }

    /// Frees a tensor, as Python does when its last reference goes, or autograd's engine with a saved tensor.
    pub(in crate::workloads) fn free(&mut self, tensor: Tensor) {
        let site = if self.calls.is_in_engine() { sites::RELEASED } else { sites::DROPPED };
        self.free_at(tensor, site);
    }

    /// Frees a tensor at a given call site.
    pub(in crate::workloads) fn free_at(&mut self, tensor: Tensor, site: Site) {
        self.wait(2);
        let stack = self.stack(site);
        // Cannot fail: only `alloc` creates handles, and the driver that records events has worked before.
        if self.allocator.free(tensor.address, stack).is_ok() {
            self.parts.remove(tensor.part, tensor.bytes);
            if let Some(attempt) = self.attempts.last_mut() {
                attempt.live.remove(&tensor.address);
            }
        }
    }

    /// Frees several tensors.
    pub(in crate::workloads) fn free_all(&mut self, tensors: impl IntoIterator<Item = Tensor>) {
        tensors.into_iter().for_each(|tensor| self.free(tensor));
    }

    /// Allocates a tensor and frees it at once: an operation's temporary memory.
    pub(in crate::workloads) fn touch(&mut self, bytes: u64, site: Site) -> Result<(), JobError> {
        let tensor = self.alloc(bytes, site)?;
        self.free(tensor);
        Ok(())
    }

    /// Records that another stream uses a tensor (`Tensor.record_stream`).
    pub(in crate::workloads) fn record_stream(&mut self, tensor: Tensor, stream: Stream) -> Result<(), JobError> {
        Ok(self.allocator.record_stream(tensor.address, stream)?)
    }

    /// Runs `body`; its tensors count towards `part`.
    pub(in crate::workloads) fn part<T>(&mut self, part: Part, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.parts.current, part);
        let result = body(self);
        self.parts.current = before;
        result
    }

    // --- what it used ------------------------------------------------------------------------------------------

    /// Returns the most requested bytes that were held since the last call, or since the job began.
    pub(in crate::workloads) fn peak_since(&mut self) -> u64 {
        self.parts.mark()
    }

    /// Returns how many tensors were allocated so far.
    pub(in crate::workloads) fn allocations(&self) -> u64 {
        self.allocator.stats().allocation.all.allocated.max(0) as u64
    }

    /// Returns how many times memory was taken from the device so far, and how many times it was returned.
    pub(in crate::workloads) fn driver_calls(&self) -> [u64; 2] {
        let stats = self.allocator.stats();
        [stats.num_device_alloc, stats.num_device_free].map(|count| count.max(0) as u64)
    }

    /// Returns the program's time in microseconds.
    pub(in crate::workloads) fn now_us(&self) -> i64 {
        self.clock.program_us()
    }

    // --- streams, pools, cache ---------------------------------------------------------------------------------

    /// Returns the stream that operations run on by default.
    pub(in crate::workloads) fn main_stream(&self) -> Stream {
        self.main
    }

    /// Creates a stream.
    pub(in crate::workloads) fn new_stream(&mut self) -> Result<Stream, JobError> {
        Ok(self.allocator.driver_mut().create_stream()?)
    }

    /// Creates a memory pool (`torch.cuda.MemPool`).
    pub(in crate::workloads) fn new_pool(&mut self) -> PoolId {
        self.pools += 1;
        let id = PoolId(0, self.pools);
        self.allocator.create_pool(id, PoolOptions::default());
        id
    }

    /// Runs `body` with its tensors allocated in a pool (`torch.cuda.use_mem_pool`).
    pub(in crate::workloads) fn in_pool<T>(
        &mut self,
        pool: PoolId,
        body: impl FnOnce(&mut Self) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        self.allocator.begin_allocate_to_pool(pool, Filter::Thread(0))?;
        let result = body(self);
        self.allocator.end_allocate_to_pool(pool)?;
        self.allocator.release_pool(pool)?;
        result
    }

    /// Runs `body` as the capture of a CUDA graph, whose private pool lives as long as the program.
    pub(in crate::workloads) fn capture<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        self.graphs += 1;
        let pool = PoolId(self.graphs, 0);
        self.allocator.begin_allocate_to_pool(pool, Filter::Capture(Box::new(|_| true)))?;
        let result = body(self);
        self.allocator.end_allocate_to_pool(pool)?;
        result
    }

    /// Releases all cached memory that can be released (`torch.cuda.empty_cache`).
    pub(in crate::workloads) fn empty_cache(&mut self) -> Result<(), JobError> {
        let stack = self.stack(sites::EMPTY_CACHE);
        self.wait(900);
        Ok(self.allocator.empty_cache(stack)?)
    }

    // --- where the program is ----------------------------------------------------------------------------------

    /// Runs `body` as a function that the current one calls.
    pub(in crate::workloads) fn call<T>(&mut self, call: Call, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.calls.enter(call);
        let result = body(self);
        self.calls.leave(before);
        result
    }

    /// Runs `body` on the thread of the backward pass, which has no Python frames.
    pub(in crate::workloads) fn in_engine<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.calls.enter_engine();
        let result = body(self);
        self.calls.leave(before);
        result
    }

    /// Runs `body` as a named span of the trace (`record_function`). The span ends when `body` does, even if it fails.
    pub(in crate::workloads) fn span<T>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(watch) = &mut self.watch {
            watch(name, self.allocator.sink().count());
        }
        self.annotate(name, Stage::Start);
        let result = body(self);
        self.annotate(name, Stage::End);
        result
    }

    fn annotate(&mut self, name: &str, stage: Stage) {
        let log = self.allocator.sink_mut();
        if let Some(recording) = log.recording() {
            recording.mark(name, stage);
        }
        // Annotations belong to the events that are kept.
        if log.is_cut() {
            return;
        }
        let name = self.calls.symbols.intern(name.as_bytes());
        let time_us = self.clock.now_us();
        self.annotations.push(Annotation { name, stage, time_us });
    }

    /// Runs `body`, and frees all tensors that it made and still holds if it fails, as Python does when an exception
    /// unwinds its frames.
    pub(in crate::workloads) fn attempt<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        self.attempts.push(Attempt::default());
        let result = body(self);
        let attempt = self.attempts.pop().unwrap_or_default();
        let held = attempt.made.into_iter().filter(|tensor| attempt.live.contains(&tensor.address));
        match (&result, self.attempts.last_mut()) {
            (Err(_), _) => {
                let mut held: Vec<Tensor> = held.collect();
                // An address may have been allocated more than once; the last tensor is the live one.
                let mut seen = FxHashSet::default();
                held.reverse();
                held.retain(|tensor| seen.insert(tensor.address));
                self.free_all(held);
            }
            (Ok(_), Some(outer)) => held.for_each(|tensor| {
                outer.made.push(tensor);
                outer.live.insert(tensor.address);
            }),
            (Ok(_), None) => {}
        }
        result
    }

    /// Returns the stack of an operation at this point of the program.
    fn stack(&mut self, site: Site) -> StackId {
        let stack = self.calls.stack(site);
        if let Some(recording) = self.allocator.sink_mut().recording() {
            recording.add_stacks(&self.calls.symbols);
        }
        stack
    }

    // --- time and random numbers -------------------------------------------------------------------------------

    /// Lets time pass.
    pub(in crate::workloads) fn wait(&mut self, us: i64) {
        let now_us = self.clock.advance(us);
        self.allocator.driver_mut().set_now(now_us);
    }

    /// Waits until the pacer lets the next event happen.
    fn pause(&mut self) -> Result<(), JobError> {
        let log = self.allocator.sink();
        if let Some(pacer) = &mut self.pacer {
            pacer.wait(log.count() as u64, &self.stop);
        }
        if self.stop.is_set() {
            return Err(JobError::Interrupted);
        }
        if log.is_full() { Err(JobError::TooLong) } else { Ok(()) }
    }

    /// Returns a random number below `bound`. The sequence is the same in every run with the same seed.
    pub(in crate::workloads) fn random_below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Ends the job where it is.
    pub(super) fn end(mut self) -> Ended<D> {
        let segments = self.allocator.segments();
        let settings = export::settings(self.allocator.config(), self.allocator.profile());
        let elapsed_us = self.clock.elapsed_us();
        let log = self.allocator.sink_mut();
        let (count, is_cut) = (log.count(), log.is_cut());
        let (events, mut tags, recording) = log.take();
        let recorded = recording.map(|recording| recording.finish(&segments));
        let (annotations, outside) = (self.annotations, self.outside_watch.finish());
        let mut trace = DeviceTrace { events, segments, annotations, outside, ..DeviceTrace::default() };
        if is_cut {
            // The segments at the end of the run are not those at the end of the kept events.
            replay::end(&mut trace, &mut tags, &settings, &[], 0);
        }
        let snapshot =
            Snapshot { devices: vec![trace], symbols: self.calls.symbols, tags, settings, ..Snapshot::default() };
        Ended {
            allocator: self.allocator,
            snapshot,
            events: count as u64,
            parts: self.parts.all(),
            recorded,
            elapsed_us,
        }
    }
}
