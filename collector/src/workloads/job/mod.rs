//! A training or serving program as far as memory is concerned: tensors that come and go, with the call stacks that
//! they come from and a clock.
//!
//! A workload is written once against [`Job`], and runs on any [`Device`]: a simulated one or a real one take the same
//! requests in the same order, and the same times stand in the trace.

mod call;
mod device;
mod die;
mod pace;
mod parts;
mod recording;
mod stop;
mod tape;

pub(super) use call::{Call, Site, at};
pub use device::{ClockedSim, Device};
pub use pace::Pace;
pub use parts::PartUse;
pub use recording::{Heading as RecordingHeading, Recording};
pub use stop::Stop;

use rustc_hash::FxHashSet;
use shared::allocator::{DeviceAllocator, Filter, PoolOptions, Request};
use shared::budget::Part;
use shared::export;
use shared::frames::StackId;
use shared::replay;
use shared::trace::{Annotation, DeviceTrace, Snapshot, Stage};
use shared::units::{Address, PoolId, Stream};

use self::call::Calls;
use self::die::Die;
use self::parts::Parts;
use self::tape::Tape;
use super::sites;
use crate::recorder::RecorderStats;

/// When every run begins: 3 March 2026, 09:12:04 UTC. A trace is the same byte for byte each time.
const BEGINNING_US: i64 = 1_772_529_124_000_000;
/// Bytes that the device's memory moves in a microsecond: what a kernel that fills a tensor takes.
const BYTES_PER_US: u64 = 160_000;

/// A tensor's storage on the device. It is freed by [`Job::free`] and by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a tensor that is never freed stays in the trace for good"]
pub(in crate::workloads) struct Tensor {
    address: Address,
    bytes: u64,
    part: Part,
}

/// Is told the name of each span as it begins, and how many events there are by then.
pub type Watch = Box<dyn FnMut(&str, usize)>;

/// A program at work on a device.
pub(in crate::workloads) struct Job<D: Device> {
    allocator: DeviceAllocator<D, Tape>,
    calls: Calls,
    parts: Parts,
    die: Die,
    annotations: Vec<Annotation>,
    now_us: i64,
    main: Stream,
    graphs: u64,
    pools: u64,
    watch: Option<Watch>,
    /// What was allocated within each open attempt, oldest first, and what of it is still there.
    attempts: Vec<Attempt>,
}

#[derive(Default)]
struct Attempt {
    made: Vec<Tensor>,
    live: FxHashSet<Address>,
}

/// What a program leaves when it has ended.
pub(super) struct Ended<D: Device> {
    /// The allocator, to be asked for its counters.
    pub(super) allocator: DeviceAllocator<D, Tape>,
    /// Everything that happened, with what is held at the end.
    pub(super) snapshot: Snapshot,
    /// How many events there were: more than the snapshot has, where not all were kept.
    pub(super) events: u64,
    /// What each part of the program held.
    pub(super) parts: Vec<PartUse>,
    /// What was recorded beside, where something was.
    pub(super) recorded: Option<RecorderStats>,
    /// How long it ran, in microseconds of its own clock.
    pub(super) elapsed_us: i64,
}

impl<D: Device> Job<D> {
    /// A program that has done nothing yet.
    pub(super) fn new(make: impl FnOnce(Tape) -> DeviceAllocator<D, Tape>, seed: u64) -> Self {
        let mut calls = Calls::default();
        let tape = Tape::new(&mut calls.symbols, BEGINNING_US);
        Self {
            allocator: make(tape),
            calls,
            parts: Parts::default(),
            die: Die(seed),
            annotations: Vec::new(),
            now_us: BEGINNING_US,
            main: Stream(0),
            graphs: 0,
            pools: 0,
            watch: None,
            attempts: Vec::new(),
        }
    }

