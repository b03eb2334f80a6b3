//! A menu at a point of the page, such as a context menu.

use query::term::lower_case;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, Node};
use yew::prelude::*;

use super::style::{pixels, set_style};
use crate::browser::{Listener, document, root, use_effect_with};

/// The distance in pixels from the window's edges.
const EDGE: f64 = 4.0;

/// Properties of [`PopupMenu`].
#[derive(PartialEq, Properties)]
pub struct PopupMenuProps {
    /// Its corner, in CSS pixels of the page.
    pub at: (i32, i32),
    /// The title above the items.
    pub title: AttrValue,
    /// The items: test id, label, and small print.
    pub rows: Vec<(&'static str, AttrValue, AttrValue)>,
    /// Called with the index of the chosen item.
    pub on_pick: Callback<usize>,
    /// Called to close the menu.
    pub on_close: Callback<()>,
}

/// A menu over the page. Arrow keys, Home, End and first letters move in it, Enter and Space choose; Esc, Tab and a press
/// elsewhere close it. The focus then returns to where it was.
#[component]
pub fn PopupMenu(props: &PopupMenuProps) -> Html {
    let node = use_node_ref();
    {
        let (node, (x, y), on_close) = (node.clone(), props.at, props.on_close.clone());
        use_effect_with((), move |()| {
            let before = document().active_element().and_then(|element| element.dyn_into::<HtmlElement>().ok());
            if let Some(menu) = node.cast::<Element>() {
                let bounds = menu.get_bounding_client_rect();
                let page = root();
                let place = |at: i32, length: f64, room: i32| {
                    let (at, room) = (f64::from(at), f64::from(room) - EDGE);
                    // The menu opens on the other side of the pointer if there is no room.
                    if at + length <= room { at } else { (at - length).max((room - length).min(EDGE)).max(EDGE) }
                };
                set_style(&node, "left", &pixels(place(x, bounds.width(), page.client_width())));
                set_style(&node, "top", &pixels(place(y, bounds.height(), page.client_height())));
            }
            step(&node, |_, _| 0);
            let closes = |name: &'static str| {
                let (node, on_close) = (node.clone(), on_close.clone());
                Listener::new(&document(), name, move |event| {
                    let target = event.target().and_then(|target| target.dyn_into::<Node>().ok());
                    if !node.get().is_some_and(|menu| menu.contains(target.as_ref())) {
                        on_close.emit(());
                    }
                })
            };
            let listeners = (closes("pointerdown"), closes("wheel"));
            move || {
                drop(listeners);
                if let Some(before) = before {
                    let _ = before.focus();
                }
            }
        });
    }
    let onkeydown = {
        let (node, on_close) = (node.clone(), props.on_close.clone());
        Callback::from(move |event: KeyboardEvent| {
            let key = event.key();
            match key.as_str() {
                "ArrowDown" => step(&node, |at, count| (at + 1) % count),
                "ArrowUp" => step(&node, |at, count| (at + count - 1) % count),
                "Home" => step(&node, |_, _| 0),
                "End" => step(&node, |_, count| count - 1),
                "Escape" | "Tab" => on_close.emit(()),
                // The browser clicks the focused item.
                "Enter" | " " => return event.stop_propagation(),
                _ => {
                    let letter = lower_case(&key);
                    focus_row(&node, |rows, at| {
                        let begins = |i: &usize| {
                            rows.get(*i)
                                .and_then(|row| row.text_content())
                                .is_some_and(|text| lower_case(&text).starts_with(&letter))
                        };
                        (at + 1..rows.len()).chain(0..=at).find(begins)
                    });
                }
            }
            // Keys must not reach what is behind the menu.
            event.prevent_default();
            event.stop_propagation();
        })
    };
    // A right-click on the menu doesn't open the browser's own menu.
    let oncontextmenu = Callback::from(|event: MouseEvent| event.prevent_default());
    html! {
        <div ref={node} class="popup-menu" role="menu" aria-label={props.title.clone()} {onkeydown} {oncontextmenu} data-testid="popup-menu">
            <div class="popup-menu-title" title={props.title.clone()}>{ props.title.clone() }</div>
            { for props.rows.iter().enumerate().map(|(i, (id, label, hint))| {
                let onclick = props.on_pick.reform(move |_: MouseEvent| i);
                html! {
                    <button type="button" key={*id} role="menuitem" tabindex="-1" class="popup-menu-item" {onclick} data-testid={format!("menu-{id}")}>
                        <span>{ label.clone() }</span>
                        if !hint.is_empty() {
                            <span class="popup-menu-hint" title={hint.clone()}>{ hint.clone() }</span>
                        }
                    </button>
                }
            }) }
        </div>
    }
}

/// Focuses the row that `next` returns, given the index of the focused row and the number of rows.
fn step(menu: &NodeRef, next: impl Fn(usize, usize) -> usize) {
    focus_row(menu, |rows, at| (!rows.is_empty()).then(|| next(at, rows.len())));
}

fn focus_row(menu: &NodeRef, next: impl Fn(&[HtmlElement], usize) -> Option<usize>) {
    let Some(rows) = menu.cast::<Element>().and_then(|menu| menu.query_selector_all("[role=menuitem]").ok()) else {
        return;
    };
    let rows: Vec<HtmlElement> =
        (0..rows.length()).filter_map(|i| rows.item(i)?.dyn_into::<HtmlElement>().ok()).collect();
    let active = document().active_element();
    let at = rows.iter().position(|row| active.as_ref().is_some_and(|active| row.is_same_node(Some(active))));
    if let Some(row) = next(&rows, at.unwrap_or(0)).and_then(|i| rows.get(i)) {
        let _ = row.focus();
    }
}
