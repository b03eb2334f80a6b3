//! A picture on the page, and an animation frame whenever something changed. Shapes, lines and text share a canvas; where
//! the painter's context can't draw lines and text, a second canvas over it has them.
//!
//! Pictures are drawn outside of the components' rendering: moving the pointer or dragging redraws at most once per
//! frame. The newest event that is drawn is published as `data-newest-us` beside the picture, so that its delay can be
//! measured from outside.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{HtmlCanvasElement, HtmlElement};
use yew::prelude::*;

use super::canvas_surface::CanvasSurface;
use super::painter::{Backend, Painter};
use super::surface::Surface;
pub use crate::browser::Size;
use crate::browser::{Listener, use_effect_with, use_size, window};

/// Something that can be drawn.
pub trait Picture: 'static {
    /// Draws the picture: shapes first, since lines may be drawn on the same canvas. Both are of the given size. Returns
    /// false if the painter has failed.
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, size: Size) -> bool;

    /// Returns the time of the newest event that it shows, in microseconds since the epoch, if that applies.
    fn newest_us(&self) -> Option<i64> {
        None
    }
}

/// The canvases of a picture, and its animation frames. One code for all pictures.
struct Frames {
    picture: Rc<RefCell<dyn Picture>>,
    host: NodeRef,
    base: NodeRef,
    overlay: NodeRef,
    size: Cell<Size>,
    backend: Cell<Backend>,
    tools: RefCell<Option<Tools>>,
    frame: RefCell<Option<Closure<dyn FnMut()>>>,
    /// The pending animation frame.
    due: Cell<Option<i32>>,
    /// The value on the page.
    newest_us: Cell<Option<i64>>,
    replace: RefCell<Callback<Backend>>,
}

impl Drop for Frames {
    /// A later frame would call a closure that is gone.
    fn drop(&mut self) {
        if let Some(id) = self.due.get() {
            // Fails for a frame that has already run: nothing to cancel then.
            let _ = window().cancel_animation_frame(id);
        }
    }
}

/// The painter and surface of the current canvases.
struct Tools {
    on: HtmlCanvasElement,
    painter: Box<dyn Painter>,
    surface: CanvasSurface,
    /// Draws again when the browser takes the context away: the painter notices it then.
    _lost: Listener,
}

/// A picture with its canvases. Clones share them.
pub struct Canvas<P> {
    picture: Rc<RefCell<P>>,
    frames: Rc<Frames>,
}

impl<P> Clone for Canvas<P> {
    fn clone(&self) -> Self {
        Self { picture: Rc::clone(&self.picture), frames: Rc::clone(&self.frames) }
    }
}

impl<P> PartialEq for Canvas<P> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.frames, &other.frames)
    }
}

impl<P: Picture> Canvas<P> {
    /// Returns the reference of the element around the canvases, which must contain [`Self::html`].
    pub fn host(&self) -> NodeRef {
        self.frames.host.clone()
    }

    /// Returns the size of the picture.
    pub fn size(&self) -> Size {
        self.frames.size.get()
    }

    /// Reads the picture.
    pub fn read<T>(&self, read: impl FnOnce(&P) -> T) -> T {
        read(&self.picture.borrow())
    }

    /// Changes the picture, and draws it in the next frame.
    pub fn change<T>(&self, change: impl FnOnce(&mut P) -> T) -> T {
        let result = change(&mut self.picture.borrow_mut());
        self.request();
        result
    }

    /// Converts client coordinates of an event to CSS pixels from the top left corner.
    pub fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.frames.point(client)
    }

    /// Returns whether the picture can be drawn.
    pub fn is_shown(&self) -> bool {
        !self.size().is_empty() && self.frames.base.get().is_some()
    }

    /// Returns the canvases.
    pub fn html(&self) -> Html {
        self.frames.html()
    }

    /// Draws the picture in the next frame.
    pub fn request(&self) {
        self.frames.request();
    }
}

impl Frames {
    fn new(picture: Rc<RefCell<dyn Picture>>) -> Self {
        Self {
            picture,
            host: NodeRef::default(),
            base: NodeRef::default(),
            overlay: NodeRef::default(),
            size: Cell::new(Size::default()),
            backend: Cell::new(Backend::preferred()),
            tools: RefCell::new(None),
            frame: RefCell::new(None),
            due: Cell::new(None),
            newest_us: Cell::new(None),
            replace: RefCell::new(Callback::noop()),
        }
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.host.cast::<HtmlElement>().map_or((0.0, 0.0), |host| {
            let rect = host.get_bounding_client_rect();
            (client.0 - rect.left(), client.1 - rect.top())
        })
    }

