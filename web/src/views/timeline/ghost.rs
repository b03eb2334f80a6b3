//! The request that failed, drawn as an outlined block of what the driver was asked for, on top of what was reserved. A
//! dashed line shows how far the driver could go: it doesn't fit under that.

use shared::diagnosis::{Cause, FailedRequest};
use shared::query::Window;
use shared::units::Bytes;

use super::gesture::PlotArea;
use crate::render::palette::Palette;
use crate::render::surface::{Area, Surface};
use crate::views::failed;

/// A failed request on the timeline. Two are equal if they look the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// The coordinate of its failure.
    x: f64,
    /// Reserved bytes: the block stands on them.
    reserved: u64,
    /// Bytes that the driver was asked for.
    asked: u64,
    /// The most that could have been reserved, unless a limit stood below that.
    most: Option<u64>,
    /// The request, and why it did not fit.
    texts: [String; 2],
}

impl Ghost {
    /// Returns the block of a request that failed at a coordinate.
    pub fn new(x: f64, failure: &FailedRequest) -> Self {
        let FailedRequest { reserved, asked_of_driver, driver_free, requested, .. } = *failure;
        let asked = asked_of_driver.max(1);
        let mut request = failed::request(failure);
        if asked > requested {
            request += &format!(", in a segment of {}", Bytes(asked));
        }
        let most = (failure.cause != Cause::Limit).then(|| reserved.saturating_add(driver_free));
        Self { x, reserved, asked, most, texts: [request, failed::reason(failure)] }
    }

    fn top(&self) -> u64 {
        self.reserved.saturating_add(self.asked)
    }

    /// Returns the height that shows all of it, in bytes, if its failure is in the window.
    pub fn top_in(&self, window: Window) -> Option<u64> {
        (window.start <= self.x && self.x <= window.end).then(|| self.top())
    }

    fn block(&self, surface: &mut dyn Surface, plot_area: &PlotArea) -> Option<Area> {
        let (x, y) = (plot_area.x().pixel(self.x), plot_area.y());
        let heights = (y.pixel(self.top() as f64), y.pixel(self.reserved as f64));
        failed::block(surface, plot_area.plot, x, heights, &self.texts)
    }

    /// Returns the area that the block and its label may take, if it is in the plot.
    pub fn taken(&self, surface: &mut dyn Surface, plot_area: &PlotArea) -> Option<Area> {
        let block = self.block(surface, plot_area)?;
        Some(Area { y: block.y - failed::ROOM, height: block.height + 2.0 * failed::ROOM, ..block })
    }

    /// Draws the block with its label.
    pub fn draw(&self, surface: &mut dyn Surface, plot_area: &PlotArea, palette: &Palette) {
        let Some(block) = self.block(surface, plot_area) else { return };
        let y = plot_area.y();
        failed::ground(surface, block, palette);
        if let Some(most) = self.most.map(|bytes| y.pixel(bytes as f64)).filter(|most| *most >= plot_area.plot.y) {
            surface.horizontal(most, block.x, block.right(), true, palette.oom.into());
        }
        failed::label(surface, plot_area.plot, block, &self.texts, palette);
    }
}

#[cfg(test)]
mod tests {
    use shared::diagnosis::Cause;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    fn drawn(x: f64, requested: u64) -> Vec<String> {
        let plot = Area { x: 100.0, y: 20.0, width: 400.0, height: 200.0 };
        let bytes = Window { start: 0.0, end: 200.0 };
        let window = Window { start: 0.0, end: 400.0 };
        let plot_area = PlotArea::at_rest(plot, window, bytes);
        let failure = FailedRequest {
            reserved: 100,
            requested,
            asked_of_driver: requested,
            driver_free: 20,
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
    fn the_request_stands_on_what_was_reserved_and_crosses_what_the_driver_had() {
        let red = Palette::dark().oom.css();
        let outline = |log: &[String]| log.iter().find(|line| line.starts_with("outline")).cloned();
        let beside = drawn(10.0, 50);
        assert_eq!(outline(&beside), Some(format!("outline 110,70 162x50 by 1.5 {red}")));
        let line = beside.iter().find(|line| line.starts_with("dashed") || line.starts_with("horizontal"));
        assert!(line.is_some_and(|line| line.contains("100")), "{beside:?}");
        assert!(beside.iter().any(|line| line.contains("Request: 50 B")), "{beside:?}");
        assert!(beside.iter().any(|line| line.contains("Largest it could use: 7 B")), "{beside:?}");
        let before = drawn(390.0, 50);
        assert_eq!(outline(&before), Some(format!("outline 328,70 162x50 by 1.5 {red}")));
        assert_eq!(drawn(500.0, 50), [""; 0], "out of view");
    }
}
