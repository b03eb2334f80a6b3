//! A button that copies a text, and says that it did.

use wasm_bindgen::JsCast;
use web_sys::{HtmlDocument, HtmlTextAreaElement};
use yew::prelude::*;

use crate::browser::{Timeout, window};

/// Puts a text on the clipboard, and says whether that could be tried. Browsers give the clipboard's interface to
/// secure origins only; elsewhere (a server reached by its bare address) a text field that is copied from does it.
pub fn copy_text(text: &str) -> bool {
    if window().is_secure_context() {
        // The promise is not waited for: it fails only when the page has lost the focus in between.
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
    /// What is copied.
    pub text: AttrValue,
    /// What the button says.
    pub label: &'static str,
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
        <button type="button" class="quiet-button" {onclick} data-testid="copy">
            { if *said { "Copied" } else { props.label } }
        </button>
    }
}
