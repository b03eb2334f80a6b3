//! The allocator's `Driver` trait for a CUDA device.

use std::fmt;
use std::sync::Arc;

use allocator::{Driver, DriverError, MemoryInfo};
use cudarc::driver::sys::{CUmemAccess_flags, CUmemAccessDesc};
use trace::units::{Address, Stream};

use super::copy::width;
use super::managed::{ManagedMemory, ManagedStatistics, Source};
use super::spans::Spans;
use super::{CudaError, Device};

/// An event that [`CudaDriver`] recorded.
#[derive(Debug)]
pub struct CudaEvent(usize);

/// One device's memory for one allocator. Dropping it frees what is still allocated.
pub struct CudaDriver {
    device: Arc<Device>,
    /// Unified memory, if segments are allocated from it.
    pub(super) managed: Option<ManagedMemory>,
    segments: Spans,
    /// Reserved addresses.
    ranges: Spans,
    /// Pages mapped to them.
    pages: Spans,
    /// Events to be reused, because creating one costs microseconds.
    idle_events: Vec<CudaEvent>,
}

impl CudaDriver {
    /// Opens the device with this number, with segments of plain device memory.
    ///
    /// # Errors
    /// As for [`Device::open`].
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        Self::new(Device::open(ordinal)?, Source::Plain)
    }

    /// Creates a driver that allocates its segments from `source` on an open device.
    ///
    /// # Errors
    /// If the device does not support unified memory.
    pub fn new(device: Arc<Device>, source: Source) -> Result<Self, CudaError> {
        let managed = match source {
            Source::Plain => None,
            Source::Managed => Some(ManagedMemory::new(device.clone())?),
        };
        let (segments, ranges, pages) = Default::default();
        Ok(Self { device, managed, segments, ranges, pages, idle_events: Vec::new() })
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the statistics of unified memory; `None` with plain segments.
    pub fn managed_statistics(&self) -> Option<ManagedStatistics> {
        self.managed.as_ref().map(ManagedMemory::statistics)
    }

    /// Returns whether a range lies within allocated segments.
    pub(super) fn holds(&self, at: Address, size: u64) -> bool {
        self.segments.covers(at.0, size)
    }

    /// Maps one page of memory at an address. The handle is released at once: the mapping keeps the memory, so unmapping
    /// the page also frees it.
    fn map_page(&self, address: u64, page: usize) -> Result<(), DriverError> {
        let api = self.device.api;
        let mut handle = 0;
        // SAFETY: the variables outlive the calls, the handle was just created, and the driver refuses addresses that
        // are not reserved or are already mapped.
        unsafe {
            api.cuMemCreate(&mut handle, page, &self.device.properties(), 0)?;
            let mapped = api.cuMemMap(address, page, 0, handle, 0);
            api.cuMemRelease(handle)?;
            Ok(mapped?)
        }
    }

    /// Lets the device read and write a range of mapped pages.
    fn open_range(&self, address: u64, size: usize) -> Result<(), DriverError> {
        let flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = CUmemAccessDesc { location: self.device.location(), flags };
        // SAFETY: the single descriptor outlives the call; the driver refuses ranges that are not mapped.
        Ok(unsafe { self.device.api.cuMemSetAccess(address, size, &access, 1) }?)
    }

    /// Unmaps one page that [`CudaDriver::map_page`] mapped.
    fn unmap_page(&self, address: u64, page: usize) -> Result<(), DriverError> {
        // SAFETY: the driver refuses ranges that are not mapped as a whole.
        Ok(unsafe { self.device.api.cuMemUnmap(address, page) }?)
    }
}

impl Driver for CudaDriver {
    type Event = CudaEvent;

