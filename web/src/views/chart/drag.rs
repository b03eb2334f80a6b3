//! What a picture over time shows while something is dragged over it.

use query::Window;
use yew::prelude::*;

use crate::render::canvas::{Canvas, Picture};
use crate::render::palette::Palette;
use crate::render::surface::{Area, Surface};

/// What a drag would do if it ended now.
#[derive(Clone, Copy, Debug, Default)]
pub struct DragPreview {
    /// The rubber band around what it zooms into.
    pub band: Option<Area>,
    /// The range that it selects.
    pub range: Option<Window>,
}

impl DragPreview {
    /// Draws the rubber band.
    pub fn draw_band(&self, surface: &mut dyn Surface, palette: &Palette) {
        if let Some(band) = self.band {
            surface.fill(band, palette.accent.at(0.14));
            surface.outline(band, 1.0, palette.accent.into());
        }
    }
}

/// A picture that shows what a drag does.
pub trait Draggable: Picture {
    /// Returns what it shows.
    fn drag(&mut self) -> &mut DragPreview;
}

/// A picture with its canvases, as gestures need it.
pub trait DragCanvas {
    /// Returns the element around the picture.
    fn host(&self) -> NodeRef;
    /// Converts client coordinates to CSS pixels of the picture.
    fn point(&self, client: (f64, f64)) -> (f64, f64);
    /// Changes what the picture shows of a drag.
    fn change_drag(&self, change: &dyn Fn(&mut DragPreview));
}

impl<P: Draggable> DragCanvas for Canvas<P> {
    fn host(&self) -> NodeRef {
        self.host()
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.point(client)
    }

    fn change_drag(&self, change: &dyn Fn(&mut DragPreview)) {
        self.change(|picture| change(picture.drag()));
    }
}
