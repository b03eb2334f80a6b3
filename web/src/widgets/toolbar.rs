//! A toolbar of one row. What has no room in it is behind a button at its end.

use wasm_bindgen::JsCast;
use web_sys::{Element, Node};
use yew::prelude::*;

use super::icon::{Symbol, icon};
use crate::browser::{Listener, document, use_effect_with, use_size};

/// Properties of [`Toolbar`].
#[derive(PartialEq, Properties)]
pub struct ToolbarProps {
    /// The name for screen readers.
    pub label: AttrValue,
    /// The controls, the most important first.
    pub children: Html,
}

/// A row of controls. Those that don't fit wrap into rows that are cut off, and that the button shows over what is below; so
/// does the keyboard, when it goes to one of them.
#[component]
pub fn Toolbar(props: &ToolbarProps) -> Html {
    let (bar, row) = (use_node_ref(), use_node_ref());
    let (is_open, has_more) = (use_state_eq(|| false), use_state_eq(|| false));
    // Renders again with the width.
    use_size(&bar);
    {
        let (bar, row, has_more) = (bar.clone(), row.clone(), has_more.clone());
        use_effect(move || {
            if let (Some(bar), Some(row)) = (bar.cast::<Element>(), row.cast::<Element>()) {
                // Not the height of the row: the list of a menu that is open reaches below it, too.
                let (end, controls) = (bar.get_bounding_client_rect().bottom(), row.children());
                let mut controls = (0..controls.length()).filter_map(|i| controls.item(i));
                has_more.set(controls.any(|control| control.get_bounding_client_rect().bottom() > end + 1.0));
            }
        });
    }
    let is_shown = *is_open && *has_more;
    {
        let (bar, is_open) = (bar.clone(), is_open.clone());
        use_effect_with(is_shown, move |&is_shown| {
            let listener = is_shown.then(|| {
                Listener::new(&document(), "pointerdown", move |event| {
                    let target = event.target().and_then(|target| target.dyn_into::<Node>().ok());
                    if !bar.get().is_some_and(|bar| bar.contains(target.as_ref())) {
                        is_open.set(false);
                    }
                })
            });
            move || drop(listener)
        });
    }
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_: MouseEvent| is_open.set(!is_shown))
    };
    let onkeydown = Callback::from(move |event: KeyboardEvent| {
        if is_shown && event.key() == "Escape" {
            event.prevent_default();
            event.stop_propagation();
            is_open.set(false);
        }
    });
    html! {
        <div ref={bar} class={classes!("toolbar", has_more.then_some("has-more"), is_shown.then_some("is-open"))} {onkeydown}>
            <div ref={row} class="toolbar-row" role="toolbar" aria-label={props.label.clone()}>{ props.children.clone() }</div>
            if *has_more {
                <button type="button" class="icon-button toolbar-more" aria-expanded={is_shown.to_string()} aria-label="More controls" title="More controls" onclick={toggle} data-testid="toolbar-more">{ icon(Symbol::More) }</button>
            }
        </div>
    }
}
