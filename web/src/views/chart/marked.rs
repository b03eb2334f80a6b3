//! Looks up the coordinates of the timeline's marks, each with a small question.

use std::rc::Rc;

use query::diagnosis::FailedRequest;
use query::{
    AllocationQuery, Answer, Axis, DeviceSummary, OverviewQuery, Query, StateAt, StateQuery, StepList, StepSpan,
    StepsQuery, Window,
};
use yew::prelude::*;

use super::flags::Oom;
use super::lanes::Rows;
use super::marks::{Marks, Steps};
use super::peak::Peak;
use crate::hooks::{ModelHandle, use_answer, use_cursor_x, use_pin_flags, use_range};
use crate::model::{Model, Selection};

/// Columns of the overview that flags and annotations are read from; its totals are not used here.
const MARK_COLUMNS: u32 = 16;

/// Returns the marks on the current axis.
#[hook]
pub fn use_marks(model: &ModelHandle) -> Marks {
    let axis = model.view.axis;
    let overview = use_answer(Some(Query::Overview(OverviewQuery { axis, columns: MARK_COLUMNS })));
    let cursor = use_cursor_x(model);
    let device = model.device();
    let peak = use_answer(device.map(|device| Query::State(StateQuery { position: device.peak_position })));
    let selected = match model.view.selection {
        Selection::Allocation(id) => Some(Query::Allocation(AllocationQuery { id })),
        _ => None,
    };
    let selected = use_answer(selected);
    let coordinate = |answer: Option<Rc<Answer>>| match answer.as_deref() {
        Some(Answer::State(state)) => Some(coordinate(state, axis)),
        _ => None,
    };
    let lifetime = match selected.as_deref() {
        Some(Answer::Allocation(detail)) if model.view.selection == Selection::Allocation(detail.id) => {
            let last = device.map_or(0, |device| device.events) + 1;
            Some(match axis {
                Axis::Time => Window { start: detail.start_us, end: detail.end_us },
                Axis::Event => Window {
                    start: f64::from(detail.allocated_at.unwrap_or(0)),
                    end: f64::from(detail.free_completed_at.unwrap_or(last)),
                },
            })
        }
        _ => None,
    };
    // Thousands of spans are copied once per answer, not once per render.
    let taken = use_memo(overview.as_ref().map(Rc::as_ptr), |_| match overview.as_deref() {
        Some(Answer::Overview(overview)) => (
            ooms(&overview.ooms, device),
            Rc::from(overview.annotations.as_slice()),
            Rows::of(&overview.annotations),
            Rc::from(overview.losses.as_slice()),
        ),
        // One row is kept free for annotations whose number of rows is not known yet.
        _ => {
            let rows = u32::from(device.is_some_and(|device| device.annotations > 0));
            (Rc::default(), Rc::default(), Rows::unknown(rows), Rc::default())
        }
    });
    let answer = use_answer(device.filter(|device| device.events > 0).map(|_| Query::Steps(StepsQuery { axis })));
    let steps = use_memo(answer.as_ref().map(Rc::as_ptr), |_| match answer.as_deref() {
        Some(Answer::Steps(list)) => steps(list),
        _ => Steps::default(),
    });
    let (ooms, annotations, rows, losses) = taken.as_ref().clone();
    Marks {
        cursor,
        ooms,
        annotations,
        rows,
        steps: steps.as_ref().clone(),
        losses,
        peak: coordinate(peak)
            .zip(device.map(|device| device.peak.requested).filter(|bytes| *bytes > 0))
            .map(|(x, bytes)| Peak { x, bytes, is_partial: model.is_cut_off() }),
        lifetime,
        range: use_range(model),
        cut: model.is_cut_off().then(|| model.extent().end),
        pins: use_pin_flags(model),
    }
}

/// Returns the requests that failed in a window, from left to right with their coordinates, as far as they are known.
pub fn failures<'a>(model: &'a Model, ooms: &[Oom], window: Window) -> Vec<(f64, &'a FailedRequest)> {
    let from = ooms.partition_point(|oom| oom.x < window.start);
    let seen = ooms.iter().skip(from).take_while(|oom| oom.x <= window.end);
    seen.filter_map(|oom| Some((oom.x, model.failure_at(oom.position)?))).collect()
}

/// Returns the largest of the requests that failed in a window. Those of a whole trace are known before their coordinates are.
pub fn largest_failed(model: &Model, ooms: &[Oom], window: Window) -> Option<u64> {
    let extent = model.extent();
    if window.start <= extent.start && window.end >= extent.end {
        return model.device()?.ooms.iter().map(|(_, bytes)| *bytes).max();
    }
    ooms.iter().filter(|oom| (window.start..=window.end).contains(&oom.x)).map(|oom| oom.bytes).max()
}

/// Returns the one of some failures that is drawn: the one at the cursor, otherwise the one that matters most, otherwise the
/// first.
pub fn drawn_failure<'a>(model: &Model, failures: &[(f64, &'a FailedRequest)]) -> Option<(f64, &'a FailedRequest)> {
    let at = |position: u32| failures.iter().find(|failure| failure.1.position() == position);
    let decisive = || at(model.diagnosis()?.verdict.position?);
    at(model.view.cursor).or_else(decisive).or(failures.first()).copied()
}

fn coordinate(state: &StateAt, axis: Axis) -> f64 {
    match axis {
        Axis::Time => state.time_us,
        Axis::Event => f64::from(state.position),
    }
}

/// Returns the steps with their names. Those that are annotations have no lane of their own.
fn steps(list: &StepList) -> Steps {
    let name = |step: &StepSpan| (step.span, format!("step {}", step.number));
    Steps {
        spans: list.steps.iter().map(name).collect(),
        hint: format!("Found {}. Click selects it; Shift-click compares it with the selected one.", list.source).into(),
        positions: list.steps.iter().map(|step| (step.from, step.to)).collect(),
        has_lane: !list.steps.is_empty() && !list.is_annotated,
    }
}

/// Returns the out-of-memory events with their coordinates and sizes.
fn ooms(found: &[(f64, u32)], device: Option<&DeviceSummary>) -> Rc<[Oom]> {
    let known = device.map_or(&[][..], |device| &device.ooms);
    let size = |position: u32| {
        let i = known.binary_search_by_key(&position, |oom| oom.0).ok();
        i.and_then(|i| known.get(i)).map_or(0, |oom| oom.1)
    };
    found.iter().map(|(x, position)| Oom { x: *x, position: *position, bytes: size(*position) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_events_carry_their_size() {
        let none = ooms(&[(5.0, 3)], None);
        assert_eq!(none.as_ref(), [Oom { x: 5.0, position: 3, bytes: 0 }]);
    }
}
