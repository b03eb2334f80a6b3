//! The free memory of a device, followed change by change: which gaps every range has.
//!
//! [`Replay::state_at`] finds the state of one position. [`Replay::follow`] goes from position to position, and costs
//! some ten nanoseconds for each change. What is computed at every event (fragmentation, heatmaps) is a
//! [`SpaceVisitor`].
//!
//! The gaps are those of [`AllocatorState::gaps_in`] at every position, also where trace and segments contradict each
//! other. Blocks that overlap, lie in no range or end behind theirs are remembered; where a range changes under an active
//! block, the space is taken from the state. (Ranges that overlap may differ: no allocator has them.)

use std::collections::BTreeMap;

use super::gap_list::GapList;
use super::overlaps::Overlaps;
use super::segments::{Range, SegmentChange};
use super::state::{AllocatorState, Gap};
use super::{Change, Replay};
use crate::trace::DeviceTrace;
use crate::units::Address;

/// What is computed while the memory of a device is followed.
pub trait SpaceVisitor {
    /// Visits a change of one gap: `before` is gone, and `after` is there. With both, the gap has grown or shrunk. A
    /// change of the allocator changes up to three gaps. `range` is the range that they lie in.
    fn gap(&mut self, range: &Range, before: Option<Gap>, after: Option<Gap>);

    /// Visits a change of the allocator, after the gaps that it changed. `space` already includes the change.
    /// `position` is the position that it leads to: all changes of one position belong together.
    fn change(&mut self, position: u32, change: Change, space: &Space);
}

/// A reserved range with its free bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRange {
    /// The range.
    pub range: Range,
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

/// The ranges of a device and their gaps at one position.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// By address.
    ranges: Vec<SpaceRange>,
    /// The first address of each range, close together: they are searched at every change.
    starts: Vec<u64>,
    /// The gaps of each range.
    gaps: Vec<GapList>,
    gap_count: usize,
    cached: u64,
    whole: u64,
    overlaps: Overlaps,
    /// Active blocks that lie in no range, or end behind theirs: address and size by number.
    strays: BTreeMap<u32, (u64, u64)>,
}

impl Space {
    /// Returns the space of a state.
    pub fn of(state: &AllocatorState, replay: &Replay) -> Self {
        let mut space = Self::default();
        for range in &state.ranges {
            space.insert(space.ranges.len(), *range);
            space.give(space.ranges.len() - 1, range.address.0, range.end(), &mut Nobody);
        }
        for &number in &state.active {
            space.begin(number, place(replay, number), &mut Nobody);
        }
        space
    }

    /// Returns the ranges by address.
    pub fn ranges(&self) -> &[SpaceRange] {
        &self.ranges
    }

