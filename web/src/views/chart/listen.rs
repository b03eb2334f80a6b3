//! Listens to the pointer and the wheel over a picture, and turns what they do over a picture over time into gestures.

use std::cell::RefCell;
use std::rc::Rc;

use query::Window;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, MouseEvent, PointerEvent, WheelEvent};
use yew::prelude::*;

use super::drag::DragCanvas;
use super::gesture::{self, DragKind, Effect, Gesture, PlotArea, Wheel};
use crate::browser::{Listener, place, use_effect_with};
use crate::hooks::{ModelHandle, select_range};
use crate::model::{Action, Subject};
use crate::views::menu_target::use_menu_target;
use crate::widgets::style::set_style;

/// Milliseconds without a turn of the wheel before the tooltip is shown again.
pub const REST_MS: i32 = 120;

/// A picture over time that is panned, zoomed and clicked.
pub trait Gestures {
    /// Returns where actions go.
    fn model(&self) -> &ModelHandle;
    /// Returns the picture.
    fn canvas(&self) -> &dyn DragCanvas;
    /// Handles a press of the main button that begins no gesture. Returns whether it was one.
    fn press(&self, _at: (f64, f64), _is_shift: bool, _plot_area: PlotArea) -> bool {
        false
    }
    /// Shows another part of the axis.
    fn show(&self, window: Window) {
        self.model().dispatch(Action::SetWindow(window));
    }
    /// Shows another part of the height; `None` fits it to the data. Most pictures have no other.
    fn show_height(&self, _height: Option<Window>) {}
    /// Handles the end of a drag over a part of the axis.
    fn select(&self, range: Window) {
        select_range(self.model(), range);
    }
    /// Handles a click at a point.
    fn click(&self, at: (f64, f64), plot_area: PlotArea) {
        self.scrub(at, plot_area);
    }
    /// Moves the cursor to a point.
    fn scrub(&self, at: (f64, f64), plot_area: PlotArea);
    /// Updates what is under the pointer.
    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea);
    /// Hides the tooltip while the wheel moves the picture.
    fn hide_tooltip(&self, _at: (f64, f64), _plot_area: PlotArea) {}
    /// Handles a double click at a point: zooms to what is under it, or shows everything.
    fn double(&self, at: (f64, f64), plot_area: PlotArea);
    /// Returns the subject of the menu at a point; `None` if there is none.
    fn subject(&self, _at: (f64, f64), _plot_area: PlotArea) -> Option<Subject> {
        None
    }
}

/// What a pointer does over a picture.
pub enum Input<'a> {
    /// The wheel turns.
    Wheel(Wheel),
    /// The main or the middle button, or a finger, is pressed.
    Down {
        /// The pointer.
        id: i32,
        /// What a drag from here does.
        drag: DragKind,
        /// Whether it is a finger.
        is_touch: bool,
        /// The event.
        mouse: &'a MouseEvent,
    },
    /// The pointer moves, pressed or not.
    Move {
        /// The pointer.
        id: i32,
    },
    /// The pointer is released, or taken by the system.
    Up {
        /// The pointer.
        id: i32,
        /// Whether what it did must have no effect.
        is_cancelled: bool,
    },
    /// The pointer leaves the picture.
    Leave,
    /// A click. Pictures over time tell clicks from drags themselves.
    Click,
    /// A double click.
    Double,
    /// The menu is asked for.
    Menu(&'a MouseEvent),
}

/// A picture that pointers work on.
pub trait Pointed {
    /// Returns the element around the picture.
    fn host(&self) -> NodeRef;
    /// Converts client coordinates to CSS pixels of the picture.
    fn point(&self, client: (f64, f64)) -> (f64, f64);
    /// Returns whether a turn of the wheel with or without Ctrl is for the picture; otherwise it scrolls.
    fn takes_wheel(&self, _is_pinch: bool) -> bool {
        true
    }
    /// Handles an input at a point. Returns whether the pointer belongs to the picture until it is released.
    fn input(&self, at: (f64, f64), input: Input<'_>) -> bool;
}

const NAMES: [&str; 10] = [
    "wheel",
    "mousedown",
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerleave",
    "click",
    "dblclick",
    "contextmenu",
];

/// Listens to pointer and wheel events as long as the component lives. The listeners are attached directly, since a turn of the
/// wheel that is for the picture must not scroll the page.
#[hook]
pub fn use_pointer<P: Pointed + 'static>(picture: impl FnOnce() -> P + 'static) {
    use_effect_with((), move |()| {
        let held = listeners(&(Rc::new(picture()) as Rc<dyn Pointed>));
        move || drop(held)
    });
}

