//! The reserved ranges at any position. The start is found by undoing the trace from the snapshot's segments;
//! checkpoints are made on the way forward.

use super::allocations::Allocation;
use super::sorted::{Sorted, SortedIndex};
use allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, DeviceTrace, Event, Segment, Tags};

/// A range taken from the driver: a native segment, or a contiguous mapped range of an expandable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedRange {
    /// Its first address.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// Its stream.
    pub stream: Stream,
    /// Its pool; the default pool if it is unknown.
    pub pool: PoolId,
    /// Whether it serves requests up to 1 MiB.
    pub is_small: bool,
    /// Whether it can grow.
    pub is_expandable: bool,
    /// The position right after it (or its newest part) was reserved; 0 if it was at the start.
    pub since: u32,
    /// The call site whose request it was reserved for.
    pub stack: StackId,
}

impl ReservedRange {
    /// Returns the range of a recorded segment.
    pub(super) const fn of(segment: &Segment) -> Self {
        Self {
            address: segment.address,
            size: segment.size,
            stream: segment.stream,
            pool: segment.pool,
            is_small: segment.is_small,
            is_expandable: segment.is_expandable,
            since: 0,
            stack: segment.stack,
        }
    }

    /// Returns the range as a segment with the given blocks.
    pub(super) fn segment(&self, blocks: Vec<Block>) -> Segment {
        Segment {
            address: self.address,
            size: self.size,
            stream: self.stream,
            is_small: self.is_small,
            is_expandable: self.is_expandable,
            pool: self.pool,
            stack: self.stack,
            blocks,
        }
    }

    /// Returns whether two ranges are equal except for their history.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |r: &Self| (r.address, r.size, r.stream, r.pool, r.is_small, r.is_expandable);
        identity(self) == identity(other)
    }

    /// Returns the first address after it.
    pub const fn end(&self) -> u64 {
        self.address.0.saturating_add(self.size)
    }

    /// Returns whether an address lies in it.
    pub const fn holds(&self, address: u64) -> bool {
        self.address.0 <= address && address < self.end()
    }

    /// Returns whether it is a large pool's segment that cannot grow, where a remainder may stay with its block.
    pub(super) const fn is_native_large(&self) -> bool {
        !self.is_small && !self.is_expandable
    }

    /// Returns the flags (see [`super::Allocation`]) of the allocations in it.
    pub(super) const fn flags(&self) -> u8 {
        let small = if self.is_small { Allocation::FLAG_SMALL } else { 0 };
        let expandable = if self.is_expandable { Allocation::FLAG_EXPANDABLE } else { 0 };
        small | expandable
    }

    /// Returns whether two ranges are one: adjacent parts of expandable segments of one pool and stream.
    pub fn joins(&self, next: &Self) -> bool {
        self.end() == next.address.0
            && self.is_expandable
            && next.is_expandable
            && (self.stream, self.pool, self.is_small) == (next.stream, next.pool, next.is_small)
    }
}

/// Ranges by address. The allocator's ranges never overlap; in a damaged file the newer one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: Sorted<ReservedRange>,
}

