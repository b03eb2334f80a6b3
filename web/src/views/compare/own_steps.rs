//! A run that is compared with itself: at which two moments.

use query::run_profile::{MomentChoice, WholeSteps};
use query::{Answer, Axis, ComparedMoment, Query, StepList, StepSpan, StepsQuery};
use trace::units::Count;
use yew::prelude::*;

use crate::hooks::{use_answer, use_model};
use crate::model::Action;
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

/// The fields that choose the two steps; nothing without steps.
#[component]
pub(super) fn OwnSteps() -> Html {
    let model = use_model();
    let answer = use_answer(Some(Query::Steps(StepsQuery { axis: Axis::Event })));
    let Some(Answer::Steps(list)) = answer.as_deref() else { return html! {} };
    let Some(steps) = own_steps(model.view.compared, list) else { return html! {} };
    let places = steps.map(|step| list.steps.iter().position(|other| other == step).unwrap_or_default() as u32);
    let choose = |run: usize| {
        let (model, answer) = (model.clone(), answer.clone());
        Callback::from(move |typed: String| {
            let Some(Answer::Steps(list)) = answer.as_deref() else { return };
            let wanted = typed.trim().parse::<u64>().ok();
            let place = list.steps.iter().position(|step| Some(step.number) == wanted);
            let mut places = places;
            if let (Some(place), Some(changed)) = (place, places.get_mut(run)) {
                *changed = place as u32;
                model.dispatch(Action::CompareSteps(Some(places.into())));
            } else if let (Some(first), Some(last)) = (list.steps.first(), list.steps.last()) {
                let (first, last) = (Count(first.number), Count(last.number));
                model.dispatch(Action::Notify(format!("No such step. Steps run from {first} to {last}.")));
            }
        })
    };
    let field = |run: usize, name: &'static str, test_id: &'static str| {
        let step = steps.get(run).copied();
        let number = step.map_or_else(String::new, |step| step.number.to_string());
        let cut = step.filter(|step| !step.is_whole).map(|_| " (cut off)");
        html! { <><DraftField kind="number" {name} value={number} on_finish={choose(run)} {test_id} />{ cut }</> }
    };
    let note = format!("of {}, {}", counted(list.steps.len() as u64, "step"), list.source);
    html! {
        <span class="compare-steps" title="The steps that are compared, by their numbers">
            { "Step " }{ field(0, "Step of A", "compare-earlier") }
            { " → step " }{ field(1, "Step of B", "compare-later") }
            <span class="dim">{ note }</span>
        </span>
    }
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
