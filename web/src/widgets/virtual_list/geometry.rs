//! The geometry of a virtual list: visible rows and scrollbar positions.
//!
//! Browsers stop laying out elements somewhere above 17 million pixels, so a list of a million rows cannot be as tall
//! as its rows. Up to [`Geometry::TALLEST`] the scrollbar counts pixels; above, it is proportional, while the wheel and
//! the keys still move by whole pixels of content.

use std::ops::Range;
use trace::order::Within;

/// The sizes that determine what is visible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Number of rows.
    pub rows: u32,
    /// Height of one row in pixels.
    pub row: f64,
    /// Height of the visible part in pixels.
    pub viewport: f64,
}

impl Geometry {
    /// Height of one row in pixels.
    pub const ROW: f64 = 20.0;
    /// Height of one row in pixels on a narrow page, where fingers must hit it.
    pub const TALL_ROW: f64 = 44.0;
    /// The tallest element in pixels, below the smallest limit of any browser.
    pub const TALLEST: f64 = 10_000_000.0;

    /// Returns the height of all rows in pixels.
    pub fn content(&self) -> f64 {
        f64::from(self.rows) * self.row
    }

    /// Returns the height of the element that stands for them.
    pub fn scroll_height(&self) -> f64 {
        self.content().min(Self::TALLEST)
    }

    /// Returns whether the scrollbar is proportional.
    pub fn is_scaled(&self) -> bool {
        self.content() > Self::TALLEST
    }

    /// Returns the largest possible first visible pixel, with the last row at the bottom.
    pub fn last_top(&self) -> f64 {
        (self.content() - self.viewport).max(0.0)
    }

    /// Returns whether the list is scrolled up from its end, by more than a row.
    pub fn is_above_end(&self, top: f64) -> bool {
        top < self.last_top() - self.row
    }

    /// Returns the first visible pixel of the content for a scrollbar position.
    pub fn top_of(&self, scroll: f64) -> f64 {
        let range = (self.scroll_height() - self.viewport).max(0.0);
        if range == 0.0 {
            return 0.0;
        }
        let top = if self.is_scaled() { scroll / range * self.last_top() } else { scroll };
        self.clamp(top)
    }

    /// Returns the scrollbar position for a first visible pixel of the content.
    pub fn scroll_of(&self, top: f64) -> f64 {
        let range = (self.scroll_height() - self.viewport).max(0.0);
        let last = self.last_top();
        if last == 0.0 {
            0.0
        } else if self.is_scaled() {
            self.clamp(top) / last * range
        } else {
            self.clamp(top)
        }
    }

    /// Clamps a first visible pixel to the content.
    pub fn clamp(&self, top: f64) -> f64 {
        top.within(0.0, self.last_top())
    }

    /// Returns the rows that are at least partly visible.
    pub fn visible(&self, top: f64) -> Range<u32> {
        let first = ((top / self.row).floor().max(0.0) as u32).min(self.rows);
        let end = (((top + self.viewport) / self.row).ceil().max(0.0) as u32).min(self.rows);
        first..end
    }

    /// Returns the number of fully visible rows, which is the step of a page key.
    pub fn page(&self) -> u32 {
        ((self.viewport / self.row).floor() as u32).saturating_sub(1).max(1)
    }

    /// Returns the first visible pixel that brings `row` into view: unchanged if it is visible, moved just enough if it
    /// is next to the view, and with the row in the middle if it is far away.
    pub fn reveal(&self, top: f64, row: u32) -> f64 {
        let start = f64::from(row) * self.row;
        let end = start + self.row;
        let (above, below) = (top - start, end - (top + self.viewport));
        let to = if above <= 0.0 && below <= 0.0 {
            top
        } else if above > self.viewport || below > self.viewport {
            start - ((self.viewport - self.row) / 2.0 / self.row).floor() * self.row
        } else if above > 0.0 {
            start
        } else {
            end - self.viewport
        };
        self.clamp(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { rows: 100, row: Geometry::ROW, viewport: 210.0 };
    const HUGE: Geometry = Geometry { rows: 5_400_000, row: Geometry::ROW, viewport: 610.0 };

    #[test]
    fn a_short_list_scrolls_by_pixels() {
        assert_eq!(SMALL.scroll_height(), 2000.0);
        assert_eq!((SMALL.top_of(33.0), SMALL.scroll_of(33.0)), (33.0, 33.0));
        assert_eq!(SMALL.visible(33.0), 1..13);
        assert_eq!(SMALL.top_of(1e9), 1790.0);
        assert_eq!(SMALL.visible(1790.0), 89..100);
        assert!(SMALL.is_above_end(1760.0) && !SMALL.is_above_end(1775.0) && !SMALL.is_above_end(1790.0));
    }

    #[test]
    fn a_list_shorter_than_its_view_does_not_scroll() {
        let few = Geometry { rows: 3, ..SMALL };
        assert_eq!((few.last_top(), few.top_of(50.0), few.scroll_of(50.0)), (0.0, 0.0, 0.0));
        assert_eq!(few.visible(0.0), 0..3);
        assert_eq!(Geometry { rows: 0, viewport: 0.0, ..SMALL }.visible(0.0), 0..0);
    }

    #[test]
    fn taller_rows_make_a_taller_list() {
        let tall = Geometry { row: Geometry::TALL_ROW, ..SMALL };
        assert_eq!((tall.scroll_height(), tall.visible(45.0), tall.page()), (4400.0, 1..6, 3));
    }

    #[test]
    fn a_huge_list_reaches_its_last_row() {
        assert!(HUGE.is_scaled());
        assert_eq!(HUGE.scroll_height(), Geometry::TALLEST);
        assert_eq!(HUGE.top_of(0.0), 0.0);
        let end = HUGE.top_of(Geometry::TALLEST - HUGE.viewport);
        assert_eq!(end, HUGE.last_top());
        assert_eq!(HUGE.visible(end).end, HUGE.rows);
    }

    #[test]
    fn every_row_of_a_huge_list_can_be_stood_on() {
        // A wheel notch moves the content by pixels; the scrollbar follows without pulling the content back.
        for row in [0, 1, 2, 1_000_003, 5_399_000] {
            let top = f64::from(row) * Geometry::ROW;
            let back = HUGE.top_of(HUGE.scroll_of(top));
            assert!((back - top).abs() < 1e-3, "row {row}: {top} became {back}");
        }
    }

    #[test]
    fn reveal_moves_as_little_as_it_can() {
        assert_eq!(SMALL.reveal(100.0, 7), 100.0);
        assert_eq!(SMALL.reveal(100.0, 4), 80.0);
        assert_eq!(SMALL.reveal(100.0, 15), 110.0);
        let far = SMALL.reveal(0.0, 60);
        assert!(SMALL.visible(far).contains(&57) && SMALL.visible(far).contains(&64), "{far}");
        assert_eq!(SMALL.reveal(0.0, 99), SMALL.last_top());
        assert_eq!(SMALL.page(), 9);
    }
}
