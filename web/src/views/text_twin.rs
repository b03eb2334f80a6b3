//! A text version of the canvases for screen readers. It is updated when the view has come to rest.

use std::cmp::Reverse;

use query::{
    Answer, Axis, Classes, DeviceSummary, EventFilter, EventOrder, EventsQuery, Flame, FlameBox, FlameQuery,
    HeatmapCell, HeatmapCellQuery, Query, StateQuery, Window,
};
use trace::totals::Totals;
use trace::units::{Bytes, Count, Micros};
use yew::prelude::*;

use crate::browser::Timeout;
use crate::hooks::{ModelHandle, use_answer, use_exact_answer, use_model, use_near};
use crate::model::{Listing, Model, Selection, Tab, View};
use crate::views::details::{steps_query, steps_text};
use crate::views::findings::ordered;
use crate::views::heatmap::at_cursor;
use crate::views::legend::{legend_query, ranked};
use crate::views::moment::{memory_text, moment_text};
use crate::views::status::range_query;
use crate::views::timeline::{summary_query, values_at, values_text};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::counted;

/// Milliseconds without a change before the text is updated.
const REST_MS: i32 = 500;
/// Milliseconds between updates of a followed session, which never rests.
const FOLLOWED_MS: i32 = 5_000;
/// Maximum number of rows of the table.
const ROWS: usize = 12;

