//! Stream-ordered pools: what is freed stays with the pool, and serves the next request that it is large enough for.
//!
//! The attributes for reuse across streams are kept and given back, but decide nothing: memory is free for all
//! streams when the stream that freed it has got there.

use std::collections::BTreeMap;

use crate::arena::granules;
use crate::code::{Code, Outcome};
use crate::device::Kind;
use crate::machine::Machine;

/// What the driver counts a pool's allocations in.
const UNIT: u64 = 512;

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// Reuse by events, by chance, by waiting.
    pub(crate) reuse: [i32; 3],
    pub(crate) threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// Bytes that an allocation counts, by address.
    live: BTreeMap<u64, u64>,
    /// Bytes that are kept, by address.
    kept: BTreeMap<u64, u64>,
    /// Destroyed, but not empty yet.
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
    /// The pool with that handle.
    pub(crate) fn pool(&mut self, handle: usize) -> Outcome<&mut Pool> {
        self.pools.get_mut(&handle).filter(|pool| !pool.is_closed).ok_or(Code::INVALID_VALUE)
    }

    /// Allocates from a pool.
    pub(crate) fn take_from_pool(&mut self, handle: usize, size: u64) -> Outcome<u64> {
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
                // The whole of it may be touched: another allocation may get it later.
                let address = self.device(device)?.take(whole, Kind::Pool(handle))?;
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

    /// Takes back what the pool of that address handed out.
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

    /// Whether a pool has handed that address out.
    pub(crate) fn is_live_in_pool(&self, address: u64) -> bool {
        self.pools.values().any(|pool| pool.live.contains_key(&address))
    }

    /// Gives back what is not used until at most `keep` bytes are held: the highest addresses first.
    pub(crate) fn trim_pool(&mut self, handle: usize, keep: u64) {
        while let Some(pool) = self.pools.get_mut(&handle).filter(|pool| pool.reserved > keep) {
            let Some((address, bytes)) = pool.kept.pop_last() else { return };
            pool.reserved -= bytes;
            let device = pool.device;
            if let Ok(device) = self.device(device) {
                // What the pool keeps is an allocation of the device.
                let _ = device.give(address);
            }
        }
    }

    /// What waiting for a device does to its pools: they give back what is above their thresholds.
    pub(crate) fn trim_pools(&mut self, device: usize) {
        let pools = self.pools.iter().filter(|(_, pool)| pool.device == device);
        let pools: Vec<_> = pools.map(|(handle, pool)| (*handle, pool.threshold)).collect();
        for (handle, threshold) in pools {
            self.trim_pool(handle, threshold);
        }
    }

    /// Destroys a pool once nothing of it is live.
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
