//! Stream-ordered memory (`cuMemAllocFromPoolAsync`, `cuMemFreeAsync`): the driver's own allocator, as PyTorch's
//! backend `cudaMallocAsync` uses it.
//!
//! The rules are those of that backend: no rounding, an unbounded release threshold, all three kinds of reuse, a limit on
//! the pool's used bytes, and the pool's own statistics. Memory that other streams used is freed on a helper stream that
//! waits for all of them. Unlike PyTorch, it uses its own pool instead of the device's default pool, so nothing else in
//! the process is counted or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::Arc;

use allocator::DriverError;
use cudarc::driver::sys::{CUmemAllocationHandleType, CUmemAllocationType, CUmemPool_attribute, CUmemPoolProps};
use trace::units::{Address, Stream};

use super::copy::width;
use super::symbols::PoolApi;
use super::{CudaError, Device};

/// Why a call to a pool failed. The pool is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The pool's fraction of the device would be exceeded.
    #[error("{size} bytes in addition to the {used} used bytes exceed the limit of {limit} bytes")]
    OverLimit {
        /// Bytes requested.
        size: u64,
        /// Bytes used.
        used: u64,
        /// The most bytes that may be used.
        limit: u64,
    },
    /// No live allocation of this pool starts at the address.
    #[error("no allocation of this pool starts at {0}")]
    UnknownAddress(Address),
    /// The memory was allocated on another stream.
    #[error("{address} was allocated on stream {allocated}, not on stream {freed}")]
    WrongStream {
        /// The memory.
        address: Address,
        /// Its stream.
        allocated: Stream,
        /// The stream of the call.
        freed: Stream,
    },
    /// A fraction that is not between 0 and 1.
    #[error("a memory fraction must be from 0 to 1")]
    Fraction,
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// How a pool may reuse freed memory (`CUmemPool_attribute`). The defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Bytes that the pool keeps when a stream or the device is synchronized.
    pub release_threshold: u64,
    /// Reuse memory that another stream freed, if an event orders the two.
    pub reuse_follow_event_dependencies: bool,
    /// Reuse memory that another stream freed, if its work is already complete.
    pub reuse_allow_opportunistic: bool,
    /// Reuse memory that another stream freed, by making the new stream wait.
    pub reuse_allow_internal_dependencies: bool,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            release_threshold: u64::MAX,
            reuse_follow_event_dependencies: true,
            reuse_allow_opportunistic: true,
            reuse_allow_internal_dependencies: true,
        }
    }
}

/// A number of bytes and its maximum since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// The present number.
    pub current: u64,
    /// The maximum.
    pub peak: u64,
}

/// A pool's statistics, named as in `memory_stats()`. The driver only counts used and reserved bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// The driver's used bytes: allocated and not yet freed in stream order.
    pub allocated: Watermark,
    /// Equal to `allocated`, because the driver does not distinguish freed memory that is still in use.
    pub active: Watermark,
    /// Bytes of the device that the pool reserves.
    pub reserved: Watermark,
}

/// A live allocation.
#[derive(Debug)]
struct Allocation {
    stream: Stream,
    /// Other streams that use it.
    used_by: BTreeSet<i64>,
}

/// A stream-ordered allocator on one device. Dropping it frees what is still allocated.
pub struct StreamOrderedPool {
    device: Arc<Device>,
    api: &'static PoolApi,
    handle: usize,
    /// The stream on which memory that several streams used is freed.
    helper: Stream,
    allocations: BTreeMap<u64, Allocation>,
    /// The most bytes that may be used, if the fraction is below 1.
    limit: Option<u64>,
}

