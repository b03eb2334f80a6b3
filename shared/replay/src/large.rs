//! The blocks in native segments of large pools, where a block's size depends on what lies after it.

use super::segments::ReservedRange;
use super::sorted::{Sorted, SortedIndex};
use allocator::rounding::LARGE_REMAINDER;

/// The native large segments with their blocks, by address. Each has few blocks: a large block is larger than 1 MiB.
#[derive(Clone, Debug, Default)]
pub(super) struct LargeBlocks {
    segments: Sorted<Blocks>,
    /// The number of blocks in all of them.
    placed: usize,
}

/// Bytes of memory for a segment, with the lists that its first blocks need.
const SEGMENT_BYTES: usize = 448;
/// Bytes of memory for a block, with the unused part of its list.
const BLOCK_BYTES: usize = 2 * (size_of::<Placed>() + size_of::<u64>());

#[derive(Clone, Debug)]
struct Blocks {
    end: u64,
    /// By address.
    blocks: Sorted<Placed>,
}

/// A block with its addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) address: u64,
    pub(super) end: u64,
    /// The allocation's number.
    pub(super) number: u32,
}

/// A block that is put into a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewBlock {
    pub(super) address: u64,
    /// What is recorded, or else the rounded request.
    pub(super) size: u64,
    pub(super) number: u32,
    pub(super) is_recorded: bool,
}

impl LargeBlocks {
    fn find(&mut self, address: u64, hint: &mut SortedIndex) -> Option<&mut Blocks> {
        let place = self.segments.near(address, hint)?;
        self.segments.get_mut(place).filter(|segment| address < segment.end)
    }

    pub(super) fn add(&mut self, range: &ReservedRange) {
        self.segments.insert(range.address.0, Blocks { end: range.end(), blocks: Sorted::default() });
    }

    pub(super) fn remove(&mut self, range: &ReservedRange) {
        if let Some(place) = self.segments.at(range.address.0) {
            let removed = self.segments.remove(place).map_or(0, |segment| segment.blocks.len());
            self.placed = self.placed.saturating_sub(removed);
        }
    }

    /// Removes the block at an address; `hint` is where its segment may be.
    pub(super) fn free(&mut self, address: u64, hint: &mut SortedIndex) {
        if let Some(segment) = self.find(address, hint)
            && let Some(place) = segment.blocks.at(address)
        {
            segment.blocks.remove(place);
            self.placed = self.placed.saturating_sub(1);
        }
    }

    /// Inserts a block. Unless its size is recorded, it gets the free space after it too, if that is not split off
    /// (`should_split`); `max_split` is the setting `max_split_size_mb` in bytes. Returns its size, and the block before it
    /// with the bytes between them, if there is one. `hint` is where its segment may be.
    pub(super) fn put(
        &mut self,
        new: NewBlock,
        max_split: Option<u64>,
        hint: &mut SortedIndex,
    ) -> (u64, Option<(&mut Placed, u64)>) {
        let NewBlock { address, mut size, number, is_recorded } = new;
        let segment = self.segments.near(address, hint).and_then(|place| self.segments.get_mut(place));
        let Some(segment) = segment.filter(|segment| address < segment.end) else { return (size, None) };
        let blocks = &mut segment.blocks;
        let known = blocks.at_or_before(address);
        if !is_recorded {
            let next = blocks.following(known).and_then(|place| blocks.get(place));
            let free = next.map_or(segment.end, |next| next.address).saturating_sub(address);
            let never_split = max_split.is_some_and(|max| size >= max);
            if free > size && (never_split || free - size <= LARGE_REMAINDER) {
                size = free;
            }
        }
        let count = blocks.len();
        let place = blocks.insert_at(known, address, Placed { address, end: address.saturating_add(size), number });
        self.placed += blocks.len() - count;
        let before = blocks.previous(place).and_then(|place| blocks.get_mut(place));
        let before = before.and_then(|before| address.checked_sub(before.end).map(|between| (before, between)));
        (size, before)
    }

    /// Returns the approximate bytes of memory that it occupies.
    pub(super) const fn bytes(&self) -> usize {
        Self::bytes_of(self.segments.len(), self.placed)
    }

    /// Returns the approximate bytes of this many segments with this many blocks in all.
    pub(super) const fn bytes_of(segments: usize, blocks: usize) -> usize {
        segments * SEGMENT_BYTES + blocks * BLOCK_BYTES
    }
}
