//! The exact size of every block, derived from where blocks were put.
//!
//! An event records the requested size. The block has at least that size, rounded up; in a large pool a remainder of up
//! to 1 MiB stays with it. Whether there was a remainder follows from the gap after the block: a large pool never has a
//! free block that small, since only larger remainders are split off and merging only makes them larger. In small pools
//! and expandable segments remainders from 512 bytes on are split off, so the block has the rounded size.
//!
//! A block that was active before the first event and is not in the snapshot may have a remainder and a free block
//! after it, which look like one gap. The first block put into that gap shows where the free block began. If there is
//! none, no event depends on it, and the rounded size is used.

use super::allocations::{Allocation, Allocations};
use super::effects::Effects;
use super::large::{LargeBlocks, NewBlock};
use super::segments::{Ranges, SegmentChange};
use super::sorted::SortedIndex;
use super::{Change, Replay};
use allocator::rounding::{LARGE_REMAINDER, round_size};
use trace::units::PoolId;
use trace::{CHUNK, Column, DeviceTrace, Settings};

/// The columns that [`complete`] derives, by allocation.
pub(super) struct Completed {
    pub(super) size: Column<u64>,
    pub(super) flags: Column<u8>,
    pub(super) pool: Column<u8>,
    pub(super) pools: Vec<PoolId>,
    pub(super) outside_segments: u32,
    /// What each event changes, found on the way.
    pub(super) effects: Column<u8>,
}

/// The segments while sizes are derived in the order in which blocks were made.
struct Sizes<'a> {
    settings: &'a Settings,
    ranges: Ranges,
    large: LargeBlocks,
    /// Where the range and the large segment of the last address were found, among [`HINTS`] kinds of addresses.
    hints: Vec<(SortedIndex, SortedIndex)>,
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
            effects: Column::default(),
        };
        let hints = vec![Default::default(); HINTS];
        let mut new = Self { settings, ranges: start, large: LargeBlocks::default(), hints, found };
        for range in new.ranges.iter() {
            if range.is_native_large() {
                new.large.add(range);
            }
        }
        new
    }

    fn segment(&mut self, change: &SegmentChange) {
        change.apply(&mut self.ranges);
        if change.range.is_native_large() {
            if change.is_reserved {
                self.large.add(&change.range);
            } else {
                self.large.remove(&change.range);
            }
        }
    }

    /// Removes an allocation that lies in a native large segment, or in none.
    fn free_large(&mut self, number: u32, allocations: &Allocations) {
        let address = allocations.address.get(number as usize).unwrap_or_default();
        if let Some((_, segment)) = self.hints.get_mut(hint_of(address)) {
            self.large.free(address, segment);
        }
    }

    /// Derives the size, flags and pool of an allocation at the moment at which it is made.
    fn put(&mut self, number: u32, allocations: &Allocations) {
        let i = number as usize;
        let (Some(address), Some(requested)) = (allocations.address.get(i), allocations.requested.get(i)) else {
            return;
        };
        let written = allocations.size.get(i).filter(|&size| size > 0);
        let rounded = round_size(&self.settings.roundup_power2_divisions, requested);
        let mut size = written.unwrap_or(rounded);
        let Some((range, segment)) = self.hints.get_mut(hint_of(address)) else { return };
        match self.ranges.find_near(address, range) {
            None => self.found.outside_segments += 1,
            Some(range) => {
                let flags = allocations.flags.get(i).unwrap_or_default() | range.flags();
                self.found.flags.set(i, flags);
                if range.pool.is_private() {
                    let pool = pool_number(&mut self.found.pools, range.pool);
                    self.found.pool.set(i, pool);
                }
                if range.is_native_large() {
                    let new = NewBlock { address, size, number, is_recorded: written.is_some() };
                    let (exact, before) = self.large.put(new, self.settings.max_split_size, segment);
                    size = exact;
                    if let Some((before, between)) = before
                        && (1..=LARGE_REMAINDER).contains(&between)
                        && allocations.size.get(before.number as usize) == Some(0)
                    {
                        // No free block is that small: this is the remainder of the block before.
                        before.end += between;
                        self.found.size.set(before.number as usize, before.end - before.address);
                    }
                }
            }
        }
        self.found.size.set(i, size);
        // The block before another in its segment is seldom much older.
        let done = i.saturating_sub(2 * CHUNK);
        self.found.size.pack_before(done);
        self.found.flags.pack_before(done);
        self.found.pool.pack_before(done);
    }
}

/// The number of hints: many programs have fewer segments.
const HINTS: usize = 256;

/// Returns the hint for an address. Segments are multiples of 2 MiB, so that most addresses of a hint lie in one.
const fn hint_of(address: u64) -> usize {
    (address >> 21) as usize % HINTS
}

/// Returns the index of a pool in `pools`, and adds it if it is new.
pub(super) fn pool_number(pools: &mut Vec<PoolId>, pool: PoolId) -> u8 {
    if let Some(i) = pools.iter().position(|&p| p == pool) {
        return i as u8;
    }
    // A byte can't count more pools: the last one represents the rest.
    if pools.len() < usize::from(u8::MAX) {
        pools.push(pool);
    }
    (pools.len() - 1) as u8
}

/// Derives the sizes, flags and pools of all allocations in the order in which they were made.
#[inline(never)]
pub(super) fn complete(replay: &Replay, trace: &DeviceTrace, settings: &Settings) -> Completed {
    let allocations = &replay.allocations;
    let mut sizes = Sizes::new(settings, replay.segments.at(0), allocations);
    // Allocations at the start are by address. From the highest down, each finds its neighbour in place.
    for number in (0..allocations.made_by(0)).rev() {
        sizes.put(number, allocations);
    }
    let mut segments = replay.segments.changes.iter();
    let mut finder = Effects::new(trace, allocations, &replay.event_allocation);
    let mut effects = Column::default();
    let effect = |i: usize| {
        let effect = finder.of(i);
        effects.push(effect);
        effect
    };
    replay.changes_by(trace, 0, replay.positions(), effect, |_, change| match change {
        Change::Begin(number) => sizes.put(number, allocations),
        Change::End(number) => {
            // Only blocks in native large segments are in `large`.
            const ELSEWHERE: u8 = Allocation::FLAG_SMALL | Allocation::FLAG_EXPANDABLE;
            if sizes.found.flags.get(number as usize).is_some_and(|flags| flags & ELSEWHERE == 0) {
                sizes.free_large(number, allocations);
            }
        }
        Change::Reserved(_) => {
            if let Some(change) = segments.next() {
                sizes.segment(change);
            }
        }
        Change::Freed(_) => {}
    });
    Completed { effects, ..sizes.found }
}
