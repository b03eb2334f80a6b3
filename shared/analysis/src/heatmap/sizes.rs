//! Rows of request sizes: the free bytes that could serve a request of each size.
//!
//! A gap could serve a size if it is at least as large and lies in a segment of the right kind: small sizes come from
//! small segments, others from large ones.

use super::cells::Cell;
use super::packing::is_of;
use super::sweep::Rows;
use allocator::rounding::{MIN_BLOCK, SMALL_SIZE};
use query::{HeatmapPart, heatmap};
use replay::{AllocatorState, Change, Gap, Replay, ReservedRange};

/// The number of size classes that small segments serve: 512 bytes to 1 MiB.
const SMALL_CLASSES: usize = (SMALL_SIZE / MIN_BLOCK).ilog2() as usize + 1;

/// Returns the size of a class: a power of two.
pub fn size_of_class(class: usize) -> u64 {
    MIN_BLOCK.checked_shl(class as u32).filter(|size| *size > 0).unwrap_or(u64::MAX)
}

/// Returns the class of a request: the smallest that holds it.
pub fn class_of(size: u64) -> usize {
    let power = size.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1);
    power.saturating_sub(MIN_BLOCK.ilog2()) as usize
}

/// Returns the number of classes up to that of the largest request. All classes of small segments are always there.
pub fn classes(largest: u64) -> usize {
    class_of(largest.max(SMALL_SIZE)) + 1
}

/// Free bytes, the number of their gaps, and a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Bytes.
    pub bytes: u64,
    /// Gaps.
    pub gaps: u32,
    /// The first position with this many bytes.
    pub position: u32,
}

/// The most and the least free bytes over the positions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// The most.
    pub most: Free,
    /// The least. In the cell of no position it is more than the most.
    pub least: Free,
}

impl Cell for Extremes {
    const NONE: Self = Self {
        most: Free { bytes: 0, gaps: 0, position: u32::MAX },
        least: Free { bytes: u64::MAX, gaps: 0, position: u32::MAX },
    };

    fn merge(&mut self, later: &Self) {
        // In the cell of no position everything is replaced.
        if later.most.bytes > self.most.bytes || !self.is_known() {
            self.most = later.most;
        }
        if later.least.bytes < self.least.bytes {
            self.least = later.least;
        }
    }

    fn set_position(&mut self, position: u32) {
        (self.most.position, self.least.position) = (position, position);
    }
}

impl Extremes {
    /// Returns whether it has any position.
    pub const fn is_known(&self) -> bool {
        self.least.bytes <= self.most.bytes
    }

    /// Returns the code that the cell is drawn from: see [`heatmap::size`].
    pub fn code(&self) -> u16 {
        if !self.is_known() {
            return 0;
        }
        let step = self.most.bytes.checked_ilog2().map_or(0, |log| log.saturating_sub(9) + 1);
        let none = if self.least.bytes == 0 { heatmap::size::NONE_AT_SOME_POSITION } else { 0 };
        step as u16 | none | heatmap::size::IS_KNOWN
    }
}

/// The free bytes and gaps of each class.
pub(super) struct SizeRows {
    part: HeatmapPart,
    /// The bytes and number of the gaps that could serve each class.
    free: Vec<(u64, u32)>,
    /// The classes that have changed since the last settling: `[first, end)` in small segments and in large ones.
    changed: [(usize, usize); 2],
    /// For a single segment, its addresses.
    only: Option<(u64, u64)>,
}

impl SizeRows {
    /// Creates rows for the classes up to that of the largest request. `only` bounds the addresses of gaps.
    pub(super) fn new(part: HeatmapPart, largest: u64, only: Option<(u64, u64)>) -> Self {
        let count = classes(largest);
        let changed = [(0, SMALL_CLASSES.min(count)), (SMALL_CLASSES.min(count), count)];
        Self { part, free: vec![(0, 0); count], changed, only }
    }

