//! The request that failed, drawn as an outlined block on top of what was in use: it doesn't fit here, because of this.

use shared::diagnosis::{Cause, FailedRequest};
use shared::query::Window;
use shared::units::Bytes;

use super::gesture::PlotArea;
use crate::render::palette::Palette;
use crate::render::surface::{Align, Area, Font, Surface};

/// Least width of the block in pixels.
const WIDTH: f64 = 132.0;
/// Room on either side of its label in pixels.
const SPACE: f64 = 6.0;
/// Least height of the block in pixels.
const LEAST: f64 = 3.0;
/// Height of a line of text.
const LINE: f64 = 14.0;

/// A failed request on the timeline. Two are equal if they look the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// The coordinate of its failure.
    x: f64,
    /// Bytes in use: the block stands on them.
    active: u64,
    requested: u64,
    /// Why it did not fit.
    reason: String,
}

impl Ghost {
    /// Returns the block of a request that failed at a coordinate.
    pub fn new(x: f64, failure: &FailedRequest) -> Self {
        let reason = match failure.cause {
            Cause::Fragmented | Cause::OutOfReach => {
                format!("Largest it could use: {}", Bytes(failure.largest_servable))
            }
            _ if failure.missing > 0 => format!("{} missing", Bytes(failure.missing)),
            _ => format!("Driver free: {}", Bytes(failure.driver_free)),
        };
        Self { x, active: failure.active, requested: failure.requested, reason }
    }

    /// Returns the height that shows all of it, in bytes, if its failure is in the window.
    pub fn top_in(&self, window: Window) -> Option<u64> {
        (window.start <= self.x && self.x <= window.end).then(|| self.active.saturating_add(self.requested))
    }

    /// Draws the block with its label.
    pub fn draw(&self, surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
        let (x, y, plot) = (plot_area.x().pixel(self.x), plot_area.y(), plot_area.plot);
        if x < plot.x - 0.5 || x > plot.right() + 0.5 {
            return;
        }
        let texts = [format!("Request: {}", Bytes(self.requested)), self.reason.clone()];
        let widest = texts.iter().map(|text| surface.text_width(text, Font::Strong)).fold(0.0, f64::max);
        let width = WIDTH.max(widest + 2.0 * SPACE).min(plot.width);
        // After the failure where there is room, otherwise before it.
        let left = if x + width <= plot.right() { x } else { (x - width).max(plot.x) };
        let bottom = y.pixel(self.active as f64);
        let top = y.pixel(self.active.saturating_add(self.requested) as f64).min(bottom - LEAST).max(plot.y);
        if bottom < plot.y || top > plot.bottom() {
            return;
        }
        let block = Area { x: left, y: top, width, height: (bottom - top).max(LEAST) };
        surface.fill(block, palette.background.at(0.9));
        surface.fill(block, palette.oom.at(0.14));
        surface.outline(block, 1.5, palette.oom.into());
        let fits_inside = block.height >= 2.0 * LINE + 6.0;
        let first = match fits_inside {
            true => top + block.height / 2.0 - LINE / 2.0,
            // Over the block, or below it where the view ends.
            false if top - 2.0 * LINE - 4.0 > plot.y => top - 2.0 * LINE + 3.0,
            false => bottom + LINE / 2.0 + 4.0,
        };
        let at = left + SPACE;
        if !fits_inside {
            let under = Area { x: left, y: first - LINE / 2.0 - 1.0, width, height: 2.0 * LINE + 2.0 };
            surface.fill(under, palette.background.at(0.85));
        }
        let mut line = first;
        for (text, font) in texts.iter().zip([Font::Strong, Font::Label]) {
            surface.text(text, (at, line), Align::Start, font, palette.text.into());
            line += LINE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn drawn(x: f64, requested: u64) -> Vec<String> {
        let plot = Area { x: 100.0, y: 20.0, width: 400.0, height: 200.0 };
        let bytes = Window { start: 0.0, end: 200.0 };
        let window = Window { start: 0.0, end: 400.0 };
        let plot_area =
            PlotArea { plot, window, extent: window, bytes, fit: bytes, is_height_free: false, is_following: false };
        let failure = FailedRequest {
            active: 100,
            requested,
            largest_servable: 7,
            cause: Cause::Fragmented,
            ..FailedRequest::default()
        };
        let ghost = Ghost::new(x, &failure);
        assert_eq!(ghost.top_in(window), (x <= 400.0).then_some(100 + requested));
        let mut log = SurfaceLog::default();
        ghost.draw(&mut log, &plot_area, &Palette::dark());
        log.0
    }

    #[test]
    fn the_request_stands_on_what_was_in_use() {
        let red = Palette::dark().oom.css();
        let outline = |log: &[String]| log.iter().find(|line| line.starts_with("outline")).cloned();
        let beside = drawn(10.0, 50);
        assert_eq!(outline(&beside), Some(format!("outline 110,70 162x50 by 1.5 {red}")));
        assert!(beside.iter().any(|line| line.contains("Request: 50 B")), "{beside:?}");
        assert!(beside.iter().any(|line| line.contains("Largest it could use: 7 B")), "{beside:?}");
        let before = drawn(390.0, 50);
        assert_eq!(outline(&before), Some(format!("outline 328,70 162x50 by 1.5 {red}")));
        assert_eq!(drawn(500.0, 50), [""; 0], "out of view");
    }
}
