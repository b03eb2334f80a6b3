//! How much of the cached memory a request could use, cheap enough to ask at every request.

use super::device::DeviceAllocator;
use super::driver::Driver;
use super::entry::TraceSink;
use super::free_set::{Free, FreeSet};

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Returns the bytes of all cached blocks: reserved, and in no active block.
    pub fn cached(&self) -> u64 {
        self.reserved().saturating_sub(u64::try_from(self.stats.active_bytes()).unwrap_or(0))
    }

    /// Returns the size of the largest cached block of any pool and stream.
    pub fn largest_cached(&self) -> u64 {
        let sizes = self.free_lists.iter().filter_map(|(_, list)| list.blocks.largest());
        sizes.map(|free| free.size).max().unwrap_or(0)
    }
}

impl FreeSet {
    /// Returns the largest block.
    fn largest(&self) -> Option<Free> {
        self.before(&Free { size: u64::MAX, order: u32::MAX, address: u64::MAX, block: u32::MAX })
    }
}
