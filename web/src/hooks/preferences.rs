//! Reads and stores the person's preferences in the browser.

use yew::prelude::*;

use super::use_model_of;
use crate::browser::{use_effect_with, window};
use crate::model::{Parts, Preferences};

/// The storage key; theme.js reads the same key.
const STORAGE_KEY: &str = "vramscope-preferences";

/// Returns the preferences of an earlier visit, or the defaults.
pub fn remembered_preferences() -> Preferences {
    let storage = window().local_storage().ok().flatten();
    let text = storage.and_then(|storage| storage.get_item(STORAGE_KEY).ok().flatten());
    text.map_or_else(Preferences::default, |text| Preferences::parse(&text))
}

/// Stores the preferences for the next visit when they change, if the browser allows it.
#[hook]
pub fn use_preferences() {
    let model = use_model_of(Parts::REST);
    let known = use_mut_ref(|| model.preferences.clone());
    use_effect_with(model.preferences.clone(), move |preferences| {
        // Another tab of this browser may have stored something since. Without a change here, that stays.
        if known.replace(preferences.clone()) != *preferences
            && let Ok(Some(storage)) = window().local_storage()
        {
            let _ = storage.set_item(STORAGE_KEY, &preferences.text());
        }
    });
}
