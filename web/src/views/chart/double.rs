//! Double clicks: pure functions from what is under the pointer to the window to show.

use query::{Timeline, Window};
use trace::order::SortFew;

use super::gesture::PlotArea;
use crate::render::scale::zoom;
use crate::render::shape::{Quad, iter};

/// The margin on either side of a thing, as a share of its length.
const MARGIN: f64 = 0.05;
/// Of a thing that takes more than this share of the window, only a part is shown.
const FILLS: f64 = 0.8;
/// The factor by which the window is zoomed into such a thing.
const CLOSER: f64 = 0.25;

/// Returns the window that shows a thing with a margin on either side. If the thing fills the window already, zooms in
/// around the pointer's coordinate `at`.
pub fn window_on(thing: Window, at: f64, plot_area: &PlotArea) -> Window {
    let (window, extent) = (plot_area.window, plot_area.extent);
    let (from, to) = (thing.start.max(window.start), thing.end.min(window.end));
    if to - from > window.length() * FILLS {
        return zoom(window, CLOSER, at, extent, 0.0);
    }
    let room = thing.length() * MARGIN;
    Window { start: (thing.start - room).max(extent.start), end: (thing.end + room).min(extent.end) }
}

/// Returns the part of the axis around `x` over which a band is drawn without a break; `None` if the band isn't drawn
/// at `x`. `is_meant` recognises its rectangles.
pub fn band_at(timeline: &Timeline, x: f64, is_meant: impl Fn(&Quad) -> bool) -> Option<Window> {
    let query = &timeline.query;
    let unit = query.window.length() / f64::from(query.columns.max(1));
    let column = (x - query.window.start) / unit;
    let mut spans: Vec<(f32, f32)> = iter(&timeline.quads).filter(|quad| is_meant(quad)).map(|quad| quad.x).collect();
    spans.sort_few_by(|a, b| a.0.total_cmp(&b.0));
    let mut chain: Option<(f32, f32)> = None;
    for span in spans {
        match &mut chain {
            // A gap thinner than a column is not one.
            Some(chain) if span.0 <= chain.1 + 1.0 => chain.1 = chain.1.max(span.1),
            Some(chain) if f64::from(chain.1) + 1.0 >= column => break,
            chain => *chain = Some(span),
        }
    }
    let (from, to) = chain.filter(|(from, to)| f64::from(*from) - 1.0 <= column && column <= f64::from(*to) + 1.0)?;
    Some(Window { start: query.window.start + f64::from(from) * unit, end: query.window.start + f64::from(to) * unit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::Area;
    use crate::views::timeline::bands::tests::answer;

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    #[test]
    fn a_thing_gets_room_and_one_that_fills_the_view_is_entered() {
        let plot = Area { x: 0.0, y: 0.0, width: 1000.0, height: 100.0 };
        let plot_area = PlotArea { extent: w(0.0, 9000.0), ..PlotArea::at_rest(plot, w(1000.0, 2000.0), w(0.0, 1.0)) };
        assert_eq!(window_on(w(1200.0, 1300.0), 1250.0, &plot_area), w(1195.0, 1305.0));
        assert_eq!(window_on(w(0.0, 1100.0), 1050.0, &plot_area), w(0.0, 1155.0), "what is outside of the view too");
        let entered = window_on(w(0.0, 9000.0), 1400.0, &plot_area);
        assert_eq!(entered, w(1300.0, 1550.0), "what is under the pointer stays there");
    }

    #[test]
    fn a_band_ends_where_it_is_interrupted() {
        let timeline = answer();
        let unit = timeline.query.window.length() / f64::from(timeline.query.columns);
        let at = |column: f64| timeline.query.window.start + column * unit;
        // The second class is drawn over the second and the third column.
        let found = band_at(&timeline, at(1.5), |quad| quad.id == 1).unwrap();
        assert_eq!((found.start, found.end), (at(1.0), at(3.0)));
        assert_eq!(band_at(&timeline, at(1.5), |quad| quad.id == 77), None);
    }
}
