//! A block: a piece of a segment, with its neighbours.

use super::slab::NONE;
use trace::frames::StackId;

/// A piece of a segment: allocated, pending, cached or unmapped. Numbers index the allocator's tables; [`NONE`] means
/// no link.
///
/// It fits into one cache line: with many live blocks, the cost of an operation is the number of lines that it touches.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    /// First address.
    pub(super) address: u64,
    /// Size in bytes.
    pub(super) size: u64,
    /// Bytes of the last request. Kept when the block is freed, as in PyTorch.
    pub(super) requested: u64,
    /// The previous block of the segment.
    pub(super) prev: u32,
    /// The next block of the segment.
    pub(super) next: u32,
    /// Number of the free list of its pool and stream.
    pub(super) free_list: u32,
    /// Its expandable segment, or [`NONE`].
    pub(super) expandable: u32,
    /// The age rank of its segment among all segments.
    pub(super) born: u32,
    /// The stack that allocated it.
    pub(super) stack: StackId,
    /// The stack that made the allocator take the segment; kept by the segment's first block.
    pub(super) segment_stack: StackId,
    /// Number of stream events that it waits for.
    pub(super) event_count: u32,
    /// Whether other streams use it. The allocator keeps which ones.
    pub(super) has_uses: bool,
    /// Whether the program holds it.
    pub(super) allocated: bool,
    /// Whether memory is mapped to it.
    pub(super) mapped: bool,
    /// The pool's count of searches, modulo 2^32, when the block was last put into its free list. Its age counts from
    /// there.
    pub(super) gc_base: u32,
}

impl Block {
    /// Creates a mapped, cached block without neighbours.
    pub(super) fn new(address: u64, size: u64, free_list: u32) -> Self {
        Self {
            address,
            size,
            requested: 0,
            prev: NONE,
            next: NONE,
            free_list,
            expandable: NONE,
            born: 0,
            stack: StackId(0),
            segment_stack: StackId(0),
            event_count: 0,
            has_uses: false,
            allocated: false,
            mapped: true,
            gc_base: 0,
        }
    }

    /// Returns whether it is only a part of a segment.
    #[inline]
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    /// Returns whether it belongs to an expandable segment.
    #[inline]
    pub(super) fn is_expandable(&self) -> bool {
        self.expandable != NONE
    }

    /// Returns whether it is neither allocated nor waiting for a stream. It may be unmapped.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.allocated && self.event_count == 0 && !self.has_uses
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_block_is_a_cache_line() {
        assert_eq!(size_of::<super::Block>(), 64);
    }
}
