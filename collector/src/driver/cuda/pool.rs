//! Stream-ordered memory (`cuMemAllocFromPoolAsync`, `cuMemFreeAsync`): the driver's own allocator, as PyTorch's
//! backend `cudaMallocAsync` uses it.
//!
//! The rules are that backend's: no rounding, a release threshold without bound, all three kinds of reuse, the limit
//! tested against the pool's used bytes, memory that other streams used freed on a helper stream that waits for them
//! all, and statistics that are the pool's own. It works on a pool of its own instead of the device's default one, so
//! that nothing else in the process is counted or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::{CUmemAllocationHandleType, CUmemAllocationType, CUmemPool_attribute, CUmemPoolProps};
use shared::allocator::DriverError;
use shared::units::{Address, Stream};

use super::copy::width;
use super::symbols::PoolApi;
use super::{CudaError, Device};

/// How a call to a pool failed. The pool is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The pool's fraction of the device would be exceeded.
    #[error("{size} bytes more than the {used} that are used would exceed the allowed {limit}")]
    OverLimit {
        /// Bytes that were asked for.
        size: u64,
        /// Bytes that are used.
        used: u64,
        /// Bytes that may be used.
        limit: u64,
    },
    /// Nothing that was allocated here and not freed begins there.
    #[error("no allocation of this pool begins at {0}")]
    UnknownAddress(Address),
    /// The memory was allocated on another stream.
    #[error("{address} was allocated on stream {allocated}, not on stream {freed}")]
    WrongStream {
        /// The memory.
        address: Address,
        /// Its stream.
        allocated: Stream,
        /// The stream that was named.
        freed: Stream,
    },
    /// A fraction that is not between 0 and 1.
    #[error("a memory fraction is a number from 0 to 1")]
    Fraction,
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// What a pool may do with freed memory (`CUmemPool_attribute`). The defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Bytes that the pool keeps when a stream or device is waited for.
    pub release_threshold: u64,
    /// Reuse what another stream freed where an event orders the two.
    pub reuse_follow_event_dependencies: bool,
    /// Reuse what another stream freed where that work happens to be done.
    pub reuse_allow_opportunistic: bool,
    /// Reuse what another stream freed by making the new stream wait.
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

/// A number of bytes now, and the most since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// Now.
    pub current: u64,
    /// The most.
    pub peak: u64,
}

/// What a pool tells, in the names of `memory_stats()`. The driver counts used and reserved bytes and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Bytes allocated and not freed in the order of the streams; the driver's used bytes.
    pub allocated: Watermark,
    /// The same: the driver does not tell apart what is freed and still in use.
    pub active: Watermark,
    /// Bytes that the pool holds of the device.
    pub reserved: Watermark,
}

/// An allocation that is not freed.
#[derive(Debug)]
struct Allocation {
    stream: Stream,
    /// Other streams that use it.
    used_by: BTreeSet<i64>,
}

/// A stream-ordered allocator on one device. What it still holds when dropped goes back to the device.
pub struct StreamOrderedPool {
    device: Arc<Device>,
    api: &'static PoolApi,
    handle: usize,
    /// Where memory is freed that several streams used.
    helper: Stream,
    allocations: BTreeMap<u64, Allocation>,
    /// Bytes that may be used; none without a fraction below 1.
    limit: Option<u64>,
}