    /// Has somebody watch how far it is.
    pub(super) fn watched(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Has everything recorded while it happens.
    pub(super) fn recorded(mut self, recording: Option<Recording>) -> Self {
        self.allocator.sink_mut().recording = recording;
        self
    }

    // --- tensors -----------------------------------------------------------------------------------------------

    /// A tensor of the main stream; `site` is the operation that makes it.
    pub(in crate::workloads) fn alloc(&mut self, bytes: u64, site: Site) -> Result<Tensor, Stop> {
        self.alloc_on(self.main, bytes, site)
    }

    /// A tensor of another stream.
    pub(in crate::workloads) fn alloc_on(&mut self, stream: Stream, bytes: u64, site: Site) -> Result<Tensor, Stop> {
        // Roughly what the kernel before it takes, at the rate of the device's memory: the host runs no further ahead.
        let kernel = 8 + self.die.roll(30) + bytes / BYTES_PER_US;
        self.wait(kernel as i64);
        let sink = self.allocator.sink_mut();
        if sink.recording.as_mut().is_some_and(|recording| !recording.wait()) {
            return Err(Stop::Interrupted);
        }
        if sink.is_too_long() {
            return Err(Stop::TooLong);
        }
        let stack = self.stack(site);
        let address = self.allocator.malloc(Request { size: bytes, stream, thread: 0, stack })?;
        let tensor = Tensor { address, bytes, part: self.parts.current };
        self.parts.grow(bytes);
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.made.push(tensor);
            attempt.live.insert(address);
        }
        Ok(tensor)
    }

    /// Lets go of a tensor, as Python does with the last name for it, or the engine with a saved one.
    pub(in crate::workloads) fn free(&mut self, tensor: Tensor) {
        let site = if self.calls.is_in_engine() { sites::RELEASED } else { sites::DROPPED };
        self.free_at(tensor, site);
    }

    /// Lets go of a tensor at a given site.
    pub(in crate::workloads) fn free_at(&mut self, tensor: Tensor, site: Site) {
        self.wait(2);
        let stack = self.stack(site);
        // A handle is made by `alloc` alone, and the driver that marks streams has worked before.
        if self.allocator.free(tensor.address, stack).is_ok() {
            self.parts.shrink(tensor.part, tensor.bytes);
            if let Some(attempt) = self.attempts.last_mut() {
                attempt.live.remove(&tensor.address);
            }
        }
    }

    /// Lets go of several.
    pub(in crate::workloads) fn free_all(&mut self, tensors: impl IntoIterator<Item = Tensor>) {
        tensors.into_iter().for_each(|tensor| self.free(tensor));
    }

    /// Makes a tensor and lets go of it at once: what an operation needs only while it runs.
    pub(in crate::workloads) fn touch(&mut self, bytes: u64, site: Site) -> Result<(), Stop> {
        let tensor = self.alloc(bytes, site)?;
        self.free(tensor);
        Ok(())
    }

    /// Says that another stream uses a tensor (`Tensor.record_stream`).
    pub(in crate::workloads) fn record_stream(&mut self, tensor: Tensor, stream: Stream) -> Result<(), Stop> {
        Ok(self.allocator.record_stream(tensor.address, stream)?)
    }