impl StreamOrderedPool {
    /// Creates a pool on a device.
    ///
    /// # Errors
    /// With a driver before CUDA 11.2, and if the device has no pools.
    pub fn new(device: Arc<Device>, settings: &PoolSettings) -> Result<Self, CudaError> {
        let api = PoolApi::get()?;
        let properties = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: device.location(),
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            reserved: [0; 56],
        };
        let mut handle = 0;
        {
            let _current = device.enter()?;
            // SAFETY: the variables outlive the call.
            unsafe { api.cuMemPoolCreate(&mut handle, &properties) }?;
        }
        // From here on, dropping the value destroys the pool. The default stream is never destroyed.
        let (helper, allocations) = (Stream(0), BTreeMap::new());
        let mut pool = Self { device, api, handle, helper, allocations, limit: None };
        pool.helper = pool.device.create_stream()?;
        pool.set(settings)?;
        Ok(pool)
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Changes how the pool may reuse freed memory.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn set(&mut self, settings: &PoolSettings) -> Result<(), DriverError> {
        use CUmemPool_attribute as A;
        self.set_bytes(A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, settings.release_threshold)?;
        let flags = [
            (A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, settings.reuse_follow_event_dependencies),
            (A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, settings.reuse_allow_opportunistic),
            (A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, settings.reuse_allow_internal_dependencies),
        ];
        let _current = self.device.enter()?;
        for (attribute, is_on) in flags {
            let mut value = c_int::from(is_on);
            // SAFETY: the pool exists; these attributes have the type int.
            unsafe { self.api.cuMemPoolSetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
        }
        Ok(())
    }

    /// Reads the pool's attributes from the driver.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn settings(&self) -> Result<PoolSettings, DriverError> {
        use CUmemPool_attribute as A;
        let _current = self.device.enter()?;
        let flag = |attribute| -> Result<bool, DriverError> {
            let mut value: c_int = 0;
            // SAFETY: the pool exists; these attributes have the type int.
            unsafe { self.api.cuMemPoolGetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
            Ok(value != 0)
        };
        Ok(PoolSettings {
            release_threshold: self.bytes(A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)?,
            reuse_follow_event_dependencies: flag(A::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES)?,
            reuse_allow_opportunistic: flag(A::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)?,
            reuse_allow_internal_dependencies: flag(A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)?,
        })
    }

    /// Limits the pool to a fraction of the device's memory (`set_per_process_memory_fraction`); 1 for no limit.
    ///
    /// # Errors
    /// For a fraction that is not from 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), PoolError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(PoolError::Fraction);
        }
        let total = self.device.total_memory();
        self.limit = (fraction < 1.0).then_some((fraction * total as f64) as u64);
        Ok(())
    }

    /// Allocates `size` bytes in stream order. Returns address 0 for a size of 0, as PyTorch does.
    ///
    /// This stream may use the memory at once, others after they wait for it. If the device is full, the pool waits for
    /// it, releases its unused memory, and tries again.
    ///
    /// # Errors
    /// Out of memory, over the limit, and for a stream that is not the device's.
    pub fn allocate(&mut self, size: u64, stream: Stream) -> Result<Address, PoolError> {
        if size == 0 {
            return Ok(Address(0));
        }
        if let Some(limit) = self.limit {
            let used = self.bytes(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
            if used.saturating_add(size) > limit {
                return Err(PoolError::OverLimit { size, used, limit });
            }
        }
        let address = match self.try_allocate(size, stream) {
            Err(DriverError::OutOfMemory) => {
                self.empty_cache()?;
                self.try_allocate(size, stream)
            }
            outcome => outcome,
        }?;
        self.allocations.insert(address, Allocation { stream, used_by: BTreeSet::new() });
        self.device.spans_mut().insert(address, size);
        Ok(Address(address))
    }

    /// Records that another stream uses an allocation. Once freed, it is reused only after that stream's work.
    ///
    /// # Errors
    /// For an address that is not allocated here, and for a stream that is not the device's.
    pub fn record_stream(&mut self, address: Address, stream: Stream) -> Result<(), PoolError> {
        let allocation = self.allocations.get_mut(&address.0).ok_or(PoolError::UnknownAddress(address))?;
        self.device.on_stream("cuMemFreeAsync", stream, |_| Ok(()))?;
        if stream != allocation.stream {
            allocation.used_by.insert(stream.0);
        }
        Ok(())
    }

    /// Frees an allocation in the order of its stream and of all streams that used it. `stream` must be the stream that
    /// it was allocated on.
    ///
    /// # Errors
    /// For an address that is not allocated here or already freed, and for another stream.
    pub fn free(&mut self, address: Address, stream: Stream) -> Result<(), PoolError> {
        if address.0 == 0 {
            return Ok(());
        }
        let allocation = self.allocations.get(&address.0).ok_or(PoolError::UnknownAddress(address))?;
        if allocation.stream != stream {
            return Err(PoolError::WrongStream { address, allocated: allocation.stream, freed: stream });
        }
        let freeing = if allocation.used_by.is_empty() {
            stream
        } else {
            for user in std::iter::once(stream.0).chain(allocation.used_by.iter().copied()) {
                self.device.wait_for_stream(self.helper, Stream(user))?;
            }
            self.helper
        };
        // No copy may use the memory from now on.
        let mut spans = self.device.spans_mut();
        self.device.on_stream("cuMemFreeAsync", freeing, |handle| {
            // SAFETY: it is an allocation of this pool and is freed once, after all its uses in the order of `freeing`.
            unsafe { self.api.cuMemFreeAsync(address.0, handle) }
        })?;
        spans.remove(address.0);
        self.allocations.remove(&address.0);
        Ok(())
    }

    /// Waits for the device and releases all unused memory.
    ///
    /// # Errors
    /// If work on the device failed.
    pub fn empty_cache(&mut self) -> Result<(), DriverError> {
        self.device.synchronize()?;
        self.trim(0)
    }

    /// Releases unused memory until the pool reserves at most `keep` bytes or has no unused memory.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn trim(&mut self, keep: u64) -> Result<(), DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: the pool exists.
        Ok(unsafe { self.api.cuMemPoolTrimTo(self.handle, width(keep)?) }?)
    }

    /// Reads the pool's statistics.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn statistics(&self) -> Result<PoolStatistics, DriverError> {
        use CUmemPool_attribute as A;
        let mark = |current, peak| -> Result<Watermark, DriverError> {
            Ok(Watermark { current: self.bytes(current)?, peak: self.bytes(peak)? })
        };
        let used = mark(A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT, A::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?;
        let reserved = mark(A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?;
        Ok(PoolStatistics { allocated: used, active: used, reserved })
    }

    /// Resets the peaks to the present values (`reset_peak_memory_stats`).
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn reset_peak(&mut self) -> Result<(), DriverError> {
        // Zero is the only value that the driver accepts. It means "from now on".
        self.set_bytes(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)?;
        self.set_bytes(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
    }

    fn try_allocate(&self, size: u64, stream: Stream) -> Result<u64, DriverError> {
        let (bytes, mut address) = (width(size)?, 0);
        self.device.on_stream("cuMemAllocFromPoolAsync", stream, |handle| {
            // SAFETY: the variable outlives the call; the pool and the stream exist.
            unsafe { self.api.cuMemAllocFromPoolAsync(&mut address, bytes, self.handle, handle) }
        })?;
        Ok(address)
    }

    /// Reads an attribute that is a number of bytes.
    fn bytes(&self, attribute: CUmemPool_attribute) -> Result<u64, DriverError> {
        let _current = self.device.enter()?;
        let mut value: u64 = 0;
        // SAFETY: the pool exists; all callers name attributes of the type cuuint64_t.
        unsafe { self.api.cuMemPoolGetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
        Ok(value)
    }

    fn set_bytes(&mut self, attribute: CUmemPool_attribute, mut value: u64) -> Result<(), DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: the pool exists; all callers name attributes of the type cuuint64_t.
        unsafe { self.api.cuMemPoolSetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
        Ok(())
    }
}

impl fmt::Debug for StreamOrderedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamOrderedPool").field("device", &self.device).field("limit", &self.limit).finish()
    }
}

impl Drop for StreamOrderedPool {
    fn drop(&mut self) {
        // A driver that is shutting down refuses these calls, and has freed everything already.
        let _ = self.device.synchronize();
        let mut spans = self.device.spans_mut();
        if let Ok(_current) = self.device.enter() {
            for address in self.allocations.keys() {
                spans.remove(*address);
                // SAFETY: it is an allocation of this pool and is freed once; no work that could use it is left.
                let _ = unsafe { self.api.cuMemFreeAsync(*address, 0) };
            }
            // SAFETY: it is created once and destroyed once; the driver keeps it until the frees above are complete.
            let _ = unsafe { self.api.cuMemPoolDestroy(self.handle) };
        }
        drop(spans);
        if self.helper.0 != 0 {
            let _ = self.device.destroy_stream(self.helper);
        }
    }
}
