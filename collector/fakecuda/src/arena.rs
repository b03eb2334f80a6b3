//! Allocates parts of a range of numbers, in multiples of 2 MiB, from the lowest or the highest hole that is large enough.

use std::collections::BTreeMap;

/// The unit of addresses and physical memory in bytes.
pub(crate) const GRANULE: u64 = 2 << 20;

/// Rounds `size` up to whole granules; `None` on overflow.
pub(crate) fn granules(size: u64) -> Option<u64> {
    size.max(1).checked_next_multiple_of(GRANULE)
}

/// The range.
#[derive(Debug)]
pub(crate) struct Arena {
    holes: BTreeMap<u64, u64>,
    allocated: BTreeMap<u64, u64>,
    /// Allocate from the highest hole.
    is_descending: bool,
    /// Whether freed addresses are allocated again.
    reuses: bool,
}

impl Arena {
    /// Creates a range without allocations.
    pub(crate) fn new(base: u64, size: u64, is_descending: bool) -> Self {
        Self { holes: BTreeMap::from([(base, size)]), allocated: BTreeMap::new(), is_descending, reuses: true }
    }

    /// Sets whether freed addresses are allocated again.
    pub(crate) fn reusing(self, reuses: bool) -> Self {
        Self { reuses, ..self }
    }

    /// Allocates `size`, a whole number of granules.
    pub(crate) fn allocate(&mut self, size: u64) -> Option<u64> {
        let fits = |(_, hole): &(&u64, &u64)| **hole >= size;
        let found = if self.is_descending { self.holes.iter().rfind(fits) } else { self.holes.iter().find(fits) };
        let (from, hole) = found.map(|(from, hole)| (*from, *hole))?;
        self.holes.remove(&from);
        let (start, rest) = if self.is_descending { (from + hole - size, from) } else { (from, from + size) };
        if hole > size {
            self.holes.insert(rest, hole - size);
        }
        self.allocated.insert(start, size);
        Some(start)
    }

    /// Frees the allocation that starts at `start` and returns its size.
    pub(crate) fn free(&mut self, start: u64) -> Option<u64> {
        let size = self.allocated.remove(&start)?;
        if !self.reuses {
            return Some(size);
        }
        let (mut from, mut to) = (start, start + size);
        if let Some(next) = self.holes.remove(&to) {
            to += next;
        }
        if let Some((before, hole)) = self.holes.range(..from).next_back().map(|(before, hole)| (*before, *hole))
            && before + hole == from
        {
            self.holes.remove(&before);
            from = before;
        }
        self.holes.insert(from, to - from);
        Some(size)
    }

    /// Returns the start and size of the allocation that contains an address.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let (start, size) = self.allocated.range(..=address).next_back()?;
        (address - start < *size).then_some((*start, *size))
    }

    /// Returns the number of allocations.
    pub(crate) fn count(&self) -> usize {
        self.allocated.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_hole_is_used_and_adjacent_holes_merge() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, false);
        let at = |n: u64| Some((10 + n) * GRANULE);
        assert_eq!([2, 1, 3].map(|n| arena.allocate(n * GRANULE)), [at(0), at(2), at(3)]);
        assert_eq!(arena.allocate(3 * GRANULE), None);
        assert_eq!(arena.free(10 * GRANULE), Some(2 * GRANULE));
        assert_eq!(arena.free(10 * GRANULE), None);
        assert_eq!(arena.allocate(GRANULE), at(0));
        assert_eq!((arena.free(12 * GRANULE), arena.allocate(2 * GRANULE)), (Some(GRANULE), at(1)));
        assert_eq!(arena.containing(12 * GRANULE + 5), Some((11 * GRANULE, 2 * GRANULE)));
        assert_eq!(arena.containing(17 * GRANULE), None);
        for start in [10, 11, 13] {
            arena.free(start * GRANULE);
        }
        assert_eq!((arena.count(), arena.allocate(8 * GRANULE)), (0, at(0)));
    }

    #[test]
    fn the_highest_hole_is_used_if_descending() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, true);
        let taken = [2, 1, 3].map(|n| arena.allocate(n * GRANULE).unwrap() / GRANULE);
        assert_eq!(taken, [16, 15, 12]);
        assert_eq!((arena.allocate(3 * GRANULE), arena.free(15 * GRANULE)), (None, Some(GRANULE)));
        assert_eq!(arena.allocate(GRANULE), Some(15 * GRANULE));
    }

    #[test]
    fn no_address_is_allocated_twice_without_reuse() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, false).reusing(false);
        let first = arena.allocate(2 * GRANULE).unwrap();
        assert_eq!((arena.free(first), arena.count()), (Some(2 * GRANULE), 0));
        assert_eq!(arena.allocate(GRANULE), Some(12 * GRANULE));
    }

    #[test]
    fn sizes_are_whole_granules() {
        for (size, want) in [(0, Some(GRANULE)), (1, Some(GRANULE)), (GRANULE, Some(GRANULE)), (u64::MAX, None)] {
            assert_eq!(granules(size), want);
        }
    }
}
