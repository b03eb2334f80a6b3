//! The free memory of a device, followed change by change: which gaps every range has.
//!
//! [`Replay::state_at`] finds the state of one position. [`Replay::follow`] goes from position to position, and costs
//! about ten nanoseconds for each change. What is computed at every event (fragmentation, heatmaps) is a
//! [`SpaceVisitor`].
//!
//! The gaps are those of [`AllocatorState::gaps_in`] at every position, also where trace and segments contradict each
//! other. Blocks that overlap, lie in no range or end after theirs are remembered; where a range changes under an
//! active block, the space is taken from the state. (Ranges that overlap may differ: no allocator has them.)
//!
//! Each of these takes long if there are many. A trace that contradicts itself very often is followed as far as
//! [`CONTRADICTION_STEPS`](trace::limits::CONTRADICTION_STEPS) go, and its gaps stay as they are from then on: see
//! [`Space::is_lost`].

use std::collections::BTreeMap;

use super::gap_list::GapList;
use super::overlaps::Overlaps;
use super::segments::{ReservedRange, SegmentChange};
use super::sorted::{Sorted, SortedIndex};
use super::state::{AllocatorState, Gap};
use super::{Change, Replay};
use trace::DeviceTrace;
use trace::limits;
use trace::units::Address;

/// A computation that follows the memory of a device.
pub trait SpaceVisitor {
    /// Visits a change of one gap from `before` to `after`. With both, the gap has grown or shrunk. A change of the
    /// allocator changes up to three gaps. `range` is the range that they lie in.
    fn gap(&mut self, range: &ReservedRange, before: Option<Gap>, after: Option<Gap>);

    /// Visits a change of the allocator, after the gaps that it changed. `space` already includes the change.
    /// `position` is the position that it leads to: all changes of one position belong together.
    fn change(&mut self, position: u32, change: Change, space: &Space);
}

/// A reserved range with its free bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRange {
    /// The range.
    pub range: ReservedRange,
    /// Bytes in its gaps.
    pub free: u64,
}

impl SpaceRange {
    /// Returns whether no active block lies in it.
    pub const fn is_whole(&self) -> bool {
        self.free == self.range.size
    }

    const fn whole(&self) -> u64 {
        if self.is_whole() { self.free } else { 0 }
    }
}

/// A range with its gaps.
#[derive(Clone, Debug)]
struct RangeGaps {
    range: SpaceRange,
    gaps: GapList,
}

/// The ranges of a device and their gaps at one position.
#[derive(Clone, Debug, Default)]
pub struct Space {
    ranges: Sorted<RangeGaps>,
    gap_count: usize,
    cached: u64,
    whole: u64,
    overlaps: Overlaps,
    /// Active blocks that lie in no range, or end after theirs: address and size by number.
    strays: BTreeMap<u32, (u64, u64)>,
    /// The steps that were taken because blocks and ranges contradict each other.
    steps: u64,
}

impl Space {
    /// Returns the space of a state.
    pub fn of(state: &AllocatorState, replay: &Replay) -> Self {
        let mut space = Self::default();
        for range in &state.ranges {
            let place = space.insert(*range, 0, GapList::default());
            space.give(place, range.address.0, range.end(), &mut NoVisitor);
        }
        for &number in &state.active {
            space.begin(number, block_place(replay, number), &mut NoVisitor);
        }
        space
    }

