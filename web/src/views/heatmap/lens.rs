//! The heatmap's question for what is in view.
//!
//! Its columns are powers of two wide, one to two device pixels each, and stay where they are. A question covers a
//! quarter of a view more on both sides; as long as it covers the view at such a width, it is asked again unchanged.
//!
//! Downwards likewise, once a part of the addresses is shown: rows are powers of two high and lie on multiples of it, and
//! a question covers an eighth of a view more. All addresses are divided into as many rows as there is room for.

use query::{Axis, HeatmapNeed, HeatmapPart, HeatmapQuery, HeatmapRows, Window};
use trace::order::Within;

use crate::render::math::exp2;

/// What is in view, and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lens {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of it.
    pub window: Window,
    /// The whole axis.
    pub extent: Window,
    /// Width in device pixels.
    pub columns: u32,
    /// What the rows are.
    pub rows: LensRows,
    /// The part of the memory.
    pub part: HeatmapPart,
    /// What gaps must hold to be usable.
    pub needed: Option<HeatmapNeed>,
}

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LensRows {
    /// Addresses.
    Addresses {
        /// The rows that there is room for.
        rows: u32,
        /// The visible offsets; `None` for all addresses.
        offsets: Option<Window>,
    },
    /// Request sizes.
    Sizes,
}

/// The least bytes of a row: all blocks are multiples of it.
const LEAST_ROW: f64 = 512.0;

impl LensRows {
    /// Returns the rows to ask for.
    fn question(self) -> HeatmapRows {
        match self {
            Self::Sizes => HeatmapRows::Sizes,
            Self::Addresses { rows, offsets: None } => HeatmapRows::Addresses { rows, offsets: None },
            Self::Addresses { rows, offsets: Some(shown) } => {
                let row = exp2((shown.length() / f64::from(rows.max(1))).max(LEAST_ROW).log2().round());
                let margin = shown.length() / 8.0;
                let from = ((shown.start - margin).max(0.0) / row).floor() * row;
                let to = ((shown.end + margin) / row).ceil() * row;
                // Casts saturate.
                HeatmapRows::Addresses { rows: ((to - from) / row) as u32, offsets: Some((from as u64, to as u64)) }
            }
        }
    }

    fn is_served_by(self, last: HeatmapRows) -> bool {
        match (self, last) {
            (
                Self::Addresses { rows, offsets: Some(shown) },
                HeatmapRows::Addresses { rows: asked, offsets: Some((from, to)) },
            ) => {
                let (from, to) = (from as f64, to as f64);
                let unit = (shown.length() / f64::from(rows.max(1))).max(LEAST_ROW);
                let row = (to - from) / f64::from(asked.max(1));
                let reserve = shown.length() / 32.0;
                (0.5..=2.0).contains(&(row / unit))
                    && from <= (shown.start - reserve).max(0.0)
                    && to >= shown.end + reserve
            }
            // Strips above the plot appear when they are known, and take a few rows.
            (Self::Addresses { rows, offsets: None }, HeatmapRows::Addresses { rows: asked, offsets: None }) => {
                (0.8..=1.25).contains(&(f64::from(asked) / f64::from(rows.max(1))))
            }
            (own, last) => own.question() == last,
        }
    }
}

impl Lens {
    /// Returns the question to ask, given the previous one. `None` while there is nothing to draw on.
    pub fn question(&self, last: Option<&HeatmapQuery>) -> Option<HeatmapQuery> {
        let Self { axis, window, extent, columns, rows, part, needed } = *self;
        if columns == 0 || window.length() <= 0.0 || extent.length() <= 0.0 {
            return None;
        }
        if let Some(last) = last.filter(|last| self.is_served_by(last)) {
            return Some(*last);
        }
        let margin = window.length() / 4.0;
        let start = (window.start - margin).within(extent.start, window.start);
        let end = (window.end + margin).within(window.end, extent.end.max(window.end));
        let columns = f64::from(columns) * (end - start) / window.length();
        Some(HeatmapQuery {
            axis,
            window: Window { start, end },
            columns: columns as u32,
            rows: rows.question(),
            part,
            needed,
        })
    }

    fn is_served_by(&self, last: &HeatmapQuery) -> bool {
        let pixels = width(last.window, last.columns) / (self.window.length() / f64::from(self.columns));
        let reserve = self.window.length() / 16.0;
        (last.axis, last.part, last.needed) == (self.axis, self.part, self.needed)
            && self.rows.is_served_by(last.rows)
            // One event or microsecond is as narrow as a column gets.
            && pixels >= 0.999
            && (pixels <= 2.002 || width(last.window, last.columns) <= 1.0)
            && last.window.start <= (self.window.start - reserve).max(self.extent.start)
            && last.window.end >= (self.window.end + reserve).min(self.extent.end)
    }
}

