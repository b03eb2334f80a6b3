//! Steps that views refer to: two to compare, and the first finished one.

use std::rc::Rc;

use query::{Answer, Axis, Query, StepsQuery};
use yew::prelude::*;

use super::{ModelHandle, ask, use_answer};
use crate::browser::use_effect_with;
use crate::model::{Action, Listing};

/// Lays the last whole step over the second one. In the first, an optimizer makes its state.
pub fn compare_steps(model: &ModelHandle) {
    let handle = model.clone();
    let on_list = Callback::from(move |answer: Rc<Answer>| {
        let Answer::Steps(list) = &*answer else { return };
        let whole: Vec<u32> = (0..).zip(&list.steps).filter(|(_, step)| step.is_whole).map(|(i, _)| i).collect();
        handle.dispatch(match *whole.as_slice() {
            [_, second, .., last] | [second, last] => Action::CompareSteps(Some((second, last))),
            _ => Action::Notify("This trace has too few steps to compare.".to_owned()),
        });
    });
    ask(model, Query::Steps(StepsQuery { axis: Axis::Event }), on_list);
}

/// Looks for the first finished step while growth is listed: what a program sets up before is none.
#[hook]
pub fn use_baseline(model: &ModelHandle) {
    let is_wanted =
        model.view.settings.listing == Listing::Growth && model.device().is_some_and(|device| device.events > 0);
    let answer = use_answer(is_wanted.then_some(Query::Steps(StepsQuery { axis: Axis::Event })));
    let found = match answer.as_deref() {
        Some(Answer::Steps(list)) => list.steps.iter().find(|step| step.is_whole).map(|step| (step.number, step.to)),
        _ => model.view.baseline,
    };
    let model = model.clone();
    use_effect_with(found, move |found| {
        if *found != model.now().view.baseline {
            model.dispatch(Action::SetBaseline(*found));
        }
    });
}
