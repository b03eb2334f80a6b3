//! The whole run as a timeline, for the overview's stack.

use std::rc::Rc;

use query::{Answer, Query, Timeline, TimelineQuery, Window};
use yew::prelude::*;

use crate::hooks::{ModelHandle, use_answer};
use crate::model::Live;

/// The share of a running job's trace by which it grows before its stack is asked for again. Each answer is of the whole trace,
/// and takes as long as the timeline's.
const GROWTH: f64 = 0.02;

/// Returns the timeline of the whole run in this many columns and rows, up to `most` bytes; `None` before the first answer, and
/// without `most`.
#[hook]
pub fn use_stack(model: &ModelHandle, columns: u32, rows: u32, most: Option<f64>) -> Option<Rc<Answer>> {
    let (view, window) = (&model.view, model.extent());
    let kept = use_mut_ref(|| None);
    let of = (model.current, view.device, view.axis, view.settings.color_by, model.live().map(|live| live.epoch));
    // Of another file, or on another axis, it would be drawn in the wrong place.
    let last = kept.borrow().clone().filter(|(other, _)| *other == of).map(|(_, answer)| answer);
    let is_running = model.live().is_some_and(Live::is_open);
    let is_due = match last.as_deref() {
        Some(Answer::Timeline(timeline)) if is_running => has_grown(timeline.query.window, window),
        _ => true,
    };
    let question = most.filter(|_| is_due).map(|most| {
        Query::Timeline(TimelineQuery {
            axis: view.axis,
            window,
            columns,
            bytes: Window { start: 0.0, end: most },
            rows,
            color_by: view.settings.color_by,
            filter: Vec::new(),
            highlight: None,
        })
    });
    let found = use_answer(question);
    // The answer to an earlier question stays until the next one is there.
    let is_of = |answer: &&Rc<Answer>| match answer.as_ref() {
        Answer::Timeline(Timeline { query, .. }) => (query.axis, query.color_by) == (view.axis, view.settings.color_by),
        _ => false,
    };
    if let Some(found) = found.as_ref().filter(is_of) {
        *kept.borrow_mut() = Some((of, Rc::clone(found)));
    }
    found.or(last)
}

/// Returns whether a trace has grown by enough since an answer.
fn has_grown(then: Window, now: Window) -> bool {
    then.start != now.start || now.length() > then.length() * (1.0 + GROWTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_job_is_asked_for_its_stack_when_it_has_grown() {
        let window = |start, end| Window { start, end };
        for (then, now, want) in [
            (window(0.0, 100.0), window(0.0, 101.0), false),
            (window(0.0, 100.0), window(0.0, 103.0), true),
            // Its oldest events were dropped.
            (window(0.0, 100.0), window(10.0, 101.0), true),
        ] {
            assert_eq!(has_grown(then, now), want, "{now:?}");
        }
    }
}
