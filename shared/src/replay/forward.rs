//! The allocator's state, carried forward event by event: what is reserved, and every active block with its exact size.
//!
//! [`super::Replay`] finds the sizes of blocks from where later ones were put, because a finished trace may begin in the
//! middle. Who was there from the start needs no such search: a block takes the free room where it is put, and whether a
//! remainder is cut off is PyTorch's own rule (see [`super::sizes`]). An event costs some tens of nanoseconds, whatever
//! came before it.
//!
//! What contradicts itself (events are missing, or came twice) is counted, and the newer event is believed.

use rustc_hash::FxHashMap;

use super::Mismatches;
use super::large::{LargeBlocks, Placed};
use super::resync::Differences;
use super::segments::{Range, Ranges, described_as};
use crate::allocator::rounding::round_size;
use crate::event::Action;
use crate::frames::StackId;
use crate::trace::Divisions;
use crate::trace::{Block, BlockState, Event, Segment, Settings};
use crate::units::{Address, PoolId, Stream};

/// Sums over what is held now; bytes unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// In allocated blocks.
    pub allocated: u64,
    /// In active blocks: allocated, or waiting for a stream.
    pub active: u64,
    /// In segments.
    pub reserved: u64,
    /// Requested by active allocations.
    pub requested: u64,
    /// Number of active blocks.
    pub blocks: u32,
    /// Number of segments (mapped ranges of expandable ones).
    pub segments: u32,
}

impl Sums {
    /// Takes over what is more in another: of each sum for itself, as they need not have been largest together.
    #[inline]
    pub(crate) fn raise(&mut self, other: &Self) {
        let Self { allocated, active, reserved, requested, blocks, segments } = other;
        self.allocated = self.allocated.max(*allocated);
        self.active = self.active.max(*active);
        self.reserved = self.reserved.max(*reserved);
        self.requested = self.requested.max(*requested);
        self.blocks = self.blocks.max(*blocks);
        self.segments = self.segments.max(*segments);
    }
}

/// An active block, by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) requested: u64,
    pub(super) size: u64,
    pub(super) stack: StackId,
    /// Its allocation's number: they count from 0, those of the start by address, the others as they are made.
    pub(super) number: u32,
    /// Freed, and waiting for streams.
    pub(super) is_pending: bool,
    /// Whether it lies in a native segment of a large pool.
    pub(super) is_large: bool,
}

/// What an event did.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Nothing that is kept here.
    Nothing,
    /// An allocation was made in the range with this index, and took the place of another that was not freed.
    Made { size: u64, range: Option<usize>, over: Option<u32> },
    /// `free` was called for an allocation.
    Requested(u32),
    /// An allocation's block went back.
    Completed(u32),
    /// Something was freed that is not there.
    Unknown,
    /// A range was taken from the driver; and what of it was reserved already, so that the event
    /// that gave it back is missing.
    Taken { range: Range, before: Vec<Range> },
    /// A range was given back.
    GivenBack(Range),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Forward {
    divisions: Divisions,
    max_split: Option<u64>,
    pub(super) ranges: Ranges,
    large: LargeBlocks,
    pub(super) live: FxHashMap<u64, Live>,
    pub(super) sums: Sums,
    pub(super) mismatches: Mismatches,
    /// The number of the next allocation.
    pub(super) next: u32,
}

impl Forward {
    /// Nothing is held yet. Of the settings, those count that decide about sizes of blocks.
    pub fn new(settings: &Settings) -> Self {
        let mut new = Self::default();
        new.set(settings);
        new
    }

    /// Other settings, from now on.
    pub fn set(&mut self, settings: &Settings) {
        self.divisions = settings.roundup_power2_divisions;
        self.max_split = settings.max_split_size;
    }

    /// Forgets all that is held. The settings stay.
    pub(super) fn clear(&mut self) {
        *self = Self { divisions: self.divisions, max_split: self.max_split, ..Self::default() };
    }

