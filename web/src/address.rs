//! The address bar. It is read when the page opens, and written shortly after the view changes. Each session that is
//! shown is a step of the browser's history, and so is each trace that the page's path identifies; within one, the
//! address changes in place.

use shared::link::{Link, Parsed};
use wasm_bindgen::JsValue;
use web_sys::History;
use yew::prelude::*;

use crate::browser::{Listener, Timeout, window};
use crate::hooks::use_model;
use crate::model::{Action, FileEntry, Model, Phase};
use crate::source;

/// Milliseconds without a change before the address is written. Browsers limit how often a page may do this.
const REST_MS: i32 = 250;

/// Returns what the address bar says, as the first action.
pub fn read() -> Option<Action> {
    match Link::parse(&window().location().hash().unwrap_or_default()) {
        Parsed::Nothing => None,
        Parsed::Link(link) => Some(Action::LinkRead(link)),
    }
}

/// Returns the last segment of the page's path; empty at the page's root.
fn path_there() -> String {
    let path = window().location().pathname().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Returns the address of what is shown, relative to the page: the last segment of its path if that identifies a trace,
/// and the fragment. Returns `None` while the link that the page was opened with is still pending.
fn address(model: &Model) -> Option<String> {
    let Some(file) = model.file() else {
        // The fragment of a file that was shown before must go.
        return (!model.files.is_empty()).then(String::new);
    };
    if let Some(live) = &file.live {
        let link = model.session_link(live)?;
        return model.link.is_none().then(|| format!("#{link}"));
    }
    if let Phase::Sweep(_) = file.phase {
        return model.link.is_none().then(String::new);
    }
    let mut link = model.view_link()?;
    if let Some(path) = file.path() {
        return Some(format!("{path}#{link}"));
    }
    link.file = Some(file.name.clone());
    link.hash = file.hash;
    Some(format!("#{link}{}", source::part(file).unwrap_or_default()))
}

/// Returns the session that the address bar names.
fn session_there() -> Option<String> {
    match read() {
        Some(Action::LinkRead(link)) => link.link.session,
        _ => None,
    }
}

/// Writes the view to the address bar.
pub fn write(model: &Model) {
    let Some(mut address) = address(model) else { return };
    let (path, path_now) = (model.file().and_then(FileEntry::path), path_there());
    // A trace that its path identifies is left for one that the fragment identifies.
    let leaves = path.is_none() && model.files.iter().any(|file| file.path().as_ref() == Some(&path_now));
    if leaves {
        address.insert_str(0, "./");
    } else if address.is_empty() {
        // An empty address would leave the current one in place.
        address = window().location().pathname().unwrap_or_default();
    }
    let is_other_path = leaves || path.is_some_and(|path| path != path_now);
    let is_other = is_other_path || session_there().as_ref() != model.live().map(|live| &live.session);
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
            let listener = Listener::new(&window(), "popstate", move |_| {
                let path = path_there();
                if let Some(file) = model.now().files.iter().find(|file| file.path().as_ref() == Some(&path)) {
                    model.dispatch(Action::SelectFile(file.key));
                }
                match read() {
                    Some(action) => {
                        model.dispatch(action);
                        if let Some(session) = session_there() {
                            source::watch(&model, &session);
                        }
                    }
                    None if model.now().live().is_some() => model.dispatch(Action::ShowStart),
                    None => {}
                }
            });
            move || drop(listener)
        });
    }
    // A followed session changes all the time, but its address does not.
    use_effect_with(address(&model), move |address| {
        if address.is_some() {
            // The new timer replaces, and so cancels, the previous one.
            *timer.borrow_mut() = Some(Timeout::new(REST_MS, move || write(&model.now())));
        }
    });
}
