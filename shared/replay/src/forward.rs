//! The allocator's state, replayed forward event by event: the reserved ranges, and every active block with its exact
//! size.
//!
//! [`super::Replay::build`] derives the sizes of blocks from where later ones were put, because a trace may begin in
//! the middle. From a known start no such search is needed: a block takes the free space where it is put, and whether a
//! remainder is split off follows PyTorch's own rule (see [`super::sizes`]). An event costs a few tens of nanoseconds,
//! however many came before it.
//!
//! Contradictions (events are missing, or came twice) are counted; the newer event wins.

use rustc_hash::FxHashMap;

use super::Mismatches;
use super::large::{LargeBlocks, NewBlock};
use super::resync::Differences;
use super::segments::{Ranges, ReservedRange, described_as};
use super::sorted::SortedIndex;
use allocator::rounding::round_size;
use trace::Divisions;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, Event, Segment, Settings};

/// Sums over the current state, in bytes unless a field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes in allocated blocks.
    pub allocated: u64,
    /// Bytes in active blocks: allocated, or waiting for a stream.
    pub active: u64,
    /// Bytes in segments.
    pub reserved: u64,
    /// Bytes that active allocations requested.
    pub requested: u64,
    /// Number of active blocks.
    pub blocks: u32,
    /// Number of segments (mapped ranges of expandable ones).
    pub segments: u32,
}

impl Sums {
    /// Raises each field to at least the other's value. The maxima need not have occurred together.
    #[inline]
    pub fn raise(&mut self, other: &Self) {
        let Self { allocated, active, reserved, requested, blocks, segments } = other;
        self.allocated = self.allocated.max(*allocated);
        self.active = self.active.max(*active);
        self.reserved = self.reserved.max(*reserved);
        self.requested = self.requested.max(*requested);
        self.blocks = self.blocks.max(*blocks);
        self.segments = self.segments.max(*segments);
    }
}

/// An active block. Its address is its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveBlock {
    pub(super) requested: u64,
    pub(super) size: u64,
    pub(super) stack: StackId,
    /// Its allocation's number. Numbers count from 0: first the allocations at the start by address, then the others in
    /// the order in which they were made.
    pub(super) number: u32,
    /// Whether it was freed and waits for streams.
    pub(super) is_pending: bool,
    /// Whether it lies in a native segment of a large pool.
    pub(super) is_large: bool,
}

/// The change that an event made.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// An allocation was made in the range with this index. `replaced` was active at its address: its free is missing.
    Allocated { size: u64, range: Option<ReservedRange>, replaced: Option<u32> },
    /// `free` was called for an allocation.
    FreeRequested(u32),
    /// An allocation's block became free.
    FreeCompleted(u32),
    /// No allocation is active at the address that was freed.
    Unknown,
    /// A range was taken from the driver. `replaced` was reserved in its place: the events that released it are
    /// missing.
    Reserved { range: ReservedRange, replaced: Vec<ReservedRange> },
    /// A range was given back to the driver.
    Released(ReservedRange),
}

/// The allocator's state after the newest event.
#[derive(Clone, Debug, Default)]
pub struct Forward {
    divisions: Divisions,
    max_split: Option<u64>,
    pub(super) ranges: Ranges,
    /// Segments that were reserved where another one was, up to a limit.
    overlaps: u32,
    /// Blocks and ranges that were visited because of that.
    overlap_steps: usize,
    large: LargeBlocks,
    pub(super) live: FxHashMap<u64, ActiveBlock>,
    pub(super) sums: Sums,
    pub(super) mismatches: Mismatches,
    /// The number of the next allocation.
    pub(super) next: u32,
}

impl Forward {
    /// Creates a state that holds nothing. Only the settings that decide the sizes of blocks matter.
    pub fn new(settings: &Settings) -> Self {
        let mut new = Self::default();
        new.set(settings);
        new
    }

    /// Changes the settings for later events.
    pub fn set(&mut self, settings: &Settings) {
        self.divisions = settings.roundup_power2_divisions;
        self.max_split = settings.max_split_size;
    }

