//! The request that failed, drawn as an outlined block on top of what was in use: it doesn't fit here, because of this.

use shared::diagnosis::FailedRequest;
use shared::query::Window;

use super::gesture::PlotArea;
use crate::render::palette::Palette;
use crate::render::surface::Surface;
use crate::views::failed;

/// A failed request on the timeline. Two are equal if they look the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// The coordinate of its failure.
    x: f64,
    /// Bytes in use: the block stands on them.
    active: u64,
    requested: u64,
    /// The request, and why it did not fit.
    texts: [String; 2],
}

impl Ghost {
    /// Returns the block of a request that failed at a coordinate.
    pub fn new(x: f64, failure: &FailedRequest) -> Self {
        let texts = [failed::request(failure), failed::reason(failure)];
        Self { x, active: failure.active, requested: failure.requested, texts }
    }

    /// Returns the height that shows all of it, in bytes, if its failure is in the window.
    pub fn top_in(&self, window: Window) -> Option<u64> {
        (window.start <= self.x && self.x <= window.end).then(|| self.active.saturating_add(self.requested))
    }

    /// Draws the block with its label.
    pub fn draw(&self, surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
        let (x, y) = (plot_area.x().pixel(self.x), plot_area.y());
        let bottom = y.pixel(self.active as f64);
        let top = y.pixel(self.active.saturating_add(self.requested) as f64);
        if let Some(block) = failed::block(surface, plot_area.plot, x, (top, bottom), &self.texts) {
            failed::ground(surface, block, palette);
            failed::label(surface, plot_area.plot, block, &self.texts, palette);
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::diagnosis::Cause;

    use super::*;
    use crate::render::surface::Area;
    use crate::render::surface::log::SurfaceLog;

    fn drawn(x: f64, requested: u64) -> Vec<String> {
        let plot = Area { x: 100.0, y: 20.0, width: 400.0, height: 200.0 };
        let bytes = Window { start: 0.0, end: 200.0 };
        let window = Window { start: 0.0, end: 400.0 };
        let plot_area = PlotArea {
            plot,
            window,
            extent: window,
            bytes,
            fit: bytes,
            is_height_free: false,
            grows_down: false,
            is_following: false,
        };
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
