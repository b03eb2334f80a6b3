//! A modal dialog that keeps the focus inside.

use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDialogElement, HtmlElement};
use yew::prelude::*;

use super::icon::{Symbol, icon};
use crate::browser::{Listener, document, use_effect_with};

/// Selector of the elements that Tab goes to.
const FOCUSABLE: &str = "button:enabled, input:enabled:not([type='radio']:not(:checked)), select:enabled, \
                         textarea:enabled, a[href], summary, [tabindex='0']";

/// Properties of [`Modal`].
#[derive(PartialEq, Properties)]
pub struct ModalProps {
    /// The title.
    pub title: AttrValue,
    /// Whether the title is for screen readers only.
    pub is_title_hidden: bool,
    /// Called to close the dialog.
    pub on_close: Callback<()>,
    /// The class of the dialog.
    pub class: AttrValue,
    /// The test id.
    pub test_id: AttrValue,
    /// The contents. An element with `data-autofocus` gets the focus first.
    pub children: Html,
}

/// A modal dialog, over the whole page: the browser makes what is behind it inert. Tab cycles inside it, which browsers leave to the
/// page, a click on the backdrop closes it, and Esc closes it through its command. The focus then returns to where it was.
#[component]
pub fn Modal(props: &ModalProps) -> Html {
    let node = use_node_ref();
    {
        let node = node.clone();
        use_effect_with((), move |()| {
            let inside = node.clone();
            // Of the whole page: what had the focus may be gone, and the next Tab would go on behind the dialog.
            let keys = Listener::new(&document(), "keydown", move |event| {
                let Some(key) = event.dyn_ref::<KeyboardEvent>() else { return };
                if key.key() == "Tab" && !event.default_prevented() && keep_inside(&inside, key.shift_key()) {
                    event.prevent_default();
                }
            });
            let dialog = node.cast::<HtmlDialogElement>();
            if let Some(dialog) = &dialog {
                // Fails for a dialog that is open, and this one was just made.
                let _ = dialog.show_modal();
                let first = dialog.query_selector("[data-autofocus]").ok().flatten();
                if let Some(first) = first.and_then(|first| first.dyn_into::<HtmlElement>().ok()) {
                    let _ = first.focus();
                }
            }
            move || {
                drop(keys);
                // The focus returns to where it was.
                if let Some(dialog) = dialog {
                    dialog.close();
                }
            }
        });
    }
    let close = {
        let on_close = props.on_close.clone();
        Callback::from(move |_: MouseEvent| on_close.emit(()))
    };
    let on_backdrop = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: MouseEvent| {
            if event.target() == event.current_target() {
                on_close.emit(());
            }
        })
    };
    // The browser's own ways to close a dialog, such as the gesture for Back: the model decides whether it is open.
    let oncancel = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: Event| {
            event.prevent_default();
            on_close.emit(());
        })
    };
    html! {
        <dialog ref={node} class="backdrop" role="dialog" aria-label={props.title.clone()} onmousedown={on_backdrop} {oncancel}>
            <div class={classes!("modal", props.class.to_string())} data-testid={props.test_id.clone()}>
                // A dialog without a title shows the button only where it covers the whole page.
                <div class={if props.is_title_hidden { "modal-corner" } else { "modal-head" }}>
                    if !props.is_title_hidden {
                        <h2>{ props.title.clone() }</h2>
                    }
                    <button type="button" class="icon-button" aria-label="Close" onclick={close} data-testid="dialog-close">
                        { icon(Symbol::Cross) }
                    </button>
                </div>
                { props.children.clone() }
            </div>
        </dialog>
    }
}

/// Moves the focus from the last element or from outside to the first, or the other way; returns whether it did.
fn keep_inside(node: &NodeRef, is_backward: bool) -> bool {
    let Some(dialog) = node.cast::<Element>() else { return false };
    let Ok(list) = dialog.query_selector_all(FOCUSABLE) else { return false };
    let shown = |i: u32| list.item(i)?.dyn_into::<HtmlElement>().ok().filter(|element| element.offset_width() > 0);
    let edges = ((0..list.length()).find_map(shown), (0..list.length()).rev().find_map(shown));
    let (Some(first), Some(last)) = edges else { return true };
    let active = document().active_element();
    let is_on = |node: &web_sys::Node| active.as_ref().is_some_and(|a| a.is_same_node(Some(node)));
    let is_outside = !dialog.contains(active.as_deref());
    let target = if is_backward && (is_outside || is_on(&first) || is_on(&dialog)) {
        last
    } else if !is_backward && (is_outside || is_on(&last)) {
        first
    } else {
        return false;
    };
    let _ = target.focus();
    true
}