    /// Returns the ranges by address.
    pub fn ranges(&self) -> impl Iterator<Item = &SpaceRange> + '_ {
        self.ranges.iter().map(|own| &own.range)
    }

    /// Returns whether blocks and ranges contradict each other so often that they are not followed any more.
    pub const fn is_lost(&self) -> bool {
        self.steps >= limits::CONTRADICTION_STEPS
    }

    /// Counts steps that are taken because of a contradiction.
    fn take_steps(&mut self, count: usize) {
        self.steps = self.steps.saturating_add(count as u64);
    }

    /// Returns all gaps by address.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.ranges.iter().flat_map(|own| own.gaps.iter())
    }

    /// Returns the gaps of a range, by address.
    pub fn gaps_of(&self, range: &ReservedRange) -> impl Iterator<Item = Gap> + '_ {
        let own = self.find(range.address.0).and_then(|place| self.ranges.get(place));
        own.into_iter().flat_map(|own| own.gaps.iter())
    }

    /// Returns the number of gaps.
    pub fn gap_count(&self) -> usize {
        self.gap_count
    }

    /// Returns the bytes of all gaps: reserved and in no active block.
    pub const fn cached(&self) -> u64 {
        self.cached
    }

    /// Returns the bytes of the ranges without an active block. `empty_cache` and the allocator's own retry give native
    /// ones back to the driver.
    pub const fn cached_whole(&self) -> u64 {
        self.whole
    }

    #[inline]
    fn find(&self, address: u64) -> Option<SortedIndex> {
        let place = self.ranges.at_or_before(address)?;
        self.ranges.get(place).filter(|own| own.range.range.holds(address)).map(|_| place)
    }

    /// Returns the range that a block lies in, and the end of the block's part in that range.
    #[inline]
    fn extent(&self, address: u64, size: u64) -> Option<(SortedIndex, u64)> {
        let place = self.find(address)?;
        let end = address.saturating_add(size).min(self.ranges.get(place)?.range.range.end());
        (end > address).then_some((place, end))
    }

    /// Adds an active block.
    #[inline]
    fn begin(&mut self, number: u32, (address, size): (u64, u64), visit: &mut impl SpaceVisitor) {
        let extent = self.extent(address, size);
        if extent.is_none_or(|(_, end)| end < address.saturating_add(size)) {
            self.strays.insert(number, (address, size));
        }
        let Some((place, end)) = extent else { return };
        let Some(parts) = self.take(place, address, end, visit) else { return };
        self.take_steps(parts.len() + self.spans(address, end));
        let mut at = address;
        for (from, to) in parts.into_iter().chain([(end, end)]) {
            if at < from {
                self.overlaps.add(at, from);
            }
            at = to;
        }
    }

    /// Removes an active block.
    #[inline]
    fn end(&mut self, number: u32, (address, size): (u64, u64), visit: &mut impl SpaceVisitor) {
        if !self.strays.is_empty() {
            self.strays.remove(&number);
        }
        let Some((place, end)) = self.extent(address, size) else { return };
        if self.overlaps.is_empty() {
            self.give(place, address, end, visit);
            return;
        }
        self.take_steps(self.spans(address, end));
        for (from, to) in self.overlaps.remove(address, end) {
            self.give(place, from, to, visit);
        }
    }

    /// Returns how many spans of overlapping blocks lie between two addresses, as far as that matters.
    fn spans(&self, from: u64, to: u64) -> usize {
        self.overlaps.count(from, to, limits::CONTRADICTION_STEPS as usize)
    }

    /// Takes bytes out of the gaps of a range. Returns the parts that were free, unless all was.
    #[inline]
    fn take(
        &mut self,
        place: SortedIndex,
        from: u64,
        to: u64,
        visit: &mut impl SpaceVisitor,
    ) -> Option<Vec<(u64, u64)>> {
        let RangeGaps { range: own, gaps: list } = self.ranges.get_mut(place)?;
        let (count, mut parts) = (&mut self.gap_count, Vec::new());
        let taken = list.take(from, to, |before, head, tail| {
            let (left, right) = (before.address.0.max(from), before.end().min(to));
            if right - left < to - from {
                parts.push((left, right));
            }
            match (head, tail) {
                (Some(_), Some(_)) => {
                    *count += 1;
                    visit.gap(&own.range, Some(before), head);
                    visit.gap(&own.range, None, tail);
                }
                (head, tail) => {
                    let kept = head.or(tail);
                    *count -= usize::from(kept.is_none());
                    visit.gap(&own.range, Some(before), kept);
                }
            }
        });
        self.cached = self.cached.saturating_sub(taken);
        self.whole = self.whole.saturating_sub(own.whole());
        own.free = own.free.saturating_sub(taken);
        (taken < to - from).then_some(parts)
    }

    /// Adds bytes that are in no gap to the gaps of a range.
    #[inline]
    fn give(&mut self, place: SortedIndex, from: u64, to: u64, visit: &mut impl SpaceVisitor) {
        let Some(RangeGaps { range: own, gaps: list }) = self.ranges.get_mut(place) else { return };
        let count = &mut self.gap_count;
        list.give(from, to, |before, after| {
            *count = *count + usize::from(after.is_some()) - usize::from(before.is_some());
            visit.gap(&own.range, before, after);
        });
        self.cached = self.cached.saturating_add(to - from);
        own.free = own.free.saturating_add(to - from);
        self.whole = self.whole.saturating_add(own.whole());
    }

    /// Inserts a range with `free` bytes in gaps.
    fn insert(&mut self, range: ReservedRange, free: u64, gaps: GapList) -> SortedIndex {
        self.ranges.insert(range.address.0, RangeGaps { range: SpaceRange { range, free }, gaps })
    }

    /// Returns the range at a place.
    fn range(&self, place: Option<SortedIndex>) -> Option<ReservedRange> {
        Some(self.ranges.get(place?)?.range.range)
    }

    /// Adds a free range, and joins it with its neighbours where they are one (see `ReservedRange::joins`). Returns `false` if
    /// something else is there.
    fn reserve(&mut self, range: ReservedRange, visit: &mut impl SpaceVisitor) -> bool {
        let (start, end) = (range.address.0, range.end());
        let is_free =
            self.range(self.ranges.at_or_before(start)).is_none_or(|own| own.end() <= start && own.address.0 < start)
                && self.range(self.ranges.after(start)).is_none_or(|own| own.address.0 >= end);
        let touches = |&(address, size): &(u64, u64)| address < end && address.saturating_add(size) > start;
        self.take_steps(self.strays.len());
        if !is_free || self.strays.values().any(touches) {
            return false;
        }
        let mut place = self.insert(range, 0, GapList::default());
        let next = self.ranges.next(place);
        if self.range(next).is_some_and(|next| range.joins(&next)) {
            self.join(place, next);
        }
        let before = self.ranges.previous(place);
        if self.range(before).is_some_and(|own| own.joins(&range))
            && let Some(before) = before
        {
            self.join(before, Some(place));
            if let Some(joined) = self.ranges.get_mut(before) {
                joined.range.range.since = range.since;
            }
            place = before;
        }
        self.give(place, start, end, visit);
        true
    }

    /// Merges the range at a place with the next one.
    fn join(&mut self, place: SortedIndex, next: Option<SortedIndex>) {
        let Some(RangeGaps { range: next, gaps }) = next.and_then(|next| self.ranges.remove(next)) else { return };
        let Some(RangeGaps { range: own, gaps: list }) = self.ranges.get_mut(place) else { return };
        self.whole = self.whole.saturating_sub(own.whole()).saturating_sub(next.whole());
        own.range.size = own.range.size.saturating_add(next.range.size);
        own.free = own.free.saturating_add(next.free);
        self.whole = self.whole.saturating_add(own.whole());
        list.append(gaps);
    }

    /// Removes `[address, address + size)` from the range that holds `address`. Returns `false` if a block is active
    /// there.
    fn release(&mut self, address: u64, size: u64, visit: &mut impl SpaceVisitor) -> bool {
        let Some((place, end)) = self.extent(address, size) else { return true };
        if !self.ranges.get(place).is_some_and(|own| own.gaps.holds(address, end)) {
            return false;
        }
        self.take(place, address, end, visit);
        let Some(RangeGaps { range: own, gaps: mut list }) = self.ranges.remove(place) else { return true };
        let tail_list = list.split_off(address);
        // The shorter list is summed.
        let is_tail_shorter = tail_list.weight() <= list.weight();
        let (shorter, longer) = if is_tail_shorter { (&tail_list, &list) } else { (&list, &tail_list) };
        let bytes = if longer.weight() == 0 { own.free } else { shorter.bytes() };
        let rest = own.free.saturating_sub(bytes);
        let (tail_free, head_free) = if is_tail_shorter { (bytes, rest) } else { (rest, bytes) };
        let head = ReservedRange { size: address - own.range.address.0, ..own.range };
        let tail = ReservedRange { address: Address(end), size: own.range.end() - end, ..own.range };
        for (range, free, list) in [(head, head_free, list), (tail, tail_free, tail_list)] {
            if range.size > 0 {
                self.whole = self.whole.saturating_add(SpaceRange { range, free }.whole());
                self.insert(range, free, list);
            }
        }
        true
    }

    /// Replaces the space by that of a state, and visits the difference.
    #[cold]
    fn replace(&mut self, new: Self, visit: &mut impl SpaceVisitor) {
        let old = std::mem::replace(self, new);
        self.take_steps(old.steps as usize + self.ranges.len() + old.ranges.len() + self.gap_count + self.strays.len());
        for own in old.ranges.iter().filter(|own| !self.has(own)) {
            own.gaps.iter().for_each(|gap| visit.gap(&own.range.range, Some(gap), None));
        }
        for own in self.ranges.iter().filter(|own| !old.has(own)) {
            own.gaps.iter().for_each(|gap| visit.gap(&own.range.range, None, Some(gap)));
        }
    }

    /// Returns whether it has this range with these gaps.
    fn has(&self, own: &RangeGaps) -> bool {
        let known = self.ranges.at(own.range.range.address.0).and_then(|place| self.ranges.get(place));
        known.is_some_and(|known| known.range == own.range && known.gaps.iter().eq(own.gaps.iter()))
    }

    #[inline]
    fn apply(
        &mut self,
        replay: &Replay,
        change: Change,
        segment: Option<&SegmentChange>,
        visit: &mut impl SpaceVisitor,
    ) {
        if self.is_lost() {
            return;
        }
        match (change, segment) {
            (Change::Begin(number), _) => self.begin(number, block_place(replay, number), visit),
            (Change::End(number), _) => self.end(number, block_place(replay, number), visit),
            (Change::Reserved(_), Some(segment)) => self.change_segment(replay, segment, visit),
            (Change::Freed(_) | Change::Reserved(_), _) => {}
        }
    }

    fn change_segment(&mut self, replay: &Replay, change: &SegmentChange, visit: &mut impl SpaceVisitor) {
        let SegmentChange { position, range, is_reserved } = *change;
        let is_plain = match (range.size, is_reserved) {
            (0, _) => true,
            (_, true) => self.reserve(ReservedRange { since: position, ..range }, visit),
            (size, false) => self.release(range.address.0, size, visit),
        };
        // Only segments can follow at this position: blocks that change at it were visited before.
        if !is_plain {
            let state = replay.state_at(position);
            self.take_steps(state.active.len());
            self.replace(Self::of(&state, replay), visit);
        }
    }
}

