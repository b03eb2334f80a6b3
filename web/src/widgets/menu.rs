//! A button that opens a list of choices.

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlButtonElement, HtmlElement};
use yew::prelude::*;

use super::icon::{Symbol, icon};
use crate::browser::{document, use_effect_with};

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

/// A menu button with its list: a popover, which the browser places, and closes on a press elsewhere. Arrow keys move through it;
/// Esc and Tab close it.
#[component]
pub fn Menu(props: &MenuProps) -> Html {
    // Its rows are rendered only while it is open.
    let is_open = use_state_eq(|| false);
    let (button, list) = (use_node_ref(), use_node_ref());
    {
        let (button, list) = (button.clone(), list.clone());
        use_effect_with((), move |()| {
            if let Some(button) = button.cast::<HtmlElement>() {
                button.unchecked_into::<HtmlButtonElement>().set_popover_target_element(list.cast().as_ref());
            }
        });
    }
    {
        let list = list.clone();
        use_effect_with(*is_open, move |&is_open| {
            if is_open {
                focus_row(&list, 0);
            }
        });
    }
    let ontoggle = {
        let (is_open, list) = (is_open.setter(), list.clone());
        Callback::from(move |_| is_open.set(is_shown(&list)))
    };
    let onkeydown = {
        let (button, list) = (button.clone(), list.clone());
        Callback::from(move |event: KeyboardEvent| {
            match event.key().as_str() {
                "Escape" if is_shown(&list) => close(&list),
                // The focus goes on from the button.
                "Tab" if is_shown(&list) => return close(&list),
                "ArrowDown" if is_shown(&list) => focus_row(&list, 1),
                "ArrowUp" if is_shown(&list) => focus_row(&list, -1),
                "ArrowDown" => button.cast::<HtmlElement>().iter().for_each(HtmlElement::click),
                _ => return,
            }
            event.prevent_default();
        })
    };
    let on_row = {
        let list = list.clone();
        Callback::from(move |event: MouseEvent| {
            let target = event.target_dyn_into::<Element>();
            if target
                .is_some_and(|target| target.closest("button:not([data-keep-open] *)").is_ok_and(|row| row.is_some()))
            {
                close(&list);
            }
        })
    };
    html! {
        <div class="menu" {onkeydown}>
            <button ref={button} type="button" class="menu-button" aria-haspopup="true"
                data-testid={props.test_id.clone()}>
                <span class="visually-hidden">{ props.name.clone() }{ ": " }</span>
                { props.label.clone() }
                { icon(Symbol::ChevronDown) }
            </button>
            <div ref={list} class="menu-list" popover="auto" role="group" aria-label={props.name.clone()} {ontoggle} onclick={on_row}
                data-testid={format!("{}-list", props.test_id)}>
                if *is_open {
                    { props.children.clone() }
                }
            </div>
        </div>
    }
}

fn is_shown(list: &NodeRef) -> bool {
    list.cast::<Element>().is_some_and(|list| list.matches(":popover-open") == Ok(true))
}

/// Closes an open list. The focus returns to the button.
fn close(list: &NodeRef) {
    // Fails if it is closed.
    let _ = list.cast::<HtmlElement>().map(|list| list.hide_popover());
}

/// Moves the focus by a number of rows; to the current row, or the first, if no row is focused.
fn focus_row(list: &NodeRef, by: i32) {
    let Some(rows) = list.cast::<Element>().and_then(|list| list.query_selector_all(".menu-row").ok()) else { return };
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
