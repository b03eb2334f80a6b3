//! The details of the selected class of the timeline: a stream, a pool, a range of sizes, or the remaining call sites.

use query::Answer;
use yew::prelude::*;

use super::facts::{fact, fact_with, facts, unknown};
use crate::hooks::{use_answer, use_model_of, use_palette};
use crate::model::{Listing, Parts};
use crate::views::legend::classes_query;
use crate::views::moment::{memory_text, moment_text};
use crate::widgets::chips::paint_chip;
use crate::widgets::format::{counted, share};

/// Properties of [`ClassPane`].
#[derive(PartialEq, Properties)]
pub struct ClassPaneProps {
    /// Its index in stacking order.
    pub index: u32,
}

/// The details of a class.
#[component]
pub fn ClassPane(props: &ClassPaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let palette = use_palette();
    let answer = use_answer(classes_query(&model));
    if let Some(Answer::Refused(reason)) = answer.as_deref() {
        return unknown("Group", reason);
    }
    let (Some(Answer::Classes(classes)), Some(device)) = (answer.as_deref(), model.device()) else { return html! {} };
    let place = props.index as usize;
    let Some((class, memory)) = classes.classes.get(place).zip(classes.memory.get(place)) else {
        return html! { <p class="quiet">{ "This group is no longer shown." }</p> };
    };
    let listing = model.view.settings.listing;
    let name = if listing == Listing::Growth { "Growth" } else { "Requested" };
    let all: u64 = classes.memory.iter().fold(0, |sum, memory| sum.saturating_add(memory.now.bytes));
    html! {
        <article class="detail" data-testid="detail-class">
            <header class="detail-head">{ paint_chip(&palette, class.paint) }<h2>{ class.label.clone() }</h2></header>
            { facts(vec![
                fact_with(name, memory_text(listing, memory), moment_text(&model.view, device).into()),
                fact("Share", format!("{} of what is shown", share(memory.now.bytes, all))),
                fact("Allocations", counted(memory.now.count.into(), "allocation")),
                fact("Groups in total", classes.classes.len().to_string()),
            ]) }
        </article>
    }
}
