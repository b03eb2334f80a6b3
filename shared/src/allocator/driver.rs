//! What the allocator asks of a device: memory, address ranges, events. The one door to the outside.

use crate::units::{Address, Stream};

/// Free and whole memory of a device, in bytes, over all processes (`cudaMemGetInfo`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that nobody holds.
    pub free: u64,
    /// Bytes in all.
    pub total: u64,
}

/// How a call to the driver failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The device has not so much memory, or not so many addresses. The allocator tries something else.
    #[error("the device is out of memory")]
    OutOfMemory,
    /// Anything else ends the operation that made the call.
    #[error("{call} failed: {message}")]
    Failed {
        /// The driver's function.
        call: &'static str,
        /// What it said.
        message: String,
    },
}

/// A device's memory as the caching allocator uses it. One value serves one device.
///
/// Sizes and addresses are bytes. An implementation need not check what the allocator guarantees: it gives back only
/// what it took, whole, and once.
pub trait Driver {
    /// A mark in a stream's work: done when everything before it is.
    type Event;

    /// All memory of the device (`totalGlobalMem`): what fractions and address ranges are computed from.
    fn total_memory(&self) -> u64;

    /// Free and whole memory now.
    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError>;

    /// Takes a segment (`cudaMalloc`). `size` is a multiple of 2 MiB.
    fn alloc(&mut self, size: u64) -> Result<Address, DriverError>;

    /// Gives a segment back (`cudaFree`); waits for the work that uses it.
    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError>;

    /// Reserves addresses without memory (`cuMemAddressReserve`). `size` is a multiple of the page that will be
    /// mapped into it.
    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError>;

    /// Gives reserved addresses back (`cuMemAddressFree`); nothing is mapped in them any more.
    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError>;

    /// Puts memory behind `size` bytes of a reserved range, one handle for each `page` bytes, and makes it accessible
    /// (`cuMemCreate`, `cuMemMap`, `cuMemSetAccess`). All or nothing: on an error no page of this call stays.
    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError>;

    /// Takes the memory from behind `size` bytes of a reserved range, page by page (`cuMemUnmap`, `cuMemRelease`).
    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError>;

    /// Marks the present end of a stream's work (`cudaEventRecord` of a pooled event).
    fn record_event(&mut self, stream: Stream) -> Result<Self::Event, DriverError>;

    /// Whether the work before the mark is done (`cudaEventQuery`).
    fn is_event_done(&mut self, event: &Self::Event) -> Result<bool, DriverError>;

    /// Waits until the work before the mark is done (`cudaEventSynchronize`).
    fn wait_for_event(&mut self, event: &Self::Event) -> Result<(), DriverError>;

    /// Hands an event back for use again, done or not.
    fn recycle_event(&mut self, event: Self::Event);

    /// Waits for all work of a stream (`cudaStreamSynchronize`).
    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError>;

    /// The number that the program's streams have (`StreamId`); PyTorch's tables order streams by it.
    fn stream_id(&self, stream: Stream) -> u64 {
        stream.0 as u64
    }

    /// The last nodes of the capture that a stream is part of (`cudaStreamGetCaptureInfo`); `None` when it is part of
    /// none. A driver that can't tell says `None`.
    fn capture_terminals(&mut self, stream: Stream) -> Option<Vec<u64>> {
        let _ = stream;
        None
    }

    /// The nodes that a node of a capture waits for (`cudaGraphNodeGetDependencies`).
    fn capture_dependencies(&mut self, node: u64) -> Vec<u64> {
        let _ = node;
        Vec::new()
    }
}
