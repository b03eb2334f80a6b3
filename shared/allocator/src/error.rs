//! The allocator's errors.

use super::driver::DriverError;
use trace::units::{Address, PoolId, Stream};

/// Everything that PyTorch's out-of-memory message says, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The segment that could not be allocated. The message names it as the tried allocation.
    pub segment_size: u64,
    /// The request after rounding.
    pub rounded: u64,
    /// Free memory of the device.
    pub device_free: u64,
    /// Total memory of the device.
    pub device_total: u64,
    /// The most that the process may use, if limited.
    pub limit: Option<u64>,
    /// In live tensors.
    pub allocated: u64,
    /// Taken from the driver.
    pub reserved: u64,
    /// The addresses that an expandable segment would reserve, if the settings made them fewer than this request needs
    /// and the device had the memory (`expandable_segments_reserve`).
    pub short_reserve: Option<u64>,
    /// Cached in private pools. PyTorch adds it to the allocated bytes and calls it allocated in private pools.
    pub private_free: u64,
}

/// Why a request failed. The allocator's state stays valid, and the next request may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// Neither cached nor free memory can serve the request.
    #[error("{0}")]
    OutOfMemory(Box<OutOfMemory>),
    /// The settings forbid a request of this many bytes: with its segment, more would be reserved than the device has
    /// (`throw_on_cudamalloc_oom`).
    #[error(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction \
         limit. Requested size: {}",
        OutOfMemory::size(*.0)
    )]
    Rejected(u64),
    /// The request was for one exbibyte or more.
    #[error("CUDA out of memory. Tried to allocate more than 1EB memory.")]
    TooLarge,
    /// The driver failed for another reason.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// An invalid call. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MisuseError {
    /// The address was allocated once but is free already.
    #[error("{0} is free already")]
    DoubleFree(Address),
    /// The address is not the start of an allocation.
    #[error("{0} is not the address of an allocation")]
    UnknownAddress(Address),
    /// The allocation belongs to another stream.
    #[error("{address} was allocated on stream {allocated}, not on stream {given}")]
    WrongStream {
        /// The allocation.
        address: Address,
        /// Its stream.
        allocated: Stream,
        /// The stream that was given.
        given: Stream,
    },
    /// No pool has this id.
    #[error("there is no pool {0}")]
    UnknownPool(PoolId),
    /// Requests go to this pool already.
    #[error("allocations go to pool {0} already")]
    AlreadyRouted(PoolId),
    /// Requests do not go to this pool.
    #[error("allocations do not go to pool {0}")]
    NotRouted(PoolId),
    /// The fraction of memory is not between 0 and 1.
    #[error("a memory fraction is between 0 and 1, not {0}")]
    Fraction(Fraction),
}

/// The fraction as given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(pub f64);

/// For comparison in tests. NaN, the one value that is not equal to itself, is never compared with itself.
impl Eq for Fraction {}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl OutOfMemory {
    /// Formats bytes as PyTorch's message does (`format_size`): `20.00 MiB`.
    pub fn size(bytes: u64) -> impl std::fmt::Display {
        Size(bytes)
    }
}

struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            n @ ..=1024 => write!(f, "{n} bytes"),
            n @ ..=0x10_0000 => write!(f, "{:.2} KiB", n as f64 / 1024.0),
            n @ ..=0x4000_0000 => write!(f, "{:.2} MiB", n as f64 / 1_048_576.0),
            n => write!(f, "{:.2} GiB", n as f64 / 1_073_741_824.0),
        }
    }
}

impl std::fmt::Display for OutOfMemory {
    /// Writes the parts of PyTorch's message that the allocator knows, without the advice at the end.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment_size, device_free, device_total, limit, allocated, reserved, private_free, .. } = *self;
        write!(
            f,
            "CUDA out of memory. Tried to allocate {}. GPU has a total capacity of {} of which {} is free. ",
            Size(segment_size),
            Size(device_total),
            Size(device_free)
        )?;
        if let Some(limit) = limit {
            write!(f, "{} allowed; ", Size(limit))?;
        }
        write!(f, "Of the allocated memory {} is allocated by PyTorch, ", Size(allocated + private_free))?;
        if private_free > 0 {
            write!(f, "with {} allocated in private pools (e.g., CUDA Graphs), ", Size(private_free))?;
        }
        let unused = reserved.saturating_sub(allocated).saturating_sub(private_free);
        write!(f, "and {} is reserved by PyTorch but unallocated.", Size(unused))
    }
}
