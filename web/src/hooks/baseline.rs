//! The first finished step, from which growth counts.

use query::{Answer, Axis, Query, StepsQuery};
use yew::prelude::*;

use super::{ModelHandle, use_answer};
use crate::browser::use_effect_with;
use crate::model::{Action, Listing};

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