    /// Returns all gaps by address.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.gaps.iter().flat_map(GapList::iter)
    }

    /// Returns the gaps of a range, by address.
    pub fn gaps_of(&self, range: &Range) -> impl Iterator<Item = Gap> + '_ {
        self.find(range.address.0).and_then(|i| self.gaps.get(i)).into_iter().flat_map(GapList::iter)
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
    fn find(&self, address: u64) -> Option<usize> {
        let i = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        self.ranges.get(i).filter(|own| own.range.holds(address)).map(|_| i)
    }

    /// Returns the range that a block lies in, and the end of its part in there.
    #[inline]
    fn extent(&self, address: u64, size: u64) -> Option<(usize, u64)> {
        let i = self.find(address)?;
        let end = address.saturating_add(size).min(self.ranges.get(i)?.range.end());
        (end > address).then_some((i, end))
    }

    /// Adds an active block.
    #[inline]
    fn begin(&mut self, number: u32, (address, size): (u64, u64), visit: &mut impl SpaceVisitor) {
        let extent = self.extent(address, size);
        if extent.is_none_or(|(_, end)| end < address.saturating_add(size)) {
            self.strays.insert(number, (address, size));
        }
        let Some((i, end)) = extent else { return };
        let Some(parts) = self.take(i, address, end, visit) else { return };
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
        let Some((i, end)) = self.extent(address, size) else { return };
        if self.overlaps.is_empty() {
            self.give(i, address, end, visit);
            return;
        }
        for (from, to) in self.overlaps.remove(address, end) {
            self.give(i, from, to, visit);
        }
    }

    /// Takes bytes out of the gaps of range `i`. Returns the parts that were free, unless all was.
    #[inline]
    fn take(&mut self, i: usize, from: u64, to: u64, visit: &mut impl SpaceVisitor) -> Option<Vec<(u64, u64)>> {
        let (own, list) = (self.ranges.get_mut(i)?, self.gaps.get_mut(i)?);
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

    /// Adds bytes that are in no gap to the gaps of range `i`.
    #[inline]
    fn give(&mut self, i: usize, from: u64, to: u64, visit: &mut impl SpaceVisitor) {
        let (Some(own), Some(list)) = (self.ranges.get_mut(i), self.gaps.get_mut(i)) else { return };
        let count = &mut self.gap_count;
        list.give(from, to, |before, after| {
            *count = *count + usize::from(after.is_some()) - usize::from(before.is_some());
            visit.gap(&own.range, before, after);
        });
        self.cached = self.cached.saturating_add(to - from);
        own.free = own.free.saturating_add(to - from);
        self.whole = self.whole.saturating_add(own.whole());
    }

    /// Inserts a range without gaps.
    fn insert(&mut self, i: usize, range: Range) {
        self.ranges.insert(i, SpaceRange { range, free: 0 });
        self.starts.insert(i, range.address.0);
        self.gaps.insert(i, GapList::default());
    }

    /// Adds a free range, and joins it with its neighbours where they are one (see `Range::joins`). Returns `false` if
    /// something else is there.
    fn reserve(&mut self, range: Range, visit: &mut impl SpaceVisitor) -> bool {
        let (start, end) = (range.address.0, range.end());
        let i = self.starts.partition_point(|own| *own < start);
        let is_free =
            i.checked_sub(1).and_then(|before| self.ranges.get(before)).is_none_or(|own| own.range.end() <= start)
                && self.starts.get(i).is_none_or(|own| *own >= end);
        let touches = |&(address, size): &(u64, u64)| address < end && address.saturating_add(size) > start;
        if !is_free || self.strays.values().any(touches) {
            return false;
        }
        self.insert(i, range);
        let mut place = i;
        if self.ranges.get(i + 1).is_some_and(|next| range.joins(&next.range)) {
            self.join(i);
        }
        if let Some(before) = i.checked_sub(1)
            && self.ranges.get(before).is_some_and(|own| own.range.joins(&range))
        {
            self.join(before);
            if let Some(joined) = self.ranges.get_mut(before) {
                joined.range.since = range.since;
            }
            place = before;
        }
        self.give(place, start, end, visit);
        true
    }

    /// Makes range `i` and the next one one.
    fn join(&mut self, i: usize) {
        let (next, gaps) = (self.ranges.remove(i + 1), self.gaps.remove(i + 1));
        self.starts.remove(i + 1);
        let (Some(own), Some(list)) = (self.ranges.get_mut(i), self.gaps.get_mut(i)) else { return };
        self.whole = self.whole.saturating_sub(own.whole()).saturating_sub(next.whole());
        own.range.size = own.range.size.saturating_add(next.range.size);
        own.free = own.free.saturating_add(next.free);
        self.whole = self.whole.saturating_add(own.whole());
        list.append(gaps);
    }

    /// Removes `[address, address + size)` from the range that holds `address`. Returns `false` if a block is active
    /// there.
    fn release(&mut self, address: u64, size: u64, visit: &mut impl SpaceVisitor) -> bool {
        let Some((i, end)) = self.extent(address, size) else { return true };
        if !self.gaps.get(i).is_some_and(|list| list.holds(address, end)) {
            return false;
        }
        self.take(i, address, end, visit);
        let own = self.ranges.remove(i);
        let mut list = self.gaps.remove(i);
        self.starts.remove(i);
        let tail_list = list.split_off(address);
        let head = Range { size: address - own.range.address.0, ..own.range };
        let tail = Range { address: Address(end), size: own.range.end() - end, ..own.range };
        // The tail first, so that the head comes to stand before it.
        for (range, list) in [(tail, tail_list), (head, list)] {
            if range.size > 0 {
                let part = SpaceRange { range, free: list.iter().map(|gap| gap.size).sum() };
                self.whole = self.whole.saturating_add(part.whole());
                self.ranges.insert(i, part);
                self.starts.insert(i, range.address.0);
                self.gaps.insert(i, list);
            }
        }
        true
    }

    /// Replaces the space by that of a state, and visits the difference.
    #[cold]
    fn replace(&mut self, new: Self, visit: &mut impl SpaceVisitor) {
        let old = std::mem::replace(self, new);
        for (own, list) in old.ranges.iter().zip(&old.gaps).filter(|(own, list)| !self.has(own, list)) {
            list.iter().for_each(|gap| visit.gap(&own.range, Some(gap), None));
        }
        for (own, list) in self.ranges.iter().zip(&self.gaps).filter(|(own, list)| !old.has(own, list)) {
            list.iter().for_each(|gap| visit.gap(&own.range, None, Some(gap)));
        }
    }

    /// Returns whether it has this range with these gaps.
    fn has(&self, range: &SpaceRange, list: &GapList) -> bool {
        let found = self.starts.binary_search(&range.range.address.0).ok();
        let known = found.and_then(|i| Some((self.ranges.get(i)?, self.gaps.get(i)?)));
        known.is_some_and(|(own, gaps)| own == range && gaps.iter().eq(list.iter()))
    }

    #[inline]
    fn apply(
        &mut self,
        replay: &Replay,
        change: Change,
        segment: Option<&SegmentChange>,
        visit: &mut impl SpaceVisitor,
    ) {
        match (change, segment) {
            (Change::Begin(number), _) => self.begin(number, place(replay, number), visit),
            (Change::End(number), _) => self.end(number, place(replay, number), visit),
            (Change::Reserved(_), Some(segment)) => self.change_segment(replay, segment, visit),
            (Change::Freed(_) | Change::Reserved(_), _) => {}
        }
    }

    fn change_segment(&mut self, replay: &Replay, change: &SegmentChange, visit: &mut impl SpaceVisitor) {
        let SegmentChange { position, range, is_reserved } = *change;
        let is_plain = match (range.size, is_reserved) {
            (0, _) => true,
            (_, true) => self.reserve(Range { since: position, ..range }, visit),
            (size, false) => self.release(range.address.0, size, visit),
        };
        // Only segments can follow at this position: blocks that change at it were visited before.
        if !is_plain {
            self.replace(replay.space_at(position), visit);
        }
    }
}

/// Returns the address and the size of an allocation's block.
#[inline]
fn place(replay: &Replay, number: u32) -> (u64, u64) {
    let (address, size) = (&replay.allocations.address, &replay.allocations.size);
    (address.get(number as usize).unwrap_or_default(), size.get(number as usize).unwrap_or_default())
}

/// Visits nothing.
struct Nobody;

impl SpaceVisitor for Nobody {
    fn gap(&mut self, _: &Range, _: Option<Gap>, _: Option<Gap>) {}

    fn change(&mut self, _: u32, _: Change, _: &Space) {}
}

impl Replay {
    /// Returns the space at a position, from which [`Self::follow`] can go on.
    pub fn space_at(&self, position: u32) -> Space {
        Space::of(&self.state_at(position), self)
    }

    /// Leads `space`, which is that of position `from`, to position `to`, and visits every change on the way.
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
