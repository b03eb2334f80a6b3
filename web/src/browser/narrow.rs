//! Tells whether the page is narrow or low, as on a phone or beside an editor. The stylesheets use the same sizes.

use wasm_bindgen::JsCast;
use web_sys::{MediaQueryList, MediaQueryListEvent};
use yew::prelude::*;

use super::{Listener, use_effect_with, window};

fn query() -> Option<MediaQueryList> {
    window().match_media("(width < 800px), (height < 480px)").ok().flatten()
}

/// Returns whether the page is narrow now.
pub fn is_narrow() -> bool {
    query().is_some_and(|query| query.matches())
}

/// Returns whether the page is narrow, and renders the component again when that changes.
#[hook]
pub fn use_narrow() -> bool {
    let narrow = use_state_eq(is_narrow);
    let set = narrow.setter();
    use_effect_with((), move |()| {
        let listener = query().map(|query| {
            Listener::new(&query, "change", move |event| {
                if let Some(event) = event.dyn_ref::<MediaQueryListEvent>() {
                    set.set(event.matches());
                }
            })
        });
        move || drop(listener)
    });
    *narrow
}