fn listeners(picture: &Rc<dyn Pointed>) -> Vec<Listener> {
    let Some(element) = picture.host().cast::<HtmlElement>() else { return Vec::new() };
    let listener = |name| {
        let (picture, host) = (Rc::clone(picture), element.clone());
        Listener::new(&element, name, move |event| listen(&*picture, name, &event, &host))
    };
    NAMES.map(listener).into()
}

fn listen(picture: &dyn Pointed, name: &str, event: &Event, host: &HtmlElement) {
    let Some(mouse) = event.dyn_ref::<MouseEvent>().filter(|_| !is_on_button(event)) else { return };
    let at = picture.point(place(mouse));
    let pointer = event.dyn_ref::<PointerEvent>();
    let id = pointer.map_or(0, PointerEvent::pointer_id);
    let input = match name {
        "wheel" => {
            let Some(wheel) = event.dyn_ref::<WheelEvent>() else { return };
            if !picture.takes_wheel(wheel.ctrl_key()) {
                return;
            }
            event.prevent_default();
            Input::Wheel(wheel_of(wheel, at))
        }
        // The browser would scroll by the middle button.
        "mousedown" if mouse.button() == 1 => return event.prevent_default(),
        "pointerdown" if matches!(mouse.button(), 0 | 1) => {
            let is_touch = pointer.is_some_and(|pointer| pointer.pointer_type() == "touch");
            Input::Down { id, drag: drag_kind(mouse, is_touch), is_touch, mouse }
        }
        "pointermove" => Input::Move { id },
        "pointerup" | "pointercancel" => Input::Up { id, is_cancelled: name == "pointercancel" },
        "pointerleave" => Input::Leave,
        "click" => Input::Click,
        "dblclick" => Input::Double,
        "contextmenu" => Input::Menu(mouse),
        _ => return,
    };
    if picture.input(at, input) {
        // Fails if the pointer is already gone: nothing to capture then.
        let _ = host.set_pointer_capture(id);
    }
}

/// Listens to a picture over time, and opens the menu of what is under the pointer.
#[hook]
pub fn use_gestures(model: &ModelHandle, picture: Rc<dyn Gestures>, plot_area: PlotArea) {
    // Listeners live as long as the component; they read the plot area of the last render here.
    let now = use_mut_ref(|| plot_area);
    *now.borrow_mut() = plot_area;
    {
        let find = Rc::clone(&picture);
        let find = Rc::new(move |client: (i32, i32)| {
            find.subject(find.canvas().point((client.0.into(), client.1.into())), plot_area)
        });
        use_menu_target(model, &picture.canvas().host(), find);
    }
    use_pointer(move || OverTime { picture, gesture: RefCell::default(), now });
}

/// Hides a tooltip when something else than the pointer over it moves the picture: it would go on naming what is no longer
/// there. The next movement of the pointer shows it again. A picture that follows a running job moves all the time.
#[hook]
pub fn use_tip_until_moved(plot_area: PlotArea, hide: impl Fn() + 'static) {
    let PlotArea { window, is_following, .. } = plot_area;
    use_effect_with(window, move |_| {
        if !is_following {
            hide();
        }
    });
}

/// A picture over time, with its plot area in the last render.
struct OverTime {
    picture: Rc<dyn Gestures>,
    /// The pressed pointers.
    gesture: RefCell<Gesture>,
    now: Rc<RefCell<PlotArea>>,
}

impl OverTime {
    fn apply(&self, effects: impl IntoIterator<Item = Effect>, plot_area: PlotArea) {
        for effect in effects {
            self.apply_one(effect, plot_area);
        }
    }

