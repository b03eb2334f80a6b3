//! Expandable segments: ranges of addresses that memory is mapped to page by page.

use super::block::Block;
use super::device::DeviceAllocator;
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::malloc::Params;
use super::rounding::SMALL_BUFFER;
use super::slab::NONE;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::Address;

/// A reserved range of addresses (`ExpandableSegment`). Its blocks, mapped or not, tile it.
#[derive(Debug)]
pub(super) struct ExpandableSegment {
    /// First address.
    pub(super) address: u64,
    /// Number of addresses in bytes.
    pub(super) size: u64,
    /// Bytes that are mapped at once.
    pub(super) page: u64,
}

/// Whether pages can be created with handles that other machines understand (`expandable_segments_handle_type`). The
/// first page shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Handles {
    #[default]
    Untried,
    Fabric,
    File,
}

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Returns a block for a request from the first place among the expandable segments that has room, and maps what is
    /// missing (`try_allocate_expandable_block`). `None` if there is no memory; what was mapped before the failure
    /// stays cached.
    pub(super) fn grow_expandable(&mut self, params: &Params) -> Result<Option<u32>, DriverError> {
        let Some(mut candidate) = self.find_expandable(params)? else { return Ok(None) };
        let wanted = params.rounded;
        let block = &self.blocks[candidate];
        if !block.mapped && !self.map_block(candidate, block.size.min(wanted), params.request.stack)? {
            return Ok(None);
        }
        while self.blocks[candidate].size < wanted {
            let block = &self.blocks[candidate];
            let next = block.next;
            // A range is larger than the device's memory at its creation, but not necessarily than its memory now.
            let Some(room) = self.blocks.get(next).map(|next| next.size) else { return Ok(None) };
            let missing = (wanted - block.size).min(room);
            if !self.map_block(next, missing, params.request.stack)? {
                return Ok(None);
            }
            candidate = next;
        }
        self.remove_free(candidate);
        Ok(Some(candidate))
    }

    /// Finds the first run of idle blocks, by address, that can hold a request and has unmapped room
    /// (`find_expandable_block`), or else reserves a new range. `None` if that range is too short. It is an error, not
    /// lack of memory, if no addresses are left.
    fn find_expandable(&mut self, params: &Params) -> Result<Option<u32>, DriverError> {
        let stream = params.request.stream;
        let key = stream.0 as u64;
        for &(_, _, unmapped) in self.pools[params.pool].unmapped.range((key, 0, 0)..=(key, u64::MAX, u32::MAX)) {
            let prev = self.blocks[unmapped].prev;
            let start = if prev != NONE && self.blocks[prev].is_idle() { prev } else { unmapped };
            if self.has_room(start, params.rounded) {
                return Ok(Some(start));
            }
        }
        let page = if self.pools[params.pool].is_small { SMALL_BUFFER } else { self.config.large_segment_size };
        let total = self.driver.memory_info()?.total;
        let size = self.config.reserve(total).div_ceil(page).saturating_mul(page);
        let address = self.driver.reserve_range(size)?.0;
        if self.profile.drops_short_ranges && size < params.rounded {
            self.driver.release_range(Address(address), size)?;
            return Ok(None);
        }
        let expandable = self.expandable.insert(ExpandableSegment { address, size, page });
        let free_list = self.free_list(params.pool, stream);
        let born = self.birth();
        let block = Block { expandable, born, mapped: false, ..Block::new(address, size, free_list) };
        let block = self.blocks.insert(block);
        self.insert_unmapped(block);
        Ok(Some(block))
    }

    /// Returns whether the idle blocks from this one on hold `wanted` bytes together.
    fn has_room(&self, mut number: u32, wanted: u64) -> bool {
        let mut bytes = 0;
        while bytes < wanted {
            let Some(block) = self.blocks.get(number).filter(|block| block.is_idle()) else { return false };
            bytes += block.size;
            number = block.next;
        }
        true
    }

    /// Maps memory to the first `size` bytes of an unmapped block, in whole pages, and merges it with the cached blocks
    /// around it (`map_block`). Returns whether there was memory.
    fn map_block(&mut self, number: u32, size: u64, stack: StackId) -> Result<bool, DriverError> {
        let block = &self.blocks[number];
        let (address, free_list, expandable, born, whole) =
            (block.address, block.free_list, block.expandable, block.born, block.size);
        let segment = &self.expandable[expandable];
        let (page, end) = (segment.page, segment.address + segment.size);
        // After a change of the settings, a block may end before its last page does.
        let mapped = (size.div_ceil(page) * page).min(whole).min(end - address);
        if mapped == 0 {
            return Ok(false);
        }
        if !self.map_pages(Address(address), mapped, page)? {
            return Ok(false);
        }
        self.remove_free(number);
        self.blocks[number].mapped = true;
        if mapped < whole {
            let next = self.blocks[number].next;
            let born = self.birth_of_part(born);
            let rest = Block {
                expandable,
                born,
                mapped: false,
                prev: number,
                next,
                ..Block::new(address + mapped, whole - mapped, free_list)
            };
            let rest = self.blocks.insert(rest);
            if next != NONE {
                self.blocks[next].prev = rest;
            }
            self.blocks[number].next = rest;
            self.blocks[number].size = mapped;
            self.insert_unmapped(rest);
        }
        let prev = self.blocks[number].prev;
        self.merge(number, prev);
        let next = self.blocks[number].next;
        self.merge(number, next);
        self.insert_free(number);
        self.add_reserved(self.free_lists[free_list].pool, mapped);
        self.record(Action::SegmentMap, address, mapped, free_list, stack);
        let block = &mut self.blocks[number];
        if block.prev == NONE && block.segment_stack == StackId(0) {
            block.segment_stack = stack;
        }
        Ok(true)
    }

    /// Maps memory to addresses (`ExpandableSegment::map`). Returns whether there was memory.
    fn map_pages(&mut self, address: Address, size: u64, page: u64) -> Result<bool, DriverError> {
        let mapped = match self.driver.map(address, size, page) {
            Ok(()) => Ok(true),
            Err(DriverError::OutOfMemory) => Ok(false),
            Err(error) => Err(error),
        };
        match (self.handles, &mapped) {
            (Handles::Untried, Ok(_)) => self.handles = Handles::Fabric,
            (Handles::Untried, Err(_)) => self.handles = Handles::File,
            (Handles::Fabric, Err(_)) if self.profile.fabric_failures_are_lack_of_memory => return Ok(false),
            _ => {}
        }
        mapped
    }

    /// Unmaps the whole pages of a cached block (`unmap_block`). A block without a whole page stays as it is.
    pub(super) fn unmap_block(&mut self, number: u32, stack: StackId) -> Result<(), DriverError> {
        let block = &self.blocks[number];
        let (start, end, free_list, expandable, born) =
            (block.address, block.address + block.size, block.free_list, block.expandable, block.born);
        let segment = &self.expandable[expandable];
        let page = segment.page;
        let first = segment.address + (start - segment.address).div_ceil(page) * page;
        let last = segment.address + (end - segment.address) / page * page;
        if first >= last {
            return Ok(());
        }
        self.driver.synchronize_stream(self.free_lists[free_list].stream)?;
        self.driver.unmap(Address(first), last - first, page)?;
        self.remove_free(number);
        if first > start {
            let prev = self.blocks[number].prev;
            let born = self.birth_of_part(born);
            let head = Block { expandable, born, prev, next: number, ..Block::new(start, first - start, free_list) };
            let head = self.blocks.insert(head);
            if prev != NONE {
                self.blocks[prev].next = head;
            }
            self.blocks[number].prev = head;
            self.insert_free(head);
        }
        if end > last {
            let next = self.blocks[number].next;
            let born = self.birth_of_part(born);
            let tail = Block { expandable, born, prev: number, next, ..Block::new(last, end - last, free_list) };
            let tail = self.blocks.insert(tail);
            if next != NONE {
                self.blocks[next].prev = tail;
            }
            self.blocks[number].next = tail;
            self.insert_free(tail);
        }
        let block = &mut self.blocks[number];
        block.address = first;
        block.size = last - first;
        block.mapped = false;
        let taken_by = block.segment_stack;
        let prev = block.prev;
        self.merge(number, prev);
        let next = self.blocks[number].next;
        self.merge(number, next);
        self.insert_unmapped(number);

        let pool = self.free_lists[free_list].pool;
        self.subtract_reserved(pool, last - first);
        self.count_released_segment(pool);
        self.stats.num_device_free += 1;
        let asked = if stack == StackId(0) { taken_by } else { stack };
        self.record(Action::SegmentUnmap, first, last - first, free_list, asked);
        Ok(())
    }

    /// Releases the addresses of a segment that consists of one unmapped block.
    pub(super) fn release_expandable(&mut self, number: u32) -> Result<(), DriverError> {
        self.remove_free(number);
        let Some(block) = self.blocks.remove(number) else { return Ok(()) };
        self.forget_captured_uses(number);
        match self.expandable.remove(block.expandable) {
            Some(segment) => self.driver.release_range(Address(segment.address), segment.size),
            None => Ok(()),
        }
    }
}
