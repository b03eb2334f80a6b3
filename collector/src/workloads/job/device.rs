//! The devices that a job can run on.

use shared::allocator::sim::{Placement, SimDriver};
use shared::allocator::{Driver, DriverError, MemoryInfo};
use shared::units::{Address, Stream};

use super::die::Die;
use crate::driver::cuda::CudaDriver;
use crate::driver::outside::Outside;

/// A driver with what a program needs of it beside the allocator.
pub trait Device: Driver {
    /// What the device is called: a card's model, or `simulated`.
    fn model(&self) -> String;

    /// Makes a stream (`cudaStreamCreate`).
    fn create_stream(&mut self) -> Result<Stream, DriverError>;

    /// What is held of the device beside the `reserved` bytes of the allocator; `None` where nobody else has any.
    fn outside(&mut self, reserved: u64) -> Option<Result<Outside, DriverError>> {
        let _ = reserved;
        None
    }

    /// Tells the program's clock, in microseconds. A device with streams of its own needs no telling.
    fn set_now(&mut self, now_us: i64) {
        let _ = now_us;
    }
}

impl Device for CudaDriver {
    fn outside(&mut self, reserved: u64) -> Option<Result<Outside, DriverError>> {
        Some(Outside::query(self, reserved))
    }

    fn model(&self) -> String {
        // A card that doesn't tell has no name.
        self.device().name().unwrap_or_default()
    }

    fn create_stream(&mut self) -> Result<Stream, DriverError> {
        self.device().create_stream()
    }
}

/// The first stream handle that is given out, and what is between two.
const STREAMS: (i64, i64) = (0x55d0_8c4e_7b30, 0x4b0);

/// A simulated device whose work takes time: it is behind the program by 9 to 18 ms, as a busy GPU is.
#[derive(Debug)]
pub struct ClockedSim {
    memory: SimDriver,
    now_us: i64,
    streams: i64,
    lag: Die,
}

impl ClockedSim {
    /// A device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self { memory: SimDriver::new(capacity, Placement::FirstFit), now_us: 0, streams: 0, lag: Die(1) }
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

/// When the work before the mark is done, in microseconds.
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
        Ok(Due(self.now_us + 9_000 + self.lag.roll(9_000) as i64))
    }

    fn is_event_done(&mut self, event: &Due) -> Result<bool, DriverError> {
        Ok(event.0 <= self.now_us)
    }

    /// Waiting costs the program nothing here: its clock stands still while it is in the allocator.
    fn wait_for_event(&mut self, _: &Due) -> Result<(), DriverError> {
        Ok(())
    }

    fn recycle_event(&mut self, _: Due) {}

    fn stream_id(&self, stream: Stream) -> u64 {
        // As PyTorch numbers the streams that it makes: index, kind and origin in one.
        match stream.0 {
            0 => 0,
            n => (((n - STREAMS.0) / STREAMS.1).max(0) as u64) << 5 | 0b11,
        }
    }

    fn synchronize_stream(&mut self, _: Stream) -> Result<(), DriverError> {
        Ok(())
    }
}
