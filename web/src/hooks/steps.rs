//! Two steps to compare.

use shared::query::{Answer, Axis, Query};
use yew::Callback;

use super::{ModelHandle, ask};
use crate::model::Action;

/// Lays the last whole step over the second one. In the first, an optimizer makes its state.
pub fn compare_steps(model: &ModelHandle) {
    let handle = model.clone();
    let on_list = Callback::from(move |answer| {
        let Answer::Steps(list) = answer else { return };
        let whole: Vec<u32> = (0..).zip(&list.steps).filter(|(_, step)| step.is_whole).map(|(i, _)| i).collect();
        handle.dispatch(match *whole.as_slice() {
            [_, second, .., last] | [second, last] => Action::CompareSteps(Some((second, last))),
            _ => Action::Notify("This trace has too few steps to compare.".to_owned()),
        });
    });
    ask(model, Query::Steps { axis: Axis::Event }, on_list);
}
