//! The timeline's question for what is in view.
//!
//! A question covers more than the window, so that a pan shows something at once: a quarter of a view on both sides at a
//! new scale, since one turn of the wheel follows another, and half a view once it is panned. Its columns are the device
//! pixels of the view: at rest every column is exactly one pixel wide, and no peak falls between two. As long as the last
//! question still covers the view, it is asked again unchanged, which costs nothing. Likewise for the height: the answer
//! to a question shows which height fits, and must not have to be asked for again at that height.

use query::{Axis, ColorBy, TimelineQuery, Window};
use trace::order::Within;

use crate::model::View;
use crate::render::math::exp2;

/// What is in view, and its size in device pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Lens {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of it.
    pub window: Window,
    /// The whole axis.
    pub extent: Window,
    /// Width in device pixels.
    pub columns: u32,
    /// The visible part of the height, in bytes.
    pub bytes: Window,
    /// The bytes above which the picture is always empty, or not wanted.
    pub top: f64,
    /// Height in device pixels.
    pub rows: u32,
    /// The colouring.
    pub color_by: ColorBy,
    /// The filters.
    pub filter: Vec<String>,
    /// The highlighted term.
    pub highlight: Option<String>,
}

/// How far columns may be off the pixels before a new question is asked, in pixels.
const PHASE_SLACK: f64 = 0.02;
/// How many times the visible height a question covers at most.
const MOST_HEIGHTS: f64 = 4.0;
/// How many rows a question has for each row of the view: the height that fits may become smaller by a fifth before its
/// rows are too coarse.
const ROWS_PER_ROW: f64 = 1.25;
/// The most rows of the last question for each row of the view.
const MOST_ROWS_PER_ROW: f64 = 2.5;

impl Lens {
    /// Returns the question to ask, given the previous one. `None` while there is nothing to draw on.
    pub fn question(&self, last: Option<&TimelineQuery>) -> Option<TimelineQuery> {
        if self.columns == 0 || self.rows == 0 || self.window.length() <= 0.0 || self.extent.length() <= 0.0 {
            return None;
        }
        if let Some(last) = last.filter(|last| self.is_served_by(last)) {
            return Some(last.clone());
        }
        let unit = self.window.length() / f64::from(self.columns);
        let most = if last.is_some_and(|last| self.is_scaled_as(last)) { self.columns / 2 } else { self.columns / 4 };
        let margin = |room: f64| (room / unit).ceil().within(0.0, f64::from(most));
        let left = margin(self.window.start - self.extent.start);
        let right = margin(self.extent.end - self.window.end);
        let top = self.top.within(self.bytes.end, self.bytes.start + self.bytes.length() * MOST_HEIGHTS);
        let heights = (top - self.bytes.start) / self.bytes.length();
        Some(TimelineQuery {
            axis: self.axis,
            window: Window { start: self.window.start - left * unit, end: self.window.end + right * unit },
            columns: self.columns + left as u32 + right as u32,
            bytes: Window { start: self.bytes.start, end: top },
            rows: (f64::from(self.rows) * heights * ROWS_PER_ROW).ceil() as u32,
            color_by: self.color_by,
            filter: self.filter.clone(),
            highlight: self.highlight.clone(),
        })
    }

    fn is_served_by(&self, last: &TimelineQuery) -> bool {
        let is_alike = last.axis == self.axis
            && last.bytes.start == self.bytes.start
            && last.bytes.end >= self.bytes.end
            && last.color_by == self.color_by
            && last.filter == self.filter
            && last.highlight == self.highlight
            && last.columns > 0;
        if !is_alike {
            return false;
        }
        let rows = self.bytes.length() / f64::from(self.rows) * f64::from(last.rows) / last.bytes.length();
        if !(1.0..=MOST_ROWS_PER_ROW).contains(&rows) {
            return false;
        }
        let unit = self.window.length() / f64::from(self.columns);
        let offset = (self.window.start - last.window.start) / unit;
        let is_aligned = self.is_scaled_as(last) && (offset - offset.round()).abs() < PHASE_SLACK;
        let reserve = self.window.length() / 8.0;
        is_aligned
            && last.window.start <= (self.window.start - reserve).max(self.extent.start) + unit * PHASE_SLACK
            && last.window.end >= (self.window.end + reserve).min(self.extent.end) - unit * PHASE_SLACK
    }

