//! An allocator on a simulated device, and what must hold for both after each operation.

use std::collections::BTreeMap;

use allocator::sim::{Placement, SimDriver};
use allocator::{
    AllocError, AllocatorConfig, DeviceAllocator, DriverError, Filter, FreeError, MisuseError, Profile, Request,
    TraceEntry,
};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

use super::ops::Op;

/// No stacks are recorded.
const NO_STACK: StackId = StackId(0);

/// The allocator and what its user holds.
pub(super) struct World {
    pub(super) allocator: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    /// Live allocations: bytes and stream by address.
    live: BTreeMap<u64, (u64, Stream)>,
    /// Bytes that are reserved according to the trace, and requested by blocks that are not cached.
    reserved: u64,
    requested: u64,
}

impl World {
    pub(super) fn new(profile: &'static Profile, capacity: u64) -> Self {
        let driver = SimDriver::new(capacity, Placement::FirstFit);
        let allocator = DeviceAllocator::new(driver, Vec::new(), profile, AllocatorConfig::default());
        Self { allocator, live: BTreeMap::new(), reserved: 0, requested: 0 }
    }

    /// Performs an operation and checks its result; [`check`](Self::check) checks everything else.
    pub(super) fn step(&mut self, op: Op) {
        match op {
            Op::Malloc { size, stream, thread } => self.malloc(size, Stream(stream), thread),
            Op::Free { pick } => self.free(pick, None),
            Op::FreeOn { pick, stream } => self.free(pick, Some(Stream(stream))),
            Op::FreeAt { address } if !self.live.contains_key(&address) && address != 0 => self.misuse(address),
            Op::FreeAt { .. } => {}
            Op::RecordStream { pick, stream } => {
                if let Some((address, _)) = self.pick(pick) {
                    self.allocator.record_stream(address, Stream(stream)).unwrap();
                }
            }
            Op::Hold { stream } => self.allocator.driver_mut().hold(Stream(stream)),
            Op::Release { stream } => self.allocator.driver_mut().release(Stream(stream)),
            Op::Synchronize => self.allocator.driver_mut().synchronize(),
            Op::CurrentStream { stream } => self.allocator.set_current_stream(Stream(stream)),
            Op::EmptyCache => refused_in_capture(&self.allocator.empty_cache(NO_STACK)),
            Op::Fraction { fraction } => {
                let is_fraction = (0.0..=1.0).contains(&fraction);
                assert_eq!(self.allocator.set_memory_fraction(fraction).is_ok(), is_fraction);
            }
            // Some releases do not have some settings.
            Op::Config { text } => drop(self.allocator.set_config(text)),
            Op::Capacity { bytes } => self.allocator.driver_mut().set_capacity(bytes),
            Op::FailNext { calls } => self.allocator.driver_mut().fail_next(calls),
            Op::CreatePool { id, options } => self.allocator.create_pool(PoolId(0, id + 1), options),
            Op::SetPoolOptions { id, options } => {
                let known = self.allocator.pool_use_count(PoolId(0, id + 1)) > 0;
                let set = self.allocator.set_pool_options(PoolId(0, id + 1), options);
                assert!(set.is_ok() || !known);
            }
            Op::ReleasePool { id } => ignore(self.allocator.release_pool(PoolId(0, id + 1))),
            Op::EmptyPool { id } => refused_in_capture(&self.allocator.empty_pool_cache(PoolId(0, id + 1), NO_STACK)),
            Op::BeginPool { id, thread } => {
                ignore(self.allocator.begin_allocate_to_pool(PoolId(0, id + 1), Filter::Thread(thread)));
            }
            Op::BeginCapture { id, stream } => {
                let filter = Filter::Capture(Box::new(move |other| other == Stream(stream)));
                ignore(self.allocator.begin_allocate_to_pool(PoolId(id + 1, 0), filter));
            }
            Op::EndPool { id } => {
                for pool in [PoolId(0, id + 1), PoolId(id + 1, 0)] {
                    // The pool may be gone: nothing keeps a program from releasing it too early.
                    if self.allocator.end_allocate_to_pool(pool).is_ok() {
                        ignore(self.allocator.release_pool(pool));
                    }
                }
            }
            Op::PoolContext { id } => drop(self.allocator.set_pool_context(id.map(|id| PoolId(0, id + 1)))),
            Op::ResetPeaks => self.allocator.reset_peak_stats(),
            Op::Snapshot => drop(self.allocator.snapshot()),
        }
    }

    fn pick(&self, pick: usize) -> Option<(Address, Stream)> {
        let at = pick % self.live.len().max(1);
        self.live.iter().nth(at).map(|(address, (_, stream))| (Address(*address), *stream))
    }

