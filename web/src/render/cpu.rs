//! The painter that composes pixels in memory and copies them to a 2D canvas.

use std::rc::Rc;

use js_sys::{Object, Reflect};
use raster::{Pixels, Raster, Shape, Transform};
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use super::color::Rgb;
use super::painter::{Painted, Painter};

/// Composes pixels in memory and copies them to a 2D canvas.
pub struct CpuPainter {
    canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    raster: Raster,
    shapes: Rc<Vec<Shape>>,
    revision: u64,
    painted: Option<Painted>,
}

impl CpuPainter {
    /// Creates a painter on a canvas without a context of another kind.
    pub fn new(canvas: &HtmlCanvasElement) -> Option<Self> {
        let options = Object::new();
        Reflect::set(&options, &"alpha".into(), &false.into()).ok()?;
        // Keeps the canvas' pixels in main memory, where they are composed.
        Reflect::set(&options, &"willReadFrequently".into(), &true.into()).ok()?;
        let context = canvas.get_context_with_context_options("2d", &options).ok()??.dyn_into().ok()?;
        Some(Self {
            canvas: canvas.clone(),
            context,
            raster: Raster::default(),
            shapes: Rc::default(),
            revision: 0,
            painted: None,
        })
    }
}

impl Painter for CpuPainter {
    fn resize(&mut self, width: u32, height: u32) {
        self.raster.resize(width, height);
        let (width, height) = self.raster.size();
        // Setting a canvas' size clears it, even to the same size.
        if (self.canvas.width(), self.canvas.height()) != (width, height) {
            self.canvas.set_width(width);
            self.canvas.set_height(height);
        }
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_shapes(&mut self, shapes: &Rc<Vec<Shape>>, revision: u64) {
        self.shapes = Rc::clone(shapes);
        self.revision = revision;
    }

    fn paint(&mut self, ground: Rgb, transform: Transform, clip: Pixels) -> bool {
        let size = self.raster.size();
        let (width, height) = size;
        if width == 0 || height == 0 {
            return true;
        }
        // The pixels are still there, but lines and words were drawn over their copy on the canvas.
        let painted = Some(Painted { revision: self.revision, size, ground, transform, clip });
        if self.painted != painted {
            self.raster.clear(ground.pixel());
            self.raster.draw(&self.shapes, transform, clip);
            self.painted = painted;
        }
        let image = ImageData::new_with_u8_clamped_array_and_sh(Clamped(self.raster.bytes()), width, height);
        image.is_ok_and(|image| self.context.put_image_data(&image, 0.0, 0.0).is_ok())
    }
}