    /// Returns whether the columns of a question are as wide as those of the view: the two must not drift apart by a
    /// visible part of a pixel over the width of the view.
    fn is_scaled_as(&self, last: &TimelineQuery) -> bool {
        let unit = self.window.length() / f64::from(self.columns);
        let asked_unit = last.window.length() / f64::from(last.columns);
        last.axis == self.axis && (asked_unit / unit - 1.0).abs() * f64::from(last.columns) < PHASE_SLACK
    }
}

/// Returns the question for what exactly a window has, in one column: the same on every screen.
pub fn summary_query(view: &View, axis: Axis, window: Window) -> TimelineQuery {
    TimelineQuery {
        axis,
        window,
        columns: 1,
        bytes: Window { start: 0.0, end: 1.0 },
        rows: 1,
        // The colours, filter and highlight of the picture, whose classes the worker has at hand.
        color_by: view.settings.color_by,
        filter: view.filter.clone(),
        highlight: view.highlight.clone(),
    }
}

/// Aligns the window of a followed session to the grid of its columns, so that the picture moves by whole pixels and
/// events don't change columns.
pub fn on_grid(window: Window, columns: u32) -> Window {
    let unit = window.length() / f64::from(columns.max(1));
    if !(unit.is_finite() && unit > 0.0) {
        return window;
    }
    let start = (window.start / unit).round() * unit;
    Window { start, end: start + window.length() }
}

/// Returns the height for the largest value in view: slightly more, in steps, so that it changes rarely.
pub fn fitting_height(largest: u64) -> Window {
    let wanted = (largest as f64 * 1.04).max(4096.0);
    let step = exp2(wanted.log2().floor()) / 16.0;
    Window { start: 0.0, end: (wanted / step).ceil() * step }
}

