//! Releasing memory to the driver: by age, by size, or everything that is cached.

use super::device::{DeviceAllocator, LARGE, SMALL};
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::free_set::Free;
use super::malloc::Params;
use super::slab::NONE;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId};

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Returns whether cached blocks have an age. Garbage is collected only under a limit.
    #[inline]
    pub(super) fn collects_garbage(&self) -> bool {
        self.limit.is_some() && self.config.garbage_collection_threshold > 0.0
    }

    /// Releases the older half of the large cached segments, repeatedly, until enough memory is free
    /// (`garbage_collect_cached_blocks`).
    pub(super) fn collect_garbage(&mut self, stack: StackId) -> Result<(), DriverError> {
        let Some(limit) = self.limit else { return Ok(()) };
        let threshold = (self.config.garbage_collection_threshold * limit as f64) as u64;
        if self.reserved <= threshold {
            return Ok(());
        }
        let target = self.reserved - threshold;
        let searches = self.pools[LARGE].searches;
        let age =
            |allocator: &Self, free: &Free| f64::from(searches.wrapping_sub(allocator.blocks[free.block].gc_base));
        let unsplit = |allocator: &Self, free: &Free| !allocator.blocks[free.block].is_split();
        let candidates: Vec<Free> = self.cached_blocks(LARGE).filter(|free| unsplit(self, free)).collect();
        let mut total_age: f64 = candidates.iter().map(|free| age(self, free)).sum();
        let mut count = candidates.len();
        let mut reclaimed = 0;
        let mut has_freed = true;
        while reclaimed < target && has_freed && count > 0 {
            has_freed = false;
            let threshold = total_age / count as f64;
            let pass: Vec<Free> = self.cached_blocks(LARGE).filter(|free| unsplit(self, free)).collect();
            for free in pass {
                let block_age = age(self, &free);
                if !self.is_passed_over(free.block) && block_age >= threshold {
                    has_freed = true;
                    reclaimed += free.size;
                    total_age -= block_age;
                    count -= 1;
                    self.release_block(free.block, stack)?;
                }
            }
        }
        Ok(())
    }

    /// Releases one cached block that is never split and can hold the request, or several smaller ones that together
    /// can (`release_available_cached_blocks`). Returns whether enough was released.
    pub(super) fn release_available(&mut self, params: &Params) -> Result<bool, DriverError> {
        let max_split = self.config.max_split_size;
        if max_split == u64::MAX {
            return Ok(false);
        }
        let wanted = params.rounded.max(max_split);
        let Some(free_list) = self.pools[params.pool].free_list(params.request.stream) else { return Ok(false) };
        let free = &self.free_lists[free_list].blocks;
        if let Some(found) = free.first_fit(wanted).filter(|found| !self.is_passed_over(found.block)) {
            return self.release_whole(found.block, params.request.stack).map(|released| released > 0);
        }
        let first = free.first_fit(wanted).unwrap_or(Free { size: wanted, order: 0, address: 0, block: 0 });
        let mut released = 0;
        let mut next = free.before(&first);
        while let Some(this) = next
            && released < wanted
            && this.size >= max_split
        {
            next = self.free_lists[free_list].blocks.before(&this);
            if !self.is_passed_over(this.block) {
                released += self.release_whole(this.block, params.request.stack)?;
            }
        }
        Ok(released >= wanted)
    }

    /// Returns whether a block stays when cached memory is released by age or by size.
    fn is_passed_over(&self, number: u32) -> bool {
        self.profile.releases_pass_over_expandable && self.blocks[number].is_expandable()
    }

    /// Releases a cached segment and returns its bytes. A block that is only part of a segment stays and counts as 0
    /// bytes.
    fn release_whole(&mut self, number: u32, stack: StackId) -> Result<u64, DriverError> {
        let block = &self.blocks[number];
        if block.is_split() && !block.is_expandable() {
            self.is_undefined = true;
            return Ok(0);
        }
        let size = block.size;
        self.release_block(number, stack)?;
        Ok(size)
    }

    /// Waits for all streams and releases everything that is cached and not part of a segment in use: of the default
    /// pools and of private pools without a user, or only of the private pool `only` (`release_cached_blocks`).
    pub(super) fn release_cached(&mut self, only: PoolId, stack: StackId) -> Result<(), DriverError> {
        let context = self.pool_context.filter(|_| self.profile.has_pool_contexts);
        let only = if only.is_private() { only } else { context.unwrap_or_default() };
        let is_open = self.profile.refuses_to_wait_in_capture || self.is_open(self.current_stream);
        if !only.is_private() && is_open {
            self.synchronize_and_free_events(None, stack)?;
            self.release_pool_blocks(LARGE, stack)?;
            self.release_pool_blocks(SMALL, stack)?;
        }
        let mut place = 0;
        while let Some(at) = self.freeable.next(place) {
            place = at + 1;
            let Some(id) = self.freeable.key_at(at).filter(|id| !only.is_private() || *id == only) else { continue };
            let Some((small, large)) = self.private.get(&id).map(|private| (private.small, private.large)) else {
                continue;
            };
            if only.is_private() {
                self.synchronize_and_free_events(Some(id), stack)?;
            }
            self.release_pool_blocks(small, stack)?;
            self.release_pool_blocks(large, stack)?;
            if self.forget_pool_if_empty(id) {
                self.freeable.remove_at(at);
                place = at;
            }
        }
        Ok(())
    }

    /// Counts a segment of a private pool as released.
    pub(super) fn count_released_segment(&mut self, pool: u32) {
        let Some(private) = self.private.get_mut(&self.pools[pool].owner) else { return };
        self.is_undefined |= private.segments == 0;
        private.segments = private.segments.saturating_sub(1);
    }

    /// Returns whether PyTorch's own behaviour would be undefined by now. This allocator stays valid in each case.
    ///
    /// - PyTorch lost count of a private pool's segments. It counts an expandable segment up for each request that it
    ///   grew for, and down for each piece that is released. With more pieces than requests, the count is 0 too early;
    ///   PyTorch then deletes the pool under its tensors, or fails an internal check halfway.
    /// - PyTorch released a part of a segment as if it were the whole. The retry before a failure takes any cached
    ///   block above `max_split_size_mb`, even one that was split before the setting changed.
    /// - PyTorch used a `MemPool` after its end. In torch 2.6, contexts that end out of order leave one in force.
    /// - PyTorch confused the streams of two blocks. It keeps the streams that a capture recorded by the address of the
    ///   block's object, even after another object has taken its place.
    pub fn is_undefined(&self) -> bool {
        self.is_undefined
    }

    /// Removes a private pool that has no segment any more; returns whether it was removed. A pool with memory stays,
    /// whatever its count. A range of addresses without memory, which a failed request may leave, keeps its free list.
    fn forget_pool_if_empty(&mut self, id: PoolId) -> bool {
        let Some(private) = self.private.get(&id).filter(|private| private.segments == 0) else { return false };
        // A caller that counts wrong may have released it while requests are still routed to it.
        if self.routes.iter().any(|route| route.pool == id) {
            return false;
        }
        let halves = [private.small, private.large];
        let mut has_ranges = false;
        for (_, block) in
            self.blocks.iter().filter(|(_, block)| halves.contains(&self.free_lists[block.free_list].pool))
        {
            if block.mapped {
                self.is_undefined = true;
                return false;
            }
            has_ranges = true;
        }
        self.private.remove(&id);
        for pool in halves.into_iter().filter(|_| !has_ranges).filter_map(|number| self.pools.remove(number)) {
            for (_, free_list) in pool.free_lists {
                self.free_lists.remove(free_list);
            }
        }
        true
    }

    /// Returns the cached blocks of a pool in its order: by stream, size, age and address.
    pub(super) fn cached_blocks(&self, pool: u32) -> impl Iterator<Item = Free> + '_ {
        self.pools[pool].free_lists.iter().flat_map(|(_, free_list)| self.free_lists[*free_list].blocks.iter())
    }

    /// Releases all cached segments of a pool, then the pages of expandable ones (`release_blocks`).
    fn release_pool_blocks(&mut self, pool: u32, stack: StackId) -> Result<(), DriverError> {
        let cached: Vec<Free> = self.cached_blocks(pool).collect();
        let is_expandable = |free: &&Free| self.blocks[free.block].is_expandable();
        let (to_unmap, native): (Vec<&Free>, Vec<&Free>) = cached.iter().partition(is_expandable);
        for free in native {
            if !self.blocks[free.block].is_split() {
                self.release_block(free.block, stack)?;
            }
        }
        for free in to_unmap {
            self.unmap_block(free.block, stack)?;
            let block = &self.blocks[free.block];
            if !block.mapped && !block.is_split() {
                self.release_expandable(free.block)?;
            }
        }
        Ok(())
    }

    /// Releases a cached segment (`release_block`).
    fn release_block(&mut self, number: u32, stack: StackId) -> Result<(), DriverError> {
        let block = &self.blocks[number];
        if block.is_expandable() {
            return Err(DriverError::Failed {
                call: "!block->expandable_segment_",
                message: "cannot release an expandable segment".to_owned(),
            });
        }
        debug_assert!(block.prev == NONE && block.next == NONE, "only whole segments go");
        let (address, size, free_list, taken_by) = (block.address, block.size, block.free_list, block.segment_stack);
        let pool = self.free_lists[free_list].pool;
        self.stats.num_device_free += 1;
        let asked = if stack == StackId(0) { taken_by } else { stack };
        self.record(Action::SegmentFree, address, size, free_list, asked);
        self.driver.free(Address(address), size)?;
        self.subtract_reserved(pool, size);
        self.stats.segment.decrease(self.pools[pool].is_small, 1);
        if self.is_oversize(size) {
            self.stats.oversize_segments.decrease(1);
        }
        self.count_released_segment(pool);
        self.remove_free(number);
        self.blocks.remove(number);
        self.forget_captured_uses(number);
        Ok(())
    }
}
