//! The blocks in native segments of large pools, where a block's size depends on what lies behind it.

use super::segments::Range;
use crate::allocator::rounding::LARGE_REMAINDER;

/// The native large segments with their blocks, by address. Each has few blocks: a large block is larger than 1 MiB.
#[derive(Clone, Debug, Default)]
pub(super) struct LargeBlocks {
    starts: Vec<u64>,
    segments: Vec<Blocks>,
}

#[derive(Clone, Debug)]
struct Blocks {
    end: u64,
    /// By address.
    blocks: Vec<Placed>,
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
        let i = self.starts.partition_point(|&s| s <= address).checked_sub(1)?;
        self.segments.get_mut(i).filter(|s| address < s.end)
    }

    pub(super) fn add(&mut self, range: &Range) {
        let i = self.starts.partition_point(|&s| s < range.address.0);
        let new = Blocks { end: range.end(), blocks: Vec::new() };
        if self.starts.get(i) == Some(&range.address.0) {
            self.segments[i] = new;
        } else {
            self.starts.insert(i, range.address.0);
            self.segments.insert(i, new);
        }
    }

    pub(super) fn remove(&mut self, range: &Range) {
        if let Ok(i) = self.starts.binary_search(&range.address.0) {
            self.starts.remove(i);
            self.segments.remove(i);
        }
    }

    pub(super) fn free(&mut self, address: u64) {
        if let Some(segment) = self.find(address)
            && let Ok(i) = segment.blocks.binary_search_by_key(&address, |b| b.address)
        {
            segment.blocks.remove(i);
        }
    }

    /// Returns where the free space at `address` ends; `None` outside all segments.
    fn free_end(&mut self, address: u64) -> Option<u64> {
        let segment = self.find(address)?;
        let next = segment.blocks.partition_point(|b| b.address <= address);
        Some(segment.blocks.get(next).map_or(segment.end, |b| b.address))
    }

    /// Inserts a block. Returns the block before it with the bytes between them, if there is one.
    pub(super) fn put(&mut self, block: Placed) -> Option<(&mut Placed, u64)> {
        let blocks = &mut self.find(block.address)?.blocks;
        let i = blocks.partition_point(|b| b.address < block.address);
        if blocks.get(i).is_some_and(|b| b.address == block.address) {
            blocks[i] = block;
        } else {
            blocks.insert(i, block);
        }
        let before = blocks.get_mut(i.checked_sub(1)?)?;
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
