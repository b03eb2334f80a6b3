//! The painter that uses the GPU: one upload of triangles per answer, after which a pan or a zoom changes only four
//! numbers. It does not use instancing, since emulated GPUs run every instance as a separate draw call. Its pixels are
//! those of [`super::raster`]: vertices are snapped to whole pixels, and marks follow the same rules.

use std::rc::Rc;

use js_sys::{Function, Reflect};
use raster::{EDGE_ROOM, HATCH_PITCH, Pixels, STRIPE_PITCH, Shape, Transform};
use wasm_bindgen::JsCast;
use web_sys::{
    HtmlCanvasElement, WebGl2RenderingContext as Gl, WebGlBuffer, WebGlProgram, WebGlShader, WebGlUniformLocation,
    WebGlVertexArrayObject,
};

use super::color::Rgb;
use super::painter::{Painted, Painter};

/// Draws shapes with WebGL2. Browsers keep few contexts per page, and take the oldest away for a new one: there is none
/// before there are shapes, nor after the painter.
pub struct WebGlPainter {
    canvas: HtmlCanvasElement,
    context: Option<Context>,
    /// Whether the canvas refused the context.
    has_failed: bool,
    revision: u64,
    count: i32,
    painted: Option<Painted>,
}

/// A canvas' context with what draws shapes on it.
struct Context {
    gl: Gl,
    array: WebGlVertexArrayObject,
    vertices: WebGlBuffer,
    indices: WebGlBuffer,
    transform: WebGlUniformLocation,
    size: WebGlUniformLocation,
}

impl Drop for Context {
    fn drop(&mut self) {
        release(&self.gl);
    }
}

/// Gives a context back at once; the garbage collector would only do so at some time.
pub(super) fn release(gl: &Gl) {
    let Ok(Some(extension)) = gl.get_extension("WEBGL_lose_context") else { return };
    let lose = Reflect::get(&extension, &"loseContext".into()).ok();
    if let Some(lose) = lose.and_then(|lose| lose.dyn_into::<Function>().ok()) {
        // Fails for a context that is lost already.
        let _ = lose.call0(&extension);
    }
}

/// Four vertices per shape, each with the whole shape; the vertex number selects the corner.
const VERTEX: &str = "#version 300 es
precision highp float;
layout(location = 0) in vec4 bounds;
layout(location = 1) in vec4 color;
layout(location = 2) in vec4 second;
layout(location = 3) in uint style;
uniform vec4 transform;
uniform vec2 size;
flat out vec4 v_color;
flat out vec4 v_second;
flat out uint v_style;
flat out ivec4 v_whole;
void main() {
    vec4 p = floor(bounds * transform.xxzz + transform.yyww + 0.5);
    p.zw = vec2(min(p.z, p.w), max(p.z, p.w));
    if ((style & 64u) != 0u) { p.y = max(p.y, p.x + 1.0); p.w = max(p.w, p.z + 1.0); }
    vec2 corner = vec2((gl_VertexID & 1) == 0 ? p.x : p.y, (gl_VertexID & 2) == 0 ? p.z : p.w);
    gl_Position = vec4(corner / size * vec2(2.0, -2.0) + vec2(-1.0, 1.0), 0.0, 1.0);
    v_color = color;
    v_second = second;
    v_style = style;
    v_whole = ivec4(clamp(p, -1048576.0, 1048576.0));
}";

/// The marks, by the rules of `Raster::draw_one`. `ROOM`, `HATCH` and `STRIPE` are prepended.
const FRAGMENT: &str = "
precision highp float;
precision highp int;
flat in vec4 v_color;
flat in vec4 v_second;
flat in uint v_style;
flat in ivec4 v_whole;
uniform vec2 size;
out vec4 result;
void main() {
    ivec2 at = ivec2(int(gl_FragCoord.x), int(size.y - gl_FragCoord.y));
    bool hollow = (v_style & 128u) != 0u;
    bool tall = hollow || v_whole.w - v_whole.z > ROOM;
    bool wide = hollow || tall && v_whole.y - v_whole.x > ROOM;
    bool along = ((v_style & 1u) != 0u && at.y == v_whole.z) || ((v_style & 8u) != 0u && at.y == v_whole.w - 1);
    bool across = ((v_style & 2u) != 0u && at.x == v_whole.x) || ((v_style & 4u) != 0u && at.x == v_whole.y - 1);
    if (along && tall || across && wide) { result = v_second; return; }
    if (hollow) discard;
    result = v_color;
    if ((v_style & 16u) != 0u && (at.x + at.y) % HATCH != 0) result = v_second;
    if ((v_style & 32u) != 0u && (at.x - at.y + STRIPE * 4096) % STRIPE == 0) result = v_second;
}";

impl WebGlPainter {
    /// Creates a painter on a canvas without a context of another kind.
    pub fn new(canvas: &HtmlCanvasElement) -> Self {
        Self { canvas: canvas.clone(), context: None, has_failed: false, revision: 0, count: 0, painted: None }
    }
}

