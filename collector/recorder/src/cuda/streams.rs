//! A device's streams. A stream's handle is the raw `CUstream` as a number; 0 is the default stream.

use std::sync::atomic::Ordering;

use allocator::DriverError;
use cudarc::driver::sys::{CUevent_flags, CUstream_flags};
use trace::units::Stream;

use super::Device;
use super::symbols::Failure;

/// The low bits of the number of a stream in PyTorch's pool: its kind, and that it is not the default stream.
const POOL_STREAM: u64 = 0b11;

impl Device {
    /// Creates a stream that, like PyTorch's, does not wait for the default stream. It is destroyed with the device's
    /// context if not before.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn create_stream(&self) -> Result<Stream, DriverError> {
        let _current = self.enter()?;
        let mut handle = 0;
        // SAFETY: the variable outlives the call.
        unsafe { self.api.cuStreamCreate(&mut handle, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) }?;
        let stream = Stream(handle as i64);
        let index = self.created_streams.fetch_add(1, Ordering::Relaxed);
        self.streams_mut().insert(stream.0, (index << 5) | POOL_STREAM);
        Ok(stream)
    }

    /// Destroys a stream. Its pending work is still completed.
    ///
    /// # Errors
    /// For a stream that is not this device's, and for the default stream.
    pub fn destroy_stream(&self, stream: Stream) -> Result<(), DriverError> {
        let _current = self.enter()?;
        if self.streams_mut().remove(&stream.0).is_none() {
            return Err(unknown("cuStreamDestroy", stream));
        }
        // SAFETY: it was in the set, so it exists; it is no longer in the set, so no later call uses it.
        Ok(unsafe { self.api.cuStreamDestroy(stream.0 as usize) }?)
    }

    /// Registers a stream that was not created here.
    ///
    /// # Safety
    /// It must be a stream of this device's primary context, and exist as long as the device is used with it.
    pub unsafe fn adopt_stream(&self, stream: Stream) {
        self.streams_mut().insert(stream.0, stream.0 as u64);
    }

    /// Returns PyTorch's number for a stream (`StreamId`): by order of creation for streams of [`Device::create_stream`],
    /// and the handle for all others.
    pub fn stream_id(&self, stream: Stream) -> u64 {
        self.streams().get(&stream.0).copied().unwrap_or(stream.0 as u64)
    }

    /// Waits for all work of a stream.
    ///
    /// # Errors
    /// For a stream that is not this device's, and if its work failed.
    pub fn synchronize_stream(&self, stream: Stream) -> Result<(), DriverError> {
        self.on_stream("cuStreamSynchronize", stream, |handle| {
            // SAFETY: the stream exists during the call, and its context is current.
            unsafe { self.api.cuStreamSynchronize(handle) }
        })
    }

    /// Calls the driver with the handle of a stream of this device, which exists during the call.
    pub(super) fn on_stream<T>(
        &self,
        call: &'static str,
        stream: Stream,
        body: impl FnOnce(usize) -> Result<T, Failure>,
    ) -> Result<T, DriverError> {
        let _current = self.enter()?;
        let streams = self.streams();
        if stream.0 != 0 && !streams.contains_key(&stream.0) {
            return Err(unknown(call, stream));
        }
        Ok(body(stream.0 as usize)?)
    }

    /// Creates an event without timing, which is cheaper and sufficient for ordering.
    pub(super) fn create_event(&self) -> Result<usize, Failure> {
        let _current = self.enter()?;
        let mut event = 0;
        // SAFETY: the variable outlives the call.
        unsafe { self.api.cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DISABLE_TIMING as u32) }?;
        Ok(event)
    }

    /// Destroys an event of [`Device::create_event`]. Streams that wait for it still do.
    pub(super) fn destroy_event(&self, event: usize) {
        if let Ok(_current) = self.enter() {
            // SAFETY: the callers own their events. After a failure there is nothing to do.
            let _ = unsafe { self.api.cuEventDestroy(event) };
        }
    }

    /// Records an event after a stream's present work.
    pub(super) fn record_event(&self, event: usize, stream: Stream) -> Result<(), DriverError> {
        self.on_stream("cuEventRecord", stream, |handle| {
            // SAFETY: the stream and the event exist and belong to the current context.
            unsafe { self.api.cuEventRecord(event, handle) }
        })
    }

    /// Makes later work of `waiting` wait for the present work of `awaited`.
    ///
    /// # Errors
    /// For a stream that is not this device's, and if the driver refuses.
    pub fn wait_for_stream(&self, waiting: Stream, awaited: Stream) -> Result<(), DriverError> {
        let event = self.create_event()?;
        let waits = self.record_event(event, awaited).and_then(|()| {
            self.on_stream("cuStreamWaitEvent", waiting, |handle| {
                // SAFETY: the stream and the event exist; no flags are needed.
                unsafe { self.api.cuStreamWaitEvent(handle, event, 0) }
            })
        });
        self.destroy_event(event);
        waits
    }
}

/// Returns the error for a handle that is not in the set.
fn unknown(call: &'static str, stream: Stream) -> DriverError {
    DriverError::Failed { call, message: format!("stream {stream} does not belong to this device") }
}
