//! The memory of a recorded run: which block lies where, and which of them are free.

use std::collections::{BTreeMap, BTreeSet};

use trace::units::Stream;

/// The segments among which a request chooses, apart from their pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentKind {
    pub(super) stream: Stream,
    pub(super) is_small: bool,
}

/// A segment from its first page to its last. It has a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) kind: SegmentKind,
    pub(super) is_expandable: bool,
    /// The bytes that are reserved for it.
    pub(super) bytes: u64,
    /// The position at which it was first reserved.
    pub(super) begin: u32,
    /// The position at which some of it was released first; `u32::MAX` if none was.
    pub(super) end: u32,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    node: u32,
    is_free: bool,
    /// Whether it can't join the block before it, which belongs to another segment.
    is_first: bool,
}

/// Blocks by address, and the free ones by what they can serve.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    blocks: BTreeMap<u64, Block>,
    /// Kind, size and address.
    free: BTreeSet<(SegmentKind, u64, u64)>,
    pub(super) nodes: Vec<Node>,
}

impl Ledger {
    /// Adds memory that was reserved, and returns its segment.
    pub(super) fn reserve(
        &mut self,
        (address, size): (u64, u64),
        kind: SegmentKind,
        is_expandable: bool,
        position: u32,
    ) -> u32 {
        let nodes = &self.nodes;
        let grows = |node: u32| nodes.get(node as usize).is_some_and(|node| node.is_expandable && node.kind == kind);
        let before = self.block_before(address).filter(|(at, block)| at.saturating_add(block.size) == address);
        let before = before.map(|(_, block)| block.node).filter(|node| is_expandable && grows(*node));
        let end = address.saturating_add(size);
        let after = self.blocks.get(&end).map(|block| block.node).filter(|node| is_expandable && grows(*node));
        let node = before.or(after).unwrap_or_else(|| {
            self.nodes.push(Node { kind, is_expandable, bytes: 0, begin: position, end: u32::MAX });
            self.nodes.len() as u32 - 1
        });
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.bytes = node.bytes.saturating_add(size);
        }
        if let Some(next) = self.blocks.get_mut(&end).filter(|next| next.node == node) {
            next.is_first = false;
        }
        self.blocks.insert(address, Block { size, node, is_free: false, is_first: before.is_none() });
        self.free(address);
        node
    }

    /// Removes memory that was released, and returns its segment.
    pub(super) fn release(&mut self, address: u64, size: u64, position: u32) -> Option<u32> {
        let (at, block) =
            self.block_before(address.checked_add(1)?).filter(|(at, block)| at.saturating_add(block.size) > address)?;
        let end = address.saturating_add(size).min(at.saturating_add(block.size));
        self.remove(at);
        self.insert(at, Block { size: address - at, ..block });
        self.insert(end, Block { size: at.saturating_add(block.size).saturating_sub(end), is_first: true, ..block });
        if let Some(next) = self.blocks.get_mut(&end) {
            next.is_first = true;
        }
        let node = self.nodes.get_mut(block.node as usize)?;
        node.bytes = node.bytes.saturating_sub(size);
        node.end = node.end.min(position);
        Some(block.node)
    }

    /// Takes a block, and returns its segment and the size of the free block that it was cut from.
    pub(super) fn take(&mut self, address: u64, size: u64) -> Option<(u32, u64)> {
        let (at, block) =
            self.block_before(address.checked_add(1)?).filter(|(at, block)| at.saturating_add(block.size) > address)?;
        if !block.is_free {
            return None;
        }
        let end = address.saturating_add(size.max(1)).min(at.saturating_add(block.size));
        self.remove(at);
        self.insert(at, Block { size: address - at, ..block });
        let is_first = block.is_first && at == address;
        self.insert(address, Block { size: end - address, is_free: false, is_first, ..block });
        self.insert(end, Block { size: at.saturating_add(block.size).saturating_sub(end), is_first: false, ..block });
        Some((block.node, block.size))
    }

    /// Frees the block at an address. It joins its free neighbours.
    pub(super) fn free(&mut self, address: u64) {
        let Some(mut block) = self.blocks.get(&address).copied().filter(|block| !block.is_free) else { return };
        self.remove(address);
        block.is_free = true;
        let mut first = address;
        let before = self
            .block_before(address)
            .filter(|(at, before)| before.is_free && at.saturating_add(before.size) == address);
        if let Some((at, before)) = before.filter(|_| !block.is_first) {
            self.remove(at);
            (first, block.size, block.is_first) = (at, block.size.saturating_add(before.size), before.is_first);
        }
        let end = first.saturating_add(block.size);
        if let Some(next) = self.blocks.get(&end).copied().filter(|next| next.is_free && !next.is_first) {
            self.remove(end);
            block.size = block.size.saturating_add(next.size);
        }
        self.insert(first, block);
    }

    /// Returns the free blocks of a kind from `least` to below `most` bytes: their sizes and segments, by size.
    pub(super) fn free_blocks(
        &self,
        kind: SegmentKind,
        least: u64,
        most: u64,
    ) -> impl Iterator<Item = (u64, u32)> + '_ {
        let range = if least < most { (kind, least, 0)..(kind, most, 0) } else { (kind, least, 0)..(kind, least, 0) };
        let node = |address: u64| self.blocks.get(&address).map(|block| block.node);
        self.free.range(range).filter_map(move |&(_, size, address)| Some((size, node(address)?)))
    }

    /// Returns the segments that don't grow and are free as a whole, of the first `most` free blocks.
    pub(super) fn unused(&self, most: usize) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().take(most).filter_map(|(_, size, address)| {
            let number = self.blocks.get(address)?.node;
            let node = self.nodes.get(number as usize)?;
            (!node.is_expandable && node.bytes == *size).then_some(number)
        })
    }

    /// Returns the segment that has an address.
    pub(super) fn node_at(&self, address: u64) -> Option<u32> {
        let (at, block) = self.block_before(address.checked_add(1)?)?;
        (at.saturating_add(block.size) > address).then_some(block.node)
    }

    fn block_before(&self, address: u64) -> Option<(u64, Block)> {
        self.blocks.range(..address).next_back().map(|(at, block)| (*at, *block))
    }

    fn key(&self, at: u64, block: &Block) -> Option<(SegmentKind, u64, u64)> {
        Some((self.nodes.get(block.node as usize)?.kind, block.size, at))
    }

    fn insert(&mut self, at: u64, block: Block) {
        if block.size == 0 {
            return;
        }
        if let Some(key) = self.key(at, &block).filter(|_| block.is_free) {
            self.free.insert(key);
        }
        self.blocks.insert(at, block);
    }

    fn remove(&mut self, at: u64) {
        let Some(block) = self.blocks.remove(&at) else { return };
        if let Some(key) = self.key(at, &block).filter(|_| block.is_free) {
            self.free.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: SegmentKind = SegmentKind { stream: Stream(0), is_small: false };

    fn free(ledger: &Ledger) -> Vec<(u64, u32)> {
        ledger.free_blocks(LARGE, 0, u64::MAX).collect()
    }

    #[test]
    fn blocks_join_within_a_segment_and_not_across() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.reserve((100, 50), LARGE, false, 1), 0);
        assert_eq!(ledger.reserve((150, 50), LARGE, false, 2), 1);
        assert_eq!(free(&ledger), [(50, 0), (50, 1)]);
        assert_eq!((ledger.take(100, 20), ledger.take(120, 10)), (Some((0, 50)), Some((0, 30))));
        assert_eq!(free(&ledger), [(20, 0), (50, 1)]);
        assert_eq!(ledger.unused(9).collect::<Vec<_>>(), [1]);
        ledger.free(100);
        ledger.free(120);
        assert_eq!(free(&ledger), [(50, 0), (50, 1)]);
        assert_eq!(ledger.release(100, 50, 3), Some(0));
        assert_eq!((free(&ledger), ledger.nodes[0].end, ledger.node_at(100)), (vec![(50, 1)], 3, None));
    }

    #[test]
    fn a_segment_grows_and_loses_pages() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.reserve((100, 50), LARGE, true, 1), 0);
        assert_eq!(ledger.reserve((150, 50), LARGE, true, 2), 0);
        assert_eq!(free(&ledger), [(100, 0)]);
        assert_eq!(ledger.release(120, 30, 3), Some(0));
        assert_eq!(free(&ledger), [(20, 0), (50, 0)]);
        assert_eq!(ledger.reserve((120, 30), LARGE, true, 4), 0);
        assert_eq!(free(&ledger), [(100, 0)]);
    }
}