/// Returns the largest value of the columns in view. `None` if the question doesn't cover the whole view, since the
/// largest value might be elsewhere.
pub fn largest_in_view(values: &[u64], query: &TimelineQuery, view: Window, extent: Window) -> Option<u64> {
    if values.is_empty() || query.columns == 0 {
        return None;
    }
    let unit = query.window.length() / f64::from(query.columns);
    let (start, end) = (view.start.max(extent.start), view.end.min(extent.end));
    if start < query.window.start - unit || end > query.window.end + unit {
        return None;
    }
    let column = |x: f64| ((x - query.window.start) / unit).max(0.0) as usize;
    let first = column(start).min(values.len() - 1);
    let last = column(end).clamp(first, values.len() - 1);
    values[first..=last].iter().copied().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(start: f64, end: f64) -> Lens {
        Lens {
            axis: Axis::Event,
            window: Window { start, end },
            extent: Window { start: 0.0, end: 10_000.0 },
            columns: 1000,
            bytes: Window { start: 0.0, end: 4096.0 },
            top: 4096.0,
            rows: 500,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
        }
    }

    /// Returns the question after a pan to a window.
    fn after_a_pan(start: f64, end: f64) -> TimelineQuery {
        let before = TimelineQuery {
            window: Window { start: end, end: end + end - start },
            columns: 1000,
            ..lens(start, end).question(None).unwrap()
        };
        lens(start, end).question(Some(&before)).unwrap()
    }

    #[test]
    fn the_whole_trace_is_asked_for_as_it_is() {
        let query = lens(0.0, 10_000.0).question(None).unwrap();
        assert_eq!((query.window, query.columns), (Window { start: 0.0, end: 10_000.0 }, 1000));
    }

    #[test]
    fn half_a_view_more_on_both_sides_but_not_past_the_ends() {
        let query = after_a_pan(1000.0, 2000.0);
        assert_eq!((query.window, query.columns), (Window { start: 500.0, end: 2500.0 }, 2000));
        let query = after_a_pan(100.0, 1100.0);
        assert_eq!((query.window, query.columns), (Window { start: 0.0, end: 1600.0 }, 1600));
    }

    #[test]
    fn a_new_scale_covers_less_beside_the_view_until_it_is_panned() {
        let first = lens(4000.0, 5000.0).question(None).unwrap();
        assert_eq!((first.window, first.columns), (Window { start: 3750.0, end: 5250.0 }, 1500));
        assert_eq!(lens(4000.0, 5000.0).question(Some(&first)).unwrap(), first);
        assert_eq!(lens(4100.0, 5100.0).question(Some(&first)).unwrap(), first);
        let second = lens(4150.0, 5150.0).question(Some(&first)).unwrap();
        assert_eq!((second.window, second.columns), (Window { start: 3650.0, end: 5650.0 }, 2000));
    }

    #[test]
    fn a_pan_by_whole_pixels_asks_nothing_new_until_the_margin_is_used() {
        let first = after_a_pan(4000.0, 5000.0);
        let again = |start: f64, end: f64| lens(start, end).question(Some(&first)).unwrap() == first;
        assert!(again(4100.0, 5100.0));
        assert!(again(3700.0, 4700.0));
        assert!(!again(4450.0, 5450.0), "the margin is nearly used up");
        assert!(!again(4100.5, 5100.5), "columns would lie between pixels");
        assert!(!again(4000.0, 4900.0), "another scale");
        let mut other = lens(4000.0, 5000.0);
        other.filter = vec![">1MiB".to_owned()];
        assert_ne!(other.question(Some(&first)).unwrap(), first);
    }

    #[test]
    fn columns_are_the_pixels_of_the_view() {
        let (start, end) = (1234.5, 1500.25);
        let query = lens(start, end).question(None).unwrap();
        let unit = query.window.length() / f64::from(query.columns);
        let offset = (start - query.window.start) / unit;
        assert!((unit - (end - start) / 1000.0).abs() < 1e-9);
        assert!((offset - offset.round()).abs() < 1e-6);
    }

    #[test]
    fn a_height_that_fits_the_answer_is_not_asked_for_again() {
        let at = |end, top| Lens { bytes: Window { start: 0.0, end }, top, ..lens(0.0, 10_000.0) };
        let first = at(4000.0, 10_000.0).question(None).unwrap();
        assert_eq!((first.bytes, first.rows), (Window { start: 0.0, end: 10_000.0 }, 1563));
        let again = |end| at(end, 10_000.0).question(Some(&first)).unwrap() == first;
        assert!(again(4000.0) && again(7000.0) && again(3500.0));
        assert!(!again(9000.0), "needlessly fine");
        assert!(!again(2000.0), "too coarse");
        let far = at(1000.0, 1e9).question(None).unwrap();
        assert_eq!((far.bytes.end, far.rows), (4000.0, 2500));
        assert_ne!(at(5000.0, 1e9).question(Some(&far)).unwrap(), far, "the answer is cut off");
    }

    #[test]
    fn a_followed_window_moves_by_whole_columns() {
        let first = on_grid(Window { start: 1000.3, end: 2000.3 }, 1000);
        assert_eq!((first.start, first.end), (1000.0, 2000.0));
        let asked = lens(first.start, first.end).question(None).unwrap();
        let later = on_grid(Window { start: 1017.9, end: 2017.9 }, 1000);
        let again = lens(later.start, later.end).question(None).unwrap();
        let unit = asked.window.length() / f64::from(asked.columns);
        let offset = (again.window.start - asked.window.start) / unit;
        assert!((offset - offset.round()).abs() < 1e-9, "{offset}");
        let empty = Window { start: 5.0, end: 5.0 };
        assert_eq!(on_grid(empty, 1000), empty);
    }

    #[test]
    fn an_empty_plot_asks_nothing() {
        let mut none = lens(0.0, 10.0);
        none.columns = 0;
        assert_eq!(none.question(None), None);
        assert_eq!(lens(5.0, 5.0).question(None), None);
    }

    #[test]
    fn fitting_heights_are_stepped() {
        let gib = 1u64 << 30;
        assert_eq!(fitting_height(80 * gib).end, 84.0 * gib as f64);
        assert_eq!(fitting_height(79 * gib).end, 84.0 * gib as f64);
        assert!(fitting_height(0).length() > 0.0);
        assert!(fitting_height(u64::MAX).end.is_finite());
    }

    #[test]
    fn the_largest_counts_what_is_in_view_only() {
        let query = lens(0.0, 10_000.0).question(None).unwrap();
        let values: Vec<u64> = (0..1000).collect();
        let view = |start, end| largest_in_view(&values, &query, Window { start, end }, query.window);
        assert_eq!(view(0.0, 10_000.0), Some(999));
        assert_eq!(view(100.0, 200.0), Some(20));
        assert_eq!(view(-50.0, 200.0), Some(20));
        let later = TimelineQuery { window: Window { start: 500.0, end: 1500.0 }, ..query.clone() };
        let whole = Window { start: 0.0, end: 10_000.0 };
        assert_eq!(largest_in_view(&values, &later, Window { start: 0.0, end: 600.0 }, whole), None);
    }
}