/// The summary and the table.
#[component]
pub fn TextTwin() -> Html {
    let model = use_model();
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
    let asked = question(&model, tab, axis, window, cursor).filter(|_| has_rested);
    let is_asked = asked.is_some();
    let answer = use_exact_answer(asked);
    let beside = other.and_then(|tab| question(&model, tab, axis, window, cursor)).filter(|_| has_rested);
    let is_beside_asked = beside.is_some();
    let beside = use_exact_answer(beside);
    let state = use_exact_answer(has_rested.then_some(Query::State(StateQuery { position: cursor })));
    let classes = use_answer(legend_query(&model).filter(|_| has_rested && model.view.tab == Tab::Timeline));
    let curves = values_at(&model.view.curves, cursor).filter(|_| has_rested && model.view.tab == Tab::Timeline);
    let curves = use_answer(curves);
    let range = model.view.range;
    let sums = use_answer(model.view.extended_range().filter(|_| has_rested).map(range_query));
    let compared = use_answer(model.view.compared.filter(|_| has_rested).map(|steps| steps_query(steps, false)));
    let near = use_near(&model).filter(|_| has_rested);
    let totals = match state.as_deref() {
        Some(Answer::State(state)) => Some(state.totals),
        _ => None,
    };
    let mut said = subject(&model, tab, answer.as_deref(), totals.as_ref());
    said += &other.map(|tab| beside_text(subject(&model, tab, beside.as_deref(), totals.as_ref()))).unwrap_or_default();
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
    said += &steps_text(&model, compared.as_deref());
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

/// Returns the question for the description of a tab; the totals at the cursor are asked for separately.
fn question(model: &Model, tab: Tab, axis: Axis, window: Window, position: u32) -> Option<Query> {
    let view = &model.view;
    let filter = view.filter.clone();
    match tab {
        Tab::Timeline => Some(Query::Timeline(summary_query(view, axis, window))),
        // As many pixels wide as the table has rows: boxes narrower than a pixel are left out.
        Tab::Flame => Some(Query::Flame(FlameQuery {
            position,
            bottom_up: view.settings.flame_bottom_up,
            folds: view.settings.folds,
            by_category: view.settings.flame_by_category,
            width: ROWS as f32,
            filter,
            ..FlameQuery::default()
        })),
        Tab::Events => Some(Query::Events(EventsQuery {
            order: EventOrder::default(),
            filter: EventFilter { actions: view.event_actions.clone(), terms: filter },
            first: 0,
            count: 0,
            locate: position,
        })),
        // All addresses at the cursor.
        Tab::Heatmap => Some(Query::HeatmapCell(HeatmapCellQuery {
            window: Window { start: position.into(), end: f64::from(position) + 1.0 },
            ..at_cursor(model)
        })),
        Tab::Segments | Tab::Findings | Tab::WhatIf => None,
    }
}

/// Introduces what the other one of two views shows; empty if there is nothing to say of it.
fn beside_text(subject: String) -> String {
    if subject.is_empty() { subject } else { format!("Beside it: {subject}") }
}

/// Describes what the tab shows; empty until its answer arrives.
fn subject(model: &ModelHandle, tab: Tab, answer: Option<&Answer>, totals: Option<&Totals>) -> String {
    match (tab, answer, totals) {
        (Tab::Timeline, Some(Answer::Timeline(timeline)), _) => {
            let peak = timeline.position.first().zip(timeline.top.first());
            peak.map(|(position, top)| {
                format!(
                    "Showing {}, {}. Peak: {} requested at event {}. ",
                    span(timeline.query.axis, timeline.query.window),
                    counted(timeline.allocations.into(), "allocation"),
                    Bytes(*top),
                    Count((*position).into()),
                )
            })
            .unwrap_or_default()
        }
        (Tab::Segments, _, Some(totals)) => format!(
            "Segment map: {}, {} cached in {}, largest contiguous block {}. ",
            counted(totals.segments.into(), "segment"),
            Bytes(totals.cached),
            counted(totals.gaps.into(), "gap"),
            Bytes(totals.largest_gap),
        ),
        (Tab::Flame, Some(Answer::Flame(flame)), _) => format!(
            "Flame graph: {} in {} live at event {}. ",
            Bytes(flame.total),
            counted(flame.boxes.first().map_or(0, |root| root.count.into()), "allocation"),
            Count(flame.query.position.into()),
        ),
        // The cursor of a job that is followed is at the newest event, whose row is the last one. More rows have come since.
        (Tab::Events, Some(Answer::Events(events)), _) if model.live().is_some_and(|live| live.is_following) => {
            format!("Events: row {}, the last. ", Count(events.located.map_or(0, |row| u64::from(row) + 1)))
        }
        (Tab::Events, Some(Answer::Events(events)), _) => format!(
            "Events: row {} of {}. ",
            Count(events.located.map_or(0, |row| u64::from(row) + 1)),
            Count(events.total.into()),
        ),
        (Tab::Heatmap, Some(Answer::HeatmapCell(Some(HeatmapCell::Address(cell)))), _) => {
            let [allocated, waiting, usable, unusable, _] = cell.most.map(Bytes);
            let shown = model.view.heatmap_offsets.zip(model.rows()).filter(|_| !model.view.settings.heatmap_sizes);
            let part = shown.map_or_else(String::new, |(shown, rows)| {
                format!(
                    "Showing {} of {} of addresses. ",
                    Bytes(shown.length() as u64),
                    Bytes(rows.all.length() as u64)
                )
            });
            format!(
                "{part}Heatmap: at the cursor {allocated} allocated, {waiting} waiting for a stream, {usable} free in usable gaps, {unusable} free in gaps that are too small. ",
            )
        }
        (Tab::Findings, ..) => {
            let count = ordered(model).len();
            format!("{}. ", counted(count as u64, "finding"))
        }
        (Tab::Timeline | Tab::Segments | Tab::Flame | Tab::Events | Tab::Heatmap | Tab::WhatIf, ..) => String::new(),
    }
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
    boxes.sort_by_key(|flame_box| Reverse(flame_box.bytes));
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

/// Describes a window.
fn span(axis: Axis, window: Window) -> String {
    match axis {
        Axis::Time => {
            let at = |us: f64| Micros(us.round() as i64).to_string();
            format!("{} to {}", at(window.start), at(window.end))
        }
        Axis::Event => {
            // An event is drawn from its own number on; before the first there is only the start of the trace.
            let at = |event: f64| Count(event.max(0.0) as u64).to_string();
            format!("events {} to {}", at(window.start.max(1.0)), at(window.end.ceil() - 1.0))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_words() {
        assert_eq!(span(Axis::Time, Window { start: 0.0, end: 12_482_000.0 }), "0 µs to 12.482 s");
        assert_eq!(span(Axis::Event, Window { start: 0.0, end: 1_004_222.0 }), "events 1 to 1,004,221");
    }
}
