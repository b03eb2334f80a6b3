//! A button that copies a text and confirms it.

use std::rc::Rc;

use trace::text::escaped_lines;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{HtmlDocument, HtmlTextAreaElement};
use yew::prelude::*;

use crate::browser::{Timeout, window};

/// Shown instead of a confirmation.
pub const NOT_COPIED: &str = "The browser blocked copying.";

/// Copies a text to the clipboard, and passes to `then` whether it is there. A terminal that it is pasted into finds
/// nothing to obey.
pub fn copy_text(text: &str, then: impl FnOnce(bool) + 'static) {
    let (text, then): (_, Box<dyn FnOnce(bool)>) = (escaped_lines(text).into_owned(), Box::new(then));
    spawn_local(async move { then(copy(&text).await) });
}

/// Copies a text, and returns whether it was copied. Browsers offer the clipboard API on secure origins only, and refuse it
/// in some frames; then the text is copied from a field.
async fn copy(text: &str) -> bool {
    window().is_secure_context() && JsFuture::from(window().navigator().clipboard().write_text(text)).await.is_ok()
        || copy_from_field(text)
}

/// Copies a text from a temporary text field, and returns whether it was copied.
fn copy_from_field(text: &str) -> bool {
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
    let said = use_state_eq(|| None);
    let timer = use_mut_ref(|| None::<Timeout>);
    let onclick = {
        let (said, text) = (said.clone(), props.text.clone());
        Callback::from(move |_| {
            let (said, timer) = (said.clone(), Rc::clone(&timer));
            copy_text(&text, move |is_copied| {
                said.set(Some(if is_copied { "Copied" } else { "Not copied" }));
                *timer.borrow_mut() = Some(Timeout::new(1_500, move || said.set(None)));
            });
        })
    };
    html! {
        <button type="button" id={props.id} class={props.class} {onclick} aria-live="polite" data-testid="copy">
            { said.unwrap_or(props.label) }
        </button>
    }
}
