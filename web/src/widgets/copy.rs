//! A button that copies a text and confirms it.

use trace::text::escaped_lines;
use wasm_bindgen::JsCast;
use web_sys::{HtmlDocument, HtmlTextAreaElement};
use yew::prelude::*;

use crate::browser::{Timeout, window};

/// Copies a text to the clipboard, and returns whether that could be attempted. Browsers offer the clipboard API on
/// secure origins only; elsewhere (a server reached by its bare address) the text is copied from a temporary text
/// field. A terminal that it is pasted into finds nothing to obey.
pub fn copy_text(text: &str) -> bool {
    let text = &*escaped_lines(text);
    if window().is_secure_context() {
        // The promise is not awaited: it fails only if the page loses the focus in between.
        let _ = window().navigator().clipboard().write_text(text);
        return true;
    }
    let Some(document) = window().document().and_then(|d| d.dyn_into::<HtmlDocument>().ok()) else { return false };
    let (Some(body), Ok(field)) = (document.body(), document.create_element("textarea")) else { return false };
    let Ok(field) = field.dyn_into::<HtmlTextAreaElement>() else { return false };
    field.set_value(text);
    let is_copied = body.append_child(&field).is_ok() && {
        field.select();
        document.exec_command("copy").unwrap_or(false)
    };
    field.remove();
    is_copied
}

/// Properties of [`CopyButton`].
#[derive(PartialEq, Properties)]
pub struct CopyButtonProps {
    /// The text to copy.
    pub text: AttrValue,
    /// The label of the button.
    pub label: &'static str,
    /// The class of the button.
    #[prop_or("quiet-button")]
    pub class: &'static str,
    /// The id of the button.
    #[prop_or_default]
    pub id: Option<&'static str>,
}

/// A button that copies a text.
#[component]
pub fn CopyButton(props: &CopyButtonProps) -> Html {
    let said = use_state_eq(|| false);
    let timer = use_mut_ref(|| None::<Timeout>);
    let onclick = {
        let (said, text) = (said.clone(), props.text.clone());
        Callback::from(move |_| {
            if copy_text(&text) {
                said.set(true);
                let said = said.clone();
                *timer.borrow_mut() = Some(Timeout::new(1_500, move || said.set(false)));
            }
        })
    };
    html! {
        <button type="button" id={props.id} class={props.class} {onclick} aria-live="polite" data-testid="copy">
            { if *said { "Copied" } else { props.label } }
        </button>
    }
}
