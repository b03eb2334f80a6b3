//! The address ranges that may be read and written: those that are allocated.

use std::collections::BTreeMap;

/// Disjoint address ranges: their sizes in bytes by start.
#[derive(Debug, Default)]
pub(super) struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// Adds a range. The driver never allocates a byte twice, so ranges do not overlap.
    pub(super) fn insert(&mut self, start: u64, size: u64) {
        self.0.insert(start, size);
    }

    /// Removes the range that starts at `start` and returns its size.
    pub(super) fn remove(&mut self, start: u64) -> Option<u64> {
        self.0.remove(&start)
    }

    /// Returns the size of the range that starts at `start`.
    pub(super) fn get(&self, start: u64) -> Option<u64> {
        self.0.get(&start).copied()
    }

    /// Returns whether all `size` bytes from `start` on are in ranges; adjacent ranges count as one.
    pub(super) fn covers(&self, start: u64, size: u64) -> bool {
        let Some(end) = start.checked_add(size) else { return false };
        let mut reached = start;
        while reached < end {
            let Some((from, bytes)) = self.0.range(..=reached).next_back() else { return false };
            let to = from.saturating_add(*bytes);
            if to <= reached {
                return false;
            }
            reached = to;
        }
        true
    }

    /// Removes and returns all ranges.
    pub(super) fn take(&mut self) -> BTreeMap<u64, u64> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_within_ranges_are_covered() {
        let mut spans = Spans::default();
        for (start, size) in [(100, 50), (150, 50), (300, 10)] {
            spans.insert(start, size);
        }
        let cases = [
            (100, 100, true),
            (120, 60, true),
            (199, 1, true),
            (200, 1, false),
            (99, 1, false),
            (199, 2, false),
            (180, 125, false),
            (300, 10, true),
            (300, 11, false),
            (305, 0, true),
            (u64::MAX, 2, false),
        ];
        for (start, size, want) in cases {
            assert_eq!(spans.covers(start, size), want, "{start}+{size}");
        }
        assert_eq!((spans.remove(150), spans.remove(150)), (Some(50), None));
        assert!(!spans.covers(100, 51));
        assert_eq!((spans.get(100), spans.get(101)), (Some(50), None));
        assert_eq!(spans.take().len(), 2);
        assert!(!spans.covers(100, 1));
    }
}
