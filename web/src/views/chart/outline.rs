//! The outline of what is drawn, and the places where a label hides nothing: above the line of reserved memory, or between
//! it and the stack, where only cached memory is.

use query::Timeline;
use trace::order::{SortFew, Within};

use super::gesture::PlotArea;
use crate::render::surface::Area;

/// Pixels between a label and what is drawn.
const GAP: f64 = 3.0;
/// Pixels between two places that are tried.
const STEP: f64 = 8.0;
/// Room for the triangle over the peak, in pixels: half its width, and its height.
const TRIANGLE: (f64, f64) = (5.0, 7.0);

/// What is drawn in one pixel of the plot's width, as y coordinates.
#[derive(Clone, Copy, Debug)]
struct Heights {
    /// The highest and lowest points of the line of reserved memory.
    reserved: (f64, f64),
    /// The top of the stack, rounding included.
    stack: f64,
}

impl Heights {
    fn and(self, other: Self) -> Self {
        let (a, b) = (self.reserved, other.reserved);
        Self { reserved: (a.0.min(b.0), a.1.max(b.1)), stack: self.stack.min(other.stack) }
    }

    /// Returns the y coordinate of a label of some height that hides nothing and is as near as possible to `wished`.
    fn free(self, wished: f64, height: f64, plot: Area) -> Option<f64> {
        let nothing = self.stack.min(self.reserved.0);
        let above = (plot.y + 1.0, nothing - GAP - height);
        let between = (self.reserved.1 + GAP, self.stack - GAP - height);
        let near = |(from, to): (f64, f64)| (from <= to).then(|| wished.within(from, to));
        let found = [above, between].into_iter().filter_map(near);
        found.min_by(|a, b| (a - wished).abs().total_cmp(&(b - wished).abs()))
    }
}

/// The outline of what is drawn.
#[derive(Debug)]
pub struct Outline {
    plot: Area,
    heights: Vec<Heights>,
}

impl Outline {
    /// Returns the outline of an answer in a plot, with the line of a limit over it.
    #[inline(never)]
    pub fn new(timeline: &Timeline, plot_area: &PlotArea, limit: Option<u64>) -> Self {
        let (x, y, plot, query) = (plot_area.x(), plot_area.y(), plot_area.plot, &timeline.query);
        let unit = query.window.length() / f64::from(query.columns.max(1));
        let columns = timeline.active.len();
        let column = |at: f64| ((x.value(at) - query.window.start) / unit).floor();
        let nothing = Heights { reserved: (plot.bottom(), plot.bottom()), stack: plot.bottom() };
        let of_column = |i: usize| {
            let of = |values: &[u64]| y.pixel(values.get(i).copied().unwrap_or(0) as f64);
            let reserved = of(&timeline.reserved);
            Heights { reserved: (reserved, reserved), stack: of(&timeline.active).min(of(&timeline.top)) }
        };
        let of_pixel = |i: usize| {
            let at = plot.x + i as f64;
            // Casts of floats saturate.
            let (first, last) = (column(at).max(0.0) as usize, column(at + 1.0).max(0.0) as usize);
            let seen = (first..last.max(first + 1)).take_while(|i| *i < columns).map(of_column);
            seen.reduce(Heights::and).unwrap_or(nothing)
        };
        let limit = limit.map_or(plot.bottom(), |limit| y.pixel(limit as f64));
        let limit = if limit < plot.y { plot.bottom() } else { limit };
        let with_limit = |i: usize| {
            let heights = of_pixel(i);
            // Nothing is free between the line of reserved memory and the limit.
            Heights { reserved: (heights.reserved.0.min(limit), heights.reserved.1), ..heights }
        };
        Self { plot, heights: (0..plot.width.max(0.0) as usize).map(with_limit).collect() }
    }

    /// Returns the places of a label of a width and height where it hides nothing and none of `lines`, which are vertical,
    /// runs through it: the nearest to a mark first, and never over the mark.
    #[inline(never)]
    pub fn places(&self, mark: (f64, f64), (width, height): (f64, f64), lines: &[f64]) -> Vec<Area> {
        let Self { plot, heights } = self;
        let beside = mark.0 + STEP;
        let most = plot.right() - width;
        let first = beside - ((beside - plot.x) / STEP).floor() * STEP;
        let triangle =
            Area { x: mark.0 - TRIANGLE.0, y: mark.1 - TRIANGLE.1, width: 2.0 * TRIANGLE.0, height: TRIANGLE.1 };
        let mut found: Vec<(f64, Area)> = Vec::new();
        let mut x = first;
        // The last place is at the very edge.
        while x <= most || x - STEP < most {
            let left = x.min(most);
            x += STEP;
            let is_crossed = |line: &f64| left - GAP < *line && *line < left + width + GAP;
            if left < plot.x || lines.iter().any(is_crossed) {
                continue;
            }
            let pixel = |at: f64| (at - plot.x).max(0.0) as usize;
            let end = (pixel(left + width + GAP) + 1).min(heights.len());
            let below = heights.get(pixel(left - GAP).min(end)..end).unwrap_or_default();
            let Some(below) = below.iter().copied().reduce(Heights::and) else { continue };
            let Some(top) = below.free(mark.1 - height / 2.0, height, *plot) else { continue };
            let area = Area { x: left, y: top, width, height };
            if !area.overlaps(triangle) {
                found.push((distance(area, mark), area));
            }
        }
        // On both sides of the mark, that at the right.
        found.sort_few_by(|a, b| a.0.total_cmp(&b.0).then(b.1.x.total_cmp(&a.1.x)));
        found.into_iter().map(|(_, area)| area).collect()
    }
}

