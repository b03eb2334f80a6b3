//! The free memory of a device, followed change by change: which gaps every range has.
//!
//! [`Replay::state_at`] finds the state of one position. [`Replay::follow`] goes from position to position, and costs
//! some ten nanoseconds for each change. What is computed at every event (fragmentation, heatmaps) is a
//! [`SpaceVisitor`].
//!
//! In a trace without contradictions, the gaps are those of [`AllocatorState::gaps_in`] at every position. Where blocks
//! overlap, which only a damaged trace shows, the end of one of them frees all of its memory.

use std::collections::BTreeMap;

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
    /// The first address of each gap, by the first address behind it. A block is put at the start of a gap, which
    /// leaves its key as it is.
    gaps: BTreeMap<u64, u64>,
    cached: u64,
    whole: u64,
}

impl Space {
    /// Returns the space of a state.
    pub fn of(state: &AllocatorState, replay: &Replay) -> Self {
        let mut space = Self::default();
        for (i, range) in state.ranges.iter().enumerate() {
            let mut free = 0_u64;
            for gap in state.gaps_in(i, &replay.allocations) {
                space.gaps.insert(gap.end(), gap.address.0);
                free += gap.size;
            }
            let range = SpaceRange { range: *range, free };
            space.cached += free;
            space.whole += range.whole();
            space.ranges.push(range);
        }
        space
    }

    /// Returns the ranges by address.
    pub fn ranges(&self) -> &[SpaceRange] {
        &self.ranges
    }