    /// Drops all ranges and blocks. The settings stay.
    pub(super) fn clear(&mut self) {
        *self = Self { divisions: self.divisions, max_split: self.max_split, ..Self::default() };
    }

    /// Applies the next event; `stream` and `pool` are its tag's. Stacks may be numbered in any way: [`Self::segments`]
    /// returns the same numbers.
    pub fn apply(&mut self, event: &Event, stream: Stream, pool: Option<PoolId>) {
        self.step(event, stream, pool);
    }

    /// Applies the next event, and returns what it changed.
    #[inline]
    pub(crate) fn step(&mut self, event: &Event, stream: Stream, pool: Option<PoolId>) -> Step {
        match event.action {
            Action::Alloc => self.allocate(event),
            Action::FreeRequested => self.request_free(event.address.0),
            Action::FreeCompleted => self.complete_free(event.address.0),
            Action::SegmentAlloc | Action::SegmentMap if event.size > 0 => {
                let range = described_as(event, (stream, pool), &self.ranges);
                let replaced = self.release_overlap(&range);
                self.reserve(range);
                Step::Reserved { range, replaced }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                match self.release(event.address.0, event.size).filter(|range| range.size > 0) {
                    Some(range) => Step::Released(range),
                    None => Step::Nothing,
                }
            }
            _ => Step::Nothing,
        }
    }

    fn allocate(&mut self, event: &Event) -> Step {
        let address = event.address.0;
        let number = self.number();
        let range = self.ranges.find(address).copied();
        let is_large = range.is_some_and(|range| range.is_native_large());
        let mut size = round_size(&self.divisions, event.size);
        if is_large {
            (size, _) = self.large.put(
                NewBlock { address, size, number, is_recorded: false },
                self.max_split,
                &mut SortedIndex::default(),
            );
        } else if range.is_none() {
            self.mismatches.outside_segments = self.mismatches.outside_segments.saturating_add(1);
        }
        let block =
            ActiveBlock { requested: event.size, size, stack: event.stack, number, is_pending: false, is_large };
        let replaced = self.open(address, block);
        if replaced.is_some() {
            self.mismatches.alloc_over_alloc = self.mismatches.alloc_over_alloc.saturating_add(1);
        }
        Step::Allocated { size, range, replaced }
    }

    fn request_free(&mut self, address: u64) -> Step {
        let Some(block) = self.live.get_mut(&address) else { return self.unknown() };
        if !block.is_pending {
            block.is_pending = true;
            self.sums.allocated = self.sums.allocated.saturating_sub(block.size);
        }
        Step::FreeRequested(block.number)
    }

    fn complete_free(&mut self, address: u64) -> Step {
        let Some(number) = self.close(address) else { return self.unknown() };
        Step::FreeCompleted(number)
    }

    fn unknown(&mut self) -> Step {
        self.mismatches.free_without_alloc = self.mismatches.free_without_alloc.saturating_add(1);
        Step::Unknown
    }

    /// Returns the next allocation's number. It wraps, which only concerns callers that do not keep allocations.
    pub(super) fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Adds an active block. Returns the number of the allocation that was active at its address.
    pub(super) fn open(&mut self, address: u64, block: ActiveBlock) -> Option<u32> {
        let sums = &mut self.sums;
        sums.active = sums.active.saturating_add(block.size);
        sums.requested = sums.requested.saturating_add(block.requested);
        sums.blocks = sums.blocks.saturating_add(1);
        if !block.is_pending {
            sums.allocated = sums.allocated.saturating_add(block.size);
        }
        let before = self.live.insert(address, block)?;
        self.subtract(&before);
        Some(before.number)
    }

    /// Removes the active block at an address. Returns its allocation's number.
    pub(super) fn close(&mut self, address: u64) -> Option<u32> {
        let block = self.live.remove(&address)?;
        self.subtract(&block);
        if block.is_large {
            self.large.free(address, &mut SortedIndex::default());
        }
        Some(block.number)
    }

    fn subtract(&mut self, block: &ActiveBlock) {
        let sums = &mut self.sums;
        sums.active = sums.active.saturating_sub(block.size);
        sums.requested = sums.requested.saturating_sub(block.requested);
        sums.blocks = sums.blocks.saturating_sub(1);
        if !block.is_pending {
            sums.allocated = sums.allocated.saturating_sub(block.size);
        }
    }

