//! Long presses. A finger that rests on a picture hovers like a mouse: the tooltip shows and follows the finger until
//! it is lifted. A finger that rests longer opens the menu. Pictures need no code for this: they receive mouse events
//! instead of the finger's.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, Event, PointerEvent, PointerEventInit};
use yew::prelude::*;

use crate::browser::{Listener, Timeout, use_effect_with, window};

/// How long a finger rests until it hovers, in milliseconds.
const HOLD_MS: i32 = 500;
/// How much longer it rests until it opens the menu, in milliseconds.
const MENU_MS: i32 = 700;
/// A finger that moves further than this many pixels is dragging, not resting.
const MOST_PIXELS: i32 = 8;
/// Selects the elements that have tooltips or a menu.
const TARGETS: &str = ".canvas-host, .segments-scroll, [data-menu]";

/// The events that a picture doesn't receive while a finger hovers over it.
const NAMES: [&str; 9] = [
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerout",
    "pointerleave",
    "lostpointercapture",
    "click",
    "contextmenu",
];

/// A finger on a picture.
struct Finger {
    id: i32,
    on: Element,
    at: (i32, i32),
    is_hovering: bool,
    is_lifted: bool,
    /// Where it began to hover, and the timer that opens the menu.
    menu: Option<((i32, i32), Timeout)>,
    _timer: Timeout,
}

impl Finger {
    /// Sends a mouse event to the picture, after the current event has been handled.
    fn send(&self, name: &'static str, id: i32) {
        let init = PointerEventInit::new();
        init.set_bubbles(true);
        init.set_cancelable(true);
        init.set_pointer_id(id);
        init.set_pointer_type("mouse");
        init.set_client_x(self.at.0);
        init.set_client_y(self.at.1);
        let on = self.on.clone();
        spawn_local(async move {
            if let Ok(event) = PointerEvent::new_with_event_init_dict(name, &init) {
                let _ = on.dispatch_event(&event);
            }
        });
    }
}

type Held = Rc<RefCell<Option<Rc<RefCell<Finger>>>>>;

/// Lets resting fingers hover while the component is mounted.
#[hook]
pub fn use_hold() {
    use_effect_with((), |()| {
        let held = Held::default();
        let listeners = NAMES.map(|name| {
            let held = Rc::clone(&held);
            Listener::first(&window(), name, move |event| handle(&held, name, &event))
        });
        move || drop(listeners)
    });
}

fn handle(held: &Held, name: &str, event: &Event) {
    // Events that were made here pass.
    if !event.is_trusted() {
        return;
    }
    let Some(pointer) = event.dyn_ref::<PointerEvent>() else { return };
    if name == "pointerdown" {
        // The tooltip of the previous finger is hidden. Two fingers never count as resting.
        if let Some(last) = held.borrow_mut().take().filter(|last| last.borrow().is_hovering) {
            last.borrow().send("pointerleave", 0);
        }
        if pointer.pointer_type() == "touch" && pointer.is_primary() {
            *held.borrow_mut() = rest(held, pointer);
        }
        return;
    }
    let Some(finger) = held.borrow().clone() else { return };
    // Clicks and menus may also come from the keyboard.
    if pointer.pointer_id() != finger.borrow().id {
        return;
    }
    let at = (pointer.client_x(), pointer.client_y());
    if !finger.borrow().is_hovering && name == "contextmenu" {
        // The browser's own long press came first.
        hover(&finger);
    }
    if !finger.borrow().is_hovering {
        let from = finger.borrow().at;
        if matches!(name, "pointerup" | "pointercancel") || name == "pointermove" && is_far(from, at) {
            *held.borrow_mut() = None;
        }
        return;
    }
    event.stop_immediate_propagation();
    if name == "contextmenu" || name == "click" {
        event.prevent_default();
    }
    if name == "pointermove" && !finger.borrow().is_lifted {
        finger.borrow_mut().at = at;
        finger.borrow_mut().menu.take_if(|(from, _)| is_far(*from, at));
        finger.borrow().send("pointermove", 0);
    }
    if matches!(name, "pointerup" | "pointercancel") {
        finger.borrow_mut().is_lifted = true;
        finger.borrow_mut().menu = None;
    }
}

/// Returns whether a finger has moved too far for one that rests.
fn is_far(from: (i32, i32), to: (i32, i32)) -> bool {
    (to.0 - from.0).abs().max((to.1 - from.1).abs()) > MOST_PIXELS
}

/// Lets a finger hover from now on.
fn hover(finger: &Rc<RefCell<Finger>>) {
    let weak = Rc::downgrade(finger);
    let menu = Timeout::new(MENU_MS, move || {
        if let Some(finger) = weak.upgrade() {
            finger.borrow().send("contextmenu", 0);
        }
    });
    let from = finger.borrow().at;
    finger.borrow_mut().is_hovering = true;
    finger.borrow_mut().menu = Some((from, menu));
    let finger = finger.borrow();
    // The picture must not take the finger for a press any more.
    finger.send("pointercancel", finger.id);
    finger.send("pointermove", 0);
}

/// Begins a rest if the finger is on a picture, or on a row that has a menu.
fn rest(held: &Held, pointer: &PointerEvent) -> Option<Rc<RefCell<Finger>>> {
    let on = pointer.target()?.dyn_into::<Element>().ok()?;
    on.closest(TARGETS).ok()??;
    let held = Rc::clone(held);
    let timer = Timeout::new(HOLD_MS, move || {
        let Some(finger) = held.borrow().clone() else { return };
        if !finger.borrow().is_hovering {
            hover(&finger);
        }
    });
    let (id, at) = (pointer.pointer_id(), (pointer.client_x(), pointer.client_y()));
    Some(Rc::new(RefCell::new(Finger { id, on, at, is_hovering: false, is_lifted: false, menu: None, _timer: timer })))
}