impl Context {
    fn new(canvas: &HtmlCanvasElement) -> Option<Self> {
        let gl: Gl = canvas.get_context("webgl2").ok()??.dyn_into().ok()?;
        let program = program(&gl)?;
        gl.use_program(Some(&program));
        Some(Self {
            array: gl.create_vertex_array()?,
            vertices: gl.create_buffer()?,
            indices: gl.create_buffer()?,
            transform: gl.get_uniform_location(&program, "transform")?,
            size: gl.get_uniform_location(&program, "size")?,
            gl,
        })
    }
}

impl Painter for WebGlPainter {
    fn resize(&mut self, width: u32, height: u32) {
        if (self.canvas.width(), self.canvas.height()) != (width, height) {
            self.canvas.set_width(width);
            self.canvas.set_height(height);
        }
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_shapes(&mut self, shapes: &Rc<Vec<Shape>>, revision: u64) {
        self.revision = revision;
        if self.context.is_none() && !shapes.is_empty() {
            self.context = Context::new(&self.canvas);
            self.has_failed = self.context.is_none();
        }
        let Some(Context { gl, array, vertices: into, indices: numbers, .. }) = &self.context else { return };
        let vertices: Vec<Shape> = shapes.iter().flat_map(|shape| [*shape; 4]).collect();
        let corners = |first: u32| [first, first + 1, first + 2, first + 2, first + 1, first + 3];
        let indices: Vec<u32> = (0..shapes.len() as u32).flat_map(|i| corners(4 * i)).collect();
        gl.bind_vertex_array(Some(array));
        gl.bind_buffer(Gl::ARRAY_BUFFER, Some(into));
        gl.buffer_data_with_u8_array(Gl::ARRAY_BUFFER, bytemuck::cast_slice(&vertices), Gl::STATIC_DRAW);
        gl.bind_buffer(Gl::ELEMENT_ARRAY_BUFFER, Some(numbers));
        gl.buffer_data_with_u8_array(Gl::ELEMENT_ARRAY_BUFFER, bytemuck::cast_slice(&indices), Gl::STATIC_DRAW);
        let stride = size_of::<Shape>() as i32;
        gl.vertex_attrib_pointer_with_i32(0, 4, Gl::FLOAT, false, stride, 0);
        gl.vertex_attrib_pointer_with_i32(1, 4, Gl::UNSIGNED_BYTE, true, stride, 16);
        gl.vertex_attrib_pointer_with_i32(2, 4, Gl::UNSIGNED_BYTE, true, stride, 20);
        gl.vertex_attrib_i_pointer_with_i32(3, 1, Gl::UNSIGNED_INT, stride, 24);
        for attribute in 0..4 {
            gl.enable_vertex_attrib_array(attribute);
        }
        self.count = indices.len() as i32;
    }

    fn paint(&mut self, ground: Rgb, transform: Transform, clip: Pixels) -> bool {
        let Some(Context { gl, array, transform: place, size: extent, .. }) = &self.context else {
            return !self.has_failed;
        };
        if gl.is_context_lost() {
            return false;
        }
        let size = (self.canvas.width(), self.canvas.height());
        let painted = Some(Painted { revision: self.revision, size, ground, transform, clip });
        if self.painted == painted {
            return true;
        }
        self.painted = painted;
        let (width, height) = (size.0 as i32, size.1 as i32);
        let share = |channel: u8| f32::from(channel) / 255.0;
        gl.viewport(0, 0, width, height);
        gl.disable(Gl::SCISSOR_TEST);
        gl.clear_color(share(ground.0), share(ground.1), share(ground.2), 1.0);
        gl.clear(Gl::COLOR_BUFFER_BIT);
        let clip = clip.intersection(Pixels { x0: 0, y0: 0, x1: width, y1: height });
        if clip.is_empty() || self.count == 0 {
            return true;
        }
        gl.enable(Gl::SCISSOR_TEST);
        gl.scissor(clip.x0, height - clip.y1, clip.x1 - clip.x0, clip.y1 - clip.y0);
        gl.uniform4f(Some(place), transform.x.0, transform.x.1, transform.y.0, transform.y.1);
        gl.uniform2f(Some(extent), width as f32, height as f32);
        gl.bind_vertex_array(Some(array));
        gl.draw_elements_with_i32(Gl::TRIANGLES, self.count, Gl::UNSIGNED_INT, 0);
        true
    }
}

fn program(gl: &Gl) -> Option<WebGlProgram> {
    let fragment = format!(
        "#version 300 es\n#define ROOM {EDGE_ROOM}\n#define HATCH {HATCH_PITCH}\n#define STRIPE {STRIPE_PITCH}\n{FRAGMENT}"
    );
    let program = gl.create_program()?;
    gl.attach_shader(&program, &shader(gl, Gl::VERTEX_SHADER, VERTEX)?);
    gl.attach_shader(&program, &shader(gl, Gl::FRAGMENT_SHADER, &fragment)?);
    gl.link_program(&program);
    gl.get_program_parameter(&program, Gl::LINK_STATUS).is_truthy().then_some(program)
}

fn shader(gl: &Gl, kind: u32, source: &str) -> Option<WebGlShader> {
    let shader = gl.create_shader(kind)?;
    gl.shader_source(&shader, source);
    gl.compile_shader(&shader);
    gl.get_shader_parameter(&shader, Gl::COMPILE_STATUS).is_truthy().then_some(shader)
}
