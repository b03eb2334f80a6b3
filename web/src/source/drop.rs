//! Files and texts that are dropped or pasted anywhere on the page.

use std::cell::Cell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{ClipboardEvent, DataTransfer, DragEvent, Element, Event, HtmlElement};
use yew::prelude::*;

use super::text::explain;
use crate::browser::{Listener, use_effect_with, window};
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::Parts;

/// Shows an overlay while files are dragged over the page.
#[component]
pub fn DropZone() -> Html {
    let model = use_model_of(Parts::REST);
    let is_over = use_state_eq(|| false);
    let overlay = use_node_ref();
    {
        let overlay = overlay.clone();
        use_effect_with(*is_over, move |_| {
            // A popover stands above an open dialog, too. A browser without popovers shows it below.
            let _ = overlay.cast::<HtmlElement>().map(|overlay| overlay.show_popover());
        });
    }
    {
        let is_over = is_over.clone();
        use_effect_with((), move |()| {
            // Every element on the way reports entering and leaving: only the balance says whether files are over the page.
            let dropped = model.clone();
            let depth = Rc::new(Cell::new(0_i32));
            let count = move |by: i32, is_reset: bool| {
                depth.set(if is_reset { 0 } else { (depth.get() + by).max(0) });
                is_over.set(depth.get() > 0);
            };
            // A selection of the page that is dragged over it is no text from elsewhere.
            let is_own = Rc::new(Cell::new(false));
            let marks = ["dragstart", "dragend"].map(|name| {
                let is_own = Rc::clone(&is_own);
                Listener::new(&window(), name, move |_| is_own.set(name == "dragstart"))
            });
            let on = |name: &'static str, handler: Box<dyn Fn(&DragEvent)>| {
                let is_own = Rc::clone(&is_own);
                Listener::new(&window(), name, move |event| {
                    let is_welcome = |event: &&DragEvent| !is_own.get() && is_welcome(event);
                    if let Some(event) = event.dyn_ref::<DragEvent>().filter(is_welcome) {
                        // Otherwise the browser would leave the page and open the file itself.
                        event.prevent_default();
                        handler(event);
                    }
                })
            };
            let (enter, leave, drop_count) = (count.clone(), count.clone(), count);
            let listeners = [
                on("dragenter", Box::new(move |_| enter(1, false))),
                on("dragover", Box::new(|_| {})),
                on("dragleave", Box::new(move |_| leave(-1, false))),
                on(
                    "drop",
                    Box::new(move |event| {
                        drop_count(0, true);
                        if let Some(data) = event.data_transfer() {
                            take(&dropped, &data);
                        }
                    }),
                ),
            ];
            let paste = Listener::new(&window(), "paste", move |event| {
                let of_page = |event: &&ClipboardEvent| model.now().dialog.is_none() && !is_for_field(event);
                if let Some(event) = event.dyn_ref::<ClipboardEvent>().filter(of_page)
                    && let Some(data) = event.clipboard_data()
                {
                    take(&model, &data);
                }
            });
            move || drop((listeners, marks, paste))
        });
    }
    if !*is_over {
        return Html::default();
    }
    html! {
        <div ref={overlay} class="drop-overlay" popover="manual" data-testid="drop-overlay">
            <p>{ "Drop to open" }<span>{ "A trace stays in this browser" }</span></p>
        </div>
    }
}

/// Opens the files that were dropped or pasted, or explains the text.
fn take(model: &ModelHandle, data: &DataTransfer) {
    let mut handles = super::recent::handles(data).into_iter();
    let list = data.files();
    let files = || list.iter().flat_map(|list| (0..list.length()).filter_map(|i| list.get(i)));
    for file in files() {
        super::open_one(model, &file, handles.next().unwrap_or_default());
    }
    let text = data.get_data("text/plain").unwrap_or_default();
    if files().next().is_none() && !text.trim().is_empty() && model.now().place.has_server() {
        explain(model, text);
    }
}

/// Whether a field takes the text that is pasted or dropped.
fn is_for_field(event: &Event) -> bool {
    let target = event.target();
    let element = target.as_ref().and_then(|target| target.dyn_ref::<Element>());
    element.is_some_and(|element| element.matches("input, textarea, select") == Ok(true))
}

/// Whether what is dragged holds files, or a text that no field takes.
fn is_welcome(event: &DragEvent) -> bool {
    let types = event.data_transfer().map(|data| data.types());
    let holds = |kind: &str| {
        types.as_ref().is_some_and(|types| types.iter().any(|known| known.as_string().as_deref() == Some(kind)))
    };
    holds("Files") || holds("text/plain") && !is_for_field(event)
}
