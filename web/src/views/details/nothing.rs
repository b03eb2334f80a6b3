//! The details pane without a selection: the most important findings and the event at the cursor.

use std::rc::Rc;

use query::{Answer, EventRow, Lines, LinesQuery, Moments, Query, StateAt, StateQuery};
use trace::event::Action as EventAction;
use trace::totals::Totals;
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::facts::{fact, fact_with, facts};
use crate::hooks::{ModelHandle, Near, ask, use_cursor, use_model_of, use_near};
use crate::model::{Action, Live, Model, Parts, Selection, Tab};
use crate::views::events::glyph;
use crate::views::findings::{finding_row, untold};
use crate::views::status::no_event;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::{counted, moment, share};

/// Maximum number of findings.
const TOP_FINDINGS: usize = 3;

/// Describes the cursor's position before the first event.
fn before_all(model: &Model) -> String {
    let live = model.live();
    match model.device() {
        Some(device) if device.events == 0 => format!("Totals {}.", no_event(model, device)),
        _ if live.is_some_and(|live| live.status.is_late || live.status.dropped_events > 0) => {
            "Start of the loaded events. The job started earlier.".to_owned()
        }
        Some(device) if device.events == 1 && live.is_none() => {
            "The final state. What led there was not recorded.".to_owned()
        }
        _ => "Start of the trace, before the first event.".to_owned(),
    }
}

/// The details pane without a selection.
#[component]
pub fn NothingPane() -> Html {
    let model = use_model_of(Parts::VIEW);
    let answer = use_cursor(&model);
    let near = use_near(&model);
    let state = match answer.as_deref() {
        Some(Answer::State(state)) => Some(state),
        _ => None,
    };
    // The findings tab already lists them.
    let findings = if model.view.shows(Tab::Findings) { Vec::new() } else { untold(&model) };
    let more = findings.len().saturating_sub(TOP_FINDINGS);
    let show_all = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::SetTab(Tab::Findings)))
    };
    let list = if findings.is_empty() {
        Html::default()
    } else {
        html! {
            <>
                <ul class="findings compact">
                    // The worst is shown whole.
                    { for findings.iter().take(TOP_FINDINGS).enumerate().map(|(i, finding)| finding_row(&model, finding, i > 0)) }
                </ul>
                if more > 0 {
                    <button type="button" class="link" onclick={show_all}>{ format!("{more} more") }</button>
                }
            </>
        }
    };
    let cursor = match (state, near) {
        (Some(state), _) => at_cursor(&model, state),
        (None, Some(near)) => near_cursor(&model, near),
        (None, None) => Html::default(),
    };
    // The findings of a running job come and go: what is above them stays where it is.
    let (first, second) = if model.live().is_some_and(Live::is_open) { (cursor, list) } else { (list, cursor) };
    html! { <article class="detail" data-testid="detail-none">{ first }{ second }</article> }
}

/// Renders the event before the cursor, and the totals there.
fn at_cursor(model: &ModelHandle, state: &StateAt) -> Html {
    let bytes = |bytes: u64| bytes_text(bytes);
    let totals = &state.totals;
    let waiting = waiting(totals);
    let (gaps, largest) = (Count(totals.gaps.into()).to_string(), Bytes(totals.largest_gap).to_string());
    html! {
        <>
            <h3>{ "At the cursor" }</h3>
            { match &state.event {
                Some(event) => event_line(model, event),
                None => html! { <p class="quiet">{ before_all(model) }</p> },
            } }
            { facts(vec![
                fact("Requested", bytes(totals.requested)),
                fact_with("Allocated", bytes(totals.allocated), waiting.into()),
                fact_with("Active", bytes(totals.active), counted(totals.blocks.into(), "block").into()),
                fact_with("Rounding loss", bytes(totals.rounding()), share(totals.rounding(), totals.active).into()),
                fact_with("Reserved", bytes(totals.reserved), counted(totals.segments.into(), "segment").into()),
                fact_with("Cached", bytes(totals.cached), format!("{gaps}, largest {largest}").into()),
            ]) }
        </>
    }
}

