//! The allocator's segments and blocks, as a memory snapshot lists them.

use super::block::Block;
use super::device::DeviceAllocator;
use super::driver::Driver;
use super::entry::{TraceEntry, TraceSink};
use super::slab::NONE;
use trace::event::Action;
use trace::frames::StackId;
use trace::order::SortFew;
use trace::units::{Address, PoolId, Stream};
use trace::{BlockState, Segment};

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Returns all segments by address with their blocks, and records the snapshot as an event, as PyTorch does
    /// (`memory_snapshot`). A contiguous mapped range of an expandable segment counts as a segment of its own.
    pub fn snapshot(&mut self) -> Vec<Segment> {
        let segments = match self.pool_context.filter(|_| self.profile.has_pool_contexts) {
            Some(pool) => self.segments_of(pool),
            None => self.segments(),
        };
        self.sink.record(TraceEntry {
            action: Action::Snapshot,
            address: 0,
            size: segments.iter().flat_map(|segment| &segment.blocks).filter(is_active).map(|block| block.size).sum(),
            stream: Stream(0),
            pool: PoolId::default(),
            stack: StackId(0),
        });
        segments
    }

    /// Returns all segments by address with their blocks, without recording an event.
    pub fn segments(&self) -> Vec<Segment> {
        let heads = self.blocks.iter().map(|(_, block)| block).filter(|block| self.starts_segment(block));
        let mut segments: Vec<Segment> = heads.map(|head| self.segment_from(head)).collect();
        segments.sort_few_by_key(|segment| segment.address);
        segments
    }

    /// Returns the segments of one pool as earlier releases find them: of an expandable segment only the first mapped
    /// range.
    fn segments_of(&self, pool: PoolId) -> Vec<Segment> {
        let heads = self.blocks.iter().map(|(_, block)| block);
        let heads = heads.filter(|block| block.mapped && block.prev == NONE && self.pool_of(block).owner == pool);
        let mut segments: Vec<Segment> = heads.map(|head| self.segment_from(head)).collect();
        segments.sort_few_by_key(|segment| segment.address);
        segments
    }

    fn starts_segment(&self, block: &Block) -> bool {
        block.mapped && (block.prev == NONE || !self.blocks[block.prev].mapped)
    }

    fn segment_from(&self, head: &Block) -> Segment {
        let pool = self.pool_of(head);
        let mut blocks = Vec::new();
        let mut size = 0;
        let mut next = Some(head);
        while let Some(block) = next.filter(|block| block.mapped) {
            size += block.size;
            blocks.push(trace::Block {
                address: Address(block.address),
                size: block.size,
                requested: block.requested,
                state: match (block.allocated, block.is_idle()) {
                    (true, _) => BlockState::Allocated,
                    (false, false) => BlockState::Pending,
                    (false, true) => BlockState::Inactive,
                },
                stack: block.stack,
            });
            next = self.blocks.get(block.next);
        }
        Segment {
            address: Address(head.address),
            size,
            stream: self.free_lists[head.free_list].stream,
            is_small: pool.is_small,
            is_expandable: head.is_expandable(),
            pool: pool.owner,
            stack: head.segment_stack,
            blocks,
        }
    }
}

fn is_active(block: &&trace::Block) -> bool {
    block.state != BlockState::Inactive
}
