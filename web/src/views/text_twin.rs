//! A text version of the canvases for screen readers. It is updated when the view has come to rest.

use std::cmp::Reverse;
use trace::order::SortFew;

use query::{Answer, Axis, Classes, DeviceSummary, Flame, FlameBox, Query, StateQuery, Window};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::description::{Description, Known, Moment, ROWS};
use super::view;
use crate::browser::{Timeout, use_effect_with};
use crate::hooks::{ModelHandle, use_answer, use_exact_answer, use_model_of, use_near};
use crate::model::{Listing, Parts, Selection, Tab, View};
use crate::views::legend::{legend_query, ranked};
use crate::views::moment::{memory_text, moment_text};
use crate::views::status::range_query;
use crate::views::timeline::{values_at, values_text};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::counted;

/// Milliseconds without a change before the text is updated.
const REST_MS: i32 = 500;
/// Milliseconds between updates of a followed session, which never rests.
const FOLLOWED_MS: i32 = 5_000;
/// The summary and the table.
#[component]
pub fn TextTwin() -> Html {
    let model = use_model_of(Parts::VIEW);
    let rested = use_state_eq(|| (Axis::Time, Window::default(), 0_u32));
    let now = (model.view.axis, model.view.window, model.view.cursor);
    // A timer takes the moment at which it fires.
    let latest = use_mut_ref(|| now);
    *latest.borrow_mut() = now;
    let is_following = model.live().is_some_and(|live| live.is_following);
    {
        let rested_once = rested.1.length() > 0.0;
        let rested = rested.setter();
        let timer = use_mut_ref(|| None::<Timeout>);
        let is_due = use_mut_ref(|| false);
        let latest = latest.clone();
        use_effect_with((now, is_following), move |&(_, is_following)| {
            if is_following && *is_due.borrow() {
                return;
            }
            *is_due.borrow_mut() = is_following;
            let rest = if is_following && rested_once { FOLLOWED_MS } else { REST_MS };
            *timer.borrow_mut() = Some(Timeout::new(rest, move || {
                *is_due.borrow_mut() = false;
                rested.set(*latest.borrow());
            }));
        });
    }
    let (axis, window, cursor) = *rested;
    let has_rested = window.length() > 0.0;
    let (tab, other) = (model.view.tab, model.view.split.map(|split| split.tab));
    let moment = Moment { axis, window, position: cursor };
    let question = |tab: Tab| (description(tab).question)(&model, moment).filter(|_| has_rested);
    let asked = question(tab);
    let is_asked = asked.is_some();
    let answer = use_exact_answer(asked);
    let beside = other.and_then(question);
    let is_beside_asked = beside.is_some();
    let beside = use_exact_answer(beside);
    let state = use_exact_answer(has_rested.then_some(Query::State(StateQuery { position: cursor })));
    let classes = use_answer(legend_query(&model).filter(|_| has_rested && model.view.tab == Tab::Timeline));
    let curves =
        values_at(&model.view.settings.curves, cursor).filter(|_| has_rested && model.view.tab == Tab::Timeline);
    let curves = use_answer(curves);
    let range = model.view.range;
    let sums = use_answer(model.view.extended_range().filter(|_| has_rested).map(range_query));
    let near = use_near(&model).filter(|_| has_rested);
    let totals = match state.as_deref() {
        Some(Answer::State(state)) => Some(state.totals),
        _ => None,
    };
    let text =
        |tab: Tab, answer: Option<&Answer>| (description(tab).text)(&model, Known { answer, totals: totals.as_ref() });
    let mut said = text(tab, answer.as_deref());
    said += &other.map(|tab| beside_text(text(tab, beside.as_deref()))).unwrap_or_default();
    said += &model.device().map(|device| whole(device, model.is_cut_off())).unwrap_or_default();
    if let Some(totals) = totals {
        said += &format!(
            "Cursor at event {}: {} requested, {} reserved. ",
            Count(cursor.into()),
            Bytes(totals.requested),
            Bytes(totals.reserved)
        );
    } else if let Some(near) = near {
        said += &format!(
            "Cursor at event {}: {} requested at most, {} reserved at most. ",
            Count(model.view.cursor.into()),
            Bytes(near.requested),
            Bytes(near.reserved)
        );
    }
    if let Some(device) = model.device().filter(|device| device.lost > 0) {
        let (lost, places) = (counted(device.lost, "event"), counted(device.losses.into(), "place"));
        said += &format!("Missing from the trace: {lost}, in {places}. ");
    }
    if let Some(Answer::Curves(curves)) = curves.as_deref() {
        said += &format!("Curves at the cursor: {}. ", values_text(curves));
    }
    said += &failure_text(&model);
    said += &range.map(|range| range_text(range, sums.as_deref())).unwrap_or_default();
    said += &selection(&model);
    // All numbers of the text are of one moment. The text changes once all answers about that moment have arrived.
    let last = use_mut_ref(|| None::<(View, String)>);
    let is_whole = state.is_some() && answer.is_some() == is_asked && beside.is_some() == is_beside_asked;
    let view = View { axis, window, cursor, ..model.view.clone() };
    let mut last = last.borrow_mut();
    match &*last {
        // A followed job runs on between two updates, so the text names its moment.
        Some((known, text)) if !is_whole || is_following && *known == view => said.clone_from(text),
        _ => {
            if is_following && has_rested {
                said = format!("At event {}, the newest: {said}", Count(cursor.into()));
            }
            if is_whole {
                *last = Some((view, said.clone()));
            }
        }
    }
    drop(last);
    html! {
        <div class="visually-hidden" data-testid="text-twin">
            <p id="text-twin" aria-live="polite">{ said }</p>
            if let (Tab::Timeline, Some(Answer::Classes(classes))) = (model.view.tab, classes.as_deref()) {
                { largest(&model, classes) }
            }
            if let (Tab::Flame, Some(Answer::Flame(flame))) = (model.view.tab, answer.as_deref()) {
                { frames(flame) }
            }
        </div>
    }
}

