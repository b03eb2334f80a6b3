//! Streams of a device. A handle is the raw `CUstream` as a number; 0 is the default stream.

use std::sync::atomic::Ordering;

use cudarc::driver::sys::{CUevent_flags, CUstream_flags};
use shared::allocator::DriverError;
use shared::units::Stream;

use super::Device;
use super::symbols::Failure;

/// The low bits of the number of a stream from PyTorch's pool: its kind, and that it is not the default stream.
const POOL_STREAM: u64 = 0b11;

impl Device {
    /// Creates a stream that does not wait for the default stream, as PyTorch's do. It is destroyed with the device's
    /// context if not before.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn create_stream(&self) -> Result<Stream, DriverError> {
        let _current = self.enter()?;
        let mut handle = 0;
        // SAFETY: the pointer is to a variable that outlives the call.
        unsafe { self.api.cuStreamCreate(&mut handle, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) }?;
        let stream = Stream(handle as i64);
        let index = self.created_streams.fetch_add(1, Ordering::Relaxed);
        self.streams_mut().insert(stream.0, (index << 5) | POOL_STREAM);
        Ok(stream)
    }

    /// Destroys a stream; its work is still done.
    ///
    /// # Errors
    /// For a stream that is not this device's, and for the default stream.
    pub fn destroy_stream(&self, stream: Stream) -> Result<(), DriverError> {
        let _current = self.enter()?;
        if self.streams_mut().remove(&stream.0).is_none() {
            return Err(unknown("cuStreamDestroy", stream));
        }
        // SAFETY: it was in the set, so it lives; now nobody finds it there any more.
        Ok(unsafe { self.api.cuStreamDestroy(stream.0 as usize) }?)
    }

    /// Lets a stream be used that others created.
    ///
    /// # Safety
    /// It must be a live stream of this device's primary context, and stay so while the device is used with it.
    pub unsafe fn adopt_stream(&self, stream: Stream) {
        self.streams_mut().insert(stream.0, stream.0 as u64);
    }

    /// The number that PyTorch would give a stream (`StreamId`): by order of creation for those of
    /// [`Device::create_stream`], the handle itself for all others.
    pub fn stream_id(&self, stream: Stream) -> u64 {
        self.streams().get(&stream.0).copied().unwrap_or(stream.0 as u64)
    }

    /// Waits for all work of a stream.
    ///
    /// # Errors
    /// For a stream that is not this device's, and where work failed.
    pub fn synchronize_stream(&self, stream: Stream) -> Result<(), DriverError> {
        self.on_stream("cuStreamSynchronize", stream, |handle| {
            // SAFETY: the stream lives during the call, and its context is current.
            unsafe { self.api.cuStreamSynchronize(handle) }
        })
    }

    /// Calls the driver with the handle of a stream of this device, which lives for as long as the call lasts.
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

    /// Creates an event without a clock: cheaper, and all that is needed to know an order.
    pub(super) fn create_event(&self) -> Result<usize, Failure> {
        let _current = self.enter()?;
        let mut event = 0;
        // SAFETY: the pointer is to a variable that outlives the call.
        unsafe { self.api.cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DISABLE_TIMING as u32) }?;
        Ok(event)
    }

    /// Destroys an event of [`Device::create_event`]; those who wait for it still do.
    pub(super) fn destroy_event(&self, event: usize) {
        if let Ok(_current) = self.enter() {
            // SAFETY: the callers own their events. A failure leaves nothing to do.
            let _ = unsafe { self.api.cuEventDestroy(event) };
        }
    }

    /// Marks the present end of a stream's work.
    pub(super) fn record_event(&self, event: usize, stream: Stream) -> Result<(), DriverError> {
        self.on_stream("cuEventRecord", stream, |handle| {
            // SAFETY: stream and event live, and are of the current context.
            unsafe { self.api.cuEventRecord(event, handle) }
        })
    }

    /// Lets the later work of `waiting` begin only after the present work of `awaited`.
    ///
    /// # Errors
    /// For a stream that is not this device's, and where the driver refuses.
    pub fn wait_for_stream(&self, waiting: Stream, awaited: Stream) -> Result<(), DriverError> {
        let event = self.create_event()?;
        let waits = self.record_event(event, awaited).and_then(|()| {
            self.on_stream("cuStreamWaitEvent", waiting, |handle| {
                // SAFETY: stream and event live; the only flags that matter here are 0.
                unsafe { self.api.cuStreamWaitEvent(handle, event, 0) }
            })
        });
        self.destroy_event(event);
        waits
    }
}

/// The error for a handle that is not in the set.
fn unknown(call: &'static str, stream: Stream) -> DriverError {
    DriverError::Failed { call, message: format!("stream {stream} is not one of this device") }
}
