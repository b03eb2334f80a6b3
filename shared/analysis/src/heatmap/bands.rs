//! Columns that were made, kept for the next picture.
//!
//! The width of a column is a power of two of events or microseconds (its *level*), and column `c` always covers the
//! same part of the axis: `[c, c + 1)` widths. So a heatmap that was panned shares columns with the one before, one that
//! was zoomed out is merged from pairs of finer columns, and one that follows a running job adds columns at its end.
//!
//! ```text
//! level 5   ░░░░████████████░░░░      in view: kept, or merged from level 4, or swept
//! level 4         ▓▓▓▓▓▓▓▓
//! ```

use super::cells::Cell;
use query::Window;
use replay::index::RecentCache;

/// Levels that are kept: a few steps of zooming in and out.
const KEPT: usize = 6;

/// A stretch of columns of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The exponent of a column's width.
    pub level: u32,
    /// The first column.
    pub from: u64,
    /// The column after the last one.
    pub to: u64,
}

impl Columns {
    /// Returns the columns that cover a window: at most `most` and two more, and none outside of `extent`. A column is
    /// at least one event or microsecond wide.
    pub fn of(window: Window, extent: Window, most: u32) -> Self {
        let start = window.start.max(extent.start).max(0.0);
        let end = window.end.min(extent.end).max(start);
        let least = window.length() / f64::from(most.max(1));
        let mut level = 0;
        // Powers of two are exact, and casts saturate.
        while width(level) < least && level < 62 {
            level += 1;
        }
        Self { level, from: (start / width(level)).floor() as u64, to: (end / width(level)).ceil() as u64 }
    }

    /// Returns the part of the axis that they cover.
    pub fn window(&self) -> Window {
        let width = width(self.level);
        Window { start: self.from as f64 * width, end: self.to as f64 * width }
    }

    /// Returns their number.
    pub const fn count(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns how many columns of their level end at or before a coordinate.
    pub fn ended_by(&self, x: f64) -> u64 {
        (x / width(self.level)).floor().max(0.0) as u64
    }
}

/// Returns the width of the columns of a level.
fn width(level: u32) -> f64 {
    (1_u64 << level.min(62)) as f64
}

/// The columns of one level, each with the same number of rows.
#[derive(Debug)]
struct Band<C> {
    first: u64,
    /// The column after the last one.
    end: u64,
    /// Column by column.
    cells: Vec<C>,
    /// The position at the end of the trace when they were made, and the columns that had ended by then.
    made_at: (u32, u64),
}

/// The kept columns of a heatmap.
#[derive(Debug)]
pub(super) struct Bands<C> {
    rows: usize,
    bands: RecentCache<u32, Band<C>, KEPT>,
}

/// How far a trace has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Its last position.
    pub(super) positions: u32,
    /// The coordinate up to which later events change nothing.
    pub(super) settled: f64,
}

impl<C: Cell> Bands<C> {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, bands: RecentCache::default() }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the cells of columns, column by column. `make` returns those of columns that are not known.
    pub(super) fn cells(&mut self, columns: Columns, now: Progress, mut make: impl FnMut(Columns) -> Vec<C>) -> &[C] {
        let Columns { level, from, to } = columns;
        let rows = self.rows;
        let finer = level.checked_sub(1).and_then(|level| Some((level, self.bands.remove(&level)?)));
        let finer = finer.map(|(level, mut band)| {
            band.forget(Columns { level, from, to }, now, rows);
            (level, band)
        });
        let mut band = self.bands.remove(&level).map_or_else(
            || Band::empty(from),
            |mut band| {
                band.forget(columns, now, rows);
                band
            },
        );
        if band.end < from || band.first > to {
            band = Band::empty(from);
        }
        let mut missing = |a: u64, b: u64| {
            let mut cells = Vec::new();
            // What the finer level has, and what is left and right of it.
            let (c, d) = finer.as_ref().map_or((b, b), |(_, finer)| (finer.first.div_ceil(2), finer.end / 2));
            let (c, d) = (c.clamp(a, b), d.clamp(a, b));
            let (c, d) = if c < d { (c, d) } else { (b, b) };
            if a < c {
                cells.extend(make(Columns { level, from: a, to: c }));
            }
            for column in c..d {
                let half = |fine: u64| finer.as_ref().and_then(|(_, finer)| finer.column(fine, rows)).unwrap_or(&[]);
                let (left, right) = (half(column * 2), half(column * 2 + 1));
                cells.extend(left.iter().zip(right).map(|(left, right)| {
                    let mut merged = *left;
                    merged.merge(right);
                    merged
                }));
            }
            if d < b {
                cells.extend(make(Columns { level, from: d, to: b }));
            }
            cells
        };
        if from < band.first {
            let mut cells = missing(from, band.first);
            cells.append(&mut band.cells);
            (band.cells, band.first) = (cells, from);
        }
        if band.end < to {
            band.cells.append(&mut missing(band.end, to));
            band.end = to;
        }
        band.trim(columns, rows);
        band.made_at = (now.positions, columns.ended_by(now.settled));
        if let Some((level, finer)) = finer {
            self.bands.insert(level, finer);
        }
        let band = self.bands.insert(level, band);
        let (start, end) = ((from - band.first) as usize * rows, (to - band.first) as usize * rows);
        band.cells.get(start..end).unwrap_or(&[])
    }

    pub(super) fn bytes(&self) -> usize {
        self.bands.values().map(|band| band.cells.capacity() * size_of::<C>()).sum()
    }
}

