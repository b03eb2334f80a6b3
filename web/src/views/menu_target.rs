//! Opens the context menu of what is under a right-click. A long press sends the same event (`input/hold.rs`).

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, MouseEvent};
use yew::prelude::*;

use crate::browser::{Listener, has_selected_text, use_effect_with};
use crate::hooks::ModelHandle;
use crate::model::{Action, OpenMenu, Subject};

/// Returns the subject of the menu at a point of a picture, in client coordinates; `None` if there is none.
pub type Find = Rc<dyn Fn((i32, i32)) -> Option<Subject>>;

/// Listens to right-clicks on a picture, and opens the menu of what `find` returns.
#[hook]
pub fn use_menu_target(model: &ModelHandle, host: &NodeRef, find: Find) {
    // The listener lives as long as the component, and calls the function of the latest render.
    let latest = use_mut_ref(|| None::<Find>);
    *latest.borrow_mut() = Some(find);
    let (model, host) = (model.clone(), host.clone());
    use_effect_with((), move |()| {
        let listener = host.cast::<HtmlElement>().map(|host| {
            Listener::new(&host, "contextmenu", move |event| {
                let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
                if open(&model, &latest, (mouse.client_x(), mouse.client_y())) {
                    event.prevent_default();
                    event.stop_propagation();
                }
            })
        });
        move || drop(listener)
    });
}

/// Opens the menu of what is at a point. Returns whether there is something.
fn open(model: &ModelHandle, find: &RefCell<Option<Find>>, at: (i32, i32)) -> bool {
    let found = find.borrow().as_ref().and_then(|find| find(at));
    let is_found = found.is_some();
    if let Some(subject) = found {
        model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
    }
    is_found
}

/// Returns a handler of right-clicks for a region with lists. The nearest element with `data-menu` determines the
/// subject of the menu. While text is selected, the browser's own menu is shown, which can copy it.
pub fn list_menu(model: &ModelHandle) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |event: MouseEvent| {
        if has_selected_text() {
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

/// Returns the subject of the menu of an element or of the nearest element around it that has one.
fn subject_of(model: &ModelHandle, element: &Element) -> Option<Subject> {
    let named = element.closest("[data-menu]").ok().flatten()?;
    Subject::parse(&named.get_attribute("data-menu")?, model.now().view.cursor)
}

/// Opens the menu of the focused row, of the selection, or of the event at the cursor, in this order of preference. For
/// the keyboard. The menu appears at the row, or in the corner of the view.
pub fn open_menu_here(model: &ModelHandle) {
    let now = model.now();
    let document = crate::browser::document();
    // The current row of the focused list, or the focused element itself.
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
            (subject, crate::browser::focused_view())
        }
    };
    let at = element.map_or((0, 0), |element| {
        let bounds = element.get_bounding_client_rect();
        (bounds.left() as i32 + 24, (bounds.top() + bounds.height().min(48.0) / 2.0) as i32)
    });
    model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
}
