//! What the pane says while nothing is selected: what the cursor stands on, and what there is to do.

use shared::event::Action as EventAction;
use shared::query::{Answer, EventRow, Query, StateAt};
use shared::units::{Bytes, Count};
use yew::prelude::*;

use super::facts::{fact, fact_with, facts};
use crate::model::{Action, ModelHandle, Selection, Tab, use_answer, use_model};
use crate::views::events::glyph;
use crate::views::findings::{FindingRow, ordered};
use crate::views::timeline::PeakLegend;
use crate::widgets::bytes_text::BytesText;
use crate::widgets::format::{counted, seconds};

/// Findings that fit beside everything else.
const TOP_FINDINGS: usize = 3;

/// The pane of no selection.
#[component]
pub fn NothingPane() -> Html {
    let model = use_model();
    let answer = use_answer(Some(Query::State { position: model.view.cursor }));
    let state = match answer.as_deref() {
        Some(Answer::State(state)) => Some(state),
        _ => None,
    };
    // Beside the list of them all they would only be said twice.
    let summary = model.summary().filter(|_| model.view.tab != Tab::Findings);
    let findings = summary.map(|summary| ordered(&summary.findings)).unwrap_or_default();
    let more = findings.len().saturating_sub(TOP_FINDINGS);
    let show_all = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::SetTab(Tab::Findings)))
    };
    html! {
        <article class="detail" data-testid="detail-none">
            if !findings.is_empty() {
                <ul class="findings compact">
                    { for findings.iter().take(TOP_FINDINGS).enumerate().map(|(i, finding)| html! { <FindingRow key={i} finding={finding.clone()} /> }) }
                </ul>
                if more > 0 {
                    <button type="button" class="link" onclick={show_all}>{ [&more.to_string(), " more"].concat() }</button>
                }
            }
            if let Some(state) = state { { at_cursor(&model, state) } }
            <PeakLegend />
            <p class="hint">{ "Click an allocation, a block or a row to see its size, its life and the lines that made it." }</p>
        </article>
    }
}

/// The event that the cursor stands behind, and the sums there.
fn at_cursor(model: &ModelHandle, state: &StateAt) -> Html {
    let bytes = |bytes: u64| html! { <BytesText {bytes} /> };
    let totals = &state.totals;
    let rounding = Bytes(totals.allocated.saturating_sub(totals.requested)).to_string();
    let (gaps, largest) = (Count(totals.gaps.into()).to_string(), Bytes(totals.largest_gap).to_string());
    html! {
        <>
            <h3>{ "At the cursor" }</h3>
            { match &state.event {
                Some(event) => event_line(model, event),
                None => html! { <p class="quiet">{ "The start of the trace, before its first event." }</p> },
            } }
            { facts(vec![
                fact("Requested", bytes(totals.requested)),
                fact_with("Allocated", bytes(totals.allocated), [rounding.as_str(), " lost to rounding"].concat().into()),
                fact_with("Active", bytes(totals.active), counted(totals.blocks.into(), "block").into()),
                fact_with("Reserved", bytes(totals.reserved), counted(totals.segments.into(), "segment").into()),
                fact_with("Free gaps", bytes(totals.cached()), [gaps.as_str(), ", largest ", &largest].concat().into()),
            ]) }
        </>
    }
}

/// The event that the cursor stands behind.
fn event_line(model: &ModelHandle, event: &EventRow) -> Html {
    let is_segment = EventAction::from_name(&event.action).is_some_and(EventAction::is_segment);
    let target = match event.allocation {
        Some(id) => Some(Selection::Allocation(id)),
        None => is_segment.then_some(Selection::Segment(event.address)),
    };
    let onclick = target.map(|target| {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| model.dispatch(Action::Select(target)))
    });
    html! {
        <div class="event-line">
            <p>
                { glyph(&event.action) }<b>{ event.action.clone() }</b>{ " " }<BytesText bytes={event.size} />
                <span class="dim">{ [" · event ", &Count(u64::from(event.index) + 1).to_string(), " · ", &seconds(event.time_us), " s"].concat() }</span>
            </p>
            if !event.site.is_empty() { <p class="dim wrap" title={event.site.clone()}>{ event.site.clone() }</p> }
            if onclick.is_some() {
                <button type="button" class="act" {onclick} data-testid="detail-select-event">{ "Select it" }</button>
            }
        </div>
    }
}
