//! Turns pointer and wheel events of a picture over time into gestures.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, MouseEvent, PointerEvent, WheelEvent};
use yew::prelude::*;

use super::gesture::{self, DragKind, Effect, Gesture, PlotArea, Wheel};
use crate::browser::{Listener, place};
use crate::hooks::ModelHandle;
use crate::model::Subject;
use crate::views::menu_target::use_menu_target;
use crate::widgets::style::set_style;

/// Milliseconds without a turn of the wheel before the tooltip is shown again.
pub const REST_MS: i32 = 120;

/// A picture over time that is panned, zoomed and clicked.
pub trait Gestures {
    /// Returns the pressed pointers.
    fn gesture(&self) -> &RefCell<Gesture>;
    /// Returns the element around the picture.
    fn host(&self) -> NodeRef;
    /// Converts client coordinates to CSS pixels of the picture.
    fn point(&self, client: (f64, f64)) -> (f64, f64);
    /// Handles a press of the main button that begins no gesture. Returns whether it was one.
    fn press(&self, _at: (f64, f64), _is_shift: bool, _plot_area: PlotArea) -> bool {
        false
    }
    /// Applies the effect of a gesture.
    fn apply(&self, effect: &Effect, plot_area: PlotArea);
    /// Updates what is under the pointer.
    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea);
    /// Hides the tooltip while the wheel moves the picture.
    fn hide_tooltip(&self, at: (f64, f64), plot_area: PlotArea);
    /// Handles a double click at a point: zooms to what is under it, or shows everything.
    fn double(&self, at: (f64, f64), plot_area: PlotArea);
    /// Returns the subject of the menu at a point; `None` if there is none.
    fn subject(&self, _at: (f64, f64), _plot_area: PlotArea) -> Option<Subject> {
        None
    }
}

const NAMES: [&str; 9] = [
    "wheel",
    "mousedown",
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerleave",
    "dblclick",
    "contextmenu",
];

/// Listens to pointer and wheel events. The listeners are attached directly, since a wheel event must not scroll the
/// page.
#[hook]
pub fn use_gestures(model: &ModelHandle, picture: Rc<dyn Gestures>, plot_area: PlotArea) {
    // Listeners live as long as the component; they read the plot area of the last render here.
    let now = use_mut_ref(|| plot_area);
    *now.borrow_mut() = plot_area;
    {
        let find = Rc::clone(&picture);
        let find =
            Rc::new(move |client: (i32, i32)| find.subject(find.point((client.0.into(), client.1.into())), plot_area));
        use_menu_target(model, &picture.host(), find);
    }
    use_effect_with((), move |()| {
        let mut held = Vec::new();
        if let Some(element) = picture.host().cast::<HtmlElement>() {
            for name in NAMES {
                let (picture, now, host) = (Rc::clone(&picture), Rc::clone(&now), element.clone());
                held.push(Listener::new(&element, name, move |event| {
                    let plot_area = *now.borrow();
                    handle(&*picture, name, &event, &host, plot_area);
                }));
            }
        }
        move || drop(held)
    });
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

fn handle(picture: &dyn Gestures, name: &str, event: &Event, host: &HtmlElement, plot_area: PlotArea) {
    let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
    if is_on_button(event) {
        return;
    }
    let at = picture.point(place(mouse));
    let id = event.dyn_ref::<PointerEvent>().map_or(0, PointerEvent::pointer_id);
    let gesture = picture.gesture();
    match name {
        "wheel" => {
            if let Some(wheel) = event.dyn_ref::<WheelEvent>() {
                event.prevent_default();
                picture.apply(&gesture::wheel(&plot_area, wheel_of(wheel, at)), plot_area);
                picture.hide_tooltip(at, plot_area);
            }
        }
        // The browser would scroll by the middle button.
        "mousedown" if mouse.button() == 1 => event.prevent_default(),
        "pointerdown"
            if mouse.button() == 0 && !mouse.ctrl_key() && picture.press(at, mouse.shift_key(), plot_area) => {}
        "pointerdown" if matches!(mouse.button(), 0 | 1) => {
            let effect = gesture.borrow_mut().down(id, at, drag_kind(mouse), plot_area);
            // Fails if the pointer is already gone: nothing to capture then.
            let _ = host.set_pointer_capture(id);
            if let Some(effect) = effect {
                picture.apply(&effect, plot_area);
            }
        }
        "pointermove" => {
            let effects = gesture.borrow_mut().moved(id, at);
            effects.iter().for_each(|effect| picture.apply(effect, plot_area));
            let (is_busy, is_panning) = (gesture.borrow().is_busy(), gesture.borrow().is_panning());
            picture.point_at((!is_busy).then_some(at), plot_area);
            set_style(&picture.host(), "cursor", if is_panning { "grabbing" } else { "" });
        }
        // A press that opens the menu, as with Ctrl on a Mac, is no click.
        "pointerup" | "pointercancel" | "contextmenu" => {
            let effects = gesture.borrow_mut().up(id, name != "pointerup");
            effects.iter().for_each(|effect| picture.apply(effect, plot_area));
            set_style(&picture.host(), "cursor", "");
        }
        "pointerleave" => picture.point_at(None, plot_area),
        "dblclick" => picture.double(at, plot_area),
        _ => {}
    }
}

/// Returns whether an event is for a button over the picture, not for the picture itself.
pub fn is_on_button(event: &Event) -> bool {
    let element = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    element.is_some_and(|element| element.closest("button").ok().flatten().is_some())
}

/// Returns what a drag from a press does: it selects a range, with Shift or the middle button it moves the window, and
/// with Ctrl (Command) or Alt it zooms. A finger moves the window, since it has neither keys nor a wheel for that.
pub fn drag_kind(event: &MouseEvent) -> DragKind {
    let is_touch = event.dyn_ref::<PointerEvent>().is_some_and(|pointer| pointer.pointer_type() == "touch");
    if is_touch || event.shift_key() || event.button() == 1 {
        DragKind::Pan
    } else if event.ctrl_key() || event.meta_key() || event.alt_key() {
        DragKind::Zoom
    } else {
        DragKind::Range
    }
}

/// Returns the movement of a wheel at a point.
pub fn wheel_of(event: &WheelEvent, at: (f64, f64)) -> Wheel {
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
