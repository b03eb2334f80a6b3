//! The user's own rules: remembered by the browser, and sent to every worker.

use std::rc::Rc;
use std::str::FromStr;

use query::own_rules::OwnRules;

use super::ModelHandle;
use crate::browser::window;
use crate::model::Action;

/// The storage keys of the rules that fold frames, and of those that tell categories. Both are text.
const STORAGE_KEYS: (&str, &str) = ("vramscope-folding", "vramscope-categories");

/// Returns the rules of an earlier visit; of each kind none if nothing that can be read is stored.
pub fn remembered_rules() -> OwnRules {
    OwnRules { folding: remembered(STORAGE_KEYS.0), categories: remembered(STORAGE_KEYS.1) }
}

fn remembered<T: FromStr + Default>(key: &str) -> T {
    let storage = window().local_storage().ok().flatten();
    let text = storage.and_then(|storage| storage.get_item(key).ok().flatten());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Applies rules, and stores them for the next visit if the browser allows it.
pub fn set_rules(model: &ModelHandle, rules: OwnRules) {
    if let Ok(Some(storage)) = window().local_storage() {
        let _ = storage.set_item(STORAGE_KEYS.0, &rules.folding.to_string());
        let _ = storage.set_item(STORAGE_KEYS.1, &rules.categories.to_string());
    }
    model.workers().set_rules(&rules);
    model.dispatch(Action::SetOwnRules(Rc::new(rules)));
}
