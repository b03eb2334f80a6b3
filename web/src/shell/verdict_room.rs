//! The place of the verdict card until it comes: almost empty, or with the news that a running job's request failed. It is as high as the
//! card, so that the views below stay where they are.

use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, Tab};
use crate::views::controls::sends;
use crate::views::verdict::no_line;
use crate::widgets::icon::{Symbol, icon};

/// A letter of a headline that is not known yet.
const BLANK: &str = "\u{a0} ";

/// Renders the place; nothing where no card is expected. With `has_card`, the page has a place for cards.
pub fn verdict_room(model: &ModelHandle, has_card: bool) -> Html {
    let oom = model.live().and_then(|live| live.oom.as_ref()).filter(|_| model.new_failure().is_none());
    let Some(oom) = oom else {
        if !has_card || !model.awaits_verdict() {
            return Html::default();
        }
        if model.device().is_some_and(|device| device.ooms.is_empty()) {
            return html! {
                <div class="verdict is-slim" data-testid="verdict-awaited">
                    <div class="verdict-head"><h2>{ "Looking for problems…" }</h2></div>
                </div>
            };
        }
        return html! {
            <div class="verdict" aria-hidden="true">
                <div class="verdict-head">
                    // A headline of usual length, which takes two lines on a phone.
                    <h2>{ [BLANK; 40].concat() }</h2>
                    <span class="verdict-place">{ "\u{a0}" }</span>
                    <span class="verdict-acts"><span class="toolbar-button verdict-fold" /><span class="icon-button" /></span>
                </div>
                <div class="verdict-brief">{ no_line() }</div>
            </div>
        };
    };
    let summary = model.summary();
    let Some(device) = summary.as_ref().and_then(|summary| summary.devices.get(oom.device as usize)) else {
        return Html::default();
    };
    let at = if model.view.device == oom.device && model.view.cursor == oom.position { "" } else { " (earlier)" };
    html! {
        <section class="verdict" role="alert" aria-label="Out of memory" data-testid="live-oom">
            <header class="verdict-head">
                { icon(Symbol::Flag) }
                <h2 title={oom.why.clone()}>
                    <b class="verdict-cause">{ format!("Device {} ran out of memory{at}", device.device) }</b>
                </h2>
                <span class="verdict-acts">
                    <button type="button" class="toolbar-button" onclick={sends(model, Action::ShowPosition(oom.position))} data-testid="oom-show">{ "Show what led to it" }</button>
                    <button type="button" class="toolbar-button" onclick={sends(model, Action::SetTab(Tab::Findings))} data-testid="oom-findings">{ "Findings" }</button>
                    <button type="button" class="icon-button" aria-label="Dismiss" onclick={sends(model, Action::DismissOom)}>{ icon(Symbol::Cross) }</button>
                </span>
            </header>
            <div class="verdict-brief"><p class="verdict-line">{ oom.why.clone() }</p></div>
        </section>
    }
}