    /// Releases what is reserved in a new range's place, and returns it. The events that released it are missing.
    fn release_overlap(&mut self, range: &ReservedRange) -> Vec<ReservedRange> {
        let mut released = Vec::new();
        while let Some(there) = self.ranges.first_in(range.address.0, range.end()) {
            let start = there.address.0.max(range.address.0);
            let Some(part) = self.release(start, range.end() - start).filter(|part| part.size > 0) else { break };
            released.push(part);
        }
        let steps = self.overlap_steps.saturating_add(self.live.capacity()).saturating_add(self.ranges.len());
        let is_affordable = self.overlaps < limits::OVERLAPPING_SEGMENTS && steps <= limits::OVERLAP_STEPS;
        if !released.is_empty() && is_affordable {
            self.overlaps += 1;
            self.overlap_steps = steps;
            self.place_large();
        }
        released
    }

    /// Adds a reserved range.
    pub(super) fn reserve(&mut self, range: ReservedRange) {
        self.ranges.add(range);
        self.sums.reserved = self.sums.reserved.saturating_add(range.size);
        if range.is_native_large() {
            self.large.add(&range);
        }
        self.count_segments();
    }

    /// Removes `[address, address + size)` from the range that it lies in. Returns the part that was reserved.
    pub(super) fn release(&mut self, address: u64, size: u64) -> Option<ReservedRange> {
        let range = self.ranges.cut(address, size)?;
        self.sums.reserved = self.sums.reserved.saturating_sub(range.size);
        if range.is_native_large() {
            self.large.remove(&range);
        }
        self.count_segments();
        Some(range)
    }

    fn count_segments(&mut self) {
        self.sums.segments = self.ranges.len() as u32;
    }

    /// Rebuilds the index of large blocks after arbitrary changes to ranges and blocks.
    pub(super) fn place_large(&mut self) {
        self.large = LargeBlocks::default();
        for range in self.ranges.iter().filter(|range| range.is_native_large()) {
            self.large.add(range);
        }
        let ranges = &self.ranges;
        for (&address, block) in &mut self.live {
            block.is_large = ranges.find(address).is_some_and(ReservedRange::is_native_large);
        }
        let new = |address: u64, &ActiveBlock { size, number, .. }: &ActiveBlock| NewBlock {
            address,
            size,
            number,
            is_recorded: true,
        };
        let mut large: Vec<NewBlock> = (self.live.iter().filter(|(_, block)| block.is_large))
            .map(|(&address, block)| new(address, block))
            .collect();
        // In the order of addresses each is inserted at the end.
        large.sort_by_key(|block| block.address);
        let mut hint = SortedIndex::default();
        for block in large {
            self.large.put(block, None, &mut hint);
        }
    }

    /// Replaces the state by a recorded one. Blocks and ranges that are in both stay as they are.
    pub fn assume_state(&mut self, segments: &[Segment]) {
        Differences::apply_unlisted(self, segments);
    }

    /// Returns the sums over the current state.
    #[inline]
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Returns the contradictions between events and state so far.
    pub fn mismatches(&self) -> Mismatches {
        self.mismatches
    }