    /// Returns all gaps by address.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.gaps.iter().map(|(&end, &start)| gap(start, end))
    }

    /// Returns the gaps of a range, by address.
    pub fn gaps_of(&self, range: &Range) -> impl Iterator<Item = Gap> + '_ {
        let end = range.end();
        self.gaps.range(range.address.0.saturating_add(1)..=end).map(|(&end, &start)| gap(start, end))
    }

    /// Returns the number of gaps.
    pub fn gap_count(&self) -> usize {
        self.gaps.len()
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

    /// Returns the range that holds an address.
    pub fn range_at(&self, address: u64) -> Option<&SpaceRange> {
        self.find(address).and_then(|i| self.ranges.get(i))
    }

    fn find(&self, address: u64) -> Option<usize> {
        let i = self.ranges.partition_point(|own| own.range.address.0 <= address).checked_sub(1)?;
        self.ranges.get(i).filter(|own| own.range.holds(address)).map(|_| i)
    }

    /// Takes `[address, address + size)` out of the gaps of the range that holds `address`.
    fn take(&mut self, address: u64, size: u64, visit: &mut impl SpaceVisitor) {
        let Some(i) = self.find(address) else { return };
        let Some(own) = self.ranges.get(i).copied() else { return };
        let end = address.saturating_add(size).min(own.range.end());
        if end <= address {
            return;
        }
        let mut taken = 0;
        let mut from = address;
        while let Some((&gap_end, start)) = self.gaps.range_mut(from.saturating_add(1)..).next()
            && *start < end
        {
            let before = gap(*start, gap_end);
            let (left, right) = (before.address.0.max(address), gap_end.min(end));
            taken += right - left;
            let head = (before.address.0 < left).then(|| gap(before.address.0, left));
            if right < gap_end {
                *start = right;
            } else {
                self.gaps.remove(&gap_end);
            }
            let tail = (right < gap_end).then(|| gap(right, gap_end));
            match head {
                Some(head) => {
                    self.gaps.insert(left, head.address.0);
                    visit.gap(&own.range, Some(before), Some(head));
                    if tail.is_some() {
                        visit.gap(&own.range, None, tail);
                    }
                }
                None => visit.gap(&own.range, Some(before), tail),
            }
            from = gap_end;
        }
        self.set_free(i, own.free.saturating_sub(taken));
    }

    /// Adds `[address, address + size)` to the gaps of the range that holds `address`.
    fn give(&mut self, address: u64, size: u64, visit: &mut impl SpaceVisitor) {
        let Some(i) = self.find(address) else { return };
        let Some(own) = self.ranges.get(i).copied() else { return };
        let end = address.saturating_add(size).min(own.range.end());
        if end <= address {
            return;
        }
        // The new gap with all gaps of the range that it touches. The first of them becomes it, so that a neighbour
        // that grows is visited as one change.
        let mut merged = gap(address, end);
        let mut first = None;
        let mut known = 0;
        loop {
            // A gap that ends where the range begins lies in another one.
            let least = merged.address.0.max(own.range.address.0.saturating_add(1));
            let touching = self.gaps.range(least..).next().map(|(&end, &start)| gap(start, end));
            let limit = merged.end().min(own.range.end().saturating_sub(1));
            let Some(other) = touching.filter(|other| other.address.0 <= limit) else { break };
            self.gaps.remove(&other.end());
            known += other.size;
            merged = gap(merged.address.0.min(other.address.0), merged.end().max(other.end()));
            if first.is_none() {
                first = Some(other);
            } else {
                visit.gap(&own.range, Some(other), None);
            }
        }
        self.gaps.insert(merged.end(), merged.address.0);
        visit.gap(&own.range, first, Some(merged));
        self.set_free(i, own.free.saturating_sub(known).saturating_add(merged.size));
    }

    fn set_free(&mut self, i: usize, free: u64) {
        let Some(own) = self.ranges.get_mut(i) else { return };
        self.cached = self.cached.saturating_sub(own.free).saturating_add(free);
        self.whole = self.whole.saturating_sub(own.whole());
        own.free = free;
        self.whole = self.whole.saturating_add(own.whole());
    }

    /// Adds a free range, and joins it with its neighbours where they are one (see `Range::joins`).
    fn reserve(&mut self, range: Range, visit: &mut impl SpaceVisitor) {
        if range.size == 0 {
            return;
        }
        // Only a damaged trace reserves what is reserved.
        self.release(range.address.0, range.size, visit);
        let i = self.ranges.partition_point(|own| own.range.address.0 < range.address.0);
        self.ranges.insert(i, SpaceRange { range, free: 0 });
        if let Some(next) = self.ranges.get(i + 1).copied().filter(|next| range.joins(&next.range)) {
            self.join(i, next);
        }
        if let Some(before) = i.checked_sub(1)
            && let Some(own) = self.ranges.get(i).copied()
            && self.ranges.get(before).is_some_and(|left| left.range.joins(&own.range))
        {
            self.join(before, own);
            if let Some(joined) = self.ranges.get_mut(before) {
                joined.range.since = own.range.since;
            }
        }
        self.give(range.address.0, range.size, visit);
    }

    /// Makes range `i` and the next one, `next`, one.
    fn join(&mut self, i: usize, next: SpaceRange) {
        self.ranges.remove(i + 1);
        let Some(own) = self.ranges.get_mut(i) else { return };
        self.whole = self.whole.saturating_sub(own.whole()).saturating_sub(next.whole());
        own.range.size = own.range.size.saturating_add(next.range.size);
        own.free = own.free.saturating_add(next.free);
        self.whole = self.whole.saturating_add(own.whole());
    }

    /// Removes `[address, address + size)` from every range that it overlaps.
    fn release(&mut self, address: u64, size: u64, visit: &mut impl SpaceVisitor) {
        let end = address.saturating_add(size);
        let mut i = self.ranges.partition_point(|own| own.range.end() <= address);
        while let Some(own) = self.ranges.get(i).copied().filter(|own| own.range.address.0 < end) {
            let (left, right) = (own.range.address.0.max(address), own.range.end().min(end));
            self.take(left, right - left, visit);
            let Some(own) = self.ranges.get(i).copied() else { return };
            self.cached = self.cached.saturating_sub(own.free);
            self.whole = self.whole.saturating_sub(own.whole());
            let head = Range { size: left - own.range.address.0, ..own.range };
            let tail = Range { address: Address(right), size: own.range.end() - right, ..own.range };
            let kept: Vec<SpaceRange> = [head, tail]
                .into_iter()
                .filter(|range| range.size > 0)
                .map(|range| SpaceRange { range, free: self.gaps_of(&range).map(|gap| gap.size).sum() })
                .collect();
            for part in &kept {
                self.cached = self.cached.saturating_add(part.free);
                self.whole = self.whole.saturating_add(part.whole());
            }
            let count = kept.len();
            self.ranges.splice(i..=i, kept);
            i += count;
        }
    }

    fn apply(
        &mut self,
        replay: &Replay,
        change: Change,
        segment: Option<&SegmentChange>,
        visit: &mut impl SpaceVisitor,
    ) {
        let place = |number: u32| {
            let (address, size) = (&replay.allocations.address, &replay.allocations.size);
            (address.get(number as usize).unwrap_or_default(), size.get(number as usize).unwrap_or_default())
        };
        match (change, segment) {
            (Change::Begin(number), _) => {
                let (address, size) = place(number);
                self.take(address, size, visit);
            }
            (Change::End(number), _) => {
                let (address, size) = place(number);
                self.give(address, size, visit);
            }
            (Change::Reserved(_), Some(SegmentChange { position, range, is_reserved: true })) => {
                self.reserve(Range { since: *position, ..*range }, visit);
            }
            (Change::Reserved(_), Some(SegmentChange { range, .. })) => {
                self.release(range.address.0, range.size, visit);
            }
            (Change::Freed(_) | Change::Reserved(_), _) => {}
        }
    }
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

fn gap(start: u64, end: u64) -> Gap {
    Gap { address: Address(start), size: end.saturating_sub(start) }
}