    /// Takes in the next event; `stream` and `pool` are its tag's. Its stack may be numbered in any way: it is given back
    /// as it came.
    pub fn apply(&mut self, event: &Event, stream: Stream, pool: Option<PoolId>) {
        self.step(event, stream, pool);
    }

    /// The same, and tells what it did.
    #[inline]
    pub(crate) fn step(&mut self, event: &Event, stream: Stream, pool: Option<PoolId>) -> Step {
        match event.action {
            Action::Alloc => self.make(event),
            Action::FreeRequested => self.request_free(event.address.0),
            Action::FreeCompleted => self.complete_free(event.address.0),
            Action::SegmentAlloc | Action::SegmentMap if event.size > 0 => {
                let range = described_as(event, (stream, pool), &self.ranges);
                let before = self.make_room(&range);
                self.take(range);
                Step::Taken { range, before }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                match self.give_back(event.address.0, event.size).filter(|range| range.size > 0) {
                    Some(range) => Step::GivenBack(range),
                    None => Step::Nothing,
                }
            }
            _ => Step::Nothing,
        }
    }

    fn make(&mut self, event: &Event) -> Step {
        let address = event.address.0;
        let number = self.number();
        let range = self.ranges.find(address);
        let is_large = range.is_some_and(|i| self.ranges.as_slice()[i].is_native_large());
        let mut size = round_size(&self.divisions, event.size);
        if is_large {
            size = self.large.size(address, size, self.max_split);
            self.large.put(Placed { address, end: address.saturating_add(size), number });
        } else if range.is_none() {
            self.mismatches.outside_segments = self.mismatches.outside_segments.saturating_add(1);
        }
        let live = Live { requested: event.size, size, stack: event.stack, number, is_pending: false, is_large };
        let over = self.open(address, live);
        if over.is_some() {
            self.mismatches.alloc_over_alloc = self.mismatches.alloc_over_alloc.saturating_add(1);
        }
        Step::Made { size, range, over }
    }

    fn request_free(&mut self, address: u64) -> Step {
        let Some(live) = self.live.get_mut(&address) else { return self.unknown() };
        if !live.is_pending {
            live.is_pending = true;
            self.sums.allocated = self.sums.allocated.saturating_sub(live.size);
        }
        Step::Requested(live.number)
    }

    fn complete_free(&mut self, address: u64) -> Step {
        let Some(number) = self.close(address) else { return self.unknown() };
        Step::Completed(number)
    }

    fn unknown(&mut self) -> Step {
        self.mismatches.free_without_alloc = self.mismatches.free_without_alloc.saturating_add(1);
        Step::Unknown
    }

    /// The next allocation's number. It wraps: whoever counts so far keeps no allocations.
    pub(super) fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// A block is active from now on; the number of what is in its place.
    pub(super) fn open(&mut self, address: u64, live: Live) -> Option<u32> {
        let sums = &mut self.sums;
        sums.active = sums.active.saturating_add(live.size);
        sums.requested = sums.requested.saturating_add(live.requested);
        sums.blocks = sums.blocks.saturating_add(1);
        if !live.is_pending {
            sums.allocated = sums.allocated.saturating_add(live.size);
        }
        let before = self.live.insert(address, live)?;
        self.uncount(&before);
        Some(before.number)
    }

    /// A block is active no longer; its allocation's number.
    pub(super) fn close(&mut self, address: u64) -> Option<u32> {
        let live = self.live.remove(&address)?;
        self.uncount(&live);
        if live.is_large {
            self.large.free(address);
        }
        Some(live.number)
    }

    fn uncount(&mut self, live: &Live) {
        let sums = &mut self.sums;
        sums.active = sums.active.saturating_sub(live.size);
        sums.requested = sums.requested.saturating_sub(live.requested);
        sums.blocks = sums.blocks.saturating_sub(1);
        if !live.is_pending {
            sums.allocated = sums.allocated.saturating_sub(live.size);
        }
    }