/// Renders what previews tell of the cursor.
fn near_cursor(model: &ModelHandle, near: Near) -> Html {
    let at_most = |bytes| html! { <>{ "at most " }{ bytes_text(bytes) }</> };
    let (requested, active) = near.exact.unzip();
    let rows = [
        Some(fact("Requested", requested.map_or_else(|| at_most(near.requested), bytes_text))),
        active.map(|active| fact("Active", bytes_text(active))),
        Some(fact("Reserved", at_most(near.reserved))),
    ];
    html! {
        <>
            <h3>{ "At the cursor" }</h3>
            <p class="quiet">{ format!("Event {}. What happened there needs the whole trace.", Count(model.view.cursor.into())) }</p>
            { facts(rows.into_iter().flatten().collect()) }
        </>
    }
}

/// Describes how many bytes are active but no longer allocated, since they wait to be freed.
fn waiting(totals: &Totals) -> String {
    match totals.active.saturating_sub(totals.allocated) {
        0 => String::new(),
        bytes => format!("plus {} waiting", Bytes(bytes)),
    }
}

/// Renders the event before the cursor.
fn event_line(model: &ModelHandle, event: &EventRow) -> Html {
    let what = match subject_of(event) {
        Some(Selection::Allocation(_)) => Some("Select allocation"),
        Some(_) => Some("Select segment"),
        None if event.action == EventAction::Oom.name() => Some("Select largest call site"),
        None => None,
    };
    let onclick = what.map(|_| {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| select_here(&model))
    });
    html! {
        <div class="event-line">
            <p>
                { glyph(&event.action) }<b>{ event.action.clone() }</b>{ " " }{ bytes_text(event.size) }
                <span class="dim">{ format!(" · event {} · {}", Count(u64::from(event.index) + 1), moment(event.time_us)) }</span>
            </p>
            if !event.site.is_empty() { <p class="dim wrap" title={event.site.clone()}>{ event.site.clone() }</p> }
            if onclick.is_some() {
                <button type="button" class="act" title="Select this event's allocation or segment; at a failed request, the call site with the most memory (Enter)" {onclick} data-testid="detail-select-event">
                    { what }
                </button>
            }
        </div>
    }
}

/// Returns the allocation or the segment that an event is about.
fn subject_of(event: &EventRow) -> Option<Selection> {
    let is_segment = EventAction::from_name(&event.action).is_some_and(EventAction::is_segment);
    let segment = || is_segment.then_some(Selection::Segment(event.address));
    event.allocation.map(Selection::Allocation).or_else(segment)
}

/// Selects what the event at the cursor is about. A failed request made nothing: there, and where an event is about
/// nothing that can be selected, it is the call site with the most memory.
pub fn select_here(model: &ModelHandle) {
    let handle = model.clone();
    let position = model.now().view.cursor;
    let reply = Callback::from(move |answer: Rc<Answer>| {
        let Answer::State(state) = &*answer else { return };
        if let Some(subject) = state.event.as_ref().and_then(subject_of) {
            return handle.dispatch(Action::Select(subject));
        }
        let moments = Moments { at: position, since: None };
        let filter = handle.now().view.filter.clone();
        let model = handle.clone();
        let reply = Callback::from(move |answer: Rc<Answer>| {
            if let Answer::Lines(Lines { rows, .. }) = &*answer
                && let Some(line) = rows.first()
            {
                model.dispatch(Action::Select(Selection::Line(line.stack)));
            }
        });
        ask(&handle, Query::Lines(LinesQuery { moments, rows: 1, filter }), reply);
    });
    ask(model, Query::State(StateQuery { position }), reply);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_waits_to_be_freed_is_not_rounding_loss() {
        // 1000 bytes in a block of 1024 are allocated; 2000 bytes in a block of 2048 wait for a stream.
        let totals = Totals { requested: 3000, allocated: 1024, active: 3072, ..Totals::default() };
        assert_eq!((waiting(&totals).as_str(), totals.rounding()), ("plus 2.00 KiB waiting", 72));
        let freed = Totals { requested: 1000, active: 1024, ..totals };
        assert_eq!((waiting(&freed).as_str(), freed.rounding()), ("", 24));
    }
}
