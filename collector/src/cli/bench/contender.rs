//! The allocators on a GPU, behind one trait.

use std::sync::Arc;

use allocator::{AllocError, AllocatorConfig, DeviceAllocator, Driver, DriverError, Profile, Request};
use trace::frames::StackId;
use trace::units::{Address, Stream};

use super::measured::Allocator;
use recorder::cuda::{CudaDriver, Device, PoolError, PoolSettings, Source, StreamOrderedPool};

/// An allocator under test.
pub(super) trait Contender {
    /// Serves a request. Returns `None` if memory ran out.
    fn allocate(&mut self, size: u64, stream: Stream) -> Result<Option<Address>, String>;

    /// Frees an allocation. `user` is another stream that used it.
    fn free(&mut self, address: Address, size: u64, stream: Stream, user: Option<Stream>) -> Result<(), String>;

    /// Releases what is cached, as the program did.
    fn empty_cache(&mut self) -> Result<(), String>;

    /// Is called, outside of all measured time, when more is requested at once than ever before.
    fn look(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the most bytes that were reserved.
    fn peak_reserved(&mut self) -> Result<u64, String>;

    /// Returns the calls of the driver for device memory; `None` if it makes them by itself.
    fn driver_calls(&self) -> Option<u64>;
}

/// Creates an allocator without any memory.
pub(super) fn create(
    allocator: Allocator,
    device: &Arc<Device>,
    (profile, config): (&'static Profile, &AllocatorConfig),
) -> Result<Box<dyn Contender>, String> {
    let driver = |source| CudaDriver::new(Arc::clone(device), source).map_err(|error| format!("{error}."));
    let caching = |driver| Caching(DeviceAllocator::new(driver, (), profile, config.clone()));
    Ok(match allocator {
        Allocator::Caching => Box::new(caching(driver(Source::Plain)?)),
        Allocator::CachingManaged => Box::new(caching(driver(Source::Managed)?)),
        Allocator::Plain => Box::new(Direct::new(driver(Source::Plain)?)?),
        Allocator::Managed => Box::new(Direct::new(driver(Source::Managed)?)?),
        Allocator::StreamOrdered => {
            let pool = StreamOrderedPool::new(Arc::clone(device), &PoolSettings::default());
            Box::new(pool.map_err(|error| format!("{error}."))?)
        }
    })
}

fn failed(error: &DriverError) -> String {
    format!("The device failed: {error}.")
}

/// PyTorch's caching allocator.
struct Caching(DeviceAllocator<CudaDriver, ()>);

impl Contender for Caching {
    fn allocate(&mut self, size: u64, stream: Stream) -> Result<Option<Address>, String> {
        match self.0.malloc(Request { size, stream, thread: 0, stack: StackId::default() }) {
            Ok(address) => Ok(Some(address)),
            Err(AllocError::Driver(error)) => Err(failed(&error)),
            Err(_) => Ok(None),
        }
    }

    fn free(&mut self, address: Address, _: u64, _: Stream, user: Option<Stream>) -> Result<(), String> {
        if let Some(user) = user {
            self.0.record_stream(address, user).map_err(|error| format!("{error}."))?;
        }
        self.0.free(address, StackId::default()).map_err(|error| format!("{error}."))
    }

    fn empty_cache(&mut self) -> Result<(), String> {
        self.0.empty_cache(StackId::default()).map_err(|error| failed(&error))
    }

    fn peak_reserved(&mut self) -> Result<u64, String> {
        Ok(self.0.stats().reserved_bytes.all.peak.max(0) as u64)
    }

    fn driver_calls(&self) -> Option<u64> {
        let stats = self.0.stats();
        Some((stats.num_device_alloc + stats.num_device_free).max(0) as u64)
    }
}

impl Contender for StreamOrderedPool {
    fn allocate(&mut self, size: u64, stream: Stream) -> Result<Option<Address>, String> {
        match Self::allocate(self, size, stream) {
            Ok(address) => Ok(Some(address)),
            Err(PoolError::Driver(DriverError::OutOfMemory) | PoolError::OverLimit { .. }) => Ok(None),
            Err(error) => Err(format!("{error}.")),
        }
    }

    fn free(&mut self, address: Address, _: u64, stream: Stream, user: Option<Stream>) -> Result<(), String> {
        if let Some(user) = user {
            self.record_stream(address, user).map_err(|error| format!("{error}."))?;
        }
        Self::free(self, address, stream).map_err(|error| format!("{error}."))
    }

    fn empty_cache(&mut self) -> Result<(), String> {
        Self::empty_cache(self).map_err(|error| failed(&error))
    }

    fn peak_reserved(&mut self) -> Result<u64, String> {
        self.statistics().map(|statistics| statistics.reserved.peak).map_err(|error| failed(&error))
    }

    fn driver_calls(&self) -> Option<u64> {
        None
    }
}

/// A call of the driver for each request.
struct Direct {
    driver: CudaDriver,
    calls: u64,
    /// Free bytes of the device before the first call.
    free_before: u64,
    peak: u64,
}

impl Direct {
    fn new(mut driver: CudaDriver) -> Result<Self, String> {
        let free_before = driver.memory_info().map_err(|error| failed(&error))?.free;
        Ok(Self { driver, calls: 0, free_before, peak: 0 })
    }
}

impl Contender for Direct {
    fn allocate(&mut self, size: u64, _: Stream) -> Result<Option<Address>, String> {
        // The driver refuses it; the other allocators answer with no address.
        if size == 0 {
            return Ok(Some(Address(0)));
        }
        self.calls += 1;
        match self.driver.alloc(size) {
            Ok(address) => Ok(Some(address)),
            Err(DriverError::OutOfMemory) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    fn free(&mut self, address: Address, size: u64, _: Stream, _: Option<Stream>) -> Result<(), String> {
        if size == 0 {
            return Ok(());
        }
        self.calls += 1;
        // It waits for all streams by itself.
        self.driver.free(address, size).map_err(|error| failed(&error))
    }

    fn empty_cache(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        let free = self.driver.memory_info().map_err(|error| failed(&error))?.free;
        self.peak = self.peak.max(self.free_before.saturating_sub(free));
        Ok(())
    }

    fn peak_reserved(&mut self) -> Result<u64, String> {
        Ok(self.peak)
    }

    fn driver_calls(&self) -> Option<u64> {
        Some(self.calls)
    }
}
