//! The surface of a 2D canvas: lines, words and flags over the shapes.

use js_sys::Array;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::surface::{Align, Area, Font, Ink, Surface};

/// Draws lines, words and flags on a 2D canvas.
pub struct CanvasSurface {
    canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    /// Whether nothing else is drawn on the canvas.
    is_own: bool,
    /// The last picture's width and height in device pixels, and its device pixels per CSS pixel; 0 before the first.
    size: (u32, u32, f64),
    /// The page's font family.
    family: String,
    font: Option<Font>,
    ink: Option<Ink>,
}

/// Returns the font family that CSS gives a canvas.
pub fn font_family(canvas: &HtmlCanvasElement) -> String {
    web_sys::window()
        .and_then(|window| window.get_computed_style(canvas).ok().flatten())
        .and_then(|style| style.get_property_value("font-family").ok())
        .filter(|family| !family.is_empty())
        .unwrap_or_else(|| "sans-serif".to_owned())
}

impl CanvasSurface {
    /// Creates the surface of a canvas: its own, or one that a painter draws and resizes. Its font is the one that CSS
    /// gives the canvas.
    pub fn new(canvas: &HtmlCanvasElement, is_own: bool) -> Option<Self> {
        let context = canvas.get_context("2d").ok()??.dyn_into().ok()?;
        let family = font_family(canvas);
        Some(Self { canvas: canvas.clone(), context, is_own, size: (0, 0, 0.0), family, font: None, ink: None })
    }

    /// Starts a picture of a size in device pixels.
    pub fn begin(&mut self, width: u32, height: u32, ratio: f64) {
        if self.size != (width, height, ratio) {
            self.size = (width, height, ratio);
            if self.is_own {
                self.canvas.set_width(width);
                self.canvas.set_height(height);
            }
            // A new size has reset the context. Otherwise its settings are kept from picture to picture: a font is
            // parsed whenever it is set.
            self.font = None;
            self.ink = None;
            // Fails for non-finite numbers only, and ratios are finite.
            let _ = self.context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0);
            self.context.set_text_baseline("middle");
        }
        if self.is_own {
            self.context.clear_rect(0.0, 0.0, f64::from(width) / ratio, f64::from(height) / ratio);
        }
    }

    fn ratio(&self) -> f64 {
        self.size.2
    }

    fn ink(&mut self, ink: Ink) {
        if self.ink == Some(ink) {
            return;
        }
        self.ink = Some(ink);
        self.context.set_global_alpha(ink.opacity);
        let css = ink.color.css();
        self.context.set_fill_style_str(&css);
        self.context.set_stroke_style_str(&css);
    }

    fn set_font(&mut self, font: Font) {
        if self.font == Some(font) {
            return;
        }
        self.font = Some(font);
        let weight = match font {
            Font::Label => "400",
            Font::Strong => "600",
        };
        self.context.set_font(&format!("{weight} 11px {}", self.family));
    }

    /// Adds a closed polygon to the path.
    fn path(&self, points: &[(f64, f64)]) {
        for (i, (x, y)) in points.iter().enumerate() {
            if i == 0 {
                self.context.move_to(*x, *y);
            } else {
                self.context.line_to(*x, *y);
            }
        }
        self.context.close_path();
    }

    /// Returns the edge of the device pixel that contains a coordinate: lines drawn there are sharp.
    fn snap(&self, value: f64) -> f64 {
        (value * self.ratio()).floor() / self.ratio()
    }
}

impl Surface for CanvasSurface {
    fn fill(&mut self, area: Area, ink: Ink) {
        self.ink(ink);
        self.context.fill_rect(area.x, area.y, area.width, area.height);
    }

    fn outline(&mut self, area: Area, width: f64, ink: Ink) {
        self.ink(ink);
        self.context.set_line_width(width);
        let half = width / 2.0;
        let (x, y) = (self.snap(area.x), self.snap(area.y));
        let (right, bottom) = (self.snap(area.right()), self.snap(area.bottom()));
        self.context.stroke_rect(x + half, y + half, (right - x - width).max(0.0), (bottom - y - width).max(0.0));
    }

    fn vertical(&mut self, x: f64, from: f64, to: f64, ink: Ink) {
        self.ink(ink);
        self.context.fill_rect(self.snap(x), from, 1.0 / self.ratio(), to - from);
    }

    fn horizontal(&mut self, y: f64, from: f64, to: f64, is_dashed: bool, ink: Ink) {
        self.ink(ink);
        let (y, thick) = (self.snap(y), 1.0 / self.ratio());
        if !is_dashed {
            self.context.fill_rect(from, y, to - from, thick);
            return;
        }
        let dashes = Array::of2(&JsValue::from_f64(4.0), &JsValue::from_f64(3.0));
        // Finite numbers are always accepted.
        let _ = self.context.set_line_dash(&dashes);
        self.context.set_line_width(thick);
        self.context.begin_path();
        self.context.move_to(from, y + thick / 2.0);
        self.context.line_to(to, y + thick / 2.0);
        self.context.stroke();
        let _ = self.context.set_line_dash(&Array::new());
    }

    fn polygon(&mut self, points: &[(f64, f64)], ink: Ink) {
        self.ink(ink);
        self.context.begin_path();
        self.path(points);
        self.context.fill();
    }

    fn contour(&mut self, points: &[(f64, f64)], width: f64, ink: Ink) {
        self.ink(ink);
        self.context.set_line_width(width);
        self.context.begin_path();
        self.path(points);
        self.context.stroke();
    }

    fn image(&mut self, image: &HtmlCanvasElement, from: Area, into: Area) {
        self.ink = None;
        self.context.set_global_alpha(1.0);
        self.context.set_image_smoothing_enabled(false);
        // Fails for an image without pixels only: nothing to draw then.
        let _ = self.context.draw_image_with_html_canvas_element_and_sw_and_sh_and_dx_and_dy_and_dw_and_dh(
            image,
            from.x,
            from.y,
            from.width,
            from.height,
            into.x,
            into.y,
            into.width,
            into.height,
        );
    }

    fn text(&mut self, text: &str, (x, y): (f64, f64), align: Align, font: Font, ink: Ink) {
        self.ink(ink);
        self.set_font(font);
        self.context.set_text_align(match align {
            Align::Start => "left",
            Align::Middle => "center",
            Align::End => "right",
        });
        // Between two rows of pixels, letters are blurred in some browsers.
        let y = (y * self.ratio()).round() / self.ratio();
        // Fails for non-finite numbers only: nothing to draw then.
        let _ = self.context.fill_text(text, x, y);
    }

    fn text_width(&mut self, text: &str, font: Font) -> f64 {
        self.set_font(font);
        self.context.measure_text(text).map_or(0.0, |metrics| metrics.width())
    }
}