impl Ranges {
    pub(super) fn iter(&self) -> impl Iterator<Item = &ReservedRange> + '_ {
        self.ranges.iter()
    }

    pub(super) fn to_vec(&self) -> Vec<ReservedRange> {
        self.iter().copied().collect()
    }

    pub(super) const fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Sets the call site of the range that equals `range` to the one that `range` has.
    pub(super) fn set_stack(&mut self, range: &ReservedRange) {
        let found = self.ranges.at(range.address.0).and_then(|place| self.ranges.get_mut(place));
        if let Some(own) = found.filter(|own| own.is_same(range)) {
            own.stack = range.stack;
        }
    }

    /// Returns the range that holds an address.
    pub(super) fn find(&self, address: u64) -> Option<&ReservedRange> {
        let place = self.ranges.at_or_before(address)?;
        self.ranges.get(place).filter(|range| range.holds(address))
    }

    /// Returns the range that holds an address; `hint` is where it may be.
    #[inline]
    pub(super) fn find_near(&self, address: u64, hint: &mut SortedIndex) -> Option<&ReservedRange> {
        let place = self.ranges.near(address, hint)?;
        self.ranges.get(place).filter(|range| range.holds(address))
    }

    /// Returns the first range that overlaps `[start, end)`.
    pub(super) fn first_in(&self, start: u64, end: u64) -> Option<&ReservedRange> {
        let after = || self.ranges.after(start).and_then(|place| self.ranges.get(place));
        self.find(start).or_else(after).filter(|range| range.address.0 < end)
    }

    /// Adds a range, and merges it with its neighbours where they join.
    pub(super) fn add(&mut self, range: ReservedRange) {
        let place = self.ranges.insert(range.address.0, range);
        let next = self.ranges.next(place).and_then(|next| Some((next, *self.ranges.get(next)?)));
        let joined = next.filter(|(_, next)| range.joins(next));
        if let Some((next_place, next)) = joined {
            self.ranges.remove(next_place);
            if let Some(own) = self.ranges.get_mut(place) {
                own.size = own.size.saturating_add(next.size);
            }
        }
        let Some(before) = self.ranges.previous(place) else { return };
        if self.ranges.get(before).is_some_and(|before| before.joins(&range)) {
            let next = self.ranges.remove(place);
            if let (Some(own), Some(next)) = (self.ranges.get_mut(before), next) {
                own.size = own.size.saturating_add(next.size);
                own.since = next.since;
            }
        }
    }

    /// Removes `[address, address + size)` from the range that holds `address`, and returns the part that was removed.
    pub(super) fn cut(&mut self, address: u64, size: u64) -> Option<ReservedRange> {
        let place = self.ranges.at_or_before(address)?;
        let whole = *self.ranges.get(place).filter(|range| range.holds(address))?;
        let end = address.saturating_add(size).min(whole.end());
        self.ranges.remove(place);
        let head = ReservedRange { size: address - whole.address.0, ..whole };
        let tail = ReservedRange { address: Address(end), size: whole.end() - end, ..whole };
        for kept in [head, tail].into_iter().filter(|range| range.size > 0) {
            self.ranges.insert(kept.address.0, kept);
        }
        Some(ReservedRange { address: Address(address), size: end - address, ..whole })
    }

    /// Returns the approximate bytes of memory that they occupy: a range and its address, and half as much again for
    /// lists that are not full.
    pub(super) const fn bytes(&self) -> usize {
        Self::bytes_of(self.len())
    }

    /// Returns the approximate bytes of this many ranges.
    pub(super) const fn bytes_of(ranges: usize) -> usize {
        ranges * (size_of::<ReservedRange>() + size_of::<u64>()) * 3 / 2
    }

    /// Returns how much work the copying of them is.
    fn weight(&self) -> usize {
        self.len().max(CHECKPOINT_CHANGES)
    }
}

/// One change of the reserved ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentChange {
    /// The position right after it.
    pub(super) position: u32,
    /// The range that was reserved or released.
    pub(super) range: ReservedRange,
    /// Whether it was reserved.
    pub(super) is_reserved: bool,
}

impl SegmentChange {
    pub(super) fn apply(&self, ranges: &mut Ranges) {
        if self.is_reserved {
            ranges.add(ReservedRange { since: self.position, ..self.range });
        } else {
            ranges.cut(self.range.address.0, self.range.size);
        }
    }

    /// Returns the change of the reserved total in bytes.
    pub(super) fn bytes(&self) -> i64 {
        let bytes = i64::try_from(self.range.size).unwrap_or(i64::MAX);
        if self.is_reserved { bytes } else { -bytes }
    }
}

/// The least number of changes between two checkpoints. Each checkpoint copies a few hundred ranges; where there are
/// more, there are as many changes between two of them, so that all checkpoints together hold no more ranges than there
/// are changes.
const CHECKPOINT_CHANGES: usize = 256;

/// The history of the reserved ranges.
#[derive(Debug, Default)]
pub(super) struct SegmentHistory {
    /// Every change, in order.
    pub(super) changes: Vec<SegmentChange>,
    /// The number of changes before each checkpoint, and its ranges.
    checkpoints: Vec<(usize, Ranges)>,
    /// The ranges after all changes.
    now: Ranges,
}

impl SegmentHistory {
    pub(super) fn build(trace: &DeviceTrace, tags: &Tags) -> Self {
        let (start, changes) = rewind(trace, tags);
        let mut history = Self::begin(start);
        changes.into_iter().for_each(|change| history.push(change));
        history
    }

    /// Creates a history without changes.
    pub(super) fn begin(start: Ranges) -> Self {
        Self { changes: Vec::new(), checkpoints: vec![(0, start.clone())], now: start }
    }

    /// Adds a change.
    pub(super) fn push(&mut self, change: SegmentChange) {
        change.apply(&mut self.now);
        self.changes.push(change);
        let last = self.checkpoints.last().map_or(0, |(before, _)| *before);
        if self.changes.len() - last >= self.now.weight() {
            self.checkpoints.push((self.changes.len(), self.now.clone()));
        }
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        let kept: usize = self.checkpoints.iter().map(|(_, ranges)| ranges.len()).sum();
        self.changes.len() * size_of::<SegmentChange>() + kept * size_of::<ReservedRange>()
    }