    /// Returns the reserved ranges by address.
    pub fn ranges(&self) -> impl Iterator<Item = &ReservedRange> + '_ {
        self.ranges.iter()
    }

    /// Returns the state in the form of a snapshot: segments by address, each tiled by its blocks. Stacks have the
    /// numbers that the events gave them.
    pub fn segments(&self) -> Vec<Segment> {
        let mut blocks: Vec<Block> = self.live.iter().map(|(&address, block)| block.at(address)).collect();
        blocks.sort_by_key(|block| block.address);
        let mut rest = &blocks[..];
        let mut segments = Vec::new();
        for range in self.ranges.iter() {
            let before = rest.partition_point(|block| block.address < range.address);
            let (_, from) = rest.split_at(before);
            let (inside, after) = from.split_at(from.partition_point(|block| block.address.0 < range.end()));
            rest = after;
            segments.push(range.segment(tiled(range, inside)));
        }
        segments
    }

    /// Returns the approximate memory use in bytes. The cost does not depend on the number of blocks.
    pub fn bytes(&self) -> usize {
        table_bytes(self.live.capacity()) + self.ranges.bytes() + self.large.bytes()
    }

    /// Returns about how many bytes it uses once its state is `segments`.
    pub fn bytes_of_state(&self, segments: &[Segment]) -> usize {
        let (mut blocks, mut large) = (0, (0, 0));
        for segment in segments {
            blocks += segment.blocks.len();
            if ReservedRange::of(segment).is_native_large() {
                large = (large.0 + 1, large.1 + segment.blocks.len());
            }
        }
        table_bytes(blocks.max(self.live.capacity()))
            + Ranges::bytes_of(segments.len())
            + LargeBlocks::bytes_of(large.0, large.1)
    }

    /// Returns about how many bytes it uses at most after `events` more events.
    pub fn bytes_after(&self, events: usize) -> usize {
        let blocks = self.live.len().saturating_add(events).max(self.live.capacity());
        self.bytes() - table_bytes(self.live.capacity()) + table_bytes(blocks)
    }
}

/// Returns the bytes of a table that has room for this many blocks. At most seven of eight slots are used, and the
/// number of slots is a power of two. A slot is a key, a block, and a control byte.
fn table_bytes(blocks: usize) -> usize {
    let slots = if blocks == 0 { 0 } else { blocks.saturating_mul(8).div_ceil(7).next_power_of_two() };
    slots * (size_of::<(u64, ActiveBlock)>() + 1)
}

impl ActiveBlock {
    fn at(&self, address: u64) -> Block {
        Block {
            address: Address(address),
            size: self.size,
            requested: self.requested,
            state: if self.is_pending { BlockState::Pending } else { BlockState::Allocated },
            stack: self.stack,
        }
    }
}

/// Returns the blocks of a range: the active ones, and the free ones between them.
pub(super) fn tiled(range: &ReservedRange, active: &[Block]) -> Vec<Block> {
    let mut blocks = Vec::with_capacity(active.len() * 2);
    let mut at = range.address.0;
    let free = |at: u64, to: u64| Block {
        address: Address(at),
        size: to - at,
        requested: 0,
        state: BlockState::Inactive,
        stack: StackId(0),
    };
    for &block in active {
        if block.address.0 > at {
            blocks.push(free(at, block.address.0));
        }
        at = at.max(block.address.0.saturating_add(block.size));
        blocks.push(block);
    }
    if range.end() > at {
        blocks.push(free(at, range.end()));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::TagId;

    fn event(action: Action, address: u64, size: u64) -> Event {
        Event { action, address: Address(address), size, time_us: 0, tag: TagId(0), stack: StackId(0) }
    }

    #[test]
    fn overlapping_segments_cost_a_bounded_time_however_many_blocks_are_live() {
        const BLOCKS: u64 = 50_000;
        let mut forward = Forward::default();
        for i in 0..BLOCKS {
            forward.apply(&event(Action::Alloc, (1 << 40) + i * 512, 512), Stream(0), None);
        }
        for i in 0..u64::from(limits::OVERLAPPING_SEGMENTS) {
            forward.apply(&event(Action::SegmentAlloc, i * 512, 4_096), Stream(0), None);
        }
        let affordable = limits::OVERLAP_STEPS as u64 / BLOCKS;
        assert!((1..=affordable).contains(&u64::from(forward.overlaps)), "{} times", forward.overlaps);
        // The state itself is still right.
        assert_eq!((forward.sums().blocks, forward.live.len() as u64), (BLOCKS as u32, BLOCKS));
    }

    #[test]
    fn a_table_that_is_nearly_empty_gives_its_memory_back() {
        let mut forward = Forward::default();
        for i in 0..50_000 {
            forward.apply(&event(Action::Alloc, (1 << 40) + i * 512, 512), Stream(0), None);
        }
        let before = forward.bytes();
        forward.assume_state(&[]);
        assert!(forward.bytes() * 100 < before, "{} of {before} bytes", forward.bytes());
    }
}
