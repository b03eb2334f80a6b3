//! The request that failed, drawn as a narrow mark as high as what the driver was asked for, on top of what was reserved. A
//! dashed line shows how far the driver could go: it doesn't fit under that. The line has its number, and the request's label a box
//! of its own.

use query::diagnosis::{Cause, FailedRequest};
use trace::units::Bytes;

use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::surface::{Area, Surface};
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::limit;
use crate::views::failed;

/// A failed request on the timeline. Two are equal if they look the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// The coordinate of its failure.
    x: f64,
    /// Reserved bytes: the mark stands on them.
    reserved: u64,
    /// Bytes that the driver was asked for: the height of the mark.
    asked: u64,
    /// The most that could have been reserved, unless a limit stood below that.
    most: Option<u64>,
    /// The request, and why it did not fit.
    texts: [String; 3],
}

/// How far the line of what the driver had reaches over the mark, in pixels.
const OVER: f64 = 18.0;
/// The most heights of the largest total in view that a request may take: a request out of all proportion must not flatten
/// everything else.
const MOST_HEIGHTS: u64 = 2;

/// Room for the label above the mark, in pixels, and the largest share of the plot that it may take.
const LABEL_ROOM: (f64, f64) = (48.0, 0.2);

/// Returns the most bytes that the driver is asked for at once, for a request: a segment.
const fn segment(requested: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    if requested <= MIB {
        2 * MIB
    } else if requested < 10 * MIB {
        20 * MIB
    } else {
        requested.div_ceil(2 * MIB).saturating_mul(2 * MIB)
    }
}

/// Returns the height that shows the largest of the requests that failed in view on top of the largest total, with room for a label
/// above it on a plot of `pixels`. It depends neither on which of them is drawn, nor on the verdict: the scale does not change
/// when it comes.
pub fn height_of(requested: Option<u64>, largest: u64, pixels: f64) -> u64 {
    let Some(requested) = requested else { return largest };
    let room = (LABEL_ROOM.0 / pixels.max(1.0)).min(LABEL_ROOM.1);
    let top =
        largest.saturating_add(segment(requested)).min(largest.saturating_mul(MOST_HEIGHTS)) as f64 / (1.0 - room);
    largest.max(top as u64)
}

impl Ghost {
    /// Returns the mark of a request that failed at a coordinate.
    pub fn new(x: f64, failure: &FailedRequest) -> Self {
        let FailedRequest { reserved, asked_of_driver, driver_free, requested, .. } = *failure;
        let asked = asked_of_driver.max(1);
        let mut request = failed::request(failure);
        if asked > requested {
            request += &format!(", in a segment of {}", Bytes(asked));
        }
        let most = (failure.cause != Cause::Limit).then(|| reserved.saturating_add(driver_free));
        Self { x, reserved, asked, most, texts: [request, failed::largest_gap(failure), failed::driver_free(failure)] }
    }

    fn mark(&self, plot_area: &PlotArea) -> Option<Area> {
        let (x, y) = (plot_area.x().pixel(self.x), plot_area.y());
        let top = self.reserved.saturating_add(self.asked);
        failed::mark(plot_area.plot, x, (y.pixel(top as f64), y.pixel(self.reserved as f64)))
    }

    /// Draws the mark, and keeps labels off it.
    pub fn draw(&self, surface: &mut dyn Surface, plot_area: &PlotArea, labels: &mut Labels, palette: &Palette) {
        let Some(mark) = self.mark(plot_area) else { return };
        failed::ground(surface, mark, palette);
        labels.keep_out(mark);
        if let Some(most) = self.most {
            let plot = plot_area.plot;
            // No label covers the line beside the mark.
            let beside = ((mark.x - OVER).max(plot.x), (mark.right() + OVER).min(plot.right()));
            limit::draw(surface, plot_area, most, beside, labels, palette);
        }
    }

    /// Returns the most that could have been reserved, unless a limit stood below that.
    pub fn limit(&self) -> Option<u64> {
        self.most
    }