    fn apply_one(&self, effect: Effect, plot_area: PlotArea) {
        let (picture, canvas) = (&self.picture, self.picture.canvas());
        match effect {
            Effect::Window(window) => picture.show(window),
            Effect::Bytes(height) => picture.show_height(height),
            Effect::Band(band) => canvas.change_drag(&|drag| drag.band = band),
            Effect::Preview(range) => canvas.change_drag(&|drag| drag.range = Some(range)),
            Effect::Range(range) => {
                canvas.change_drag(&|drag| drag.range = None);
                if let Some(range) = range {
                    picture.select(range);
                }
            }
            Effect::Click(at) => picture.click(at, plot_area),
            Effect::Scrub(at) => picture.scrub(at, plot_area),
        }
    }

    fn release(&self, id: i32, is_cancelled: bool, plot_area: PlotArea) {
        let effects = self.gesture.borrow_mut().up(id, is_cancelled);
        self.apply(effects, plot_area);
        set_style(&self.host(), "cursor", "");
    }
}

impl Pointed for OverTime {
    fn host(&self) -> NodeRef {
        self.picture.canvas().host()
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.picture.canvas().point(client)
    }

    fn input(&self, at: (f64, f64), input: Input<'_>) -> bool {
        let (picture, gesture, plot_area) = (&self.picture, &self.gesture, *self.now.borrow());
        match input {
            Input::Wheel(wheel) => {
                self.apply_one(gesture::wheel(&plot_area, wheel), plot_area);
                picture.hide_tooltip(at, plot_area);
            }
            Input::Down { id, drag, mouse, .. } => {
                let is_plain = mouse.button() == 0 && !mouse.ctrl_key();
                if is_plain && picture.press(at, mouse.shift_key(), plot_area) {
                    return false;
                }
                let effect = gesture.borrow_mut().down(id, at, drag, plot_area);
                self.apply(effect, plot_area);
                return true;
            }
            Input::Move { id } => {
                let effects = gesture.borrow_mut().moved(id, at);
                self.apply(effects, plot_area);
                let (is_busy, is_panning) = (gesture.borrow().is_busy(), gesture.borrow().is_panning());
                picture.point_at((!is_busy).then_some(at), plot_area);
                set_style(&self.host(), "cursor", if is_panning { "grabbing" } else { "" });
            }
            Input::Up { id, is_cancelled } => self.release(id, is_cancelled, plot_area),
            // A press that opens the menu, as with Ctrl on a Mac, is no click.
            Input::Menu(mouse) => {
                let id = mouse.dyn_ref::<PointerEvent>().map_or(0, PointerEvent::pointer_id);
                self.release(id, true, plot_area);
            }
            Input::Leave => picture.point_at(None, plot_area),
            Input::Click => {}
            Input::Double => picture.double(at, plot_area),
        }
        false
    }
}

/// Returns whether an event is for a button over the picture, not for the picture itself.
fn is_on_button(event: &Event) -> bool {
    let element = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    element.is_some_and(|element| element.closest("button").ok().flatten().is_some())
}

/// Returns what a drag from a press does: it selects a range, with Shift or the middle button it moves the window, and
/// with Ctrl (Command) or Alt it zooms. A finger moves the window, since it has neither keys nor a wheel for that.
fn drag_kind(event: &MouseEvent, is_touch: bool) -> DragKind {
    if is_touch || event.shift_key() || event.button() == 1 {
        DragKind::Pan
    } else if event.ctrl_key() || event.meta_key() || event.alt_key() {
        DragKind::Zoom
    } else {
        DragKind::Range
    }
}

/// Returns the movement of a wheel at a point.
fn wheel_of(event: &WheelEvent, at: (f64, f64)) -> Wheel {
    // Firefox reports lines for a mouse wheel.
    let unit = if event.delta_mode() == WheelEvent::DOM_DELTA_LINE { 16.0 } else { 1.0 };
    Wheel {
        at,
        dx: event.delta_x() * unit,
        dy: event.delta_y() * unit,
        is_shift: event.shift_key(),
        is_height: event.alt_key(),
        is_pinch: event.ctrl_key(),
    }
}
