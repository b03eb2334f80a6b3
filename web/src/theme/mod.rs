//! Light and dark themes: follows the system until a theme is chosen. The colours are in theme.css; theme.js sets the same
//! attributes before anything is drawn.

mod switch;

pub use switch::{choose_next, next_label, theme_switch};
use wasm_bindgen::JsCast;
use web_sys::{MediaQueryList, MediaQueryListEvent};

use crate::browser::{Listener, root, window};
use crate::model::Model;

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

/// Sets the model's theme on the root element, before components render, so that canvases read the new colours.
pub fn apply(model: &Model) {
    let name = if model.is_dark() { "dark" } else { "light" };
    let root = root();
    if root.get_attribute("data-theme").as_deref() != Some(name) {
        let _ = root.set_attribute("data-theme", name);
    }
}
