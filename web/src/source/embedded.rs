//! The trace inside a page that is one file.

use js_sys::{Function, Promise};
use query::link::{Link, Parsed};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;
use yew::Callback;

use super::{is_identity_awaited, receive};
use crate::browser::document;
use crate::hooks::ModelHandle;
use crate::model::{Action, Again};

/// The element that holds it, as base64.
const ELEMENT: &str = "vramscope-trace";
/// Its attribute with the view that it was saved with, as in an address.
const VIEW: &str = "data-view";
/// Its name if the element has none.
const NAME: &str = "trace.vramscope";

/// Opens the trace. `read` returns a promise of it as a file.
pub fn open_embedded(model: &ModelHandle, read: &Function) {
    let element = document().get_element_by_id(ELEMENT);
    let attribute = |name| element.as_ref().and_then(|element| element.get_attribute(name)).unwrap_or_default();
    let name = Some(attribute("data-name")).filter(|name| !name.is_empty());
    // An address that says more than the page's own comes first.
    if let (None, Parsed::Link(link)) = (&model.link, Link::parse(&attribute(VIEW))) {
        model.dispatch(Action::LinkRead(link));
    }
    let key = model.workers().next_key();
    // Shown at once: decoding takes a moment.
    model.dispatch(Action::FileAdded { key, name: name.unwrap_or_else(|| NAME.to_owned()), size: 0 });
    model.dispatch(Action::FileKept { key, again: Again::Here });
    let reading = read.call0(&JsValue::NULL).and_then(JsCast::dyn_into::<Promise>);
    let model = model.clone();
    spawn_local(async move {
        let read = match reading {
            Ok(promise) => JsFuture::from(promise).await.and_then(JsCast::dyn_into::<File>),
            Err(error) => Err(error),
        };
        // It may have been closed in the meantime.
        if model.now().entry(key).is_none() {
            return;
        }
        let report = {
            let model = model.clone();
            Callback::from(move |message| receive(&model, key, message))
        };
        let opened = match read {
            Ok(file) => model.workers().open(key, &file, is_identity_awaited(&model), report),
            Err(_) => Err(DAMAGED.to_owned()),
        };
        if let Err(message) = opened {
            model.dispatch(Action::FileFailed { key, message });
        }
    });
}

/// Shown when the element's text is not base64.
const DAMAGED: &str = "The trace inside this page is damaged. Save the page again, or ask for a new copy of it.";