/// Returns the width of the columns that answer a question.
fn width(window: Window, columns: u32) -> f64 {
    exp2((window.length() / f64::from(columns.max(1))).log2().ceil().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(start: f64, end: f64) -> Lens {
        Lens {
            axis: Axis::Event,
            window: Window { start, end },
            extent: Window { start: 0.0, end: 100_000.0 },
            columns: 1000,
            rows: LensRows::Sizes,
            part: HeatmapPart::All,
            needed: None,
        }
    }

    #[test]
    fn a_question_covers_more_than_the_view_but_nothing_outside_of_the_trace() {
        let query = lens(40_000.0, 50_000.0).question(None).unwrap();
        assert_eq!((query.window, query.columns), (Window { start: 37_500.0, end: 52_500.0 }, 1500));
        let query = lens(0.0, 100_000.0).question(None).unwrap();
        assert_eq!((query.window, query.columns), (Window { start: 0.0, end: 100_000.0 }, 1000));
        assert_eq!(Lens { columns: 0, ..lens(0.0, 1.0) }.question(None), None);
        assert_eq!(lens(5.0, 5.0).question(None), None);
    }

    #[test]
    fn it_is_asked_again_while_it_covers_the_view_at_one_to_two_pixels_a_column() {
        let first = lens(40_000.0, 50_000.0).question(None).unwrap();
        let again = |start: f64, end: f64| lens(start, end).question(Some(&first)).unwrap() == first;
        assert!(again(40_000.0, 50_000.0) && again(38_500.0, 48_500.0) && again(41_000.0, 49_500.0));
        assert!(!again(37_600.0, 47_600.0), "the margin is used up");
        assert!(!again(42_000.0, 49_000.0), "columns of more than two pixels");
        assert!(!again(37_000.0, 54_000.0), "less than a pixel each, and not covered");
        let near = lens(10.0, 60.0).question(None).unwrap();
        assert_eq!(lens(20.0, 40.0).question(Some(&near)), Some(near), "single events can't be divided");
        let other = Lens { part: HeatmapPart::Stream(trace::units::Stream(7)), ..lens(40_000.0, 50_000.0) };
        assert_ne!(other.question(Some(&first)), Some(first));
    }

    /// The rows to ask for where some offsets are visible, after those of another question.
    fn rows(offsets: Option<(f64, f64)>, last: Option<HeatmapQuery>) -> HeatmapQuery {
        let offsets = offsets.map(|(start, end)| Window { start, end });
        let rows = LensRows::Addresses { rows: 100, offsets };
        Lens { rows, ..lens(40_000.0, 50_000.0) }.question(last.as_ref()).unwrap()
    }

    #[test]
    fn rows_are_powers_of_two_and_stay_where_they_are() {
        const KIB: f64 = 1024.0;
        let asked = |start: f64, end: f64| match rows(Some((start * KIB, end * KIB)), None).rows {
            HeatmapRows::Addresses { rows, offsets: Some((from, to)) } => (rows, from / 512, to / 512),
            other => panic!("{other:?}"),
        };
        assert_eq!(rows(None, None).rows, HeatmapRows::Addresses { rows: 100, offsets: None });
        // A row of 1 KiB for each of 100, and an eighth more on both sides.
        assert_eq!(asked(1000.0, 1100.0), (126, 987 * 2, 1113 * 2));
        assert_eq!(asked(0.0, 100.0), (113, 0, 113 * 2));
        assert_eq!(asked(1000.0, 1140.0), (176, 982 * 2, 1158 * 2), "1.4 KiB is nearer to 1 KiB");
        assert_eq!(asked(1000.0, 1160.0), (100, 980 * 2, 1180 * 2), "1.6 KiB is nearer to 2 KiB");
        assert_eq!(asked(1000.0, 1002.0).0, 6, "no block is smaller than 512 bytes");
    }

    #[test]
    fn rows_are_asked_for_again_while_they_cover_the_view_and_are_about_as_high() {
        const MIB: f64 = 1_048_576.0;
        let first = rows(Some((1000.0 * MIB, 1100.0 * MIB)), None);
        let again = |start: f64, end: f64| rows(Some((start * MIB, end * MIB)), Some(first)) == first;
        assert!(again(1000.0, 1100.0) && again(995.0, 1095.0) && again(1005.0, 1105.0) && again(1010.0, 1070.0));
        assert!(!again(980.0, 1080.0), "the margin is used up");
        assert!(!again(1010.0, 1050.0), "rows of more than twice their height");
        let whole = |rows, last: Option<&HeatmapQuery>| {
            let rows = LensRows::Addresses { rows, offsets: None };
            Lens { rows, ..lens(40_000.0, 50_000.0) }.question(last).unwrap()
        };
        let known = whole(300, None);
        assert_eq!(whole(290, Some(&known)), known);
        assert_ne!(whole(230, Some(&known)), known);
        assert!(rows(None, Some(first)) != first && rows(Some((0.0, MIB)), Some(rows(None, None))) != rows(None, None));
    }
}
