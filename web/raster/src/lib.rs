//! Rectangles, and a software rasterizer that draws them.
//!
//! A crate of its own, since a compiler's settings apply to whole crates: the page is compiled for size, but this loop
//! over all pixels of a picture is compiled for speed.

#![forbid(unsafe_code)]

mod raster;
mod shape;

pub use raster::{EDGE_ROOM, HATCH_PITCH, Pixels, Raster, STRIPE_PITCH, Transform};
pub use shape::{Shape, Style};
