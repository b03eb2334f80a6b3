//! Rectangles, and a software rasterizer that draws them.
//!
//! This is a crate of its own because optimization levels apply to whole crates: the page is compiled for size, but this
//! loop over all pixels of a picture for speed.

#![forbid(unsafe_code)]

mod codes;
mod raster;
mod shape;

pub use codes::painted;
pub use raster::{EDGE_ROOM, HATCH_PITCH, Pixels, Raster, STRIPE_PITCH, Transform};
pub use shape::{Shape, Style};
