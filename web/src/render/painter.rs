//! Painters of shapes: a CPU and a WebGL backend, and which of them suits this browser.

use std::rc::Rc;

use raster::{Pixels, Shape, Transform};
use wasm_bindgen::JsCast;
use web_sys::{HtmlCanvasElement, WebGl2RenderingContext};

use super::color::Rgb;
use super::cpu::CpuPainter;
use super::webgl::{WebGlPainter, release};

/// Draws shapes on a canvas. Shapes are uploaded once; a pan or a zoom only changes the transform.
pub trait Painter {
    /// Sets the canvas' size in device pixels.
    fn resize(&mut self, width: u32, height: u32);

    /// Returns the revision of the current shapes; 0 before the first.
    fn revision(&self) -> u64;

    /// Sets the shapes to draw, with a revision chosen by the caller.
    fn set_shapes(&mut self, shapes: &Rc<Vec<Shape>>, revision: u64);

    /// Draws the shapes inside `clip` on a background of one colour. It is cheap if that is what was drawn last. Returns
    /// false if the painter has failed (the GPU context was lost): another painter must continue on another canvas.
    fn paint(&mut self, ground: Rgb, transform: Transform, clip: Pixels) -> bool;
}

/// What a painter has drawn last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Painted {
    pub(super) revision: u64,
    /// Width and height in device pixels.
    pub(super) size: (u32, u32),
    pub(super) ground: Rgb,
    pub(super) transform: Transform,
    pub(super) clip: Pixels,
}

/// A kind of painter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Pixels composed in memory.
    Cpu,
    /// Triangles on a GPU.
    WebGl,
}

impl Backend {
    /// Returns a short name, which is also the value of the setting that chooses a painter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::WebGl => "webgl",
        }
    }

    /// Returns whether lines and words are drawn on the painter's own canvas. A context of WebGL can't draw them; without
    /// it, a second canvas would only be one more to show.
    pub const fn has_lines(self) -> bool {
        matches!(self, Self::Cpu)
    }

    /// Returns the painter for this browser: as set in its storage under `vramscope.renderer`, otherwise WebGL if a GPU
    /// draws it. The check takes about ten milliseconds, so it runs once, when the page starts.
    pub fn preferred() -> Self {
        thread_local! {
            static PREFERRED: Backend = match setting().as_deref() {
                Some("cpu") => Backend::Cpu,
                Some("webgl") => Backend::WebGl,
                _ => match renderer_name() {
                    Some(name) if !is_software(&name) => Backend::WebGl,
                    _ => Backend::Cpu,
                },
            };
        }
        PREFERRED.with(|preferred| *preferred)
    }

    /// Creates a painter for a canvas that has none; `None` if the canvas refuses. WebGL needs the canvas with the first shapes.
    pub fn painter(self, canvas: &HtmlCanvasElement) -> Option<Box<dyn Painter>> {
        match self {
            Self::Cpu => Some(Box::new(CpuPainter::new(canvas)?)),
            Self::WebGl => Some(Box::new(WebGlPainter::new(canvas))),
        }
    }
}

fn setting() -> Option<String> {
    web_sys::window()?.local_storage().ok()??.get_item("vramscope.renderer").ok()?
}

/// Returns the name of the WebGL2 renderer as reported by the browser; `None` without WebGL2.
fn renderer_name() -> Option<String> {
    /// `UNMASKED_RENDERER_WEBGL` of the extension `WEBGL_debug_renderer_info`.
    const UNMASKED_RENDERER: u32 = 0x9246;
    let canvas: HtmlCanvasElement = web_sys::window()?.document()?.create_element("canvas").ok()?.dyn_into().ok()?;
    let gl: WebGl2RenderingContext = canvas.get_context("webgl2").ok()??.dyn_into().ok()?;
    let has_name = gl.get_extension("WEBGL_debug_renderer_info").ok().flatten().is_some();
    let which = if has_name { UNMASKED_RENDERER } else { WebGl2RenderingContext::RENDERER };
    let name = gl.get_parameter(which).ok()?.as_string();
    release(&gl);
    name
}

/// Returns whether WebGL is emulated on the CPU, judged by the renderer's name.
fn is_software(renderer: &str) -> bool {
    const NAMES: [&str; 5] = ["swiftshader", "llvmpipe", "softpipe", "software", "basic render"];
    let renderer = renderer.to_ascii_lowercase();
    NAMES.iter().any(|name| renderer.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_renderers_are_recognised_by_name() {
        let software = [
            "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)",
            "llvmpipe (LLVM 19.1.7, 256 bits)",
            "ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11 vs_5_0 ps_5_0)",
            "Apple Software Renderer",
        ];
        assert!(software.iter().all(|name| is_software(name)));
        let hardware =
            ["ANGLE (NVIDIA Corporation, NVIDIA RTX A4000/PCIe/SSE2, OpenGL 4.5.0)", "Mali-G78", "Apple GPU"];
        assert!(!hardware.iter().any(|name| is_software(name)));
    }
}
