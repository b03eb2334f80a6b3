//! Opens the menu of what is under a right-click or a long press.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, MouseEvent, PointerEvent};
use yew::prelude::*;

use crate::browser::{Listener, Timeout, window};
use crate::hooks::ModelHandle;
use crate::model::{Action, OpenMenu, Subject};

/// Milliseconds after which a resting finger opens the menu.
const HOLD_MS: i32 = 500;
/// A finger that moved further than this many pixels drags.
const SLACK_PIXELS: i32 = 8;

/// What a picture tells of a point: what its menu is about.
pub type Find = Rc<dyn Fn((i32, i32)) -> Option<Subject>>;

/// Listens to right-clicks and long presses on a picture. `find` returns what is at a point in client coordinates;
/// `on_hold` is called when a long press has opened the menu, so that the press ends there.
#[hook]
pub fn use_menu_target(model: &ModelHandle, host: &NodeRef, find: Find, on_hold: Callback<()>) {
    // Listeners live as long as the component; they read what the last render knows here.
    let latest = use_mut_ref(|| None::<(Find, Callback<()>)>);
    *latest.borrow_mut() = Some((find, on_hold));
    let (model, host) = (model.clone(), host.clone());
    use_effect_with((), move |()| {
        let target = Target { model, latest, hold: Rc::default(), from: Rc::default() };
        let names = ["contextmenu", "pointerdown", "pointermove", "pointerup", "pointercancel"];
        let held: Vec<Listener> = host.cast::<HtmlElement>().map_or_else(Vec::new, |host| {
            names
                .map(|name| (name, target.clone()))
                .map(|(name, target)| Listener::new(&host, name, move |event| target.handle(name, &event)))
                .into()
        });
        move || drop(held)
    });
}

/// Finds what is at a point, and is told that the menu is open.
type Latest = Rc<RefCell<Option<(Find, Callback<()>)>>>;

#[derive(Clone)]
struct Target {
    model: ModelHandle,
    latest: Latest,
    hold: Rc<RefCell<Option<Timeout>>>,
    from: Rc<Cell<(i32, i32)>>,
}

impl Target {
    fn handle(&self, name: &str, event: &Event) {
        let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
        let at = (mouse.client_x(), mouse.client_y());
        match name {
            "contextmenu" if self.open(at) => {
                event.prevent_default();
                event.stop_propagation();
            }
            "pointerdown" => {
                let is_touch = mouse.dyn_ref::<PointerEvent>().is_some_and(|pointer| pointer.pointer_type() == "touch");
                let is_first = mouse.dyn_ref::<PointerEvent>().is_some_and(PointerEvent::is_primary);
                self.from.set(at);
                let target = self.clone();
                *self.hold.borrow_mut() = (is_touch && is_first).then(|| {
                    Timeout::new(HOLD_MS, move || {
                        if target.open(at)
                            && let Some((_, on_hold)) = &*target.latest.borrow()
                        {
                            on_hold.emit(());
                        }
                    })
                });
            }
            "pointermove" => {
                let (x, y) = self.from.get();
                if (at.0 - x).abs().max((at.1 - y).abs()) > SLACK_PIXELS {
                    *self.hold.borrow_mut() = None;
                }
            }
            "pointerup" | "pointercancel" => *self.hold.borrow_mut() = None,
            _ => {}
        }
    }

    fn open(&self, at: (i32, i32)) -> bool {
        let found = self.latest.borrow().as_ref().and_then(|(find, _)| find(at));
        let is_found = found.is_some();
        if let Some(subject) = found {
            self.model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
        }
        is_found
    }
}

/// Returns a handler of right-clicks for a region of lists: the nearest element with `data-menu` says what the menu is
/// about. Over selected text the browser's own menu is shown, which copies it.
pub fn list_menu(model: &ModelHandle) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |event: MouseEvent| {
        let selected = window().get_selection().ok().flatten();
        if selected.is_some_and(|selected| !selected.is_collapsed()) {
            return;
        }
        let subject = event.target_dyn_into::<Element>().and_then(|target| subject_of(&model, &target));
        if let Some(subject) = subject {
            event.prevent_default();
            let at = (event.client_x(), event.client_y());
            model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
        }
    })
}

/// Returns what the menu of an element, or of what it is in, is about.
fn subject_of(model: &ModelHandle, element: &Element) -> Option<Subject> {
    let named = element.closest("[data-menu]").ok().flatten()?;
    Subject::parse(&named.get_attribute("data-menu")?, model.now().view.cursor)
}

/// Opens the menu of the focused row, otherwise of the selection, otherwise of the event at the cursor: for the
/// keyboard. It stands at the row, or in the corner of the view.
pub fn open_menu_here(model: &ModelHandle) {
    let now = model.now();
    let document = crate::browser::document();
    // The row that a list with the focus stands on.
    let active = document.active_element().map(|active| {
        let row = active.get_attribute("aria-activedescendant").and_then(|id| document.get_element_by_id(&id));
        row.unwrap_or(active)
    });
    let row = active.and_then(|element| Some((subject_of(model, &element)?, element)));
    let (subject, element) = match row {
        Some((subject, element)) => (subject, Some(element)),
        None => {
            let view = &now.view;
            let chosen = Subject::of(view.selection, view.cursor);
            let Some(subject) = chosen.or_else(|| (view.cursor > 0).then_some(Subject::Event(view.cursor))) else {
                return;
            };
            (subject, document.query_selector(".view-pane").ok().flatten())
        }
    };
    let at = element.map_or((0, 0), |element| {
        let bounds = element.get_bounding_client_rect();
        (bounds.left() as i32 + 24, (bounds.top() + bounds.height().min(48.0) / 2.0) as i32)
    });
    model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
}
