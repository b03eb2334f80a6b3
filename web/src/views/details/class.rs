//! The details of the selected class of the timeline: a stream, a pool, a range of sizes, or the remaining call sites.

use shared::query::{Answer, Query};
use yew::prelude::*;

use super::facts::{fact, fact_with, facts};
use crate::hooks::{use_answer, use_model, use_palette};
use crate::views::findings::peak_classes;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::share;

/// Properties of [`ClassPane`].
#[derive(PartialEq, Properties)]
pub struct ClassPaneProps {
    /// Its index in stacking order.
    pub index: u32,
}

/// The details of a class.
#[component]
pub fn ClassPane(props: &ClassPaneProps) -> Html {
    let model = use_model();
    let palette = use_palette();
    let answer = use_answer(model.device().map(|device| {
        let view = &model.view;
        Query::Timeline(peak_classes(device, view.color_by, view.filter.clone(), view.highlight.clone()))
    }));
    let (Some(Answer::Timeline(timeline)), Some(device)) = (answer.as_deref(), model.device()) else { return html! {} };
    let Some(class) = timeline.classes.get(props.index as usize) else {
        return html! { <p class="quiet">{ "This group is no longer shown." }</p> };
    };
    html! {
        <article class="detail" data-testid="detail-class">
            <header class="detail-head">{ paint_chip(&palette, class.paint) }<h2>{ class.label.clone() }</h2></header>
            { facts(vec![
                fact_with("At the peak", bytes_text(class.peak_bytes),
                    format!("{} of the total requested", share(class.peak_bytes, device.peak.requested)).into()),
                fact("Groups in total", timeline.classes.len().to_string()),
            ]) }
        </article>
    }
}
