//! Unified memory (`cuMemAllocManaged`) as a source of segments.
//!
//! CUDA lets more unified memory be taken than a device has, and moves pages about when they are used. A segment that
//! was evicted would be slow in ways that no allocator can see, and a device that is asked for much more than it has
//! can stop answering. So here a segment must fit into what is free, and is moved to the device at once.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUmem_advise, CUmemAttach_flags};
use shared::allocator::DriverError;
use shared::units::{Address, Stream};

use super::copy::width;
use super::symbols::ManagedApi;
use super::{CudaDriver, CudaError, Device};

/// `CU_DEVICE_CPU`: the host, where functions ask for a device.
const HOST: c_int = -1;

/// Where a driver's segments come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Device memory (`cuMemAlloc`).
    #[default]
    Plain,
    /// Unified memory (`cuMemAllocManaged`), moved to the device as it is taken.
    Managed,
}

/// Where pages of unified memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device.
    Device,
    /// In the host's memory.
    Host,
}

/// What the driver is told about the use of unified memory (`cuMemAdvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Mostly read: may be kept in several places (`SET_READ_MOSTLY`), or no longer (`UNSET_READ_MOSTLY`).
    ReadMostly(bool),
    /// Where it is best kept (`SET_PREFERRED_LOCATION`); `None`: nowhere in particular.
    PreferredLocation(Option<Place>),
    /// Used from there: stays mapped there wherever it is (`SET_ACCESSED_BY`), or no longer (`false`).
    AccessedBy(Place, bool),
}

/// What was done with unified memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagedStatistics {
    /// Bytes of the segments that are held.
    pub reserved: u64,
    /// The most bytes that were held at once.
    pub reserved_peak: u64,
    /// Segments that were refused because they were larger than what was free.
    pub refused: u64,
    /// Prefetches of [`CudaDriver::prefetch`].
    pub prefetches: u64,
    /// Bytes that they named.
    pub prefetched: u64,
}

/// The source itself.
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

    /// Takes a segment and moves it to the device.
    pub(super) fn alloc(&mut self, size: u64) -> Result<u64, DriverError> {
        let info = self.device.memory_info()?;
        let held = self.statistics.reserved.saturating_add(size);
        // The first is what counts now; the second holds even if pages were moved to the host in the meantime, and so
        // look free although they will be wanted back.
        if size > info.free || held > info.total {
            self.statistics.refused += 1;
            return Err(DriverError::OutOfMemory);
        }
        let _current = self.device.enter()?;
        let bytes = width(size)?;
        let mut address = 0;
        // SAFETY: the pointer is to a variable that outlives the call.
        unsafe { self.api.cuMemAllocManaged(&mut address, bytes, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32) }?;
        // SAFETY: the range is the one just handed out. The default stream exists always.
        let moved = unsafe { self.api.cuMemPrefetchAsync(address, bytes, self.device.handle, 0) };
        let moved = moved.map_err(DriverError::from).and_then(|()| self.device.synchronize_stream(Stream(0)));
        if let Err(error) = moved {
            // SAFETY: nobody knows the address yet. The first error is the one to tell.
            let _ = unsafe { self.device.api.cuMemFree(address) };
            return Err(error);
        }
        self.statistics.reserved = held;
        self.statistics.reserved_peak = self.statistics.reserved_peak.max(held);
        Ok(address)
    }

    /// Notes that a segment was given back.
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
    /// Moves pages of unified memory after the stream's work so far; returns at once.
    ///
    /// # Errors
    /// With plain segments, for addresses or a stream that are not the driver's, and where CUDA refuses; out of memory
    /// for more bytes than the device has free.
    pub fn prefetch(&mut self, at: Address, size: u64, place: Place, stream: Stream) -> Result<(), DriverError> {
        const CALL: &str = "cuMemPrefetchAsync";
        let (bytes, is_held) = (width(size)?, self.holds(at, size));
        let managed = self.managed.as_mut().filter(|_| is_held).ok_or_else(|| not_managed(CALL, at, size))?;
        // Pages that are on the device already need no room, but nobody tells which these are.
        let device = managed.device.clone();
        if place == Place::Device && size > device.memory_info()?.free {
            return Err(DriverError::OutOfMemory);
        }
        let to = managed.number(place);
        device.on_stream(CALL, stream, |handle| {
            // SAFETY: the range is whole and unified memory; the stream lives.
            unsafe { managed.api.cuMemPrefetchAsync(at.0, bytes, to, handle) }
        })?;
        managed.statistics.prefetches += 1;
        managed.statistics.prefetched = managed.statistics.prefetched.saturating_add(size);
        Ok(())
    }

    /// Tells CUDA how unified memory will be used.
    ///
    /// # Errors
    /// With plain segments, for addresses that are not the driver's, and where CUDA refuses.
    pub fn advise(&mut self, at: Address, size: u64, advice: Advice) -> Result<(), DriverError> {
        const CALL: &str = "cuMemAdvise";
        let (bytes, is_held) = (width(size)?, self.holds(at, size));
        let managed = self.managed.as_ref().filter(|_| is_held).ok_or_else(|| not_managed(CALL, at, size))?;
        let (code, place) = match advice {
            Advice::ReadMostly(true) => (CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, Place::Device),
            Advice::ReadMostly(false) => (CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY, Place::Device),
            Advice::PreferredLocation(Some(place)) => (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place),
            Advice::PreferredLocation(None) => (CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, Place::Device),
            Advice::AccessedBy(place, true) => (CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, place),
            Advice::AccessedBy(place, false) => (CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY, place),
        };
        let _current = managed.device.enter()?;
        // SAFETY: the range is whole and unified memory.
        Ok(unsafe { managed.api.cuMemAdvise(at.0, bytes, code, managed.number(place)) }?)
    }
}

impl ManagedMemory {
    /// A place as the driver numbers it.
    fn number(&self, place: Place) -> c_int {
        match place {
            Place::Device => self.device.handle,
            Place::Host => HOST,
        }
    }
}

/// The error for memory that is not unified, or not held.
fn not_managed(call: &'static str, at: Address, size: u64) -> DriverError {
    DriverError::Failed { call, message: format!("{size} bytes at {at} are not unified memory that is held here") }
}