    /// Writes the label and returns its box. `hides_nothing` says of an area that nothing is drawn there.
    pub fn label(
        &self,
        surface: &mut dyn Surface,
        plot_area: &PlotArea,
        (labels, hides_nothing): (&mut Labels, impl Fn(Area) -> bool),
        palette: &Palette,
    ) -> Option<Area> {
        let mark = self.mark(plot_area)?;
        let area = failed::label(surface, plot_area.plot, mark, &self.texts, (&mut *labels, hides_nothing), palette);
        if let Some(most) = self.most {
            limit::label(surface, plot_area, most, labels, palette);
        }
        area
    }
}

#[cfg(test)]
mod tests {
    use query::Window;
    use query::diagnosis::Cause;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn failure(requested: u64) -> FailedRequest {
        FailedRequest {
            reserved: 100,
            requested,
            asked_of_driver: requested,
            driver_free: 20,
            largest_servable: 7,
            cause: Cause::Fragmented,
            ..FailedRequest::default()
        }
    }

    /// Draws a request of 50 bytes on a plot of one pixel for each byte.
    fn drawn(x: f64, hides_nothing: fn(Area) -> bool) -> Vec<String> {
        let plot = Area { x: 100.0, y: 20.0, width: 400.0, height: 200.0 };
        let plot_area = PlotArea::at_rest(plot, Window { start: 0.0, end: 400.0 }, Window { start: 0.0, end: 200.0 });
        let ghost = Ghost::new(x, &failure(50));
        let (mut log, mut labels, palette) = (SurfaceLog::default(), Labels::default(), Palette::dark());
        ghost.draw(&mut log, &plot_area, &mut labels, &palette);
        ghost.label(&mut log, &plot_area, (&mut labels, hides_nothing), &palette);
        log.0
    }

    fn find(log: &[String], what: &str) -> String {
        log.iter().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {log:?}")).clone()
    }

    #[test]
    fn the_mark_is_narrow_whatever_the_zoom_and_stands_on_what_was_reserved() {
        let red = Palette::dark().oom.css();
        let beside = drawn(10.0, |_| true);
        assert!(beside.contains(&format!("outline 110,70 14x50 by 1.5 {red}")), "{beside:?}");
        assert_eq!(find(&beside, "dashed"), format!("dashed 100 from 100 to 142 {red}"), "what the driver had");
        let far = drawn(200.0, |_| true);
        assert_eq!(find(&far, "dashed"), format!("dashed 100 from 100 to 332 {red}"), "from the left end");
        assert_eq!(find(&far, "limit"), "text \"limit 120 B\" at 106,92 Start");
        assert_eq!(find(&beside, "Request: 50 B"), "text \"Request: 50 B\" at 136,32 Start", "over the dashed line");
        assert!(find(&beside, "Largest gap for it: 7 B").contains("136,46"));
        let before = drawn(395.0, |_| true);
        assert!(before.contains(&format!("outline 481,70 14x50 by 1.5 {red}")), "{before:?}");
        assert_eq!(drawn(500.0, |_| true), [""; 0], "out of view");
    }

    #[test]
    fn the_label_stays_above_what_is_drawn_and_off_the_dashed_line_where_it_can() {
        let y = |hides_nothing| {
            let text = find(&drawn(200.0, hides_nothing), "Request: 50 B");
            text.split_once(',').and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok()).unwrap()
        };
        assert_eq!(y(|_| true), 32.0);
        assert_eq!(y(|area| area.y > 100.0), 130.0, "only below there is nothing");
        assert_eq!(y(|_| false), 32.0, "everything is covered");
    }

    #[test]
    fn the_height_shows_every_failure_in_view_but_none_out_of_proportion() {
        const MIB: u64 = 1 << 20;
        let of = |requested: Option<u64>| height_of(requested.map(|mib| mib * MIB), 120 * MIB, 480.0) / MIB;
        assert_eq!((of(None), of(Some(1)), of(Some(9)), of(Some(59))), (120, 135, 155, 200));
        assert_eq!(of(Some(1 << 40)), 266);
        assert_eq!(height_of(Some(60 * MIB), 120 * MIB, 1.0) / MIB, 225, "a low plot keeps four fifths");
    }
}
