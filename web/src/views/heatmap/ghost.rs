//! The request that failed, drawn as a narrow outlined mark from where it would have begun: over the gap that came closest, or
//! behind all addresses where no gap could have served any part of it.

use query::diagnosis::FailedRequest;
use query::{Heatmap, HeatmapFailure, HeatmapFailureQuery, HeatmapPart, HeatmapRows};
use trace::order::Within;
use trace::units::Bytes;

use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Area, Surface};
use crate::views::chart::gesture::PlotArea;
use crate::views::failed;

/// Least height behind all addresses, in pixels: two lines of text.
const BEHIND: f64 = 36.0;

/// A failed request on the heatmap.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// The coordinate of its failure.
    x: f64,
    /// The position right after it.
    pub position: u32,
    place: HeatmapFailure,
    /// The request, and why it did not fit.
    texts: [String; 2],
}

/// Returns the question where a failed request goes.
pub fn question(part: HeatmapPart, failure: &FailedRequest) -> HeatmapFailureQuery {
    let FailedRequest { requested, pool, stream, nearest_gap: gap, .. } = *failure;
    HeatmapFailureQuery { part, requested, pool, stream, gap }
}

impl Ghost {
    /// Returns the mark of a request that failed at a coordinate, and where it goes.
    pub fn new(x: f64, failure: &FailedRequest, place: HeatmapFailure, by_size: bool) -> Self {
        let reason = match failure.nearest_gap {
            Some((_, gap)) if !by_size => format!("This gap: {}", Bytes(gap)),
            _ => failed::largest_gap(failure),
        };
        Self { x, position: failure.position(), place, texts: [failed::request(failure), reason] }
    }

    /// Returns the offset at which it begins.
    pub fn start(&self) -> u64 {
        self.place.gap.map_or(self.place.total, |(from, _)| from)
    }

    /// Draws the mark with its label. Returns where it is, if it is in view.
    pub fn draw(
        &self,
        surface: &mut dyn Surface,
        plot_area: &PlotArea,
        map: &Heatmap,
        labels: &mut Labels,
        palette: &Palette,
    ) -> Option<Area> {
        let (plot, y) = (plot_area.plot, plot_area.y());
        let pixel = |offset: u64| y.pixel(offset as f64);
        let from = self.start();
        let (top, bottom) = match map.query.rows {
            HeatmapRows::Sizes => {
                let height = plot.height / f64::from(map.rows.max(1));
                let top = plot.y + f64::from(self.place.class) * height;
                (top, top + height)
            }
            // What lies behind the last row stands on the lower edge.
            HeatmapRows::Addresses { .. } if self.place.gap.is_none() => {
                let top = pixel(from);
                let is_last = (plot.bottom() - 2.0..plot.bottom() + BEHIND).contains(&top);
                (
                    if is_last { plot.bottom() - BEHIND } else { top },
                    pixel(from.saturating_add(self.place.query.requested)),
                )
            }
            HeatmapRows::Addresses { .. } => (pixel(from), pixel(from.saturating_add(self.place.query.requested))),
        };
        let x = plot_area.x().pixel(self.x);
        let mark = failed::mark(plot, x, (top, bottom))?;
        failed::ground(surface, mark, palette);
        if let (HeatmapRows::Addresses { .. }, Some((_, end))) = (map.query.rows, self.place.gap) {
            // As much of it as the gap holds.
            let end = pixel(end).within(mark.y, mark.bottom());
            surface.fill(Area { height: end - mark.y, ..mark }, palette.cached.at(0.6));
            surface.outline(mark, 1.5, palette.oom.into());
            surface.horizontal(end, mark.x, mark.right(), false, palette.oom.into());
        }
        labels.keep_out(mark);
        failed::label(surface, plot, mark, &self.texts, (labels, |_: Area| true), palette);
        Some(mark)
    }
}

#[cfg(test)]
mod tests {
    use query::diagnosis::Cause;
    use query::{Axis, HeatmapQuery, Packed, Window};
    use trace::units::Address;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    /// Draws a request of 40 bytes that failed at 300, on a plot of one pixel for each byte.
    fn drawn(gap: Option<(u64, u64)>, rows: HeatmapRows) -> (Option<Area>, Vec<String>) {
        let plot = Area { x: 100.0, y: 20.0, width: 400.0, height: 200.0 };
        let window = Window { start: 0.0, end: 400.0 };
        let bytes = Window { start: 0.0, end: 200.0 };
        let plot_area = PlotArea { grows_down: true, ..PlotArea::at_rest(plot, window, bytes) };
        let failure = FailedRequest {
            requested: 40,
            largest_servable: 10,
            nearest_gap: gap.map(|(from, to)| (Address(from), to - from)),
            cause: Cause::Fragmented,
            ..FailedRequest::default()
        };
        let query = question(HeatmapPart::All, &failure);
        let place = HeatmapFailure { query, gap, total: 200, class: 3 };
        let map = Heatmap {
            query: HeatmapQuery { axis: Axis::Event, window, columns: 4, rows, part: HeatmapPart::All, needed: None },
            window,
            columns: 4,
            rows: 10,
            cells: Packed::default(),
            from: 0,
            row_bytes: 20,
            total: 200,
            groups: Vec::new(),
        };
        let mut log = SurfaceLog::default();
        let ghost = Ghost::new(300.0, &failure, place, rows == HeatmapRows::Sizes);
        (ghost.draw(&mut log, &plot_area, &map, &mut Labels::default(), &Palette::dark()), log.0)
    }

    #[test]
    fn the_request_begins_with_the_gap_and_goes_on_behind_it() {
        let addresses = HeatmapRows::Addresses { rows: 10, offsets: None };
        let (area, log) = drawn(Some((50, 60)), addresses);
        assert_eq!(area, Some(Area { x: 400.0, y: 70.0, width: 14.0, height: 40.0 }));
        let has = |log: &[String], part: &str| log.iter().any(|line| line.contains(part));
        assert!(has(&log, "fill 400,70 14x10") && has(&log, "horizontal 80 from 400 to 414"), "the gap: {log:?}");
        assert!(has(&log, "\"This gap: 10 B\" at 304,"), "before the mark, where there is room: {log:?}");
        let (area, log) = drawn(Some((50, 85)), addresses);
        assert_eq!(area.map(Area::bottom), Some(110.0));
        assert!(has(&log, "horizontal 105 from 400 to 414"), "{log:?}");
        let (area, log) = drawn(None, addresses);
        assert_eq!(area.map(|area| (area.y, area.bottom())), Some((184.0, 220.0)), "at the lower edge");
        assert!(log.iter().any(|line| line.contains("Largest gap for it: 10 B")), "{log:?}");
    }

    #[test]
    fn on_sizes_it_is_in_the_row_of_its_class() {
        let (area, log) = drawn(Some((50, 60)), HeatmapRows::Sizes);
        assert_eq!(area.map(|area| (area.y, area.bottom())), Some((80.0, 100.0)));
        assert!(log.iter().any(|line| line.contains("Largest gap for it: 10 B")), "{log:?}");
    }
}
