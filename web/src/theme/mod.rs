//! Light and dark themes: follows the system until a theme is chosen, and remembers the choice. The colours are in
//! theme.css; theme.js sets the same attributes before anything is drawn.

mod switch;

pub use switch::{choose_next, next_label, theme_switch};
use wasm_bindgen::JsCast;
use web_sys::{MediaQueryList, MediaQueryListEvent};

use crate::browser::{Listener, root, window};
use crate::hooks::ModelHandle;
use crate::model::{Action, Model, ThemeChoice};

/// The storage key of the choice; theme.js reads the same key.
const STORAGE_KEY: &str = "vramscope-theme";

fn system() -> Option<MediaQueryList> {
    window().match_media("(prefers-color-scheme: dark)").ok().flatten()
}

/// Returns whether the system is dark.
pub fn is_system_dark() -> bool {
    system().is_some_and(|query| query.matches())
}

/// Calls `changed` whenever the system's theme changes.
pub fn watch_system(mut changed: impl FnMut(bool) + 'static) -> Option<Listener> {
    let query = system()?;
    Some(Listener::new(&query, "change", move |event| {
        if let Some(event) = event.dyn_ref::<MediaQueryListEvent>() {
            changed(event.matches());
        }
    }))
}

/// Returns the choice of an earlier visit, or the system's theme if nothing is stored.
pub fn remembered() -> ThemeChoice {
    let storage = window().local_storage().ok().flatten();
    let name = storage.and_then(|storage| storage.get_item(STORAGE_KEY).ok().flatten());
    ThemeChoice::by_name(name.as_deref().unwrap_or_default())
}

/// Stores a choice for the next visit, if the browser allows it.
fn remember(choice: ThemeChoice) {
    if let Ok(Some(storage)) = window().local_storage() {
        let _ = storage.set_item(STORAGE_KEY, choice.name());
    }
}

/// Sets the model's theme on the root element, before components render, so that canvases read the new colours.
pub fn apply(model: &Model) {
    let name = if model.is_dark() { "dark" } else { "light" };
    let root = root();
    if root.get_attribute("data-theme").as_deref() != Some(name) {
        let _ = root.set_attribute("data-theme", name);
    }
}

/// Sets and stores a choice.
pub fn choose(model: &ModelHandle, choice: ThemeChoice) {
    remember(choice);
    model.dispatch(Action::SetTheme(choice));
}
