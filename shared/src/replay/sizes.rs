//! The true size of every block, from where it was put.
//!
//! A trace entry says what was requested. The block is at least that, rounded; in a large pool a remainder of up to
//! 1 MiB stays with it. Whether there was one follows from the gap behind it: no free block that small ever exists
//! in a large pool, since remainders are cut off only when larger and merging only grows them. In small pools and
//! expandable segments a remainder of 512 bytes is cut off already, so the rounded size is the block's.
//!
//! For a block that was there before the first entry and is gone in the snapshot, what lies behind it may have been
//! freed already: its remainder and a free block then look like one gap. The first block put into that gap shows where
//! the free one began. Where none ever is, no entry depends on it, and the rounded size stands.

use super::allocations::{Allocation, Allocations};
use super::segments::{Range, Ranges, SegmentChange};
use super::{Change, Replay};
use crate::allocator::rounding::{LARGE_REMAINDER, round_size};
use crate::trace::{Column, DeviceTrace, Settings};
use crate::units::PoolId;

/// The native large segments with the blocks in them, by address. They hold few blocks each: a large block is more
/// than 1 MiB.
#[derive(Default)]
struct LargeBlocks {
    starts: Vec<u64>,
    segments: Vec<Blocks>,
}

struct Blocks {
    end: u64,
    /// By address.
    blocks: Vec<Placed>,
}

#[derive(Clone, Copy)]
struct Placed {
    address: u64,
    end: u64,
    number: u32,
}

impl LargeBlocks {
    fn find(&mut self, address: u64) -> Option<&mut Blocks> {
        let i = self.starts.partition_point(|&s| s <= address).checked_sub(1)?;
        self.segments.get_mut(i).filter(|s| address < s.end)
    }

    fn add(&mut self, range: &Range) {
        let i = self.starts.partition_point(|&s| s < range.address.0);
        let new = Blocks { end: range.end(), blocks: Vec::new() };
        if self.starts.get(i) == Some(&range.address.0) {
            self.segments[i] = new;
        } else {
            self.starts.insert(i, range.address.0);
            self.segments.insert(i, new);
        }
    }

    fn remove(&mut self, range: &Range) {
        if let Ok(i) = self.starts.binary_search(&range.address.0) {
            self.starts.remove(i);
            self.segments.remove(i);
        }
    }

    fn free(&mut self, address: u64) {
        if let Some(segment) = self.find(address)
            && let Ok(i) = segment.blocks.binary_search_by_key(&address, |b| b.address)
        {
            segment.blocks.remove(i);
        }
    }

    /// Where the free room at `address` ends, or nothing outside all segments.
    fn room_end(&mut self, address: u64) -> Option<u64> {
        let segment = self.find(address)?;
        let next = segment.blocks.partition_point(|b| b.address <= address);
        Some(segment.blocks.get(next).map_or(segment.end, |b| b.address))
    }

    /// Puts a block in its place. The block before it is given too, with the bytes between them, where there is one.
    fn put(&mut self, block: Placed) -> Option<(&mut Placed, u64)> {
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
}

/// What [`complete`] finds, by allocation.
pub(super) struct Completed {
    pub(super) size: Column<u64>,
    pub(super) flags: Column<u8>,
    pub(super) pool: Column<u8>,
    pub(super) pools: Vec<PoolId>,
    pub(super) outside_segments: u32,
}

/// The segments as they stand while sizes are derived in the order in which blocks were made.
struct Sizes<'a> {
    settings: &'a Settings,
    ranges: Ranges,
    large: LargeBlocks,
    found: Completed,
}

impl<'a> Sizes<'a> {
    fn new(settings: &'a Settings, start: Ranges, allocations: &Allocations) -> Self {
        let found = Completed {
            size: allocations.size.clone(),
            flags: allocations.flags.clone(),
            pool: allocations.pool.clone(),
            pools: vec![PoolId::default()],
            outside_segments: 0,
        };
        let mut new = Self { settings, ranges: start, large: LargeBlocks::default(), found };
        for range in new.ranges.as_slice() {
            if range.is_native_large() {
                new.large.add(range);
            }
        }
        new
    }

