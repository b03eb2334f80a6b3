//! The selected range on the x axis: where it is, and how a part of the axis becomes a range of positions.

use std::rc::Rc;

use query::{Answer, Axis, PositionAtQuery, Query, StateQuery, Window};
use yew::prelude::*;

use super::{ModelHandle, ask, use_answer};
use crate::model::Action;

/// Returns the coordinates of the selected range; `None` without one, and until they are known.
#[hook]
pub fn use_range(model: &ModelHandle) -> Option<Window> {
    let (axis, range) = (model.view.axis, model.view.range);
    let on_time = |position| (axis == Axis::Time).then_some(Query::State(StateQuery { position }));
    let from = use_answer(range.and_then(|(from, _)| on_time(from)));
    let to = use_answer(range.and_then(|(_, to)| on_time(to)));
    let (start, end) = range?;
    if axis == Axis::Event {
        return Some(Window { start: f64::from(start), end: f64::from(end) });
    }
    match (from.as_deref(), to.as_deref()) {
        (Some(Answer::State(from)), Some(Answer::State(to))) if (from.position, to.position) == (start, end) => {
            Some(Window { start: from.time_us, end: to.time_us })
        }
        _ => None,
    }
}

/// Selects the range of positions of a part of the x axis. On the time axis they are looked up.
pub fn select_range(model: &ModelHandle, part: Window) {
    match model.now().view.axis {
        Axis::Event => select(model, part.start.max(0.0) as u32, part.end.max(0.0) as u32),
        axis @ Axis::Time => {
            let handle = model.clone();
            let on_start = Callback::from(move |answer: Rc<Answer>| {
                let Answer::PositionAt(from) = *answer else { return };
                let model = handle.clone();
                let on_end = Callback::from(move |answer: Rc<Answer>| {
                    if let Answer::PositionAt(to) = *answer {
                        select(&model, from, to);
                    }
                });
                ask(&handle, Query::PositionAt(PositionAtQuery { axis, x: part.end }), on_end);
            });
            ask(model, Query::PositionAt(PositionAtQuery { axis, x: part.start }), on_start);
        }
    }
}

/// Selects a range. One within a single event is extended to the next one.
fn select(model: &ModelHandle, from: u32, to: u32) {
    let events = model.now().device().map_or(0, |device| device.events);
    let from = from.min(events.saturating_sub(1));
    model.dispatch(Action::SetRange(Some((from, to.max(from + 1)))));
}

/// Shows the selected range over the whole width.
pub fn zoom_to_range(model: &ModelHandle) {
    let Some((from, to)) = model.now().view.extended_range() else { return };
    let handle = model.clone();
    window_between(model, from, to, Callback::from(move |window| handle.dispatch(Action::SetWindow(window))));
}

/// Looks up the window of the x axis from one position to another, and passes it to `then`, unless a person has changed what is
/// shown by then.
pub fn window_between(model: &ModelHandle, from: u32, to: u32, then: Callback<Window>) {
    if model.now().view.axis == Axis::Event {
        // The last position is drawn up to the next one.
        return then.emit(Window { start: f64::from(from), end: f64::from(to) + 1.0 });
    }
    let (handle, shown) = (model.clone(), model.shown());
    let on_start = Callback::from(move |answer: Rc<Answer>| {
        let Answer::State(start) = &*answer else { return };
        let start = start.time_us;
        let (model, then) = (handle.clone(), then.clone());
        let on_end = Callback::from(move |answer: Rc<Answer>| {
            if let Answer::State(end) = &*answer
                && model.shown() == shown
            {
                then.emit(Window { start, end: end.time_us });
            }
        });
        ask(&handle, Query::State(StateQuery { position: to }), on_end);
    });
    ask(model, Query::State(StateQuery { position: from }), on_start);
}