    fn total_memory(&self) -> u64 {
        self.device.total_memory()
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError> {
        self.device.memory_info()
    }

    fn alloc(&mut self, size: u64) -> Result<Address, DriverError> {
        let address = match &mut self.managed {
            Some(managed) => managed.alloc(size)?,
            None => {
                let _current = self.device.enter()?;
                let mut address = 0;
                // SAFETY: the variable outlives the call.
                unsafe { self.device.api.cuMemAlloc(&mut address, width(size)?) }?;
                address
            }
        };
        self.segments.insert(address, size);
        self.device.spans_mut().insert(address, size);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        if self.segments.get(address.0) != Some(size) {
            return Err(foreign("cuMemFree", address, size));
        }
        // No copy may use the memory while it is freed.
        let mut spans = self.device.spans_mut();
        let _current = self.device.enter()?;
        // SAFETY: it is a segment of this driver and is freed once.
        unsafe { self.device.api.cuMemFree(address.0) }?;
        spans.remove(address.0);
        self.segments.remove(address.0);
        if let Some(managed) = &mut self.managed {
            managed.freed(size);
        }
        Ok(())
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError> {
        let _current = self.device.enter()?;
        let mut address = 0;
        // SAFETY: the variable outlives the call.
        unsafe { self.device.api.cuMemAddressReserve(&mut address, width(size)?, 0, 0, 0) }?;
        self.ranges.insert(address, size);
        Ok(Address(address))
    }

    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        if self.ranges.get(address.0) != Some(size) {
            return Err(foreign("cuMemAddressFree", address, size));
        }
        let _current = self.device.enter()?;
        // SAFETY: it is a range of this driver and is released once; the driver refuses while something is mapped in it.
        unsafe { self.device.api.cuMemAddressFree(address.0, width(size)?) }?;
        self.ranges.remove(address.0);
        Ok(())
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        if page == 0 || !size.is_multiple_of(page) || !self.ranges.covers(address.0, size) {
            return Err(foreign("cuMemMap", address, size));
        }
        let _current = self.device.enter()?;
        let starts = || (0..size / page).map(|i| address.0 + i * page);
        let mut mapped = 0;
        let mut outcome = Ok(());
        for start in starts() {
            outcome = self.map_page(start, width(page)?);
            if outcome.is_err() {
                break;
            }
            mapped += 1;
        }
        let outcome = outcome.and_then(|()| self.open_range(address.0, width(size)?));
        if outcome.is_err() {
            for start in starts().take(mapped) {
                // The page was just mapped and is unused. If the driver refuses, the first error is the one to return.
                let _ = self.unmap_page(start, width(page)?);
            }
            return outcome;
        }
        let mut spans = self.device.spans_mut();
        for start in starts() {
            self.pages.insert(start, page);
            spans.insert(start, page);
        }
        Ok(())
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        if page == 0 || !size.is_multiple_of(page) {
            return Err(foreign("cuMemUnmap", address, size));
        }
        let starts = || (0..size / page).map(|i| address.0.saturating_add(i * page));
        if starts().any(|start| self.pages.get(start) != Some(page)) {
            return Err(foreign("cuMemUnmap", address, size));
        }
        let device = self.device.clone();
        let mut spans = device.spans_mut();
        let _current = device.enter()?;
        for start in starts() {
            self.unmap_page(start, width(page)?)?;
            self.pages.remove(start);
            spans.remove(start);
        }
        Ok(())
    }

    fn record_event(&mut self, stream: Stream) -> Result<CudaEvent, DriverError> {
        let event = match self.idle_events.pop() {
            Some(event) => event,
            None => CudaEvent(self.device.create_event()?),
        };
        match self.device.record_event(event.0, stream) {
            Ok(()) => Ok(event),
            Err(error) => {
                self.idle_events.push(event);
                Err(error)
            }
        }
    }

    fn is_event_done(&mut self, event: &CudaEvent) -> Result<bool, DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: the event exists: only this driver destroys its events, when it is dropped.
        match unsafe { self.device.api.cuEventQuery(event.0) } {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_not_ready() => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    fn wait_for_event(&mut self, event: &CudaEvent) -> Result<(), DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: as in `is_event_done`.
        Ok(unsafe { self.device.api.cuEventSynchronize(event.0) }?)
    }

    fn recycle_event(&mut self, event: CudaEvent) {
        self.idle_events.push(event);
    }

    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError> {
        self.device.synchronize_stream(stream)
    }

    fn stream_id(&self, stream: Stream) -> u64 {
        self.device.stream_id(stream)
    }
}

/// Returns the error for memory that this driver did not allocate in that way.
fn foreign(call: &'static str, address: Address, size: u64) -> DriverError {
    DriverError::Failed { call, message: format!("{size} bytes at {address} do not match an allocation") }
}

impl fmt::Debug for CudaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaDriver").field("device", &self.device).field("managed", &self.managed).finish()
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // A driver that is shutting down refuses these calls, and has freed everything already.
        let (pages, ranges, segments) = (self.pages.take(), self.ranges.take(), self.segments.take());
        let _ = self.device.synchronize();
        let mut spans = self.device.spans_mut();
        let Ok(_current) = self.device.enter() else { return };
        for (start, size) in pages {
            spans.remove(start);
            let _ = width(size).map(|size| self.unmap_page(start, size));
        }
        for (start, size) in ranges {
            // SAFETY: it is a range of this driver, and nothing is mapped in it any more.
            let _ = width(size).map(|size| unsafe { self.device.api.cuMemAddressFree(start, size) });
        }
        for start in segments.into_keys() {
            spans.remove(start);
            // SAFETY: it is a segment of this driver and is freed once.
            let _ = unsafe { self.device.api.cuMemFree(start) };
        }
        for event in self.idle_events.drain(..) {
            self.device.destroy_event(event.0);
        }
    }
}
