//! Writes, reads, fills and copies device memory. Only addresses that were allocated through the device are accepted, so
//! no call can reach this process's own memory.
//!
//! A copy without a stream is complete when its call returns, but does not wait for work on streams.

use std::ffi::c_void;

use allocator::DriverError;
use trace::units::{Address, Stream};

use super::Device;
use super::symbols::Failure;

impl Device {
    /// Copies `bytes` to the device.
    ///
    /// # Errors
    /// For addresses that are not allocated, and if the driver refuses.
    pub fn write(&self, to: Address, bytes: &[u8]) -> Result<(), DriverError> {
        self.on_memory("cuMemcpyHtoD", &[(to, bytes.len())], || {
            // SAFETY: both ranges are valid until the call returns, when the copy is complete.
            unsafe { self.api.cuMemcpyHtoD(to.0, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
        })
    }

    /// Copies from the device until `bytes` is full.
    ///
    /// # Errors
    /// For addresses that are not allocated, and if the driver refuses.
    pub fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.on_memory("cuMemcpyDtoH", &[(from, bytes.len())], || {
            // SAFETY: both ranges are valid until the call returns, when the copy is complete.
            unsafe { self.api.cuMemcpyDtoH(bytes.as_mut_ptr().cast::<c_void>(), from.0, bytes.len()) }
        })
    }

    /// Fills `size` bytes with one value.
    ///
    /// # Errors
    /// For addresses that are not allocated, and if the driver refuses.
    pub fn fill(&self, at: Address, value: u8, size: u64) -> Result<(), DriverError> {
        let size = width(size)?;
        self.on_memory("cuMemsetD8", &[(at, size)], || {
            // SAFETY: the range is valid. If the driver returns early, only the device still uses it.
            unsafe { self.api.cuMemsetD8(at.0, value, size) }
        })
    }

    /// Copies `bytes` to the device after the stream's work so far; returns when the bytes may change again.
    ///
    /// # Errors
    /// For addresses or a stream that are not the device's, and if the driver refuses.
    pub fn write_on(&self, stream: Stream, to: Address, bytes: &[u8]) -> Result<(), DriverError> {
        self.on_memory_and_stream("cuMemcpyHtoDAsync", &[(to, bytes.len())], stream, |handle| {
            // SAFETY: both ranges are valid; the slice outlives the copy because the stream is synchronized.
            unsafe {
                self.api.cuMemcpyHtoDAsync(to.0, bytes.as_ptr().cast::<c_void>(), bytes.len(), handle)?;
                self.api.cuStreamSynchronize(handle)
            }
        })
    }

    /// Copies from the device after the stream's work so far; returns when `bytes` is full.
    ///
    /// # Errors
    /// For addresses or a stream that are not the device's, and if the driver refuses.
    pub fn read_on(&self, stream: Stream, from: Address, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.on_memory_and_stream("cuMemcpyDtoHAsync", &[(from, bytes.len())], stream, |handle| {
            // SAFETY: both ranges are valid; the slice outlives the copy because the stream is synchronized.
            unsafe {
                self.api.cuMemcpyDtoHAsync(bytes.as_mut_ptr().cast::<c_void>(), from.0, bytes.len(), handle)?;
                self.api.cuStreamSynchronize(handle)
            }
        })
    }

    /// Fills `size` bytes with one value after the stream's work so far; returns at once.
    ///
    /// # Errors
    /// For addresses or a stream that are not the device's, and if the driver refuses.
    pub fn fill_on(&self, stream: Stream, at: Address, value: u8, size: u64) -> Result<(), DriverError> {
        let size = width(size)?;
        self.on_memory_and_stream("cuMemsetD8Async", &[(at, size)], stream, |handle| {
            // SAFETY: the range is valid, and only the device uses it.
            unsafe { self.api.cuMemsetD8Async(at.0, value, size, handle) }
        })
    }

    /// Copies within the device after the stream's work so far; returns at once. The ranges must not overlap.
    ///
    /// # Errors
    /// For addresses or a stream that are not the device's, and if the driver refuses.
    pub fn copy_on(&self, stream: Stream, from: Address, to: Address, size: u64) -> Result<(), DriverError> {
        let size = width(size)?;
        self.on_memory_and_stream("cuMemcpyDtoDAsync", &[(from, size), (to, size)], stream, |handle| {
            // SAFETY: both ranges are valid, and only the device uses them.
            unsafe { self.api.cuMemcpyDtoDAsync(to.0, from.0, size, handle) }
        })
    }

    /// Calls the driver with ranges that stay allocated during the call. Empty ranges need no call.
    fn on_memory(
        &self,
        call: &'static str,
        ranges: &[(Address, usize)],
        body: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), DriverError> {
        let spans = self.spans();
        for (address, size) in ranges {
            if !spans.covers(address.0, *size as u64) {
                let message = format!("{size} bytes at {address} were not allocated here");
                return Err(DriverError::Failed { call, message });
            }
        }
        if ranges.iter().all(|(_, size)| *size == 0) {
            return Ok(());
        }
        let _current = self.enter()?;
        Ok(body()?)
    }

    /// Calls the driver like [`Device::on_memory`], with the handle of a stream.
    fn on_memory_and_stream(
        &self,
        call: &'static str,
        ranges: &[(Address, usize)],
        stream: Stream,
        body: impl FnOnce(usize) -> Result<(), Failure>,
    ) -> Result<(), DriverError> {
        let mut outcome = Ok(());
        self.on_memory(call, ranges, || {
            outcome = self.on_stream(call, stream, body);
            Ok(())
        })?;
        outcome
    }
}

/// Converts a number of bytes to this machine's size type.
pub(super) fn width(size: u64) -> Result<usize, DriverError> {
    usize::try_from(size).map_err(|_| DriverError::OutOfMemory)
}