    /// Gives up what is reserved where a range is to be: that it was given back is missing.
    fn make_room(&mut self, range: &Range) -> Vec<Range> {
        let mut before = Vec::new();
        while let Some(there) = self.ranges.first_in(range.address.0, range.end()) {
            let start = there.address.0.max(range.address.0);
            let Some(part) = self.give_back(start, range.end() - start).filter(|part| part.size > 0) else { break };
            before.push(part);
        }
        if !before.is_empty() {
            self.place_large();
        }
        before
    }

    pub(super) fn take(&mut self, range: Range) {
        self.ranges.add(range);
        self.sums.reserved = self.sums.reserved.saturating_add(range.size);
        if range.is_native_large() {
            self.large.add(&range);
        }
        self.count_segments();
    }

    pub(super) fn give_back(&mut self, address: u64, size: u64) -> Option<Range> {
        let range = self.ranges.cut(address, size)?;
        self.sums.reserved = self.sums.reserved.saturating_sub(range.size);
        if range.is_native_large() {
            self.large.remove(&range);
        }
        self.count_segments();
        Some(range)
    }

    fn count_segments(&mut self) {
        self.sums.segments = self.ranges.as_slice().len() as u32;
    }

    /// Finds the blocks of large pools again, after ranges and blocks were changed at will.
    pub(super) fn place_large(&mut self) {
        self.large = LargeBlocks::default();
        for range in self.ranges.as_slice().iter().filter(|range| range.is_native_large()) {
            self.large.add(range);
        }
        let ranges = &self.ranges;
        for (&address, live) in &mut self.live {
            live.is_large = ranges.find(address).is_some_and(|i| ranges.as_slice()[i].is_native_large());
        }
        let mut large: Vec<Placed> = (self.live.iter().filter(|(_, live)| live.is_large))
            .map(|(&address, live)| Placed { address, end: address.saturating_add(live.size), number: live.number })
            .collect();
        // By address, each is put behind all others.
        large.sort_by_key(|placed| placed.address);
        for placed in large {
            self.large.put(placed);
        }
    }

    /// Takes a state that was written as the truth: what is held otherwise is given up. Nothing changes where they agree.
    pub fn believe(&mut self, segments: &[Segment]) {
        self.differ(segments);
    }

    /// The same, and tells what changed.
    pub(crate) fn differ(&mut self, segments: &[Segment]) -> Differences {
        Differences::settle(self, segments)
    }

    /// What is held now.
    #[inline]
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Where events and state contradicted each other so far.
    pub fn mismatches(&self) -> Mismatches {
        self.mismatches
    }

    /// What is reserved now, by address.
    pub fn ranges(&self) -> &[Range] {
        self.ranges.as_slice()
    }

    /// Everything that is held, as a snapshot tells it: segments by address, each tiled by its blocks. Stacks are numbered
    /// as they came.
    pub fn segments(&self) -> Vec<Segment> {
        let mut blocks: Vec<Block> = self.live.iter().map(|(&address, live)| live.block(address)).collect();
        blocks.sort_by_key(|block| block.address);
        let mut rest = &blocks[..];
        let mut segments = Vec::new();
        for range in self.ranges.as_slice() {
            let before = rest.partition_point(|block| block.address < range.address);
            let (_, from) = rest.split_at(before);
            let (inside, behind) = from.split_at(from.partition_point(|block| block.address.0 < range.end()));
            rest = behind;
            segments.push(range.segment(tiled(range, inside)));
        }
        segments
    }

    /// Bytes of memory that all this takes, about.
    pub fn bytes(&self) -> usize {
        // A slot of the table is a key, a block, and a byte of its own.
        self.live.capacity() * (size_of::<(u64, Live)>() + 1)
            + size_of_val(self.ranges.as_slice())
            + self.live.values().filter(|live| live.is_large).count() * size_of::<Placed>()
    }
}

impl Live {
    fn block(&self, address: u64) -> Block {
        Block {
            address: Address(address),
            size: self.size,
            requested: self.requested,
            state: if self.is_pending { BlockState::Pending } else { BlockState::Allocated },
            stack: self.stack,
        }
    }
}

/// The blocks of a range, with the free ones between the active ones.
pub(super) fn tiled(range: &Range, active: &[Block]) -> Vec<Block> {
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
