//! Which blocks stand in the way of a request: around the gap that comes closest to it, and in the place where the fewest
//! bytes would have to go.

use rustc_hash::FxHashMap;

use super::Case;
use analysis::site::label;
use query::diagnosis::{HeldBlock, Obstacle};
use replay::{AllocatorState, Gap, ReservedRange};
use trace::frames::StackId;
use trace::order::SortFew;
use trace::units::Address;

/// The number of blocks that an [`Obstacle`] lists.
const LISTED: usize = 3;

/// A block of a range, by address.
#[derive(Clone, Copy)]
struct Block {
    allocation: u32,
    address: u64,
    size: u64,
}

impl Block {
    const fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

fn blocks(case: &Case<'_>, state: &AllocatorState, range: usize) -> Vec<Block> {
    let (address, size) = (&case.replay.allocations.address, &case.replay.allocations.size);
    let block = |&allocation: &u32| {
        let i = allocation as usize;
        Block { allocation, address: address.get(i).unwrap_or_default(), size: size.get(i).unwrap_or_default() }
    };
    state.active_in(range).iter().map(block).collect()
}

fn held_block(case: &Case<'_>, block: Block) -> HeldBlock {
    let allocation = case.replay.allocations.get(block.allocation);
    let stack = allocation.map_or(0, |allocation| allocation.stack.0);
    HeldBlock {
        allocation: block.allocation,
        address: Address(block.address),
        size: block.size,
        stack,
        line: label(case.symbols, case.best_frames, StackId(stack)),
        since: allocation.map_or(0, |allocation| allocation.begin),
    }
}

/// Returns the block that ends where a gap of range `range` begins, and the one that begins where it ends.
pub(super) fn neighbours(case: &Case<'_>, state: &AllocatorState, range: usize, gap: Gap) -> [Option<HeldBlock>; 2] {
    let blocks = blocks(case, state, range);
    let before = blocks.iter().rev().find(|block| block.end() == gap.address.0);
    let behind = blocks.iter().find(|block| block.address == gap.end());
    [before, behind].map(|block| block.map(|block| held_block(case, *block)))
}

/// Returns the place in one of these ranges that would hold `requested` bytes if the fewest bytes of blocks were gone;
/// `None` if no range is that long.
pub(super) fn obstacle(case: &Case<'_>, state: &AllocatorState, ranges: &[usize], requested: u64) -> Option<Obstacle> {
    let best = ranges.iter().filter_map(|&range| {
        let (address, size) = state.ranges.get(range).map(|range| (range.address.0, range.size))?;
        let own = blocks(case, state, range);
        let (at, first, end) = cheapest(&own, (address, address.saturating_add(size)), requested)?;
        let blocks = own.get(first..end)?.to_vec();
        Some((at, blocks))
    });
    let bytes = |blocks: &[Block]| blocks.iter().fold(0_u64, |sum, block| sum.saturating_add(block.size));
    let (address, mut blocks) = best.min_by_key(|(address, blocks)| (bytes(blocks), *address))?;
    let (count, sum) = (blocks.len() as u32, bytes(&blocks));
    blocks.sort_few_by_key(|block| (std::cmp::Reverse(block.size), block.address));
    blocks.truncate(LISTED);
    let largest = blocks.into_iter().map(|block| held_block(case, block)).collect();
    Some(Obstacle { address: Address(address), blocks: count, bytes: sum, largest })
}

/// Blocks that keep segments with gaps from being released.
pub(super) struct Pins {
    /// The block of median age of one line: the line in whose segments most is free.
    pub(super) block: HeldBlock,
    /// The number of the line's blocks, and their bytes.
    pub(super) own: (u32, u64),
    /// The number of all such blocks, and their bytes.
    pub(super) all: (u32, u64),
    /// The number of those segments.
    pub(super) segments: u32,
}

/// Returns what keeps those of some ranges with gaps from being released; `None` if nothing does. Free pages of an
/// expandable segment are released whatever else is in it.
pub(super) fn pins(case: &Case<'_>, state: &AllocatorState, is_own: impl Fn(&ReservedRange) -> bool) -> Option<Pins> {
    let mut lines: FxHashMap<String, (u64, Vec<Block>)> = FxHashMap::default();
    let (mut segments, mut all) = (0_u32, (0_u32, 0_u64));
    let ranges = state.ranges.iter().enumerate().filter(|(_, range)| !range.is_expandable && is_own(range));
    for (i, range) in ranges {
        let own = blocks(case, state, i);
        let used = own.iter().fold(0_u64, |sum, block| sum.saturating_add(block.size));
        let free = range.size.saturating_sub(used);
        if own.is_empty() || free == 0 {
            continue;
        }
        segments += 1;
        all = (all.0.saturating_add(own.len() as u32), all.1.saturating_add(used));
        let mut seen: Vec<String> = Vec::new();
        for block in own {
            let stack = case.replay.allocations.stack.get(block.allocation as usize).unwrap_or(0);
            let name = label(case.symbols, case.best_frames, StackId(stack));
            let line = lines.entry(name.clone()).or_default();
            line.1.push(block);
            if !seen.contains(&name) {
                line.0 = line.0.saturating_add(free);
                seen.push(name);
            }
        }
    }
    let (_, (_, mut own)) = lines.into_iter().max_by(|(a, (x, _)), (b, (y, _))| x.cmp(y).then_with(|| b.cmp(a)))?;
    let bytes = own.iter().fold(0_u64, |sum, block| sum.saturating_add(block.size));
    own.sort_few_by_key(|block| case.replay.allocations.begin.get(block.allocation as usize));
    let block = held_block(case, *own.get(own.len() / 2)?);
    Some(Pins { block, own: (own.len() as u32, bytes), all, segments })
}

/// Returns the start of a place of `length` bytes within `[first, end)` that overlaps the fewest bytes of blocks, and
/// the part of `blocks` that it overlaps. Such a place begins at the range's start or where a block ends.
fn cheapest(blocks: &[Block], (first, end): (u64, u64), length: u64) -> Option<(u64, usize, usize)> {
    let starts = [first].into_iter().chain(blocks.iter().map(Block::end));
    let mut best: Option<(u64, (u64, usize, usize))> = None;
    let (mut behind, mut sum) = (0, 0_u64);
    // The blocks before `i` end at or before the start of the place.
    for (i, start) in starts.enumerate() {
        if i > 0 {
            sum = sum.saturating_sub(blocks.get(i - 1).map_or(0, |block| block.size));
        }
        let stop = start.saturating_add(length);
        if stop > end {
            break;
        }
        behind = behind.max(i);
        while let Some(block) = blocks.get(behind).filter(|block| block.address < stop) {
            sum = sum.saturating_add(block.size);
            behind += 1;
        }
        if best.is_none_or(|(least, _)| sum < least) {
            best = Some((sum, (start, i, behind)));
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(blocks: &[(u64, u64)], range: (u64, u64), length: u64) -> Option<(u64, usize, usize)> {
        let block = |&(address, size): &(u64, u64)| Block { allocation: 0, address, size };
        cheapest(&blocks.iter().map(block).collect::<Vec<_>>(), range, length)
    }

    #[test]
    fn the_place_with_the_fewest_bytes_in_the_way() {
        assert_eq!(place(&[], (0, 100), 100), Some((0, 0, 0)));
        assert_eq!(place(&[], (0, 100), 101), None);
        // Free: 10..20, 30..60, 62..100.
        let blocks = [(0, 10), (20, 10), (60, 2)];
        assert_eq!(place(&blocks, (0, 100), 30), Some((30, 2, 2)));
        assert_eq!(place(&blocks, (0, 100), 50), Some((30, 2, 3)));
        assert_eq!(place(&blocks, (0, 100), 75), Some((10, 1, 3)));
        assert_eq!(place(&blocks, (0, 100), 100), Some((0, 0, 3)));
    }

    /// Against every start in turn.
    #[test]
    fn no_other_start_is_cheaper() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut blocks = Vec::new();
            let mut at = random(5);
            while at < 60 {
                let size = 1 + random(8);
                blocks.push((at, size));
                at += size + random(6);
            }
            let end = at + random(4);
            for length in 1..=end {
                let cost = |start: u64| {
                    let inside =
                        blocks.iter().filter(|(address, size)| *address < start + length && address + size > start);
                    inside.map(|(_, size)| size).sum::<u64>()
                };
                let least = (0..=end - length).map(cost).min();
                assert_eq!(
                    place(&blocks, (0, end), length).map(|(start, ..)| cost(start)),
                    least,
                    "{blocks:?} {length}"
                );
            }
        }
    }
}
