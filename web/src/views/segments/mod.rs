//! All segments at the cursor with their blocks.

use yew::prelude::*;

use crate::model::use_model;

/// All segments at the cursor with their blocks.
#[component]
pub fn Segments() -> Html {
    let model = use_model();
    html! { <p>{ model.device().map_or(0, |device| device.end.segments) }{ " segments" }</p> }
}
