//! The canvases in words: what is shown, for a screen reader. It speaks when the view has come to rest.

use shared::query::{Answer, Axis, FlameQuery, Query, TimelineQuery, Window};
use shared::units::{Bytes, Count, Micros};
use yew::prelude::*;

use crate::browser::Timeout;
use crate::model::{ModelHandle, Selection, use_answer, use_model};
use crate::widgets::format::counted;

/// How long the window rests before it is spoken of, in milliseconds.
const REST_MS: i32 = 500;
/// Rows of the table.
const ROWS: usize = 12;
/// The width in which the table's rows are looked for: what is smaller than a thousandth is summed.
const WIDTH: f32 = 1000.0;

/// The summary and the table.
#[component]
pub fn TextTwin() -> Html {
    let model = use_model();
    let rested = use_state_eq(|| (Axis::Time, Window::default(), 0_u32));
    let now = (model.view.axis, model.view.window, model.view.cursor);
    {
        let rested = rested.setter();
        let timer = use_mut_ref(|| None::<Timeout>);
        use_effect_with(now, move |&now| {
            *timer.borrow_mut() = Some(Timeout::new(REST_MS, move || rested.set(now)));
        });
    }
    let (axis, window, cursor) = *rested;
    let filter = model.view.filter.clone();
    let shown = use_answer((window.length() > 0.0).then(|| {
        Query::Timeline(TimelineQuery {
            axis,
            window,
            columns: 1,
            bytes: Window { start: 0.0, end: 1.0 },
            rows: 1,
            // Colours, filter and highlight of the picture itself, which the worker has at hand.
            color_by: model.view.color_by,
            filter: filter.clone(),
            highlight: model.view.highlight.clone(),
        })
    }));
    let peak = match shown.as_deref() {
        Some(Answer::Timeline(timeline)) => timeline
            .position
            .first()
            .copied()
            .zip(timeline.top.first().copied())
            .map(|(position, top)| (position, top, timeline.allocations)),
        _ => None,
    };
    let lines = use_answer(peak.map(|(position, ..)| {
        Query::Flame(FlameQuery {
            position,
            bottom_up: true,
            hide_internal: true,
            zoom: Vec::new(),
            width: WIDTH,
            filter,
            highlight: None,
        })
    }));
    let state = use_answer((window.length() > 0.0).then_some(Query::State { position: cursor }));
    let totals = match state.as_deref() {
        Some(Answer::State(state)) => Some(state.totals),
        _ => None,
    };

    html! {
        <div class="visually-hidden" data-testid="text-twin">
            <p aria-live="polite">
                if let Some((position, top, allocations)) = peak {
                    { [
                        "Shown: ", &span(axis, window), ", ", &counted(allocations.into(), "allocation"), ". Peak in it: ",
                        &Bytes(top).to_string(), " requested at event ", &Count(position.into()).to_string(), ". ",
                    ].concat() }
                }
                if let Some(totals) = totals {
                    { [
                        "Cursor at event ", &Count(cursor.into()).to_string(), ": ", &Bytes(totals.requested).to_string(), " requested, ",
                        &Bytes(totals.reserved).to_string(), " reserved. ",
                    ].concat() }
                }
                { selection(&model) }
            </p>
            if let Some(Answer::Flame(flame)) = lines.as_deref() {
                <table>
                    <caption>{ ["Largest lines at the peak of what is shown, event ", &Count(flame.query.position.into()).to_string()].concat() }</caption>
                    <thead><tr><th>{ "line" }</th><th>{ "bytes" }</th><th>{ "allocations" }</th></tr></thead>
                    <tbody>
                        { for flame.boxes.iter().filter(|b| b.depth == 1).take(ROWS).enumerate().map(|(i, b)| html! {
                            <tr key={i}>
                                <th scope="row">{ [&b.name, " ", &b.location].concat() }</th>
                                <td>{ Bytes(b.bytes).to_string() }</td>
                                <td>{ Count(b.count.into()).to_string() }</td>
                            </tr>
                        }) }
                    </tbody>
                </table>
            }
        </div>
    }
}

/// The window in words.
fn span(axis: Axis, window: Window) -> String {
    match axis {
        Axis::Time => {
            let at = |us: f64| Micros(us.round() as i64).to_string();
            [&at(window.start), " to ", &at(window.end)].concat()
        }
        Axis::Event => {
            let at = |event: f64| Count(event.max(0.0).round() as u64).to_string();
            ["events ", &at(window.start), " to ", &at(window.end)].concat()
        }
    }
}

fn selection(model: &ModelHandle) -> String {
    match model.view.selection {
        Selection::None => String::new(),
        Selection::Allocation(id) => ["Selected: allocation ", &Count(id.into()).to_string(), "."].concat(),
        Selection::Site(_) => "Selected: a call site.".to_owned(),
        Selection::Segment(address) => ["Selected: the segment at ", &address.to_string(), "."].concat(),
        Selection::Class(_) => "Selected: a class of the timeline.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_words() {
        assert_eq!(span(Axis::Time, Window { start: 0.0, end: 12_482_000.0 }), "0 µs to 12.482 s");
        assert_eq!(span(Axis::Event, Window { start: 0.0, end: 1_004_222.0 }), "events 0 to 1,004,222");
    }
}
