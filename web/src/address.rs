//! The address bar: read when the page opens, written a moment after the view has changed. Each session that is shown is a
//! step of the browser's history; within one the address changes in place.

use shared::link::{Link, Parsed};
use wasm_bindgen::JsValue;
use web_sys::History;
use yew::prelude::*;

use crate::browser::{Listener, Timeout, window};
use crate::hooks::use_model;
use crate::model::{Action, Model};
use crate::source;

/// How long the view rests before it is written, in milliseconds. Browsers limit how often a page may do this.
const REST_MS: i32 = 250;

/// What the address bar says, as the action to begin with.
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

/// The fragment for what is shown; nothing while the link that the page was opened with still waits.
fn fragment(model: &Model) -> Option<String> {
    let Some(file) = model.file() else {
        // What was shown before is not what is shown now.
        return (!model.files.is_empty()).then(String::new);
    };
    let mut link = model.view.link(&file.name, model.device());
    if let Some(live) = &file.live {
        link.file = None;
        link.session = Some(live.session.clone());
        if live.is_following {
            // What is followed is followed by whoever opens the link, too.
            link.window = None;
            link.cursor = None;
        }
    }
    let is_waiting = model.link.is_some() && (file.live.is_some() || file.summary().is_none());
    (file.summary().is_some() && !is_waiting).then(|| format!("#{link}"))
}

/// The session that the address bar names.
fn session_there() -> Option<String> {
    match read() {
        Some(Action::LinkRead(link)) => link.session,
        _ => None,
    }
}

/// Puts the view into the address bar.
pub fn write(model: &Model) {
    let Some(fragment) = fragment(model) else { return };
    // An empty address would stand for the one that is there.
    let path = window().location().pathname().unwrap_or_default();
    let address = if fragment.is_empty() { path } else { fragment };
    let is_other = session_there().as_ref() != model.live().map(|live| &live.session);
    let put = if is_other { History::push_state_with_url } else { History::replace_state_with_url };
    if let Ok(history) = window().history() {
        // A browser that refuses (a page from a file, too many calls) loses the link and nothing else.
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
            // One step of the browser's history, or an address that was typed or pasted over this one.
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
    // A session that is followed changes all the time, and its address doesn't.
    use_effect_with(fragment(&model), move |fragment| {
        if fragment.is_some() {
            // A new timer replaces, and so calls off, the one before.
            *timer.borrow_mut() = Some(Timeout::new(REST_MS, move || write(&model.now())));
        }
    });
}
