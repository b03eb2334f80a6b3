//! Stream-ordered pools: freed memory stays in the pool and is reused for the next request that fits.
//!
//! The attributes for reuse across streams are stored but have no effect: memory is free for all streams once the stream
//! that freed it has reached the free.

use std::collections::BTreeMap;

use crate::arena::granules;
use crate::code::{Code, Outcome};
use crate::device::Kind;
use crate::machine::Machine;

/// The unit in which the driver counts a pool's allocations, in bytes.
const UNIT: u64 = 512;

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// The attributes for reuse: by events, opportunistic, by waiting.
    pub(crate) reuse: [i32; 3],
    pub(crate) threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// The counted bytes of live allocations, by address.
    live: BTreeMap<u64, u64>,
    /// The bytes of unused memory, by address.
    kept: BTreeMap<u64, u64>,
    /// The pool is destroyed but still has live allocations.
    pub(crate) is_closed: bool,
}

impl Pool {
    pub(crate) fn new(device: usize) -> Self {
        Self {
            device,
            reuse: [1; 3],
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            live: BTreeMap::new(),
            kept: BTreeMap::new(),
            is_closed: false,
        }
    }
}

impl Machine {
    /// Returns the pool with this handle.
    pub(crate) fn pool(&mut self, handle: usize) -> Outcome<&mut Pool> {
        self.pools.get_mut(&handle).filter(|pool| !pool.is_closed).ok_or(Code::INVALID_VALUE)
    }

    /// Allocates from a pool.
    pub(crate) fn allocate_from_pool(&mut self, handle: usize, size: u64) -> Outcome<u64> {
        let pool = self.pool(handle)?;
        let counted = size.checked_next_multiple_of(UNIT).filter(|_| size > 0).ok_or(Code::INVALID_VALUE)?;
        let whole = granules(size).ok_or(Code::OUT_OF_MEMORY)?;
        let fitting = pool.kept.iter().filter(|(_, bytes)| **bytes >= whole).min_by_key(|(_, bytes)| **bytes);
        let address = match fitting.map(|(address, _)| *address) {
            Some(address) => {
                pool.kept.remove(&address);
                address
            }
            None => {
                let device = pool.device;
                // All of it is accessible, because a larger allocation may reuse it.
                let address = self.device(device)?.allocate(whole, Kind::Pool(handle))?;
                let pool = self.pool(handle)?;
                pool.reserved += whole;
                pool.reserved_high = pool.reserved_high.max(pool.reserved);
                address
            }
        };
        let pool = self.pool(handle)?;
        pool.live.insert(address, counted);
        pool.used += counted;
        pool.used_high = pool.used_high.max(pool.used);
        Ok(address)
    }

    /// Frees an allocation to its pool.
    pub(crate) fn free_to_pool(&mut self, address: u64) -> Outcome {
        let allocation = self.device_at(address)?.allocations.get(&address).ok_or(Code::INVALID_VALUE)?;
        let (Kind::Pool(handle), bytes) = (&allocation.kind, allocation.size) else {
            return Err(Code::INVALID_VALUE);
        };
        let handle = *handle;
        let pool = self.pools.get_mut(&handle).ok_or(Code::INVALID_VALUE)?;
        pool.used -= pool.live.remove(&address).ok_or(Code::INVALID_VALUE)?;
        pool.kept.insert(address, bytes);
        if pool.is_closed && pool.live.is_empty() {
            self.trim_pool(handle, 0);
            self.pools.remove(&handle);
        }
        Ok(())
    }

    /// Returns whether an address is a live allocation of a pool.
    pub(crate) fn is_live_in_pool(&self, address: u64) -> bool {
        self.pools.values().any(|pool| pool.live.contains_key(&address))
    }

    /// Releases unused memory, the highest addresses first, until at most `keep` bytes are reserved.
    pub(crate) fn trim_pool(&mut self, handle: usize, keep: u64) {
        while let Some(pool) = self.pools.get_mut(&handle).filter(|pool| pool.reserved > keep) {
            let Some((address, bytes)) = pool.kept.pop_last() else { return };
            pool.reserved -= bytes;
            let device = pool.device;
            if let Ok(device) = self.device(device) {
                // The memory of a pool is an allocation of the device.
                let _ = device.free(address);
            }
        }
    }

    /// Releases what exceeds the thresholds of a device's pools, as waiting for the device does.
    pub(crate) fn trim_pools(&mut self, device: usize) {
        let pools = self.pools.iter().filter(|(_, pool)| pool.device == device);
        let pools: Vec<_> = pools.map(|(handle, pool)| (*handle, pool.threshold)).collect();
        for (handle, threshold) in pools {
            self.trim_pool(handle, threshold);
        }
    }

    /// Destroys a pool, once it has no live allocation.
    pub(crate) fn close_pool(&mut self, handle: usize) -> Outcome {
        let pool = self.pool(handle)?;
        pool.is_closed = true;
        let is_empty = pool.live.is_empty();
        self.trim_pool(handle, 0);
        if is_empty {
            self.pools.remove(&handle);
        }
        Ok(())
    }
}
