//! The user's own rules of whose code a frame is: remembered by the browser, and sent to every worker.

use std::rc::Rc;

use shared::analysis::folding::Overrides;

use super::ModelHandle;
use crate::browser::window;
use crate::model::Action;

/// The storage key of the rules, as text.
const STORAGE_KEY: &str = "vramscope-folding";

/// Returns the rules of an earlier visit; none if nothing that can be read is stored.
pub fn remembered_overrides() -> Overrides {
    let storage = window().local_storage().ok().flatten();
    let text = storage.and_then(|storage| storage.get_item(STORAGE_KEY).ok().flatten());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Applies rules, and stores them for the next visit if the browser allows it.
pub fn set_overrides(model: &ModelHandle, overrides: Overrides) {
    if let Ok(Some(storage)) = window().local_storage() {
        let _ = storage.set_item(STORAGE_KEY, &overrides.to_string());
    }
    model.workers().fold(&overrides);
    model.dispatch(Action::SetOverrides(Rc::new(overrides)));
}