impl StreamOrderedPool {
    /// Creates a pool on a device.
    ///
    /// # Errors
    /// With a driver before CUDA 11.2, and where the device has no pools.
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
            // SAFETY: the pointers are to values that outlive the call.
            unsafe { api.cuMemPoolCreate(&mut handle, &properties) }?;
        }
        // From here on, dropping the value destroys the pool; the default stream is no one's to destroy.
        let (helper, allocations) = (Stream(0), BTreeMap::new());
        let mut pool = Self { device, api, handle, helper, allocations, limit: None };
        pool.helper = pool.device.create_stream()?;
        pool.set(settings)?;
        Ok(pool)
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Changes what the pool may do with freed memory.
    ///
    /// # Errors
    /// Where the driver refuses.
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
            // SAFETY: the pool lives; these attributes are of the type int.
            unsafe { self.api.cuMemPoolSetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
        }
        Ok(())
    }

    /// The pool's attributes as the driver has them.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn settings(&self) -> Result<PoolSettings, DriverError> {
        use CUmemPool_attribute as A;
        let _current = self.device.enter()?;
        let flag = |attribute| -> Result<bool, DriverError> {
            let mut value: c_int = 0;
            // SAFETY: the pool lives; these attributes are of the type int.
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

    /// Lets the pool use at most this fraction of the device's memory (`set_per_process_memory_fraction`); 1 is no
    /// limit.
    ///
    /// # Errors
    /// For what is not a number from 0 to 1.
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), PoolError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(PoolError::Fraction);
        }
        let total = self.device.total_memory();
        self.limit = (fraction < 1.0).then_some((fraction * total as f64) as u64);
        Ok(())
    }

    /// Allocates `size` bytes in the order of a stream; nothing at address 0 for a size of 0, as PyTorch does.
    ///
    /// The memory may be used by this stream at once, by others after they wait for it. Where the device is full, the
    /// pool waits for it, gives back what it does not use, and asks once more.
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
        let address = match self.take(size, stream) {
            Err(DriverError::OutOfMemory) => {
                self.empty_cache()?;
                self.take(size, stream)
            }
            outcome => outcome,
        }?;
        self.allocations.insert(address, Allocation { stream, used_by: BTreeSet::new() });
        self.device.spans_mut().insert(address, size);
        Ok(Address(address))
    }

    /// Notes that another stream uses an allocation: when it is freed, it is reused only after that stream's work.
    ///
    /// # Errors
    /// For what is not allocated here, and for a stream that is not the device's.
    pub fn record_stream(&mut self, address: Address, stream: Stream) -> Result<(), PoolError> {
        let allocation = self.allocations.get_mut(&address.0).ok_or(PoolError::UnknownAddress(address))?;
        self.device.on_stream("cuMemFreeAsync", stream, |_| Ok(()))?;
        if stream != allocation.stream {
            allocation.used_by.insert(stream.0);
        }
        Ok(())
    }

    /// Frees an allocation in the order of its stream, and of all that used it. `stream` is the one that it was
    /// allocated on.
    ///
    /// # Errors
    /// For what is not allocated here (a second free, too), and for another stream.
    pub fn free(&mut self, address: Address, stream: Stream) -> Result<(), PoolError> {
        if address.0 == 0 {
            return Ok(());
        }
        let allocation = self.allocations.get(&address.0).ok_or(PoolError::UnknownAddress(address))?;
        if allocation.stream != stream {
            return Err(PoolError::WrongStream { address, allocated: allocation.stream, freed: stream });
        }
        let place = if allocation.used_by.is_empty() {
            stream
        } else {
            for user in std::iter::once(stream.0).chain(allocation.used_by.iter().copied()) {
                self.device.wait_for_stream(self.helper, Stream(user))?;
            }
            self.helper
        };
        // Nobody may copy there from now on.
        let mut spans = self.device.spans_mut();
        self.device.on_stream("cuMemFreeAsync", place, |handle| {
            // SAFETY: an allocation of this pool, freed once, after all its uses in the order of `place`.
            unsafe { self.api.cuMemFreeAsync(address.0, handle) }
        })?;
        spans.remove(address.0);
        self.allocations.remove(&address.0);
        Ok(())
    }

    /// Waits for the device and gives back all that is not used.
    ///
    /// # Errors
    /// Where work failed.
    pub fn empty_cache(&mut self) -> Result<(), DriverError> {
        self.device.synchronize()?;
        self.trim(0)
    }

    /// Gives back what is not used until the pool holds at most `keep` bytes, or nothing that is not used.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn trim(&mut self, keep: u64) -> Result<(), DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: the pool lives.
        Ok(unsafe { self.api.cuMemPoolTrimTo(self.handle, width(keep)?) }?)
    }

    /// What the pool holds and uses.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn statistics(&self) -> Result<PoolStatistics, DriverError> {
        use CUmemPool_attribute as A;
        let mark = |current, peak| -> Result<Watermark, DriverError> {
            Ok(Watermark { current: self.bytes(current)?, peak: self.bytes(peak)? })
        };
        let used = mark(A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT, A::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?;
        let reserved = mark(A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?;
        Ok(PoolStatistics { allocated: used, active: used, reserved })
    }

    /// Lets the peaks begin anew at what is held now (`reset_peak_memory_stats`).
    ///
    /// # Errors
    /// Where the driver refuses.
    pub fn reset_peak(&mut self) -> Result<(), DriverError> {
        // Zero is the only value that the driver takes, and means "from now on".
        self.set_bytes(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)?;
        self.set_bytes(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
    }

    fn take(&self, size: u64, stream: Stream) -> Result<u64, DriverError> {
        let (bytes, mut address) = (width(size)?, 0);
        self.device.on_stream("cuMemAllocFromPoolAsync", stream, |handle| {
            // SAFETY: the pointer is to a variable that outlives the call; pool and stream live.
            unsafe { self.api.cuMemAllocFromPoolAsync(&mut address, bytes, self.handle, handle) }
        })?;
        Ok(address)
    }

    /// An attribute that is a number of bytes.
    fn bytes(&self, attribute: CUmemPool_attribute) -> Result<u64, DriverError> {
        let _current = self.device.enter()?;
        let mut value: u64 = 0;
        // SAFETY: the pool lives; all callers name attributes of the type cuuint64_t.
        unsafe { self.api.cuMemPoolGetAttribute(self.handle, attribute, (&raw mut value).cast::<c_void>()) }?;
        Ok(value)
    }

    fn set_bytes(&mut self, attribute: CUmemPool_attribute, mut value: u64) -> Result<(), DriverError> {
        let _current = self.device.enter()?;
        // SAFETY: the pool lives; all callers name attributes of the type cuuint64_t.
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
        // A driver that is shutting down refuses these calls, and has taken everything back already.
        let _ = self.device.synchronize();
        let mut spans = self.device.spans_mut();
        if let Ok(_current) = self.device.enter() {
            for address in self.allocations.keys() {
                spans.remove(*address);
                // SAFETY: an allocation of this pool, freed once; no work on the device is left that could use it.
                let _ = unsafe { self.api.cuMemFreeAsync(*address, 0) };
            }
            // SAFETY: created once and destroyed once; the driver keeps it until what was freed above is done.
            let _ = unsafe { self.api.cuMemPoolDestroy(self.handle) };
        }
        drop(spans);
        if self.helper.0 != 0 {
            let _ = self.device.destroy_stream(self.helper);
        }
    }
}
