//! Thin wrappers around the browser: the window, listeners and timers that end when dropped, frames, element sizes.
//! Imports nothing else of the page.

mod effect;
mod narrow;
mod place;
mod size;

use std::cell::Cell;
use std::rc::Rc;

pub use effect::use_effect_with;
pub use narrow::{is_narrow, use_narrow};
pub use place::place;
pub use size::{Size, use_size};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{AddEventListenerOptions, Document, Element, Event, EventTarget, HtmlElement, Window};

/// Returns the window. The page runs nowhere else.
pub fn window() -> Window {
    web_sys::window().expect("the page runs in a window")
}

/// Returns the document.
pub fn document() -> Document {
    window().document().expect("a window has a document")
}

/// Returns the root element, `<html>`.
pub fn root() -> Element {
    document().document_element().expect("a document has a root element")
}

/// Focuses the element with an id, if it exists.
pub fn focus(id: &str) {
    if let Some(element) = document().get_element_by_id(id).and_then(|e| e.dyn_into::<HtmlElement>().ok()) {
        let _ = element.focus();
        if let Some(input) = element.dyn_ref::<web_sys::HtmlInputElement>() {
            input.select();
        }
    }
}

fn find(selector: &str) -> Option<Element> {
    document().query_selector(selector).ok().flatten()
}

/// Returns the view that keys are for: the focused one of two.
pub fn focused_view() -> Option<Element> {
    find(".view-pane.has-keys").or_else(|| find(".view-pane"))
}

/// Focuses the view, or the main element of a page without views. With `is_quiet` nothing is seen of it: nobody asked for
/// it, and the page stays where it is scrolled to.
pub fn focus_view(is_quiet: bool) {
    let found = focused_view().or_else(|| find("main"));
    if let Some(element) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        let _ = element.set_attribute("tabindex", "-1");
        // Fails for invalid attribute names only.
        let _ = element.toggle_attribute_with_force("data-quiet", is_quiet);
        let options = web_sys::FocusOptions::new();
        options.set_prevent_scroll(is_quiet);
        let _ = element.focus_with_options(&options);
    }
}

/// Returns whether no element of the page has the focus.
pub fn has_no_focus() -> bool {
    document().active_element().is_none_or(|element| element.tag_name() == "BODY")
}

/// Scrolls the element with an id into view, if it exists, and no further than needed.
pub fn reveal(id: &str) {
    if let Some(element) = document().get_element_by_id(id) {
        let options = web_sys::ScrollIntoViewOptions::new();
        options.set_block(web_sys::ScrollLogicalPosition::Nearest);
        element.scroll_into_view_with_scroll_into_view_options(&options);
    }
}

/// Returns whether text of the page is selected. The copy shortcut is for that text then.
pub fn has_selected_text() -> bool {
    window().get_selection().ok().flatten().is_some_and(|selection| !selection.is_collapsed())
}

/// An event listener that is removed when this is dropped.
pub struct Listener {
    target: EventTarget,
    name: &'static str,
    is_first: bool,
    call: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Adds the listener. The handler may prevent the default action.
    pub fn new(target: &EventTarget, name: &'static str, handler: impl FnMut(Event) + 'static) -> Self {
        Self::with(target, name, false, Closure::new(handler))
    }

    /// Adds the listener for the capture phase: it is called before those of the elements inside the target, and may
    /// stop the event.
    pub fn first(target: &EventTarget, name: &'static str, handler: impl FnMut(Event) + 'static) -> Self {
        Self::with(target, name, true, Closure::new(handler))
    }

    fn with(target: &EventTarget, name: &'static str, is_first: bool, call: Closure<dyn FnMut(Event)>) -> Self {
        let options = AddEventListenerOptions::new();
        options.set_capture(is_first);
        let _ = target.add_event_listener_with_callback_and_add_event_listener_options(
            name,
            call.as_ref().unchecked_ref(),
            &options,
        );
        Self { target: target.clone(), name, is_first, call }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let call = self.call.as_ref().unchecked_ref();
        let _ = self.target.remove_event_listener_with_callback_and_bool(self.name, call, self.is_first);
    }
}

/// A pending call, cancelled when this is dropped.
pub struct Timeout {
    id: i32,
    is_done: Rc<Cell<bool>>,
    _call: Closure<dyn FnMut()>,
}

impl Timeout {
    /// Schedules one call after a number of milliseconds.
    pub fn new(milliseconds: i32, call: impl FnOnce() + 'static) -> Self {
        let is_done = Rc::new(Cell::new(false));
        let done = Rc::clone(&is_done);
        let mut call = Some(call);
        let call = Closure::<dyn FnMut()>::new(move || {
            done.set(true);
            if let Some(call) = call.take() {
                call();
            }
        });
        let id = window()
            .set_timeout_with_callback_and_timeout_and_arguments_0(call.as_ref().unchecked_ref(), milliseconds)
            .unwrap_or(0);
        Self { id, is_done, _call: call }
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        if !self.is_done.get() {
            window().clear_timeout_with_handle(self.id);
        }
    }
}

/// Calls once everything drawn so far is on the screen, that is in the frame after the next.
pub fn after_next_frame(call: impl FnOnce() + 'static) {
    let frame = || {
        JsFuture::from(js_sys::Promise::new(&mut |resolve, _| {
            let _ = window().request_animation_frame(&resolve);
        }))
    };
    spawn_local(async move {
        let _ = frame().await;
        let _ = frame().await;
        call();
    });
}

/// Returns a precise time in milliseconds, from an arbitrary start.
pub fn clock_ms() -> f64 {
    window().performance().map_or_else(js_sys::Date::now, |clock| clock.now())
}

/// Calls after a number of milliseconds, or immediately for zero or less.
pub fn rest_then(milliseconds: i32, call: impl FnOnce() + 'static) {
    if milliseconds <= 0 {
        return call();
    }
    spawn_local(async move {
        let rest = js_sys::Promise::new(&mut |resolve, _| {
            let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, milliseconds);
        });
        let _ = JsFuture::from(rest).await;
        call();
    });
}