    /// Returns the reserved ranges at a position.
    pub(super) fn at(&self, position: u32) -> Ranges {
        let done = self.changes.partition_point(|c| c.position <= position);
        let after = self.checkpoints.partition_point(|(before, _)| *before <= done);
        let checkpoint = after.checked_sub(1).and_then(|i| self.checkpoints.get(i));
        let (before, mut ranges) = checkpoint.cloned().unwrap_or_default();
        for change in self.changes.get(before..done).unwrap_or(&[]) {
            change.apply(&mut ranges);
        }
        ranges
    }
}

/// Returns the ranges at the start and all changes. Pool and kind of a range are those of the segments that remain at
/// the end; else they are derived from the event and from the sizes that the allocator uses.
fn rewind(trace: &DeviceTrace, tags: &Tags) -> (Ranges, Vec<SegmentChange>) {
    let mut ranges = Ranges::default();
    for segment in &trace.segments {
        ranges.add(ReservedRange::of(segment));
    }
    let mut changes = Vec::new();
    let actions = (0..).zip(trace.events.action.iter()).map(|(i, code)| (i, Action::from_code(code)));
    let of_segments: Vec<(usize, Action)> = actions.filter(|(_, action)| action.is_segment()).collect();
    // If the layout does not say which segments can grow, those that are mapped into can.
    for &(i, action) in &of_segments {
        if matches!(action, Action::SegmentMap | Action::SegmentUnmap)
            && let Some(place) = trace.events.address.get(i).and_then(|address| ranges.ranges.at_or_before(address))
            && let Some(range) = ranges.ranges.get_mut(place)
            && trace.events.address.get(i).is_some_and(|address| range.holds(address))
        {
            range.is_expandable = true;
        }
    }
    for &(i, action) in of_segments.iter().rev() {
        let Some(event) = trace.events.get(i) else { continue };
        if event.size == 0 {
            continue;
        }
        let position = i as u32 + 1;
        match action {
            Action::SegmentAlloc | Action::SegmentMap => {
                // If it is not reserved, it was released before the segments were read: nothing to undo.
                if let Some(part) = ranges.cut(event.address.0, event.size) {
                    let range = ReservedRange { since: position, stack: event.stack, ..part };
                    changes.push(SegmentChange { position, range, is_reserved: true });
                }
            }
            _ => {
                let range = described(&event, tags, &ranges);
                ranges.add(range);
                changes.push(SegmentChange { position, range, is_reserved: false });
            }
        }
    }
    changes.reverse();
    (ranges, changes)
}

/// Returns the range that an event reserved or released, described by the event and the neighbouring ranges.
pub(super) fn described(event: &Event, tags: &Tags, ranges: &Ranges) -> ReservedRange {
    let tag = tags.get(event.tag);
    described_as(event, (tag.stream, tag.pool), ranges)
}

/// Returns the range that an event reserved or released, with the stream and pool of the event's tag.
pub(super) fn described_as(event: &Event, (stream, pool): (Stream, Option<PoolId>), ranges: &Ranges) -> ReservedRange {
    let is_expandable = matches!(event.action, Action::SegmentMap | Action::SegmentUnmap);
    // A small pool's segment grows by exactly 2 MiB, a large pool's by more. The size that is released says nothing.
    let grows_small = (event.action == Action::SegmentMap).then_some(event.size == SMALL_BUFFER);
    let kin = |address: u64| {
        let range = ranges.find(address).copied();
        // Two expandable segments may be adjacent.
        let is_kin =
            |r: &ReservedRange| r.stream == stream && grows_small.is_none_or(|is_small| r.is_small == is_small);
        range.filter(|r| is_expandable && r.is_expandable && is_kin(r))
    };
    let kin = kin(event.address.0.saturating_add(event.size)).or_else(|| kin(event.address.0.checked_sub(1)?));
    ReservedRange {
        address: event.address,
        size: event.size,
        stream,
        pool: pool.or(kin.map(|k| k.pool)).unwrap_or_default(),
        // Small pools reserve segments of exactly 2 MiB, large pools larger ones. In an expandable segment a large
        // pool's pages have 20 MiB, a small pool's 2 MiB.
        is_small: match (grows_small, kin) {
            (Some(is_small), _) => is_small,
            (None, Some(kin)) => kin.is_small,
            (None, None) if is_expandable => !event.size.is_multiple_of(LARGE_BUFFER),
            (None, None) => event.size == SMALL_BUFFER,
        },
        is_expandable,
        since: 0,
        stack: event.stack,
    }
}
