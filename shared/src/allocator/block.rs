//! A block: a piece of a segment, with its neighbours.

use super::slab::NONE;
use crate::frames::StackId;

/// A piece of a segment, allocated, pending, cached or unmapped. Numbers link into the allocator's tables; [`NONE`] is
/// no link.
///
/// One line of the cache: with many blocks live, what an operation costs is the lines that it touches.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    /// Where it starts.
    pub(super) address: u64,
    /// Bytes.
    pub(super) size: u64,
    /// What was asked for last, in bytes. It stays when the block is freed, as PyTorch's does.
    pub(super) requested: u64,
    /// The neighbour before it in its segment.
    pub(super) prev: u32,
    /// The neighbour after it.
    pub(super) next: u32,
    /// Its pool and stream: a row of the allocator's free_lists.
    pub(super) free_list: u32,
    /// Its expandable segment, or [`NONE`].
    pub(super) expandable: u32,
    /// Its segment's rank among all segments by age.
    pub(super) born: u32,
    /// Who asked for it.
    pub(super) stack: StackId,
    /// Who made the allocator take its segment; kept by the segment's first block.
    pub(super) segment_stack: StackId,
    /// Marks in streams that it waits for.
    pub(super) event_count: u32,
    /// Whether other streams use it; which ones, the allocator keeps aside.
    pub(super) has_uses: bool,
    /// Whether the program holds it.
    pub(super) allocated: bool,
    /// Whether there is memory behind it.
    pub(super) mapped: bool,
    /// The pool's count of searches, modulo 2^32, when the block was last put on its free_list: what its age is counted
    /// from.
    pub(super) gc_base: u32,
}

impl Block {
    /// A mapped, cached block without neighbours.
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

    /// Whether it is a part of a segment, not a whole one.
    #[inline]
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    /// Whether it belongs to an expandable segment.
    #[inline]
    pub(super) fn is_expandable(&self) -> bool {
        self.expandable != NONE
    }

    /// Whether nobody holds it and nothing waits for it. It may be unmapped.
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
