//! One device's allocator behind its lock.

use std::cell::Cell;
use std::sync::Mutex;

use shared::allocator::{DeviceAllocator, Driver, Request};
use shared::units::Address;

use super::message::Refusal;
use super::sink::EventSink;

thread_local! {
    /// Whether this thread is within an allocator.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Why an allocator can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Something that the allocator called has called the allocator. Waiting for the lock would never end.
    #[error("the allocator was called from within itself; this is a fault of vramscope")]
    Reentered,
    /// An operation panicked halfway. Handing out memory after that could hand out a byte twice.
    #[error("the allocator failed before and hands out nothing any more; this is a fault of vramscope")]
    Broken,
}

/// An allocator that any thread may use.
pub struct LockedAllocator<D: Driver> {
    device: i64,
    allocator: Mutex<DeviceAllocator<D, EventSink>>,
}

impl<D: Driver> LockedAllocator<D> {
    /// The allocator of the device of that number.
    pub fn new(device: i64, allocator: DeviceAllocator<D, EventSink>) -> Self {
        Self { device, allocator: Mutex::new(allocator) }
    }

    /// The device's number.
    pub fn device(&self) -> i64 {
        self.device
    }

    /// Does something with the allocator, alone.
    ///
    /// # Errors
    /// Within itself, and after something that was done panicked.
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut DeviceAllocator<D, EventSink>) -> T) -> Result<T, Fault> {
        let _inside = Inside::enter().ok_or(Fault::Reentered)?;
        let mut allocator = self.allocator.lock().map_err(|_| Fault::Broken)?;
        Ok(work(&mut allocator))
    }

    /// Hands out memory.
    ///
    /// # Errors
    /// With the words that PyTorch has for it.
    #[inline]
    pub fn malloc(&self, request: Request) -> Result<Address, Refusal> {
        self.malloc_within(request, |_| {})
    }

    /// The same, after something else was done under the same lock.
    ///
    /// # Errors
    /// As [`Self::malloc`].
    #[inline]
    pub fn malloc_within(
        &self,
        request: Request,
        before: impl FnOnce(&mut DeviceAllocator<D, EventSink>),
    ) -> Result<Address, Refusal> {
        let made = self.with(|allocator| {
            before(allocator);
            let made = allocator.malloc(request);
            made.map_err(|error| {
                Refusal::new(&error, self.device, allocator.config().expandable_segments, allocator.profile())
            })
        });
        made.unwrap_or_else(|fault| Err(Refusal::Failed(fault.to_string())))
    }
}

/// This thread is within an allocator for as long as the value lives.
struct Inside;

impl Inside {
    #[inline]
    fn enter() -> Option<Self> {
        // A value that is made marks the end when it goes, so none is made for a call from within.
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

    use shared::allocator::sim::{Placement, SimDriver};
    use shared::allocator::{AllocatorConfig, TORCH_2_11};
    use shared::frames::StackId;
    use shared::units::Stream;

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
        assert_eq!(inner, (Err(Refusal::Failed(Fault::Reentered.to_string())), Err(Fault::Reentered)));
        assert!(outer.malloc(request(1)).is_ok());
    }

    #[test]
    fn after_a_panic_nothing_is_handed_out() {
        let allocator = allocator(64 << 20);
        let panicked = catch_unwind(AssertUnwindSafe(|| allocator.with(|_| std::panic::resume_unwind(Box::new(1)))));
        assert!(panicked.is_err());
        assert_eq!(allocator.malloc(request(1)), Err(Refusal::Failed(Fault::Broken.to_string())));
    }

    #[test]
    fn out_of_memory_is_told_and_the_next_request_may_succeed() {
        let allocator = allocator(64 << 20);
        let refused = allocator.malloc(request(65 << 20));
        assert!(
            matches!(&refused, Err(Refusal::OutOfMemory(text)) if text.contains("GPU 0 has a total")),
            "{refused:?}"
        );
        assert!(allocator.malloc(request(60 << 20)).is_ok());
    }
}
