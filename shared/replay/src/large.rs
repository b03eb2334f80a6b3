//! The blocks in native segments of large pools, where a block's size depends on what lies after it.

use super::segments::ReservedRange;
use super::sorted::Sorted;
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

impl LargeBlocks {
    fn find(&mut self, address: u64) -> Option<&mut Blocks> {
        let place = self.segments.at_or_before(address)?;
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

    pub(super) fn free(&mut self, address: u64) {
        if let Some(segment) = self.find(address)
            && let Some(place) = segment.blocks.at(address)
        {
            segment.blocks.remove(place);
            self.placed = self.placed.saturating_sub(1);
        }
    }

    /// Returns where the free space at `address` ends; `None` outside all segments.
    fn free_end(&mut self, address: u64) -> Option<u64> {
        let segment = self.find(address)?;
        let next = segment.blocks.after(address).and_then(|place| segment.blocks.get(place));
        Some(next.map_or(segment.end, |block| block.address))
    }

    /// Inserts a block. Returns the block before it with the bytes between them, if there is one.
    pub(super) fn put(&mut self, block: Placed) -> Option<(&mut Placed, u64)> {
        let at = self.segments.at_or_before(block.address)?;
        let segment = self.segments.get_mut(at).filter(|segment| block.address < segment.end)?;
        let blocks = &mut segment.blocks;
        let before = blocks.len();
        let place = blocks.insert(block.address, block);
        self.placed += blocks.len() - before;
        let before = blocks.previous(place).and_then(|place| blocks.get_mut(place))?;
        let between = block.address.checked_sub(before.end)?;
        Some((before, between))
    }

    /// Returns the size of a block of `rounded` bytes that is put at `address`: with the free space after it, if that
    /// is not split off (`should_split`). `max_split` is the setting `max_split_size_mb` in bytes.
    pub(super) fn size(&mut self, address: u64, rounded: u64, max_split: Option<u64>) -> u64 {
        let Some(free) = self.free_end(address).and_then(|end| end.checked_sub(address)) else { return rounded };
        let never_split = max_split.is_some_and(|max| rounded >= max);
        if free > rounded && (never_split || free - rounded <= LARGE_REMAINDER) { free } else { rounded }
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