    fn add(&mut self, is_small: bool, gap: Gap, is_new: bool) {
        let Some(largest) = (gap.size / MIN_BLOCK).checked_ilog2() else { return };
        let first = if is_small { 0 } else { SMALL_CLASSES };
        let end = (largest as usize + 1).min(if is_small { SMALL_CLASSES } else { self.free.len() });
        for (bytes, gaps) in self.free.get_mut(first..end).into_iter().flatten() {
            // Only a damaged trace has more bytes than a number, or fewer than none.
            (*bytes, *gaps) = if is_new {
                (bytes.wrapping_add(gap.size), gaps.wrapping_add(1))
            } else {
                (bytes.wrapping_sub(gap.size), gaps.wrapping_sub(1))
            };
        }
        let changed = if is_small { &mut self.changed[0] } else { &mut self.changed[1] };
        *changed = (first, changed.1.max(end));
    }
}

impl Rows for SizeRows {
    type Cell = Extremes;
    /// Whether the range serves small requests.
    type Kind = bool;

    fn kind(&mut self, range: &ReservedRange) -> Option<bool> {
        let is_inside = self.only.is_none_or(|(from, to)| from <= range.address.0 && range.address.0 < to);
        (is_inside && is_of(self.part, range)).then_some(range.is_small)
    }

    fn gap(&mut self, is_small: bool, before: Option<Gap>, after: Option<Gap>) {
        if let Some(before) = before {
            self.add(is_small, before, false);
        }
        if let Some(after) = after {
            self.add(is_small, after, true);
        }
    }

    fn change(&mut self, _: u32, _: Change, _: &Replay) {}

    fn begin(&mut self, _: &AllocatorState, _: &Replay) {}

    fn count(&self) -> usize {
        self.free.len()
    }

    fn settle(&mut self, position: u32, mut update: impl FnMut(usize, Extremes)) {
        for (first, end) in &mut self.changed {
            for (row, &(bytes, gaps)) in self.free.iter().enumerate().take(*end).skip(*first) {
                let free = Free { bytes, gaps, position };
                update(row, Extremes { most: free, least: free });
            }
            *end = *first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_up_to_the_largest_request() {
        for (largest, count) in [(0, 12), (1 << 20, 12), ((1 << 20) + 512, 13), (2 << 20, 13), ((2 << 20) + 1, 14)] {
            assert_eq!(classes(largest), count, "{largest}");
            assert!(size_of_class(count - 1) >= largest);
        }
        assert_eq!(classes(u64::MAX), 56);
        for (size, class) in [(0, 0), (1, 0), (512, 0), (513, 1), (1 << 20, 11), ((1 << 20) + 1, 12), (u64::MAX, 55)] {
            assert_eq!(class_of(size), class, "{size}");
            assert!(size_of_class(class) >= size);
        }
        assert_eq!(size_of_class(55), u64::MAX, "no power of two is so large");
        assert_eq!((size_of_class(0), size_of_class(11), size_of_class(54)), (512, 1 << 20, 1 << 63));
    }

    #[test]
    fn a_cell_tells_its_most_bytes_and_whether_nothing_was_there() {
        let free = |bytes| Free { bytes, gaps: 1, position: 3 };
        let cell = |most, least| Extremes { most: free(most), least: free(least) };
        let cases = [
            (Extremes::NONE, 0),
            (cell(0, 0), 0x300),
            (cell(512, 0), 0x301),
            (cell(1023, 512), 0x201),
            (cell(1024, 512), 0x202),
            (cell(1 << 40, 1), 0x220),
        ];
        for (cell, code) in cases {
            assert_eq!(cell.code(), code, "{cell:?}");
        }
        let mut merged = Extremes::NONE;
        merged.merge(&cell(0, 0));
        assert_eq!(merged, cell(0, 0));
        merged.merge(&Extremes::NONE);
        assert_eq!(merged, cell(0, 0));
    }
}