    /// Returns the canvases. A canvas is bound to the first kind of context, hence the key.
    fn html(&self) -> Html {
        let (backend, has_lines) = (self.backend.get().name(), self.backend.get().has_lines());
        html! {
            <>
                <canvas key={backend} class="canvas-base" ref={self.base.clone()} data-renderer={backend} aria-hidden="true" />
                if !has_lines {
                    <canvas key="overlay" class="canvas-overlay" ref={self.overlay.clone()} aria-hidden="true" />
                }
            </>
        }
    }

    fn request(self: &Rc<Self>) {
        if self.due.get().is_some() {
            return;
        }
        let mut frame = self.frame.borrow_mut();
        let call = frame.get_or_insert_with(|| {
            // Weak: a pending frame keeps nothing alive.
            let frames = Rc::downgrade(self);
            Closure::new(move || {
                if let Some(frames) = frames.upgrade() {
                    frames.frame();
                }
            })
        });
        self.due.set(window().request_animation_frame(call.as_ref().unchecked_ref()).ok());
    }

    fn frame(self: &Rc<Self>) {
        self.due.set(None);
        if !self.draw() && self.backend.get() == Backend::WebGl {
            *self.tools.borrow_mut() = None;
            self.backend.set(Backend::Cpu);
            self.replace.borrow().emit(Backend::Cpu);
        }
        self.publish_newest();
    }

    fn publish_newest(&self) {
        let newest = self.picture.borrow().newest_us();
        if newest != self.newest_us.replace(newest)
            && let (Some(host), Some(newest)) = (self.host.cast::<HtmlElement>(), newest)
        {
            // Fails for invalid attribute names only.
            let _ = host.set_attribute("data-newest-us", &newest.to_string());
        }
    }

    fn draw(self: &Rc<Self>) -> bool {
        let size = self.size.get();
        let has_lines = self.backend.get().has_lines();
        let lines = if has_lines { &self.base } else { &self.overlay };
        let (Some(base), Some(lines)) = (self.base.cast::<HtmlCanvasElement>(), lines.cast::<HtmlCanvasElement>())
        else {
            return true;
        };
        if size.is_empty() {
            return true;
        }
        let mut tools = self.tools.borrow_mut();
        if tools.as_ref().is_none_or(|tools| tools.on != base) {
            let painter = self.backend.get().painter(&base);
            let (Some(painter), Some(surface)) = (painter, CanvasSurface::new(&lines, !has_lines)) else {
                return false;
            };
            let weak = Rc::downgrade(self);
            let lost = Listener::new(&base, "webglcontextlost", move |_| {
                if let Some(frames) = weak.upgrade() {
                    frames.request();
                }
            });
            *tools = Some(Tools { on: base, painter, surface, _lost: lost });
        }
        let Some(tools) = tools.as_mut() else { return true };
        let (width, height) = size.device();
        tools.painter.resize(width, height);
        tools.surface.begin(width, height, size.ratio);
        self.picture.borrow_mut().draw(tools.painter.as_mut(), &mut tools.surface, size)
    }
}

/// Returns a picture on canvases that follow their host's size.
#[hook]
pub fn use_canvas<P: Picture>(make: impl FnOnce() -> P) -> Canvas<P> {
    let canvas = use_memo((), |()| {
        let picture = Rc::new(RefCell::new(make()));
        Canvas { frames: Rc::new(Frames::new(picture.clone())), picture }
    });
    use_frames(&canvas.frames);
    canvas.as_ref().clone()
}

#[hook]
fn use_frames(frames: &Rc<Frames>) {
    let size = use_size(&frames.host);
    if frames.size.replace(size) != size {
        frames.request();
    }
    let update = use_force_update();
    *frames.replace.borrow_mut() = Callback::from(move |_| update.force_update());
    // New canvases are empty: the first ones, or those after a change of painter.
    let drawn = Rc::clone(frames);
    use_effect_with(frames.backend.get().name(), move |_| drawn.request());
}