    fn pool(&mut self, pool: PoolId) -> u8 {
        let pools = &mut self.found.pools;
        if let Some(i) = pools.iter().position(|&p| p == pool) {
            return i as u8;
        }
        // More pools than a byte counts: the last one stands for the rest.
        if pools.len() < usize::from(u8::MAX) {
            pools.push(pool);
        }
        (pools.len() - 1) as u8
    }

    fn segment(&mut self, change: &SegmentChange) {
        change.apply(&mut self.ranges);
        if change.range.is_native_large() {
            if change.is_taken {
                self.large.add(&change.range);
            } else {
                self.large.remove(&change.range);
            }
        }
    }

    /// Completes an allocation that is put into its segment now.
    fn put(&mut self, number: u32, allocations: &Allocations) {
        let i = number as usize;
        let (Some(address), Some(requested)) = (allocations.address.get(i), allocations.requested.get(i)) else {
            return;
        };
        let written = allocations.size.get(i).filter(|&size| size > 0);
        let rounded = round_size(&self.settings.roundup_power2_divisions, requested);
        let mut size = written.unwrap_or(rounded);
        match self.ranges.find(address).map(|at| self.ranges.as_slice()[at]) {
            None => self.found.outside_segments += 1,
            Some(range) => {
                let small = if range.is_small { Allocation::FLAG_SMALL } else { 0 };
                let expandable = if range.is_expandable { Allocation::FLAG_EXPANDABLE } else { 0 };
                let flags = allocations.flags.get(i).unwrap_or_default() | small | expandable;
                self.found.flags.set(i, flags);
                if range.pool.is_private() {
                    let pool = self.pool(range.pool);
                    self.found.pool.set(i, pool);
                }
                if range.is_native_large() {
                    if written.is_none() {
                        size = self.large_size(address, rounded);
                    }
                    let placed = Placed { address, end: address.saturating_add(size), number };
                    if let Some((before, between)) = self.large.put(placed)
                        && (1..=LARGE_REMAINDER).contains(&between)
                        && allocations.size.get(before.number as usize) == Some(0)
                    {
                        // No free block is that small: it is the remainder of the block before.
                        before.end += between;
                        self.found.size.set(before.number as usize, before.end - before.address);
                    }
                }
            }
        }
        self.found.size.set(i, size);
    }

    /// The size of a block of a native large segment: with the room behind it where that is no block of its own.
    fn large_size(&mut self, address: u64, rounded: u64) -> u64 {
        let Some(room) = self.large.room_end(address).and_then(|end| end.checked_sub(address)) else { return rounded };
        let never_split = self.settings.max_split_size.is_some_and(|max| rounded >= max);
        if room > rounded && (never_split || room - rounded <= LARGE_REMAINDER) { room } else { rounded }
    }
}

/// Derives sizes, flags and pools of all allocations, in the order in which they were made.
pub(super) fn complete(replay: &Replay, trace: &DeviceTrace, settings: &Settings) -> Completed {
    let allocations = &replay.allocations;
    let mut sizes = Sizes::new(settings, replay.segments.at(0), allocations);
    // Those of the start are by address: from the highest down, so that each finds its neighbour in place.
    for number in (0..allocations.made_by(0)).rev() {
        sizes.put(number, allocations);
    }
    let mut segments = replay.segments.changes.iter();
    replay.changes(trace, 0, replay.positions(), |_, change| match change {
        Change::Begin(number) => sizes.put(number, allocations),
        Change::End(number) => {
            // Only what lies in a native large segment was put there.
            const ELSEWHERE: u8 = Allocation::FLAG_SMALL | Allocation::FLAG_EXPANDABLE;
            if sizes.found.flags.get(number as usize).is_some_and(|flags| flags & ELSEWHERE == 0) {
                sizes.large.free(allocations.address.get(number as usize).unwrap_or_default());
            }
        }
        Change::Reserved(_) => {
            if let Some(change) = segments.next() {
                sizes.segment(change);
            }
        }
        Change::Freed(_) => {}
    });
    sizes.found
}