/// Returns the point of an area that is nearest to a point.
pub fn nearest(area: Area, (x, y): (f64, f64)) -> (f64, f64) {
    (x.within(area.x, area.right()), y.within(area.y, area.bottom()))
}

/// Returns the distance in pixels between an area and a point.
pub fn distance(area: Area, point: (f64, f64)) -> f64 {
    let (x, y) = nearest(area, point);
    (x - point.0).hypot(y - point.1)
}

#[cfg(test)]
mod tests {
    use query::{TimelineQuery, Window};

    use super::*;
    use crate::views::timeline::bands::tests::answer;

    /// One pixel per column and per byte; byte 0 is at pixel 200.
    fn outline(stack: &[u64], reserved: &[u64]) -> Outline {
        let width = stack.len();
        let window = Window { start: 0.0, end: width as f64 };
        let query = TimelineQuery { window, columns: width as u32, ..answer().query };
        let timeline = Timeline {
            query,
            active: stack.to_vec().into(),
            top: stack.to_vec().into(),
            reserved: reserved.to_vec().into(),
            ..answer()
        };
        let plot = Area { x: 0.0, y: 0.0, width: width as f64, height: 200.0 };
        Outline::new(&timeline, &PlotArea::at_rest(plot, window, Window { start: 0.0, end: 200.0 }), None)
    }

    /// Asserts that a label hides neither the stack nor the line of reserved memory.
    fn hides_nothing(area: Area, stack: &[u64], reserved: &[u64]) {
        for i in area.x as usize..area.right() as usize {
            let (stack, reserved) = (200.0 - stack[i] as f64, 200.0 - reserved[i] as f64);
            assert!(area.bottom() < stack, "{area:?} hides the stack at {i}");
            assert!(area.bottom() < reserved || area.y > reserved, "{area:?} hides the line at {i}");
        }
    }

    #[test]
    fn over_a_rising_curve_a_label_stands_in_the_free_space() {
        let stack: Vec<u64> = (0..600).map(|i| 20 + i / 4).collect();
        let reserved: Vec<u64> = stack.iter().map(|bytes| bytes + 20).collect();
        let (outline, mark) = (outline(&stack, &reserved), (599.0, 31.0));
        let found = outline.places(mark, (180.0, 60.0), &[599.0]);
        assert!(!found.is_empty());
        found.iter().for_each(|area| hides_nothing(*area, &stack, &reserved));
        assert!(found.is_sorted_by(|a, b| distance(*a, mark) <= distance(*b, mark)), "the nearest first");
    }

    #[test]
    fn under_a_level_line_a_label_stands_in_the_cached_memory_or_nowhere() {
        let mut stack = vec![60_u64; 400];
        stack[200] = 180;
        let reserved = vec![190; 400];
        let found = outline(&stack, &reserved).places((200.0, 20.0), (120.0, 60.0), &[]);
        assert_eq!(found.first().map(|area| (area.x, area.y)), Some((208.0, 13.0)), "beside the spike");
        found.iter().for_each(|area| hides_nothing(*area, &stack, &reserved));
        assert!(outline(&[180; 400], &[190; 400]).places((200.0, 20.0), (120.0, 60.0), &[]).is_empty());
    }

    #[test]
    fn no_line_runs_through_a_label_and_it_leaves_the_mark_free() {
        let (stack, lines) = ([20; 400], [200.0, 350.0]);
        let found = outline(&stack, &stack).places((200.0, 180.0), (100.0, 60.0), &lines);
        assert!(!found.is_empty());
        for area in found {
            assert!(lines.iter().all(|line| *line <= area.x || *line >= area.right()), "{area:?}");
            assert!(!area.contains((200.0, 176.0)), "{area:?}");
            assert!(area.x >= 0.0 && area.right() <= 400.0, "{area:?}");
        }
    }
}
