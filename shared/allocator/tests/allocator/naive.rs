//! The allocator's rules without options, private pools and events, written as simply as possible: lists that are
//! searched from end to end.

use allocator::Profile;
use allocator::TieBreak;
use allocator::sim::PLAIN_BASE;

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    size: u64,
    is_free: bool,
    /// In the order of creation; of a block that is split, the head is the new one.
    born: u64,
}

/// A segment with its blocks by address.
#[derive(Debug)]
struct Segment {
    stream: i64,
    is_small: bool,
    /// In the order of creation.
    born: u64,
    blocks: Vec<Block>,
}

impl Segment {
    fn address(&self) -> u64 {
        self.blocks[0].address
    }

    fn size(&self) -> u64 {
        self.blocks.iter().map(|block| block.size).sum()
    }
}

pub(super) struct Naive {
    capacity: u64,
    tie_break: TieBreak,
    born: u64,
    segments: Vec<Segment>,
}

impl Naive {
    pub(super) fn new(profile: &Profile, capacity: u64) -> Self {
        Self { capacity, tie_break: profile.tie_break, born: 0, segments: Vec::new() }
    }

    pub(super) fn reserved(&self) -> u64 {
        self.segments.iter().map(Segment::size).sum()
    }

    /// Returns the address of a new allocation; `None` if there is no memory.
    pub(super) fn malloc(&mut self, size: u64, stream: i64) -> Option<u64> {
        let size = size.max(1).div_ceil(512) * 512;
        let is_small = size <= MIB;
        if self.best(size, stream, is_small).is_none() && !self.new_segment(size, stream, is_small) {
            // Segments without used blocks are released.
            self.segments.retain(|segment| segment.blocks.len() > 1 || !segment.blocks[0].is_free);
            self.new_segment(size, stream, is_small);
        }
        let (at, index) = self.best(size, stream, is_small)?;
        let blocks = &mut self.segments[at].blocks;
        let found = blocks[index];
        let rest = found.size - size;
        if if is_small { rest >= 512 } else { rest > MIB } {
            self.born += 1;
            blocks[index].size = size;
            blocks[index].born = self.born;
            blocks.insert(index + 1, Block { address: found.address + size, size: rest, is_free: true, ..found });
        }
        blocks[index].is_free = false;
        Some(found.address)
    }

    /// Returns the smallest free block that is large enough; among equals the older one or the one in the older segment,
    /// where that counts, then the one with the lowest address.
    fn best(&self, size: u64, stream: i64, is_small: bool) -> Option<(usize, usize)> {
        let mut best = None;
        for (at, segment) in self.segments.iter().enumerate() {
            for (index, block) in segment.blocks.iter().enumerate() {
                let serves = segment.stream == stream && segment.is_small == is_small && block.is_free;
                let age = match self.tie_break {
                    TieBreak::Address => 0,
                    TieBreak::BlockAge => block.born,
                    TieBreak::SegmentAge => segment.born,
                };
                let rank = (block.size, age, block.address);
                if serves && block.size >= size && best.is_none_or(|(other, _)| rank < other) {
                    best = Some((rank, (at, index)));
                }
            }
        }
        best.map(|(_, place)| place)
    }

    /// Allocates a segment at the lowest free address; returns whether there was memory.
    fn new_segment(&mut self, size: u64, stream: i64, is_small: bool) -> bool {
        let size = match size {
            _ if is_small => 2 * MIB,
            size if size < 10 * MIB => 20 * MIB,
            size => size.div_ceil(2 * MIB) * 2 * MIB,
        };
        if self.reserved() + size > self.capacity {
            return false;
        }
        let mut taken: Vec<(u64, u64)> = self.segments.iter().map(|one| (one.address(), one.size())).collect();
        taken.sort_unstable();
        let mut address = PLAIN_BASE;
        for (start, bytes) in taken {
            if start - address >= size {
                break;
            }
            address = start + bytes;
        }
        self.born += 1;
        let blocks = vec![Block { address, size, is_free: true, born: self.born }];
        self.segments.push(Segment { stream, is_small, born: self.born, blocks });
        true
    }

    pub(super) fn free(&mut self, address: u64) {
        for segment in &mut self.segments {
            let Some(mut at) = segment.blocks.iter().position(|block| block.address == address) else { continue };
            segment.blocks[at].is_free = true;
            if at > 0 && segment.blocks[at - 1].is_free {
                let freed = segment.blocks.remove(at);
                segment.blocks[at - 1].size += freed.size;
                segment.blocks[at - 1].born = freed.born;
                at -= 1;
            }
            if segment.blocks.get(at + 1).is_some_and(|next| next.is_free) {
                segment.blocks[at].size += segment.blocks.remove(at + 1).size;
            }
            return;
        }
    }

    pub(super) fn empty_cache(&mut self) {
        self.segments.retain(|segment| segment.blocks.len() > 1 || !segment.blocks[0].is_free);
    }
}
