//! The address bar. It is read when the page opens, and written shortly after the view changes. Each session that is
//! shown is a step of the browser's history; within a session the address changes in place.

use shared::link::{Link, Parsed};
use wasm_bindgen::JsValue;
use web_sys::History;
use yew::prelude::*;

use crate::browser::{Listener, Timeout, window};
use crate::hooks::use_model;
use crate::model::{Action, Model};
use crate::source;

/// Milliseconds without a change before the address is written. Browsers limit how often a page may do this.
const REST_MS: i32 = 250;

/// Returns what the address bar says, as the first action.
pub fn read() -> Option<Action> {
    match Link::parse(&window().location().hash().unwrap_or_default()) {
        Parsed::Nothing => None,
        Parsed::Link(link) => {
            Some(link).filter(|link| link.file.is_some() || link.session.is_some()).map(Action::LinkRead)
        }
        Parsed::Newer { file } => {
            let name = file.map_or_else(|| "the file".to_owned(), |file| format!("“{file}”"));
            Some(Action::Notify(format!(
                "View not restored: this link was made by a newer version of Vramscope. Drop {name} to see its data."
            )))
        }
    }
}

/// Returns the fragment for what is shown. Returns `None` while the link that the page was opened with is still
/// pending.
fn fragment(model: &Model) -> Option<String> {
    let Some(file) = model.file() else {
        // The fragment of a file that was shown before must go.
        return (!model.files.is_empty()).then(String::new);
    };
    let mut link = model.view_link()?;
    link.file = Some(file.name.clone());
    if let Some(live) = &file.live {
        link.file = None;
        link.session = Some(live.session.clone());
        if live.is_following {
            // The recipient of the link follows the session too.
            link.window = None;
            link.cursor = None;
        }
    }
    let is_waiting = model.link.is_some() && file.live.is_some();
    (!is_waiting).then(|| format!("#{link}"))
}

/// Returns the session that the address bar names.
fn session_there() -> Option<String> {
    match read() {
        Some(Action::LinkRead(link)) => link.session,
        _ => None,
    }
}

/// Writes the view to the address bar.
pub fn write(model: &Model) {
    let Some(fragment) = fragment(model) else { return };
    // An empty address would leave the current one in place.
    let path = window().location().pathname().unwrap_or_default();
    let address = if fragment.is_empty() { path } else { fragment };
    let is_other = session_there().as_ref() != model.live().map(|live| &live.session);
    let put = if is_other { History::push_state_with_url } else { History::replace_state_with_url };
    if let Ok(history) = window().history() {
        // If the browser refuses (a page opened as a file, or too many calls), only the link is lost.
        let _ = put(&history, &JsValue::NULL, "", Some(&address));
    }
}

/// Keeps the address bar up to date.
#[hook]
pub fn use_address_bar() {
    let model = use_model();
    let timer = use_mut_ref(|| None::<Timeout>);
    {
        let model = model.clone();
        use_effect_with((), move |()| {
            // A step through the browser's history, or an address that was typed or pasted over this one.
            let listener = Listener::new(&window(), "popstate", move |_| match read() {
                Some(action) => {
                    model.dispatch(action);
                    if let Some(session) = session_there() {
                        source::watch(&model, &session);
                    }
                }
                None if model.now().live().is_some() => model.dispatch(Action::ShowStart),
                None => {}
            });
            move || drop(listener)
        });
    }
    // A followed session changes all the time, but its address does not.
    use_effect_with(fragment(&model), move |fragment| {
        if fragment.is_some() {
            // The new timer replaces, and so cancels, the previous one.
            *timer.borrow_mut() = Some(Timeout::new(REST_MS, move || write(&model.now())));
        }
    });
}