    /// What the tensors that follow are for, while `body` runs.
    pub(in crate::workloads) fn part<T>(&mut self, part: Part, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.parts.current, part);
        let result = body(self);
        self.parts.current = before;
        result
    }

    // --- streams, pools, cache ---------------------------------------------------------------------------------

    /// The stream that everything runs on unless it says otherwise.
    pub(in crate::workloads) fn main_stream(&self) -> Stream {
        self.main
    }

    /// A stream of its own.
    pub(in crate::workloads) fn new_stream(&mut self) -> Result<Stream, Stop> {
        Ok(self.allocator.driver_mut().create_stream()?)
    }

    /// A pool of its own (`torch.cuda.MemPool`).
    pub(in crate::workloads) fn new_pool(&mut self) -> PoolId {
        self.pools += 1;
        let id = PoolId(0, self.pools);
        self.allocator.create_pool(id, PoolOptions::default());
        id
    }

    /// Runs `body` with its tensors from a pool (`torch.cuda.use_mem_pool`).
    pub(in crate::workloads) fn in_pool<T>(
        &mut self,
        pool: PoolId,
        body: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.allocator.begin_allocate_to_pool(pool, Filter::Thread(0))?;
        let result = body(self);
        self.allocator.end_allocate_to_pool(pool)?;
        self.allocator.release_pool(pool)?;
        result
    }

    /// Runs `body` as the capture of a CUDA graph, which has a pool of its own for as long as the program runs.
    pub(in crate::workloads) fn capture<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.graphs += 1;
        let pool = PoolId(self.graphs, 0);
        self.allocator.begin_allocate_to_pool(pool, Filter::Capture(Box::new(|_| true)))?;
        let result = body(self);
        self.allocator.end_allocate_to_pool(pool)?;
        result
    }

    /// Gives all cached memory back that can go (`torch.cuda.empty_cache`).
    pub(in crate::workloads) fn empty_cache(&mut self) -> Result<(), Stop> {
        let stack = self.stack(sites::EMPTY_CACHE);
        self.wait(900);
        Ok(self.allocator.empty_cache(stack)?)
    }

    // --- where the program is ----------------------------------------------------------------------------------

    /// Runs `body` as a function called from the present one.
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

    /// Runs `body` under a name that the trace keeps (`record_function`); it ends there as well when it fails.
    pub(in crate::workloads) fn span<T>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(watch) = &mut self.watch {
            watch(name, self.allocator.sink_mut().count());
        }
        self.annotate(name, Stage::Start);
        let result = body(self);
        self.annotate(name, Stage::End);
        result
    }

    fn annotate(&mut self, name: &str, stage: Stage) {
        if let Some(recording) = &self.allocator.sink_mut().recording {
            recording.mark(name, stage);
        }
        // They belong to the events that are kept.
        if self.allocator.sink_mut().is_cut() {
            return;
        }
        let name = self.calls.symbols.intern(name.as_bytes());
        let time_us = self.allocator.sink_mut().time_us();
        self.annotations.push(Annotation { name, stage, time_us });
    }

    /// Runs `body`, and lets go of all that it made and still holds when it fails: what Python does as an exception
    /// leaves the frames behind it.
    pub(in crate::workloads) fn attempt<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.attempts.push(Attempt::default());
        let result = body(self);
        let attempt = self.attempts.pop().unwrap_or_default();
        let held = attempt.made.into_iter().filter(|tensor| attempt.live.contains(&tensor.address));
        match (&result, self.attempts.last_mut()) {
            (Err(_), _) => {
                let mut held: Vec<Tensor> = held.collect();
                // An address may have been made more than once; the last is the one that is there.
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

    /// The stack of an operation here.
    fn stack(&mut self, site: Site) -> StackId {
        let stack = self.calls.stack(site);
        if let Some(recording) = &mut self.allocator.sink_mut().recording {
            recording.learn(&self.calls.symbols);
        }
        stack
    }

    // --- time and chance ---------------------------------------------------------------------------------------

    /// Moves the clock on.
    pub(in crate::workloads) fn wait(&mut self, us: i64) {
        self.now_us += us;
        self.allocator.sink_mut().set_now(self.now_us);
        self.allocator.driver_mut().set_now(self.now_us);
    }

    /// A number below `sides`: the same sequence in every run of a seed.
    pub(in crate::workloads) fn roll(&mut self, sides: u64) -> u64 {
        self.die.roll(sides)
    }

    /// Ends the program where it is.
    pub(super) fn end(mut self) -> Ended<D> {
        let segments = self.allocator.segments();
        let settings = export::settings(self.allocator.config(), self.allocator.profile());
        let recording = self.allocator.sink_mut().recording.take();
        let own_us = self.now_us - BEGINNING_US;
        let elapsed_us = recording.as_ref().map_or(own_us, Recording::elapsed_us);
        let recorded = recording.map(|recording| recording.finish(&segments));
        let sink = self.allocator.sink_mut();
        let (count, is_cut) = (sink.count(), sink.is_cut());
        let (events, mut tags) = sink.take();
        let mut trace = DeviceTrace { events, segments, annotations: self.annotations, ..DeviceTrace::default() };
        if is_cut {
            // What is held at the end of the run is not what was at the end of these events.
            replay::end(&mut trace, &mut tags, &settings, &[], 0);
        }
        let snapshot = Snapshot { devices: vec![trace], symbols: self.calls.symbols, tags, settings };
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
