//! A button that opens a list of choices.

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, Node};
use yew::prelude::*;

use super::icon::{Symbol, icon};
use super::style::pixels;
use crate::browser::{Listener, document, use_effect_with};

/// Properties of [`Menu`].
#[derive(PartialEq, Properties)]
pub struct MenuProps {
    /// The label of the button.
    pub label: Html,
    /// The name for screen readers.
    pub name: AttrValue,
    /// The test id of the button; the list's has the suffix `-list`.
    pub test_id: AttrValue,
    /// The rows: buttons. A click on one closes the list, except inside `[data-keep-open]`.
    pub children: Html,
}

/// A menu button with its list. Arrow keys move through the list; Esc and a click elsewhere close it.
#[component]
pub fn Menu(props: &MenuProps) -> Html {
    let is_open = use_state_eq(|| false);
    let node = use_node_ref();
    {
        let (node, is_open) = (node.clone(), is_open.clone());
        use_effect_with(*is_open, move |&open| {
            let listener = open.then(|| {
                keep_inside(&node);
                focus_row(&node, 0);
                let node = node.clone();
                Listener::new(&document(), "pointerdown", move |event| {
                    let target = event.target().and_then(|target| target.dyn_into::<Node>().ok());
                    if !node.get().is_some_and(|menu| menu.contains(target.as_ref())) {
                        is_open.set(false);
                    }
                })
            });
            move || drop(listener)
        });
    }
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_| is_open.set(!*is_open))
    };
    let onkeydown = {
        let (node, is_open) = (node.clone(), is_open.clone());
        Callback::from(move |event: KeyboardEvent| {
            match event.key().as_str() {
                "Escape" | "Tab" if *is_open => {
                    is_open.set(false);
                    focus_button(&node);
                    if event.key() == "Tab" {
                        return;
                    }
                }
                "ArrowDown" if *is_open => focus_row(&node, 1),
                "ArrowUp" if *is_open => focus_row(&node, -1),
                "ArrowDown" => is_open.set(true),
                _ => return,
            }
            event.prevent_default();
        })
    };
    let on_row = {
        let (node, is_open) = (node.clone(), is_open.clone());
        Callback::from(move |event: MouseEvent| {
            let target = event.target_dyn_into::<Element>();
            let is = |selector| target.as_ref().is_some_and(|t| t.closest(selector).ok().flatten().is_some());
            if is("button") && !is("[data-keep-open]") {
                is_open.set(false);
                focus_button(&node);
            }
        })
    };
    html! {
        <div class="menu" ref={node} {onkeydown}>
            <button type="button" class="menu-button" aria-haspopup="true" aria-expanded={is_open.to_string()}
                onclick={toggle} data-testid={props.test_id.clone()}>
                <span class="visually-hidden">{ props.name.clone() }{ ": " }</span>
                { props.label.clone() }
                { icon(Symbol::ChevronDown) }
            </button>
            if *is_open {
                <div class="menu-list" role="group" aria-label={props.name.clone()} onclick={on_row}
                    data-testid={format!("{}-list", props.test_id)}>
                    { props.children.clone() }
                </div>
            }
        </div>
    }
}

/// Pixels between a list and what would cut it off.
const MARGIN: f64 = 4.0;

/// Moves an open list to the left if it would be cut off at the right edge of its view or of the page.
fn keep_inside(menu: &NodeRef) {
    let Some(menu) = menu.cast::<Element>() else { return };
    let Some(list) =
        menu.query_selector(".menu-list").ok().flatten().and_then(|list| list.dyn_into::<HtmlElement>().ok())
    else {
        return;
    };
    let view = menu.closest(".view-pane").ok().flatten().or_else(|| document().document_element());
    let Some(bounds) = view.map(|view| view.get_bounding_client_rect()) else { return };
    let rect = list.get_bounding_client_rect();
    let (over, room) = (rect.right() + MARGIN - bounds.right(), rect.left() - MARGIN - bounds.left());
    if over > 0.0 && room > 0.0 {
        // Fails for unknown properties only.
        let _ = list.style().set_property("margin-left", &pixels(-over.min(room)));
    }
}

/// Moves the focus by a number of rows; to the current row, or the first, if no row is focused.
fn focus_row(menu: &NodeRef, by: i32) {
    let Some(rows) = menu.cast::<Element>().and_then(|menu| menu.query_selector_all(".menu-row").ok()) else { return };
    let rows: Vec<HtmlElement> =
        (0..rows.length()).filter_map(|i| rows.item(i)?.dyn_into::<HtmlElement>().ok()).collect();
    let active = document().active_element();
    let at = rows.iter().position(|row| active.as_ref().is_some_and(|active| row.is_same_node(Some(active))));
    let count = rows.len() as i32;
    let next = match at {
        Some(at) if count > 0 => (at as i32 + by).rem_euclid(count) as usize,
        _ => rows.iter().position(|row| row.get_attribute("aria-current").is_some()).unwrap_or(0),
    };
    if let Some(row) = rows.get(next) {
        let _ = row.focus();
    }
}

fn focus_button(menu: &NodeRef) {
    let button = menu.cast::<Element>().and_then(|menu| menu.query_selector(".menu-button").ok().flatten());
    if let Some(button) = button.and_then(|button| button.dyn_into::<HtmlElement>().ok()) {
        let _ = button.focus();
    }
}
