//! Unified memory (`cuMemAllocManaged`) as a source of segments.
//!
//! CUDA allows more unified memory than a device has, and moves pages when they are used. An evicted segment would be
//! slow in ways that no allocator can see, and a device with far too much unified memory may stop responding. Therefore a
//! segment must fit in the free memory, and is moved to the device at once.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use allocator::DriverError;
use cudarc::driver::sys::{CUdevice_attribute, CUmem_advise, CUmemAttach_flags};
use trace::units::{Address, Stream};

use super::copy::width;
use super::symbols::ManagedApi;
use super::{CudaDriver, CudaError, Device};

/// `CU_DEVICE_CPU`: the host as a device number.
const HOST: c_int = -1;

/// The kind of memory of a driver's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Device memory (`cuMemAlloc`).
    #[default]
    Plain,
    /// Unified memory (`cuMemAllocManaged`), moved to the device when it is allocated.
    Managed,
}

/// The location of pages of unified memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageLocation {
    /// On the device.
    Device,
    /// In the host's memory.
    Host,
}

/// Advice about the use of unified memory (`cuMemAdvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Mostly read, so it may be copied to several places (`SET_READ_MOSTLY`), or not (`UNSET_READ_MOSTLY`).
    ReadMostly(bool),
    /// The preferred place (`SET_PREFERRED_LOCATION`); `None` for no preference.
    PreferredLocation(Option<PageLocation>),
    /// Used from this place, so it stays mapped there wherever it is (`SET_ACCESSED_BY`), or not (`false`).
    AccessedBy(PageLocation, bool),
}

/// Statistics of unified memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagedStatistics {
    /// Bytes of the allocated segments.
    pub reserved: u64,
    /// The most bytes allocated at once.
    pub reserved_peak: u64,
    /// Segments refused because they were larger than the free memory.
    pub refused: u64,
    /// Calls of [`CudaDriver::prefetch`].
    pub prefetches: u64,
    /// Bytes of these calls.
    pub prefetched: u64,
}

/// Unified memory as a source of segments.
pub(super) struct ManagedMemory {
    device: Arc<Device>,
    api: &'static ManagedApi,
    statistics: ManagedStatistics,
}

impl ManagedMemory {
    pub(super) fn new(device: Arc<Device>) -> Result<Self, CudaError> {
        let api = ManagedApi::get()?;
        let concurrent = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as u32;
        if device.attribute(concurrent)? == 0 {
            return Err(CudaError::NoManagedMemory { ordinal: device.ordinal() });
        }
        Ok(Self { device, api, statistics: ManagedStatistics::default() })
    }

    pub(super) fn statistics(&self) -> ManagedStatistics {
        self.statistics
    }

    /// Allocates a segment and moves it to the device.
    pub(super) fn alloc(&mut self, size: u64) -> Result<u64, DriverError> {
        let info = self.device.memory_info()?;
        let held = self.statistics.reserved.saturating_add(size);
        // The first condition is what counts now. The second also counts pages that were moved to the host meanwhile:
        // their device memory looks free although they will be moved back.
        if size > info.free || held > info.total {
            self.statistics.refused += 1;
            return Err(DriverError::OutOfMemory);
        }
        let _current = self.device.enter()?;
        let bytes = width(size)?;
        let mut address = 0;
        // SAFETY: the variable outlives the call.
        unsafe { self.api.cuMemAllocManaged(&mut address, bytes, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32) }?;
        // SAFETY: the range was just allocated. The default stream always exists.
        let moved = unsafe { self.api.cuMemPrefetchAsync(address, bytes, self.device.handle, 0) };
        let moved = moved.map_err(DriverError::from).and_then(|()| self.device.synchronize_stream(Stream(0)));
        if let Err(error) = moved {
            // SAFETY: the address was not returned yet. The first error is the one to return.
            let _ = unsafe { self.device.api.cuMemFree(address) };
            return Err(error);
        }
        self.statistics.reserved = held;
        self.statistics.reserved_peak = self.statistics.reserved_peak.max(held);
        Ok(address)
    }

    /// Counts a freed segment.
    pub(super) fn freed(&mut self, size: u64) {
        self.statistics.reserved = self.statistics.reserved.saturating_sub(size);
    }
}

impl fmt::Debug for ManagedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statistics.fmt(f)
    }
}

impl CudaDriver {
    /// Moves pages of unified memory after the stream's present work. Returns at once.
    ///
    /// # Errors
    /// With plain segments, for addresses or a stream that are not the driver's, and if CUDA refuses; out of memory for
    /// more bytes than the device has free.
    pub fn prefetch(
        &mut self,
        at: Address,
        size: u64,
        location: PageLocation,
        stream: Stream,
    ) -> Result<(), DriverError> {
        const CALL: &str = "cuMemPrefetchAsync";
        let (bytes, is_held) = (width(size)?, self.holds(at, size));
        let managed = self.managed.as_mut().filter(|_| is_held).ok_or_else(|| not_managed(CALL, at, size))?;
        // Pages that are on the device already need no memory, but CUDA does not report which they are.
        let device = managed.device.clone();
        if location == PageLocation::Device && size > device.memory_info()?.free {
            return Err(DriverError::OutOfMemory);
        }
        let to = managed.number(location);
        device.on_stream(CALL, stream, |handle| {
            // SAFETY: the range is valid unified memory, and the stream exists.
            unsafe { managed.api.cuMemPrefetchAsync(at.0, bytes, to, handle) }
        })?;
        managed.statistics.prefetches += 1;
        managed.statistics.prefetched = managed.statistics.prefetched.saturating_add(size);
        Ok(())
    }

    /// Advises CUDA how unified memory will be used.
    ///
    /// # Errors
    /// With plain segments, for addresses that are not the driver's, and if CUDA refuses.
    pub fn advise(&mut self, at: Address, size: u64, advice: Advice) -> Result<(), DriverError> {
        const CALL: &str = "cuMemAdvise";
        let (bytes, is_held) = (width(size)?, self.holds(at, size));
        let managed = self.managed.as_ref().filter(|_| is_held).ok_or_else(|| not_managed(CALL, at, size))?;
        let (code, location) = match advice {
            Advice::ReadMostly(true) => (CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, PageLocation::Device),
            Advice::ReadMostly(false) => (CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY, PageLocation::Device),
            Advice::PreferredLocation(Some(location)) => (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, location),
            Advice::PreferredLocation(None) => {
                (CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, PageLocation::Device)
            }
            Advice::AccessedBy(location, true) => (CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, location),
            Advice::AccessedBy(location, false) => (CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY, location),
        };
        let _current = managed.device.enter()?;
        // SAFETY: the range is valid unified memory.
        Ok(unsafe { managed.api.cuMemAdvise(at.0, bytes, code, managed.number(location)) }?)
    }
}

impl ManagedMemory {
    /// Returns the driver's number of a place.
    fn number(&self, location: PageLocation) -> c_int {
        match location {
            PageLocation::Device => self.device.handle,
            PageLocation::Host => HOST,
        }
    }
}

/// Returns the error for memory that is not allocated unified memory.
fn not_managed(call: &'static str, at: Address, size: u64) -> DriverError {
    DriverError::Failed { call, message: format!("{size} bytes at {at} are not unified memory allocated here") }
}
