//! The state at one position: ranges, active blocks, and the gaps between them.

use super::allocations::Allocations;
use super::segments::ReservedRange;
use trace::order;
use trace::totals::Totals;
use trace::units::Address;

/// The state at one position.
#[derive(Clone, Debug, Default)]
pub struct AllocatorState {
    /// The position.
    pub position: u32,
    /// The reserved ranges, by address.
    pub ranges: Vec<ReservedRange>,
    /// The numbers of the active allocations, by address.
    pub active: Vec<u32>,
    /// The part of `active` that lies in each range.
    in_range: Vec<std::ops::Range<usize>>,
    /// The sums.
    pub totals: Totals,
}

/// A maximal part of a range without an active block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its first address.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
}

impl Gap {
    /// Returns the first address after it.
    pub const fn end(&self) -> u64 {
        self.address.0.saturating_add(self.size)
    }
}

impl AllocatorState {
    pub(super) fn new(
        position: u32,
        ranges: Vec<ReservedRange>,
        mut active: Vec<u32>,
        allocations: &Allocations,
    ) -> Self {
        let address = |n: u32| allocations.address.get(n as usize).unwrap_or_default();
        order::sort_numbers_by_key(&mut active, address);
        let mut state = Self { position, ranges, active, in_range: Vec::new(), totals: Totals::default() };
        let mut next = 0;
        for range in &state.ranges {
            while state.active.get(next).is_some_and(|&n| address(n) < range.address.0) {
                next += 1;
            }
            let first = next;
            while state.active.get(next).is_some_and(|&n| address(n) < range.end()) {
                next += 1;
            }
            state.in_range.push(first..next);
        }
        state.totals = state.sums(allocations);
        state
    }

    /// Returns the numbers of the active allocations in range `i`, by address.
    pub fn active_in(&self, i: usize) -> &[u32] {
        self.in_range.get(i).and_then(|r| self.active.get(r.clone())).unwrap_or(&[])
    }

    /// Returns the gaps of range `i`, by address.
    pub fn gaps_in<'a>(&'a self, i: usize, allocations: &'a Allocations) -> impl Iterator<Item = Gap> + 'a {
        let (mut at, end) = self.ranges.get(i).map_or((0, 0), |r| (r.address.0, r.end()));
        let blocks = self.active_in(i).iter().map(|&n| {
            let n = n as usize;
            (allocations.address.get(n).unwrap_or_default(), allocations.size.get(n).unwrap_or_default())
        });
        blocks.chain([(end, 0)]).filter_map(move |(address, size)| {
            let address = address.min(end);
            let gap = Gap { address: Address(at), size: address.saturating_sub(at) };
            at = at.max(address.saturating_add(size));
            (gap.size > 0).then_some(gap)
        })
    }

    fn sums(&self, allocations: &Allocations) -> Totals {
        let mut totals =
            Totals { segments: self.ranges.len() as u32, blocks: self.active.len() as u32, ..Totals::default() };
        for range in &self.ranges {
            totals.reserved = totals.reserved.saturating_add(range.size);
        }
        for a in self.active.iter().filter_map(|&n| allocations.get(n)) {
            totals.requested = totals.requested.saturating_add(a.requested);
            totals.active = totals.active.saturating_add(a.size);
            if a.is_allocated_at(self.position) {
                totals.allocated = totals.allocated.saturating_add(a.size);
            }
        }
        for i in 0..self.ranges.len() {
            for gap in self.gaps_in(i, allocations) {
                totals.gaps += 1;
                totals.cached = totals.cached.saturating_add(gap.size);
                totals.largest_gap = totals.largest_gap.max(gap.size);
            }
        }
        totals
    }
}
