//! The devices that a job can run on.

use allocator::sim::{Placement, SimDriver};
use allocator::{Driver, DriverError, MemoryInfo};
use trace::units::{Address, Stream};

use super::rng::Rng;
use crate::driver::outside::Outside;
use recorder::cuda::CudaDriver;

/// A driver, with the operations that a program needs apart from the allocator.
pub trait Device: Driver {
    /// Returns the model of the card, or `simulated`.
    fn model(&self) -> String;

    /// Creates a stream (`cudaStreamCreate`).
    fn create_stream(&mut self) -> Result<Stream, DriverError>;

    /// Returns what is used of the device apart from the `reserved` bytes of the allocator; `None` on a simulated device.
    fn outside(&mut self, reserved: u64) -> Option<Result<Outside, DriverError>> {
        let _ = reserved;
        None
    }

    /// Sets the program's time in microseconds. A real device, which has a time of its own, ignores it.
    fn set_now(&mut self, now_us: i64) {
        let _ = now_us;
    }
}

impl Device for CudaDriver {
    fn outside(&mut self, reserved: u64) -> Option<Result<Outside, DriverError>> {
        Some(Outside::query(self, reserved))
    }

    fn model(&self) -> String {
        // Empty if the driver does not say.
        self.device().name().unwrap_or_default()
    }

    fn create_stream(&mut self) -> Result<Stream, DriverError> {
        self.device().create_stream()
    }
}

/// The first stream handle, and the distance between two handles.
const STREAMS: (i64, i64) = (0x55d0_8c4e_7b30, 0x4b0);

/// A simulated device whose work takes time: it lags 9 to 18 ms behind the program, as a busy GPU does.
#[derive(Debug)]
pub struct ClockedSim {
    memory: SimDriver,
    now_us: i64,
    streams: i64,
    lag: Rng,
}

impl ClockedSim {
    /// Creates a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self { memory: SimDriver::new(capacity, Placement::FirstFit), now_us: 0, streams: 0, lag: Rng::new(1) }
    }
}

impl Device for ClockedSim {
    fn model(&self) -> String {
        "simulated".to_owned()
    }

    fn create_stream(&mut self) -> Result<Stream, DriverError> {
        self.streams += 1;
        Ok(Stream(STREAMS.0 + (self.streams - 1) * STREAMS.1))
    }

    fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
    }
}

/// The time in microseconds at which the work before an event is done.
#[derive(Clone, Copy, Debug)]
pub struct Due(i64);

impl Driver for ClockedSim {
    type Event = Due;

    fn total_memory(&self) -> u64 {
        self.memory.total_memory()
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError> {
        self.memory.memory_info()
    }

    fn alloc(&mut self, size: u64) -> Result<Address, DriverError> {
        self.memory.alloc(size)
    }

    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        self.memory.free(address, size)
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError> {
        self.memory.reserve_range(size)
    }

    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        self.memory.release_range(address, size)
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        self.memory.map(address, size, page)
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        self.memory.unmap(address, size, page)
    }

    fn record_event(&mut self, _: Stream) -> Result<Due, DriverError> {
        Ok(Due(self.now_us + 9_000 + self.lag.below(9_000) as i64))
    }

    fn is_event_done(&mut self, event: &Due) -> Result<bool, DriverError> {
        Ok(event.0 <= self.now_us)
    }

    /// Returns at once: the program's clock stands still while it is in the allocator.
    fn wait_for_event(&mut self, _: &Due) -> Result<(), DriverError> {
        Ok(())
    }

    fn recycle_event(&mut self, _: Due) {}

    fn stream_id(&self, stream: Stream) -> u64 {
        // As PyTorch numbers its streams: index, kind and origin in one number.
        match stream.0 {
            0 => 0,
            n => (((n - STREAMS.0) / STREAMS.1).max(0) as u64) << 5 | 0b11,
        }
    }

    fn synchronize_stream(&mut self, _: Stream) -> Result<(), DriverError> {
        Ok(())
    }
}
