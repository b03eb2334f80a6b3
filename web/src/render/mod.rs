//! Painting on canvases: scales, colours, shapes and picking. Knows neither the model nor the views.
//!
//! ```text
//! answer ─► shape (rectangles with their marks) ─► painter ─► canvas of shapes
//!                                                    ├ cpu: raster, pixels composed in memory
//!                                                    └ webgl: triangles
//! scales, ticks ─► surface ─► canvas of lines and words, over it
//! ```

pub mod canvas;
pub mod canvas_surface;
pub mod color;
mod cpu;
pub mod labels;
pub mod math;
pub mod painter;
pub mod palette;
pub mod pick;
pub mod scale;
pub mod shape;
pub mod surface;
pub mod ticks;
mod webgl;
