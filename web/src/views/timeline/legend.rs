//! The legend for places that don't have the timeline's own answer.

use shared::query::{Answer, Query};
use yew::prelude::*;

use crate::hooks::{use_answer, use_model};
use crate::views::findings::peak_classes;
use crate::views::legend::Legend;

/// The classes of the current colouring and filter, with their bytes at the peak.
#[component]
pub fn PeakLegend() -> Html {
    let model = use_model();
    let view = &model.view;
    let question = |device| peak_classes(device, view.color_by, view.filter.clone(), view.highlight.clone());
    let answer =
        use_answer(model.device().filter(|device| device.events > 0).map(|device| Query::Timeline(question(device))));
    match answer.as_deref() {
        Some(Answer::Timeline(timeline)) => html! {
            <div class="peak-legend"><Legend classes={timeline.classes.clone()} /></div>
        },
        _ => Html::default(),
    }
}
