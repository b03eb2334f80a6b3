//! One device's allocator behind its lock.

use std::cell::Cell;
use std::sync::Mutex;

use allocator::{DeviceAllocator, Driver, Request};
use trace::units::Address;

use super::message::Refusal;
use super::sink::EventSink;

thread_local! {
    /// Whether this thread is inside an allocator.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Why an allocator cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocatorFault {
    /// A function that the allocator called has called the allocator. Waiting for the lock would never end.
    #[error("the allocator was called from within itself, which is a bug in Vramscope")]
    Reentered,
    /// An earlier operation panicked halfway. Another allocation could return memory that is in use.
    #[error("the allocator panicked before and can no longer be used, which is a bug in Vramscope")]
    Broken,
}

/// One device's allocator, which any thread may use.
pub struct LockedAllocator<D: Driver> {
    device: i64,
    allocator: Mutex<DeviceAllocator<D, EventSink>>,
}

impl<D: Driver> LockedAllocator<D> {
    /// Wraps the allocator of a device with this number.
    pub fn new(device: i64, allocator: DeviceAllocator<D, EventSink>) -> Self {
        Self { device, allocator: Mutex::new(allocator) }
    }

    /// Returns the device's number.
    pub fn device(&self) -> i64 {
        self.device
    }

    /// Calls `work` with the allocator, under its lock.
    ///
    /// # Errors
    /// Returns a [`AllocatorFault`] for a call from inside an allocator, and after a panic of an earlier call.
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut DeviceAllocator<D, EventSink>) -> T) -> Result<T, AllocatorFault> {
        let _inside = Inside::enter().ok_or(AllocatorFault::Reentered)?;
        let mut allocator = self.allocator.lock().map_err(|_| AllocatorFault::Broken)?;
        Ok(work(&mut allocator))
    }

    /// Allocates memory.
    ///
    /// # Errors
    /// Returns a refusal with PyTorch's text.
    #[inline]
    pub fn malloc(&self, request: Request) -> Result<Address, Refusal> {
        self.malloc_within(request, |_| {})
    }

    /// Calls `before` with the allocator and then allocates memory, both under one lock.
    ///
    /// # Errors
    /// As for [`Self::malloc`].
    #[inline]
    pub fn malloc_within(
        &self,
        request: Request,
        before: impl FnOnce(&mut DeviceAllocator<D, EventSink>),
    ) -> Result<Address, Refusal> {
        let allocated = self.with(|allocator| {
            before(allocator);
            allocator.malloc(request).map_err(|error| {
                Refusal::new(&error, self.device, allocator.config().expandable_segments, allocator.profile())
            })
        });
        allocated.unwrap_or_else(|fault| Err(Refusal::Failed(fault.to_string())))
    }
}

/// Marks this thread as inside an allocator while it lives.
struct Inside;

impl Inside {
    #[inline]
    fn enter() -> Option<Self> {
        // Dropping a value clears the mark, so a nested call must not create one.
        if IS_INSIDE.replace(true) { None } else { Some(Self) }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use allocator::sim::{Placement, SimDriver};
    use allocator::{AllocatorConfig, TORCH_2_11};
    use trace::frames::StackId;
    use trace::units::Stream;

    use super::*;

    fn allocator(capacity: u64) -> LockedAllocator<SimDriver> {
        let driver = SimDriver::new(capacity, Placement::FirstFit);
        let config = AllocatorConfig::default();
        LockedAllocator::new(0, DeviceAllocator::new(driver, EventSink::default(), &TORCH_2_11, config))
    }

    fn request(size: u64) -> Request {
        Request { size, stream: Stream(0), thread: 0, stack: StackId(0) }
    }

    #[test]
    fn threads_share_one_device() {
        let allocator = allocator(1 << 30);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let allocator = &allocator;
                scope.spawn(move || {
                    for round in 0..500 {
                        let address = allocator.malloc(request(512 * (1 + (round * 7 + thread) % 900))).unwrap();
                        allocator.with(|allocator| allocator.free(address, StackId(0))).unwrap().unwrap();
                    }
                });
            }
        });
        let stats = allocator.with(|allocator| allocator.stats()).unwrap();
        assert_eq!((stats.allocated_bytes.all.current, stats.allocation.all.allocated), (0, 2_000));
    }

    #[test]
    fn a_call_from_within_is_refused_and_does_not_hang() {
        let (outer, other) = (allocator(64 << 20), allocator(64 << 20));
        let inner = outer.with(|_| (outer.malloc(request(1)), other.with(|_| ()))).unwrap();
        assert_eq!(
            inner,
            (Err(Refusal::Failed(AllocatorFault::Reentered.to_string())), Err(AllocatorFault::Reentered))
        );
        assert!(outer.malloc(request(1)).is_ok());
    }

    #[test]
    fn after_a_panic_nothing_is_allocated() {
        let allocator = allocator(64 << 20);
        let panicked = catch_unwind(AssertUnwindSafe(|| allocator.with(|_| std::panic::resume_unwind(Box::new(1)))));
        assert!(panicked.is_err());
        assert_eq!(allocator.malloc(request(1)), Err(Refusal::Failed(AllocatorFault::Broken.to_string())));
    }

    #[test]
    fn out_of_memory_is_reported_and_the_next_request_may_succeed() {
        let allocator = allocator(64 << 20);
        let refused = allocator.malloc(request(65 << 20));
        assert!(
            matches!(&refused, Err(Refusal::OutOfMemory(text)) if text.contains("GPU 0 has a total")),
            "{refused:?}"
        );
        assert!(allocator.malloc(request(60 << 20)).is_ok());
    }
}
