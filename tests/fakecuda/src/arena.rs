//! A range of numbers handed out in pieces: from the lowest hole that is large enough, or the highest, in steps of
//! 2 MiB.

use std::collections::BTreeMap;

/// What addresses and physical memory are handed out in.
pub(crate) const GRANULE: u64 = 2 << 20;

/// `size` in whole granules; `None` beyond what a number holds.
pub(crate) fn granules(size: u64) -> Option<u64> {
    size.max(1).checked_next_multiple_of(GRANULE)
}

/// The range.
#[derive(Debug)]
pub(crate) struct Arena {
    holes: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
    /// The highest first.
    is_descending: bool,
    /// Whether a piece that was given back is handed out again.
    reuses: bool,
}

impl Arena {
    /// A range with nothing taken.
    pub(crate) fn new(base: u64, size: u64, is_descending: bool) -> Self {
        Self { holes: BTreeMap::from([(base, size)]), taken: BTreeMap::new(), is_descending, reuses: true }
    }

    /// The same range, which hands out no address twice where `reuses` is false.
    pub(crate) fn reusing(self, reuses: bool) -> Self {
        Self { reuses, ..self }
    }

    /// Takes `size`, a whole number of granules.
    pub(crate) fn take(&mut self, size: u64) -> Option<u64> {
        let fits = |(_, hole): &(&u64, &u64)| **hole >= size;
        let found = if self.is_descending { self.holes.iter().rfind(fits) } else { self.holes.iter().find(fits) };
        let (from, hole) = found.map(|(from, hole)| (*from, *hole))?;
        self.holes.remove(&from);
        let (start, rest) = if self.is_descending { (from + hole - size, from) } else { (from, from + size) };
        if hole > size {
            self.holes.insert(rest, hole - size);
        }
        self.taken.insert(start, size);
        Some(start)
    }

    /// Gives back the piece that begins at `start`; its size.
    pub(crate) fn give(&mut self, start: u64) -> Option<u64> {
        let size = self.taken.remove(&start)?;
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

    /// The piece that holds an address: its start and size.
    pub(crate) fn piece(&self, address: u64) -> Option<(u64, u64)> {
        let (start, size) = self.taken.range(..=address).next_back()?;
        (address - start < *size).then_some((*start, *size))
    }

    /// How many pieces are taken.
    pub(crate) fn pieces(&self) -> usize {
        self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_hole_serves_and_holes_grow_together() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, false);
        let at = |n: u64| Some((10 + n) * GRANULE);
        assert_eq!([2, 1, 3].map(|n| arena.take(n * GRANULE)), [at(0), at(2), at(3)]);
        assert_eq!(arena.take(3 * GRANULE), None);
        assert_eq!(arena.give(10 * GRANULE), Some(2 * GRANULE));
        assert_eq!(arena.give(10 * GRANULE), None);
        assert_eq!(arena.take(GRANULE), at(0));
        assert_eq!((arena.give(12 * GRANULE), arena.take(2 * GRANULE)), (Some(GRANULE), at(1)));
        assert_eq!(arena.piece(12 * GRANULE + 5), Some((11 * GRANULE, 2 * GRANULE)));
        assert_eq!(arena.piece(17 * GRANULE), None);
        for start in [10, 11, 13] {
            arena.give(start * GRANULE);
        }
        assert_eq!((arena.pieces(), arena.take(8 * GRANULE)), (0, at(0)));
    }

    #[test]
    fn the_highest_hole_serves_where_that_is_wanted() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, true);
        let taken = [2, 1, 3].map(|n| arena.take(n * GRANULE).unwrap() / GRANULE);
        assert_eq!(taken, [16, 15, 12]);
        assert_eq!((arena.take(3 * GRANULE), arena.give(15 * GRANULE)), (None, Some(GRANULE)));
        assert_eq!(arena.take(GRANULE), Some(15 * GRANULE));
    }

    #[test]
    fn no_address_is_handed_out_twice_where_that_is_wanted() {
        let mut arena = Arena::new(10 * GRANULE, 8 * GRANULE, false).reusing(false);
        let first = arena.take(2 * GRANULE).unwrap();
        assert_eq!((arena.give(first), arena.pieces()), (Some(2 * GRANULE), 0));
        assert_eq!(arena.take(GRANULE), Some(12 * GRANULE));
    }

    #[test]
    fn sizes_are_whole_granules() {
        for (size, want) in [(0, Some(GRANULE)), (1, Some(GRANULE)), (GRANULE, Some(GRANULE)), (u64::MAX, None)] {
            assert_eq!(granules(size), want);
        }
    }
}
