//! How much of the cached memory a request could use; cheap enough to compute at every request.

use super::device::DeviceAllocator;
use super::driver::Driver;
use super::entry::TraceSink;
use super::free_set::{Free, FreeSet};
use super::pool::FreeList;
use super::rounding::largest_servable;

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Returns the bytes of all cached blocks: reserved, and in no active block.
    pub fn cached(&self) -> u64 {
        self.reserved().saturating_sub(u64::try_from(self.stats.active_bytes()).unwrap_or(0))
    }

    /// Returns the largest request that some pool and stream can serve without the driver.
    pub fn largest_servable(&self) -> u64 {
        let of = |list: &FreeList| Some(largest_servable(list.blocks.largest()?.size, self.pools[list.pool].is_small));
        self.free_lists.iter().filter_map(|(_, list)| of(list)).max().unwrap_or(0)
    }
}

impl FreeSet {
    /// Returns the largest block.
    fn largest(&self) -> Option<Free> {
        self.before(&Free { size: u64::MAX, order: u32::MAX, address: u64::MAX, block: u32::MAX })
    }
}
