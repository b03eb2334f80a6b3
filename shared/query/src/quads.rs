//! Rectangles as columns, for hundreds of thousands of them.

use serde::{Deserialize, Serialize};

use super::{Packed, Paint};

/// Axis-aligned rectangles as columns. The answer that contains them defines the units of x and y.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quads {
    /// Left edges.
    pub x0: Packed<f32>,
    /// Right edges.
    pub x1: Packed<f32>,
    /// The edges with the smaller y.
    pub y0: Packed<f32>,
    /// The edges with the larger y.
    pub y1: Packed<f32>,
    /// Colours: [`Paint`] codes.
    pub paint: Packed<u16>,
    /// What each represents; [`Quads::NONE`] for a sum of many things.
    pub id: Packed<u32>,
}

impl Quads {
    /// The id of a quad that represents no single thing.
    pub const NONE: u32 = u32::MAX;

    /// Returns the number of rectangles.
    pub fn len(&self) -> usize {
        self.x0.len()
    }

    /// Returns whether there are no rectangles.
    pub fn is_empty(&self) -> bool {
        self.x0.is_empty()
    }

    /// Appends a rectangle.
    #[inline]
    pub fn push(&mut self, x: (f32, f32), y: (f32, f32), paint: Paint, id: u32) {
        self.x0.push(x.0);
        self.x1.push(x.1);
        self.y0.push(y.0);
        self.y1.push(y.1);
        self.paint.push(paint.0);
        self.id.push(id);
    }
}
