//! A run that is compared with itself: at which two moments.

use std::rc::Rc;

use query::run_profile::{MomentChoice, WholeSteps};
use query::{Answer, Axis, ComparedMoment, Query, StepList, StepSpan, StepsQuery};
use trace::units::Count;
use yew::prelude::*;

use crate::hooks::{ModelHandle, use_answer, use_model_of};
use crate::model::{Action, Parts, Setting};
use crate::views::controls::{choice, sends};
use crate::widgets::draft_field::DraftField;
use crate::widgets::format::counted;

/// Returns the steps at which a run is compared with itself: the chosen ones, by their places in the list, or else an early one and
/// the last.
fn own_steps(chosen: Option<(u32, u32)>, list: &StepList) -> Option<[&StepSpan; 2]> {
    let at = |place: u32| list.steps.get(place as usize);
    let chosen = chosen.and_then(|(earlier, later)| Some([at(earlier)?, at(later)?]));
    chosen.or_else(|| {
        let numbered = |number: u64| list.steps.iter().find(|step| step.is_whole && step.number == number);
        let [early, last] = WholeSteps::from(list).early_and_last()?;
        Some([numbered(early)?, numbered(last)?])
    })
}

/// Returns the moments at which a run is compared with itself: the peaks or the ends of two steps, or the ends of a range. Without
/// steps it is the range, too. `None` while the steps are not known.
pub(super) fn own_moments(
    wanted: ComparedMoment,
    chosen: Option<(u32, u32)>,
    (from, to): (u32, u32),
    list: Option<&StepList>,
) -> Option<[MomentChoice; 2]> {
    let ends = [MomentChoice::Event(from), MomentChoice::Event(to)];
    if wanted == ComparedMoment::Cursor {
        return Some(ends);
    }
    let moment = if wanted == ComparedMoment::End { MomentChoice::StepEnd } else { MomentChoice::Step };
    Some(own_steps(chosen, list?).map_or(ends, |steps| steps.map(|step| moment(step.number))))
}

/// The moments at which a run is compared with itself: which kind, and of steps, which two. Without steps there are ranges alone.
#[component]
pub(super) fn OwnMoments() -> Html {
    let model = use_model_of(Parts::PLACE);
    let answer = use_answer(Some(Query::Steps(StepsQuery { axis: Axis::Event })));
    let list = match answer.as_deref() {
        Some(Answer::Steps(list)) => list,
        Some(_) => &StepList::default(),
        None => return html! {},
    };
    let steps = own_steps(model.view.compared, list);
    let wanted = model.view.settings.compared_moment;
    let is_range = wanted == ComparedMoment::Cursor || steps.is_none();
    let at = |moment| sends(&model, Action::Set(Setting::ComparedMoment(moment)));
    let note = match (steps, is_range) {
        (Some(_), false) => format!("of {}, {}", counted(list.steps.len() as u64, "step"), list.source),
        (None, _) if model.view.extended_range().is_some() => "No two steps were found.".to_owned(),
        (None, _) => "No two steps were found: from the start to the cursor.".to_owned(),
        _ if model.view.extended_range().is_some() => String::new(),
        _ => "No range is selected: from the start to the cursor.".to_owned(),
    };
    html! {
        <>
            <div class="choices" role="group" aria-label="Moment of the comparison">
                if steps.is_some() {
                    { choice("moment-common", "Peaks of steps", "Compare the peaks of two steps", !is_range && wanted != ComparedMoment::End, at(ComparedMoment::Common)) }
                    { choice("moment-end", "Ends of steps", "Compare what is live where two steps end", !is_range && wanted == ComparedMoment::End, at(ComparedMoment::End)) }
                }
                { choice("moment-cursor", "Range", "Compare the ends of the selected range; without one, the start with the cursor", is_range, at(ComparedMoment::Cursor)) }
            </div>
            <span class="compare-steps">
                if let Some(steps) = steps.filter(|_| !is_range) { { fields(&model, &answer, steps) } }
                <span class="dim">{ note }</span>
            </span>
        </>
    }
}

/// Renders the fields that choose the two steps.
fn fields(model: &ModelHandle, answer: &Option<Rc<Answer>>, steps: [&StepSpan; 2]) -> Html {
    let choose = |run: usize| {
        let (model, answer, numbers) = (model.clone(), answer.clone(), steps.map(|step| step.number));
        Callback::from(move |typed: String| {
            let Some(Answer::Steps(list)) = answer.as_deref() else { return };
            let mut wanted = numbers.map(Some);
            if let Some(changed) = wanted.get_mut(run) {
                *changed = typed.trim().parse::<u64>().ok();
            }
            let place = |number: Option<u64>| list.steps.iter().position(|step| Some(step.number) == number);
            if let [Some(a), Some(b)] = wanted.map(place) {
                model.dispatch(Action::CompareSteps(Some((a as u32, b as u32))));
            } else if let (Some(first), Some(last)) = (list.steps.first(), list.steps.last()) {
                let (first, last) = (Count(first.number), Count(last.number));
                model.dispatch(Action::Notify(format!("No such step. Steps run from {first} to {last}.")));
            }
        })
    };
    let field = |run: usize, step: &StepSpan, name: &'static str, test_id: &'static str| {
        let cut = (!step.is_whole).then_some(" (cut off)");
        html! { <><DraftField kind="number" {name} value={step.number.to_string()} on_finish={choose(run)} {test_id} />{ cut }</> }
    };
    let [a, b] = steps;
    html! { <>{ "Step " }{ field(0, a, "Step of A", "compare-earlier") }{ " → step " }{ field(1, b, "Step of B", "compare-later") }</> }
}

#[cfg(test)]
mod tests {
    use query::Window;

    use super::*;

    fn list(whole: &[u64]) -> StepList {
        let step = |number: &u64| {
            let span = Window { start: 0.0, end: 1.0 };
            StepSpan { number: *number, from: 0, to: 1, span, is_whole: true }
        };
        StepList { steps: whole.iter().map(step).collect(), ..StepList::default() }
    }

    #[test]
    fn a_run_is_compared_with_itself_at_two_steps_or_where_a_range_ends() {
        use ComparedMoment::{Common, Cursor, End};
        use MomentChoice::{Event, Step, StepEnd};
        let range = [Event(20), Event(50)];
        for (wanted, chosen, whole, want) in [
            (Common, None, &[1, 2, 3, 9][..], [Step(2), Step(9)]),
            (Common, None, &[1, 9], [Step(1), Step(9)]),
            (Common, Some((0, 2)), &[1, 2, 3, 9], [Step(1), Step(3)]),
            (End, Some((0, 2)), &[1, 2, 3, 9], [StepEnd(1), StepEnd(3)]),
            // A link may name steps that are not there.
            (Common, Some((0, 7)), &[1, 2, 3, 9], [Step(2), Step(9)]),
            (Common, None, &[1], range.clone()),
            (End, None, &[], range.clone()),
            (Cursor, Some((0, 2)), &[1, 2, 3, 9], range.clone()),
        ] {
            assert_eq!(own_moments(wanted, chosen, (20, 50), Some(&list(whole))), Some(want));
        }
        assert_eq!(own_moments(Common, None, (0, 1), None), None, "the steps are not known yet");
    }
}
