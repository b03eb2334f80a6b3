//! The browser's file dialog, behind an input element that is always in the page and invisible.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::browser::document;
use crate::hooks::ModelHandle;

const ID: &str = "file-input";

/// Opens the file dialog; where the browser has one, the dialog that returns handles of the files.
pub fn pick(model: &ModelHandle) {
    use wasm_bindgen::JsCast;
    if super::recent::pick(model).is_some() {
        return;
    }
    let input = document().get_element_by_id(ID).and_then(|e| e.dyn_into::<HtmlInputElement>().ok());
    if let Some(input) = input {
        input.click();
    }
}

/// The input element.
pub fn file_picker(model: &ModelHandle) -> Html {
    let model = model.clone();
    let onchange = Callback::from(move |event: Event| {
        let Some(input) = event.target_dyn_into::<HtmlInputElement>() else { return };
        let files: Vec<_> =
            input.files().map(|list| (0..list.length()).filter_map(|i| list.get(i)).collect()).unwrap_or_default();
        // Cleared, so that the same file can be picked again after it was closed.
        input.set_value("");
        super::open(&model, files);
    });
    html! {
        <input id={ID} hidden=true type="file" multiple=true {onchange} data-testid="file-input" />
    }
}
