//! The blocks in native segments of large pools, where a block's size depends on what lies behind it.

use super::segments::Range;
use super::sorted::Sorted;
use crate::allocator::rounding::LARGE_REMAINDER;

/// The native large segments with their blocks, by address. Each has few blocks: a large block is larger than 1 MiB.
#[derive(Clone, Debug, Default)]
pub(super) struct LargeBlocks {
    segments: Sorted<Blocks>,
}

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

impl LargeBlocks {
    fn find(&mut self, address: u64) -> Option<&mut Blocks> {
        let place = self.segments.at_or_before(address)?;
        self.segments.get_mut(place).filter(|segment| address < segment.end)
    }

    pub(super) fn add(&mut self, range: &Range) {
        self.segments.insert(range.address.0, Blocks { end: range.end(), blocks: Sorted::default() });
    }

    pub(super) fn remove(&mut self, range: &Range) {
        if let Some(place) = self.segments.at(range.address.0) {
            self.segments.remove(place);
        }
    }

    pub(super) fn free(&mut self, address: u64) {
        if let Some(segment) = self.find(address)
            && let Some(place) = segment.blocks.at(address)
        {
            segment.blocks.remove(place);
        }
    }

    /// Returns where the free space at `address` ends; `None` outside all segments.
    fn free_end(&mut self, address: u64) -> Option<u64> {
        let segment = self.find(address)?;
        let next = segment.blocks.behind(address).and_then(|place| segment.blocks.get(place));
        Some(next.map_or(segment.end, |block| block.address))
    }

    /// Inserts a block. Returns the block before it with the bytes between them, if there is one.
    pub(super) fn put(&mut self, block: Placed) -> Option<(&mut Placed, u64)> {
        let blocks = &mut self.find(block.address)?.blocks;
        let place = blocks.insert(block.address, block);
        let before = blocks.previous(place).and_then(|place| blocks.get_mut(place))?;
        let between = block.address.checked_sub(before.end)?;
        Some((before, between))
    }

    /// Returns the size of a block of `rounded` bytes that is put at `address`: with the free space behind it, if that
    /// is not split off (`should_split`). `max_split` is the setting `max_split_size_mb` in bytes.
    pub(super) fn size(&mut self, address: u64, rounded: u64, max_split: Option<u64>) -> u64 {
        let Some(free) = self.free_end(address).and_then(|end| end.checked_sub(address)) else { return rounded };
        let never_split = max_split.is_some_and(|max| rounded >= max);
        if free > rounded && (never_split || free - rounded <= LARGE_REMAINDER) { free } else { rounded }
    }
}
