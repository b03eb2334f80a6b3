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

struct Inner<P> {
    picture: RefCell<P>,
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

impl<P> Drop for Inner<P> {
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
pub struct Canvas<P>(Rc<Inner<P>>);

impl<P> Clone for Canvas<P> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<P> PartialEq for Canvas<P> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<P: Picture> Canvas<P> {
    /// Returns the reference of the element around the canvases, which must contain [`Self::html`].
    pub fn host(&self) -> NodeRef {
        self.0.host.clone()
    }

    /// Returns the size of the picture.
    pub fn size(&self) -> Size {
        self.0.size.get()
    }

    /// Reads the picture.
    pub fn read<T>(&self, read: impl FnOnce(&P) -> T) -> T {
        read(&self.0.picture.borrow())
    }

    /// Changes the picture, and draws it in the next frame.
    pub fn change<T>(&self, change: impl FnOnce(&mut P) -> T) -> T {
        let result = change(&mut self.0.picture.borrow_mut());
        self.request();
        result
    }

    /// Converts client coordinates of an event to CSS pixels from the top left corner.
    pub fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.0.host.cast::<HtmlElement>().map_or((0.0, 0.0), |host| {
            let rect = host.get_bounding_client_rect();
            (client.0 - rect.left(), client.1 - rect.top())
        })
    }

    /// Returns whether the picture can be drawn.
    pub fn is_shown(&self) -> bool {
        !self.size().is_empty() && self.0.base.get().is_some()
    }

    /// Returns the canvases. A canvas is bound to the first kind of context, hence the key.
    pub fn html(&self) -> Html {
        let (backend, has_lines) = (self.0.backend.get().name(), self.0.backend.get().has_lines());
        html! {
            <>
                <canvas key={backend} class="canvas-base" ref={self.0.base.clone()} data-renderer={backend} aria-hidden="true" />
                if !has_lines {
                    <canvas key="overlay" class="canvas-overlay" ref={self.0.overlay.clone()} aria-hidden="true" />
                }
            </>
        }
    }

    /// Draws the picture in the next frame.
    pub fn request(&self) {
        if self.0.due.get().is_some() {
            return;
        }
        let mut frame = self.0.frame.borrow_mut();
        let call = frame.get_or_insert_with(|| {
            // Weak: a pending frame keeps nothing alive.
            let inner = Rc::downgrade(&self.0);
            Closure::new(move || {
                if let Some(inner) = inner.upgrade() {
                    Self(inner).frame();
                }
            })
        });
        self.0.due.set(window().request_animation_frame(call.as_ref().unchecked_ref()).ok());
    }

    fn frame(&self) {
        self.0.due.set(None);
        if !self.draw() && self.0.backend.get() == Backend::WebGl {
            *self.0.tools.borrow_mut() = None;
            self.0.backend.set(Backend::Cpu);
            self.0.replace.borrow().emit(Backend::Cpu);
        }
        self.publish_newest();
    }

    fn publish_newest(&self) {
        let newest = self.0.picture.borrow().newest_us();
        if newest != self.0.newest_us.replace(newest)
            && let (Some(host), Some(newest)) = (self.0.host.cast::<HtmlElement>(), newest)
        {
            // Fails for invalid attribute names only.
            let _ = host.set_attribute("data-newest-us", &newest.to_string());
        }
    }

    fn draw(&self) -> bool {
        let inner = &self.0;
        let size = inner.size.get();
        let has_lines = inner.backend.get().has_lines();
        let lines = if has_lines { &inner.base } else { &inner.overlay };
        let (Some(base), Some(lines)) = (inner.base.cast::<HtmlCanvasElement>(), lines.cast::<HtmlCanvasElement>())
        else {
            return true;
        };
        if size.is_empty() {
            return true;
        }
        let mut tools = inner.tools.borrow_mut();
        if tools.as_ref().is_none_or(|tools| tools.on != base) {
            let painter = inner.backend.get().painter(&base);
            let (Some(painter), Some(surface)) = (painter, CanvasSurface::new(&lines, !has_lines)) else {
                return false;
            };
            let weak = Rc::downgrade(inner);
            let lost = Listener::new(&base, "webglcontextlost", move |_| {
                if let Some(inner) = weak.upgrade() {
                    Self(inner).request();
                }
            });
            *tools = Some(Tools { on: base, painter, surface, _lost: lost });
        }
        let Some(tools) = tools.as_mut() else { return true };
        let (width, height) = size.device();
        tools.painter.resize(width, height);
        tools.surface.begin(width, height, size.ratio);
        inner.picture.borrow_mut().draw(tools.painter.as_mut(), &mut tools.surface, size)
    }
}

/// Returns a picture on canvases that follow their host's size.
#[hook]
pub fn use_canvas<P: Picture>(make: impl FnOnce() -> P) -> Canvas<P> {
    let canvas = use_memo((), |()| {
        Canvas(Rc::new(Inner {
            picture: RefCell::new(make()),
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
        }))
    });
    let canvas = canvas.as_ref().clone();
    let size = use_size(&canvas.0.host);
    if canvas.0.size.replace(size) != size {
        canvas.request();
    }
    let update = use_force_update();
    *canvas.0.replace.borrow_mut() = Callback::from(move |_| update.force_update());
    {
        // New canvases are empty: the first ones, or those after a change of painter.
        let canvas = canvas.clone();
        use_effect_with(canvas.0.backend.get().name(), move |_| canvas.request());
    }
    canvas
}
