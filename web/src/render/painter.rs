//! The shapes' painters: one picture, two ways to get it on the screen, and which of them suits this browser.

use wasm_bindgen::JsCast;
use web_sys::{HtmlCanvasElement, WebGl2RenderingContext};

use super::color::Rgb;
use super::cpu::CpuPainter;
use super::raster::{Pixels, Transform};
use super::shape::Shape;
use super::webgl::WebGlPainter;

/// Draws shapes on a canvas. The shapes are handed over once; a pan or a zoom is another transform.
pub trait Painter {
    /// Takes the canvas' size in device pixels.
    fn resize(&mut self, width: u32, height: u32);

    /// The number that came with the shapes it holds; 0 before any came.
    fn revision(&self) -> u64;

    /// Hands over the shapes to draw from now on, with a number of the caller's.
    fn set_shapes(&mut self, shapes: &[Shape], revision: u64);

    /// Draws the shapes inside `clip` on a ground of one colour. False when it can't draw any more (the GPU was taken
    /// away): another painter has to take over, on another canvas.
    fn paint(&mut self, ground: Rgb, transform: Transform, clip: Pixels) -> bool;
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
    /// A short name; also a value of the setting that chooses one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::WebGl => "webgl",
        }
    }

    /// The one for this browser: as set in its storage under `vramscope.renderer`, else the GPU where there is one.
    /// Asking the browser takes it some ten milliseconds, so it is asked once, when the page starts.
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

    /// A painter for a canvas that has none yet; `None` when the canvas refuses.
    pub fn painter(self, canvas: &HtmlCanvasElement) -> Option<Box<dyn Painter>> {
        match self {
            Self::Cpu => Some(Box::new(CpuPainter::new(canvas)?)),
            Self::WebGl => Some(Box::new(WebGlPainter::new(canvas)?)),
        }
    }
}

fn setting() -> Option<String> {
    web_sys::window()?.local_storage().ok()??.get_item("vramscope.renderer").ok()?
}

/// What draws WebGL2 here, as the browser tells it; `None` where nothing does.
fn renderer_name() -> Option<String> {
    /// `UNMASKED_RENDERER_WEBGL` of the extension `WEBGL_debug_renderer_info`.
    const UNMASKED_RENDERER: u32 = 0x9246;
    let canvas: HtmlCanvasElement = web_sys::window()?.document()?.create_element("canvas").ok()?.dyn_into().ok()?;
    let gl: WebGl2RenderingContext = canvas.get_context("webgl2").ok()??.dyn_into().ok()?;
    let has_name = gl.get_extension("WEBGL_debug_renderer_info").ok().flatten().is_some();
    let which = if has_name { UNMASKED_RENDERER } else { WebGl2RenderingContext::RENDERER };
    let name = gl.get_parameter(which).ok()?.as_string();
    // Browsers allow a page only some contexts: this one is not needed again.
    if let Ok(Some(extension)) = gl.get_extension("WEBGL_lose_context") {
        let lose = js_sys::Reflect::get(&extension, &"loseContext".into()).ok();
        if let Some(lose) = lose.and_then(|lose| lose.dyn_into::<js_sys::Function>().ok()) {
            // Only a courtesy: the context is collected in any case.
            let _ = lose.call0(&extension);
        }
    }
    name
}

/// Whether WebGL is emulated on the processor, told by the renderer's name.
fn is_software(renderer: &str) -> bool {
    const NAMES: [&str; 5] = ["swiftshader", "llvmpipe", "softpipe", "software", "basic render"];
    let renderer = renderer.to_ascii_lowercase();
    NAMES.iter().any(|name| renderer.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_known_by_its_name() {
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