    fn malloc(&mut self, size: u64, stream: Stream, thread: u64) {
        let request = Request { size, stream, thread, stack: NO_STACK };
        let before = self.allocator.stats();
        match self.allocator.malloc(request) {
            Ok(Address(0)) => assert_eq!(size, 0),
            Ok(Address(address)) => {
                assert!(size > 0 && address.is_multiple_of(512));
                let below = self.live.range(..address).next_back();
                assert!(below.is_none_or(|(other, (bytes, _))| other + bytes <= address), "it begins in another");
                let above = self.live.range(address..).next();
                assert!(above.is_none_or(|(other, _)| address + size <= *other), "it ends in another");
                self.live.insert(address, (size, stream));
            }
            Err(AllocError::OutOfMemory(oom)) => {
                assert_eq!(self.allocator.stats().num_ooms, before.num_ooms + 1);
                assert!(oom.rounded >= size && oom.reserved == self.allocator.reserved());
            }
            Err(AllocError::Rejected(bytes)) => {
                assert_eq!(bytes, size);
                assert_eq!(self.allocator.stats().num_oom_rejections, before.num_oom_rejections + 1);
            }
            Err(AllocError::TooLarge) => assert_eq!(self.allocator.stats(), before),
            // A page that no device can create.
            Err(AllocError::Driver(error)) => assert!(matches!(error, DriverError::Failed { .. }), "{error}"),
        }
    }

    fn free(&mut self, pick: usize, assumed: Option<Stream>) {
        let Some((address, stream)) = self.pick(pick) else { return };
        match assumed {
            Some(assumed) if assumed != stream => {
                let before = self.allocator.stats();
                assert!(matches!(self.allocator.free_on(address, assumed, NO_STACK), Err(FreeError::Misuse(_))));
                assert_eq!(self.allocator.stats(), before);
            }
            _ => {
                self.allocator.free(address, NO_STACK).unwrap();
                self.live.remove(&address.0);
            }
        }
    }

    fn misuse(&mut self, address: u64) {
        let before = (self.allocator.stats(), self.allocator.segments());
        assert!(matches!(self.allocator.free(Address(address), NO_STACK), Err(FreeError::Misuse(_))));
        assert!(self.allocator.record_stream(Address(address), Stream(1)).is_err());
        assert_eq!((self.allocator.stats(), self.allocator.segments()), before);
    }

    /// Checks what always holds: the allocator's tables agree, and so do the trace, the device and what the user holds.
    pub(super) fn check(&mut self) {
        if let Err(fault) = self.allocator.check() {
            panic!("{fault}");
        }
        for entry in self.allocator.sink_mut().drain(..) {
            match entry.action {
                Action::SegmentAlloc | Action::SegmentMap => self.reserved += entry.size,
                Action::SegmentFree | Action::SegmentUnmap => self.reserved -= entry.size,
                Action::Alloc => self.requested += entry.size,
                Action::FreeCompleted => self.requested -= entry.size,
                _ => {}
            }
        }
        let stats = self.allocator.stats();
        assert_eq!(self.reserved, self.allocator.reserved());
        assert_eq!(self.requested as i64, stats.requested_bytes.all.current);
        assert_eq!(self.live.len() as i64, stats.allocation.all.current);
        // The device allocates memory in granules; segments need not be multiples of them.
        assert!(self.allocator.driver().used() >= self.reserved);
    }

    /// Frees everything, waits, closes what is open and empties the cache. Nothing may be left but pools that are still
    /// used.
    pub(super) fn end(&mut self) {
        for address in std::mem::take(&mut self.live).into_keys() {
            self.allocator.free(Address(address), NO_STACK).unwrap();
        }
        self.allocator.set_pool_context(None);
        for pool in (1..=4).flat_map(|id| [PoolId(0, id), PoolId(id, 0)]) {
            ignore(self.allocator.end_allocate_to_pool(pool));
            while self.allocator.pool_use_count(pool) > 0 {
                self.allocator.release_pool(pool).unwrap();
            }
        }
        self.allocator.empty_cache(NO_STACK).unwrap();
        self.check();
        let stats = self.allocator.stats();
        assert_eq!((stats.active.all.current, stats.reserved_bytes.all.current), (0, 0));
        assert_eq!(self.allocator.driver().used(), 0);
    }
}

/// Ignores misuse that the operations may cause and that changes nothing.
fn ignore(result: Result<(), MisuseError>) {
    let _ = result;
}

/// Only torch 2.6 refuses, and only in a capture.
fn refused_in_capture(result: &Result<(), DriverError>) {
    assert!(matches!(result, Ok(()) | Err(DriverError::Failed { call: "captures_underway.empty()", .. })));
}