/// Returns the description of a tab.
fn description(tab: Tab) -> Description {
    view(tab).description
}

/// Introduces what the other one of two views shows; empty if there is nothing to say of it.
fn beside_text(subject: String) -> String {
    if subject.is_empty() { subject } else { format!("Beside it: {subject}") }
}

/// Describes the overview: the whole trace, or what could be read of it, whatever part is shown.
fn whole(device: &DeviceSummary, is_cut_off: bool) -> String {
    format!(
        "{}: {}, peak {} requested, at most {} reserved, {}. ",
        if is_cut_off { "What was read of the trace" } else { "Whole trace" },
        counted(device.events.into(), "event"),
        Bytes(device.peak.requested),
        Bytes(device.peak_reserved),
        counted(device.ooms.len() as u64, "failed request"),
    )
}

/// Renders the largest boxes of the flame graph as a table.
fn frames(flame: &Flame) -> Html {
    let mut boxes: Vec<&FlameBox> = flame.boxes.iter().skip(1).collect();
    boxes.sort_few_by_key(|flame_box| Reverse(flame_box.bytes));
    html! {
        <table>
            <caption>{ format!("Largest frames, event {}", Count(flame.query.position.into())) }</caption>
            <thead><tr><th>{ "Frame" }</th><th>{ "Bytes" }</th><th>{ "Allocations" }</th></tr></thead>
            <tbody>
                { for boxes.into_iter().take(ROWS).map(|flame_box| html! {
                    <tr>
                        <th scope="row">{ flame_box.name.clone() }{ " " }{ flame_box.location.clone() }</th>
                        <td>{ bytes_text(flame_box.bytes) }</td>
                        <td>{ Count(flame_box.count.into()).to_string() }</td>
                    </tr>
                }) }
            </tbody>
        </table>
    }
}

/// Renders the largest classes as a table.
fn largest(model: &ModelHandle, classes: &Classes) -> Html {
    let Some(device) = model.device() else { return html! {} };
    let listing = model.view.settings.listing;
    html! {
        <table>
            <caption>{ format!("Largest groups {}", moment_text(&model.view, device)) }</caption>
            <thead><tr><th>{ "Group" }</th><th>{ if listing == Listing::Growth { "Growth" } else { "Bytes" } }</th></tr></thead>
            <tbody>
                { for ranked(classes).into_iter().take(ROWS).filter_map(|i| {
                    let (class, memory) = classes.classes.get(i as usize).zip(classes.memory.get(i as usize))?;
                    Some(html! {
                        <tr key={i}>
                            <th scope="row">{ class.label.clone() }</th>
                            <td>{ memory_text(listing, memory) }</td>
                        </tr>
                    })
                }) }
            </tbody>
        </table>
    }
}

/// Describes the request that failed at the cursor, where a view draws it.
fn failure_text(model: &ModelHandle) -> String {
    if !matches!(model.view.tab, Tab::Timeline | Tab::Segments | Tab::Heatmap) {
        return String::new();
    }
    let Some(failure) = model.failure_at_cursor() else {
        // Pictures over time draw it wherever the cursor is.
        let is_over_time = model.view.tab != Tab::Segments;
        return model.main_failure().filter(|_| is_over_time).map_or_else(String::new, |failure| {
            let (requested, event) = (Bytes(failure.requested), Count(failure.position().into()));
            format!("A request of {requested} failed at event {event}. ")
        });
    };
    let gap = failure.nearest_gap.map_or_else(
        || "no gap could have served any part of it".to_owned(),
        |(_, gap)| format!("the gap that came closest has {}", Bytes(gap)),
    );
    format!("A request of {} failed here: {gap}. ", Bytes(failure.requested))
}

/// Describes the selected range.
fn range_text(range: (u32, u32), answer: Option<&Answer>) -> String {
    match answer {
        Some(Answer::Range(sums)) if (sums.query.from, sums.query.to) == range => format!(
            "Range of events {} to {}: requested {} to {}, peak {}, {} allocated, {} freed, {} still live at its end. ",
            Count(u64::from(range.0) + 1),
            Count(range.1.into()),
            Bytes(sums.before.requested),
            Bytes(sums.after.requested),
            Bytes(sums.peak.0),
            Bytes(sums.amounts.allocated.bytes),
            Bytes(sums.amounts.freed.bytes),
            Bytes(sums.amounts.kept.bytes),
        ),
        _ if range.0 == range.1 => format!("Range begins at event {}. ", Count(range.0.into())),
        _ => String::new(),
    }
}

fn selection(model: &ModelHandle) -> String {
    match model.view.selection {
        Selection::None => String::new(),
        Selection::Allocation(id) => format!("Selected: allocation {}.", Count(id.into())),
        Selection::Site(_) => "Selected: stack.".to_owned(),
        Selection::Line(_) => "Selected: call site.".to_owned(),
        Selection::Segment(address) => format!("Selected: segment at {address}."),
        Selection::Class(_) => "Selected: a group of the timeline.".to_owned(),
    }
}
