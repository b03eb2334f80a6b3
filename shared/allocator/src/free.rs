//! Freeing a block: at once, or after the streams that use it.

use super::device::DeviceAllocator;
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::error::MisuseError;
use super::slab::NONE;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, Stream};

/// Why an allocation could not be freed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// The call was invalid; nothing was changed.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
    /// The block was freed, but the driver failed to record an event in a stream that used it.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Frees an allocation. `stack` is the call site that frees it; the empty stack means the one that allocated it.
    /// Freeing the null address does nothing.
    pub fn free(&mut self, address: Address, stack: StackId) -> Result<(), FreeError> {
        if address.0 == 0 {
            return Ok(());
        }
        let Some(number) = self.allocated.remove(&address.0) else { return Err(self.misuse_at(address).into()) };
        let block = &mut self.blocks[number];
        block.allocated = false;
        let (size, requested, free_list, has_uses) = (block.size, block.requested, block.free_list, block.has_uses);
        let asked = if stack == StackId(0) { block.stack } else { stack };
        let is_small = self.pools[self.free_lists[free_list].pool].is_small;
        self.stats.allocation.decrease(is_small, 1);
        self.stats.allocated_bytes.decrease(is_small, size);
        if self.is_oversize(size) {
            self.stats.oversize_allocations.decrease(1);
        }
        if !has_uses {
            self.record_freed(address.0, requested, free_list, asked);
            self.give_back(number);
            return Ok(());
        }
        self.record(Action::FreeRequested, address.0, requested, free_list, asked);
        if self.must_defer() {
            self.defer(number);
        } else {
            self.wait_for_uses(number)?;
        }
        Ok(())
    }

    /// Frees an allocation as [`free`](Self::free) does, after checking that it belongs to the stream.
    pub fn free_on(&mut self, address: Address, stream: Stream, stack: StackId) -> Result<(), FreeError> {
        if let Some(&number) = self.allocated.get(&address.0) {
            let allocated = self.free_lists[self.blocks[number].free_list].stream;
            if allocated != stream {
                return Err(MisuseError::WrongStream { address, allocated, given: stream }.into());
            }
        }
        self.free(address, stack)
    }

    /// Completes the free of a block that nothing uses any more (`free_block`).
    #[inline]
    pub(super) fn free_block_now(&mut self, number: u32, stack: StackId) {
        let block = &self.blocks[number];
        let asked = if stack == StackId(0) { block.stack } else { stack };
        self.record(Action::FreeCompleted, block.address, block.requested, block.free_list, asked);
        self.give_back(number);
    }

    /// Puts a block into its free list, merged with its cached neighbours.
    #[inline]
    fn give_back(&mut self, number: u32) {
        let block = &mut self.blocks[number];
        let (size, requested) = (block.size, block.requested);
        let (free_list, is_expandable) = (block.free_list, block.is_expandable());
        block.stack = StackId(0);
        let (prev, next) = (block.prev, block.next);

        let mut net_blocks = 0;
        let mut net_bytes = 0;
        for neighbour in [prev, next] {
            if let Some(bytes) = self.merge(number, neighbour) {
                net_blocks -= 1;
                net_bytes -= bytes as i64;
            }
        }
        self.insert_free(number);
        let block = &self.blocks[number];
        if block.is_split() {
            net_blocks += 1;
            net_bytes += block.size as i64;
        }
        let is_small = self.pools[self.free_lists[free_list].pool].is_small;
        if !is_expandable {
            self.stats.inactive_split.change(is_small, net_blocks);
            self.stats.inactive_split_bytes.change(is_small, net_bytes);
        }
        self.stats.active.decrease(is_small, 1);
        self.stats.active_bytes.decrease(is_small, size);
        self.stats.requested_bytes.decrease(is_small, requested);
    }

    /// Merges an idle neighbour into a block and returns the neighbour's bytes (`try_merge_blocks`). `None` if there is
    /// no neighbour, it is in use, or only one of the two is mapped.
    #[inline]
    pub(super) fn merge(&mut self, number: u32, neighbour: u32) -> Option<u64> {
        if neighbour == NONE {
            return None;
        }
        let other = &self.blocks[neighbour];
        if !other.is_idle() || other.mapped != self.blocks[number].mapped {
            return None;
        }
        self.remove_free(neighbour);
        let other = self.blocks.remove(neighbour)?;
        self.forget_captured_uses(neighbour);
        let block = &mut self.blocks[number];
        block.size += other.size;
        if block.prev == neighbour {
            block.address = other.address;
            block.prev = other.prev;
            block.segment_stack = other.segment_stack;
            if other.prev != NONE {
                self.blocks[other.prev].next = number;
            }
        } else {
            block.next = other.next;
            if other.next != NONE {
                self.blocks[other.next].prev = number;
            }
        }
        Some(other.size)
    }
}