/// Returns the address and the size of an allocation's block.
#[inline]
fn block_place(replay: &Replay, number: u32) -> (u64, u64) {
    let (address, size) = (&replay.allocations.address, &replay.allocations.size);
    (address.get(number as usize).unwrap_or_default(), size.get(number as usize).unwrap_or_default())
}

/// Visits nothing.
struct NoVisitor;

impl SpaceVisitor for NoVisitor {
    fn gap(&mut self, _: &ReservedRange, _: Option<Gap>, _: Option<Gap>) {}

    fn change(&mut self, _: u32, _: Change, _: &Space) {}
}

impl Replay {
    /// Returns the space at a position, from which [`Self::follow`] can continue.
    pub fn space_at(&self, position: u32) -> Space {
        Space::of(&self.state_at(position), self)
    }

    /// Advances `space` from position `from` to position `to`, and visits every change on the way.
    pub fn follow(&self, trace: &DeviceTrace, from: u32, to: u32, space: &mut Space, visit: &mut impl SpaceVisitor) {
        // Changes of reserved bytes come in the order of the history.
        let mut next = self.segments.changes.partition_point(|change| change.position <= from);
        self.changes(trace, from, to, |position, change| {
            let segment = if matches!(change, Change::Reserved(_)) {
                next += 1;
                self.segments.changes.get(next - 1)
            } else {
                None
            };
            space.apply(self, change, segment, visit);
            visit.change(position, change, space);
        });
    }
}
