//! Hooks that react to changes of the model with a question to the worker.

use std::rc::Rc;

use query::{Answer, Axis, PositionAtQuery, Query, StateQuery, Window};
use yew::prelude::*;

use super::{ask, use_cursor, use_model};
use crate::browser::use_effect_with;
use crate::model::Action;

/// Maps the window to a requested axis, and moves the window after the cursor.
#[hook]
pub fn use_followers() {
    use_axis_follower();
    use_cursor_follower();
}

/// Maps the window to the wanted axis: from time to events by the positions at its ends, from events to time by the
/// times of those positions.
#[hook]
fn use_axis_follower() {
    let model = use_model();
    let file = model.current;
    let events = model.device().map_or(0, |device| device.events);
    use_effect_with(
        (file, model.view.device, model.view.wanted_axis, model.view.window),
        move |(_, _, wanted, window)| {
            let Some(axis) = *wanted else { return };
            let (first, last) = match axis {
                Axis::Event => {
                    let at = |x| Query::PositionAt(PositionAtQuery { axis: Axis::Time, x });
                    (at(window.start), at(window.end))
                }
                Axis::Time => {
                    let at = |x: f64| Query::State(StateQuery { position: (x.max(0.0) as u32).min(events) });
                    (at(window.start), at(window.end.ceil()))
                }
            };
            let (handle, shown) = (model.clone(), model.shown());
            let on_first = Callback::from(move |first: Rc<Answer>| {
                let model = handle.clone();
                let on_last = Callback::from(move |last: Rc<Answer>| {
                    if let (Some(start), Some(end)) = (coordinate(&first), coordinate(&last))
                        && model.shown() == shown
                    {
                        // The event at the end is still in view.
                        let end = if axis == Axis::Event { end + 1.0 } else { end };
                        model.dispatch(Action::AxisMapped(axis, Window { start, end }));
                    }
                });
                ask(&handle, last.clone(), on_last);
            });
            ask(&model, first, on_first);
        },
    );
}

/// Returns the coordinate in an answer.
fn coordinate(answer: &Answer) -> Option<f64> {
    match answer {
        Answer::PositionAt(position) => Some(f64::from(*position)),
        Answer::State(state) => Some(state.time_us),
        _ => None,
    }
}

/// Looks up the cursor's coordinate if the window is to follow it.
#[hook]
fn use_cursor_follower() {
    let model = use_model();
    let (follows, axis, cursor) = (model.view.follows_cursor, model.view.axis, model.view.cursor);
    let answer = use_cursor(&model);
    let x = match (axis, answer.as_deref()) {
        (Axis::Event, _) => Some(f64::from(cursor)),
        (Axis::Time, Some(Answer::State(state))) if state.position == cursor => Some(state.time_us),
        _ => None,
    };
    use_effect_with((follows, axis, cursor, x), move |&(follows, _, position, x)| {
        if let Some(x) = x.filter(|_| follows) {
            model.dispatch(Action::CursorAt { position, x });
        }
    });
}
