//! The allocator's interface to a device: memory, address ranges and events. The allocator has no other side effects.

use trace::units::{Address, Stream};

/// Free and total memory of a device in bytes, over all processes (`cudaMemGetInfo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that are not in use.
    pub free: u64,
    /// Bytes of the whole device.
    pub total: u64,
}

/// Why a call to the driver failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The device has not enough memory or addresses. The allocator tries something else.
    #[error("the device is out of memory")]
    OutOfMemory,
    /// Any other error; it ends the operation that made the call.
    #[error("{call} failed: {message}")]
    Failed {
        /// The driver's function.
        call: &'static str,
        /// The driver's message.
        message: String,
    },
}

/// A device's memory as the caching allocator uses it. One value serves one device.
///
/// Sizes and addresses are in bytes. The allocator guarantees that it returns only what it took, whole and once.
pub trait Driver {
    /// An event in a stream: done when all work before it is.
    type Event;

    /// Returns the total memory of the device as found at the start (`totalGlobalMem`). Fractions are computed from it.
    fn total_memory(&self) -> u64;

    /// Returns the free and total memory now.
    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError>;

    /// Allocates a segment (`cudaMalloc`). `size` is a multiple of 2 MiB.
    fn alloc(&mut self, size: u64) -> Result<Address, DriverError>;

    /// Frees a segment (`cudaFree`), after the work that uses it.
    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError>;

    /// Reserves addresses without memory (`cuMemAddressReserve`). `size` is a multiple of the page that will be mapped
    /// into it.
    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError>;

    /// Releases reserved addresses (`cuMemAddressFree`), when nothing is mapped in them any more.
    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError>;

    /// Maps memory to `size` bytes of a reserved range, one handle for each `page` bytes, and makes it accessible
    /// (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`). All or nothing: on an error no page of this call stays mapped.
    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError>;

    /// Unmaps the memory of `size` bytes of a reserved range, page by page (`cuMemUnmap`, `cuMemRelease`).
    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError>;

    /// Records an event at the present end of a stream's work (`cudaEventRecord` of a pooled event).
    fn record_event(&mut self, stream: Stream) -> Result<Self::Event, DriverError>;

    /// Returns whether the work before the event is done (`cudaEventQuery`).
    fn is_event_done(&mut self, event: &Self::Event) -> Result<bool, DriverError>;

    /// Waits until the work before the event is done (`cudaEventSynchronize`).
    fn wait_for_event(&mut self, event: &Self::Event) -> Result<(), DriverError>;

    /// Returns an event for reuse, done or not.
    fn recycle_event(&mut self, event: Self::Event);

    /// Waits for all work of a stream (`cudaStreamSynchronize`).
    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError>;

    /// Returns the number of a stream (`StreamId`), by which PyTorch's tables are ordered.
    fn stream_id(&self, stream: Stream) -> u64 {
        stream.0 as u64
    }

    /// Returns the last nodes of the capture that a stream is part of (`cudaStreamGetCaptureInfo`). `None` if it is
    /// part of none, or if the driver does not know.
    fn capture_terminals(&mut self, stream: Stream) -> Option<Vec<u64>> {
        let _ = stream;
        None
    }

    /// Returns the nodes that a node of a capture depends on (`cudaGraphNodeGetDependencies`).
    fn capture_dependencies(&mut self, node: u64) -> Vec<u64> {
        let _ = node;
        Vec::new()
    }
}
