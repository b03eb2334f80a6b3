//! The heatmap's question for what is in view.
//!
//! Its columns are powers of two wide, one to two device pixels each, and stay where they are. A question covers a
//! quarter of a view more on both sides; as long as it covers the view at such a width, it is asked again unchanged.

use shared::order::Within;
use shared::query::{Axis, HeatmapPart, HeatmapQuery, HeatmapRows, Window};

/// What is in view, and its width in device pixels.
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
    pub rows: HeatmapRows,
    /// The part of the memory.
    pub part: HeatmapPart,
}

impl Lens {
    /// Returns the question to ask, given the previous one. `None` while there is nothing to draw on.
    pub fn question(&self, last: Option<&HeatmapQuery>) -> Option<HeatmapQuery> {
        let Self { axis, window, extent, columns, rows, part } = *self;
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
        Some(HeatmapQuery { axis, window: Window { start, end }, columns: columns as u32, rows, part })
    }

    fn is_served_by(&self, last: &HeatmapQuery) -> bool {
        let pixels = width(last.window, last.columns) / (self.window.length() / f64::from(self.columns));
        let reserve = self.window.length() / 16.0;
        (last.axis, last.rows, last.part) == (self.axis, self.rows, self.part)
            // One event or microsecond is as narrow as a column gets.
            && pixels >= 0.999
            && (pixels <= 2.002 || width(last.window, last.columns) <= 1.0)
            && last.window.start <= (self.window.start - reserve).max(self.extent.start)
            && last.window.end >= (self.window.end + reserve).min(self.extent.end)
    }
}

/// Returns the width of the columns that answer a question.
fn width(window: Window, columns: u32) -> f64 {
    (window.length() / f64::from(columns.max(1))).log2().ceil().max(0.0).exp2()
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
            rows: HeatmapRows::Sizes,
            part: HeatmapPart::All,
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
        let other = Lens { part: HeatmapPart::Stream(shared::units::Stream(7)), ..lens(40_000.0, 50_000.0) };
        assert_ne!(other.question(Some(&first)), Some(first));
    }
}