impl<C: Cell> Band<C> {
    const fn empty(at: u64) -> Self {
        Self { first: at, end: at, cells: Vec::new(), made_at: (0, 0) }
    }

    fn column(&self, column: u64, rows: usize) -> Option<&[C]> {
        let i = column.checked_sub(self.first)? as usize;
        self.cells.get(i * rows..(i + 1) * rows)
    }

    /// Drops the columns that later events have changed.
    fn forget(&mut self, columns: Columns, now: Progress, rows: usize) {
        if self.made_at.0 != now.positions {
            self.end = self.end.min(self.made_at.1).max(self.first);
            self.cells.truncate((self.end - self.first) as usize * rows);
        }
        self.made_at = (now.positions, columns.ended_by(now.settled));
    }

    /// Drops what is further away from the columns than they are wide, so that a band stays small.
    fn trim(&mut self, Columns { from, to, .. }: Columns, rows: usize) {
        let margin = to - from;
        let (first, end) = (from.saturating_sub(margin).max(self.first), to.saturating_add(margin).min(self.end));
        self.cells.truncate((end - self.first) as usize * rows);
        self.cells.drain(..(first - self.first) as usize * rows);
        (self.first, self.end) = (first, end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The largest of some numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Largest(u32);

    impl Cell for Largest {
        const NONE: Self = Self(0);

        fn merge(&mut self, later: &Self) {
            self.0 = self.0.max(later.0);
        }
    }

    /// The largest number of each column of a list that ends at `end`.
    fn made(columns: Columns, values: &[u32], end: usize) -> Vec<Largest> {
        let width = 1_usize << columns.level;
        let cells = |column: u64| {
            let from = (column as usize * width).min(end);
            let largest = values[from..(from + width).min(end)].iter().max().copied().unwrap_or(0);
            // Two rows, of which one is constant.
            [Largest(largest), Largest(7)]
        };
        (columns.from..columns.to).flat_map(cells).collect()
    }

    #[test]
    fn columns_cover_the_window_and_stay_where_they_are() {
        let extent = Window { start: 0.0, end: 1000.0 };
        let columns = |start, end, most| {
            let columns = Columns::of(Window { start, end }, extent, most);
            (columns.level, columns.from, columns.to)
        };
        assert_eq!(columns(0.0, 1000.0, 100), (4, 0, 63));
        assert_eq!(columns(100.0, 200.0, 100), (0, 100, 200));
        assert_eq!(columns(100.0, 201.0, 100), (1, 50, 101));
        assert_eq!(columns(100.5, 104.5, 100), (0, 100, 105));
        assert_eq!(columns(-50.0, 2000.0, 10), (8, 0, 4));
        assert_eq!(columns(5.0, 5.0, 10), (0, 5, 5));
    }

    proptest! {
        #[test]
        fn kept_columns_are_those_that_would_be_made(
            values in proptest::collection::vec(0_u32..1000, 1..400),
            asked in proptest::collection::vec((0_u32..5, 0_u64..60, 1_u64..40, 0_usize..90), 1..25),
        ) {
            let mut bands: Bands<Largest> = Bands::new(2);
            let mut end = values.len() / 2;
            for (level, from, count, more) in asked {
                end = (end + more / 30 * 20).min(values.len());
                let columns = Columns { level, from, to: from + count };
                let now = Progress { positions: end as u32, settled: end as f64 };
                let got = bands.cells(columns, now, |columns| made(columns, &values, end)).to_vec();
                prop_assert_eq!(got, made(columns, &values, end), "{:?} of {}", columns, end);
            }
        }
    }
}
