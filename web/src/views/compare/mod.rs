//! The compare tab: what changed from another run, A, to the one that is shown, B.

mod axis;
mod chart;
mod choose;
mod lines;
mod own_steps;
mod panes;
mod summary;

use query::run_comparison::{CompareRunsQuery, RunComparison};
use query::run_profile::{MomentChoice, RunProfileQuery};
use query::{Answer, Axis, ComparedMoment, DeviceSummary, Query, StepList, StepsQuery};
use trace::units::{Bytes, counted};
use yew::prelude::*;

use self::axis::SharedAxis;
use self::own_steps::own_moments;
use super::controls::{sends, use_first_picture};
use super::description::{Description, Known};
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, use_answer_of, use_exact_answer_of, use_model_of};
use crate::model::{Action, FileKey, Model, Parts, Phase};
use crate::source;
use crate::widgets::empty::empty;

/// What a screen reader hears of the comparison; the rest is text.
pub const DESCRIPTION: Description = Description {
    question: |_, _| None,
    text: |model: &ModelHandle, _: Known<'_>| {
        let name = |key: Option<FileKey>| key.and_then(|key| model.entry(key)).map(|file| file.name.clone());
        let base = model.base().map(|(key, _)| key);
        match (name(base), name(model.current)) {
            (_, Some(b)) if base == model.current => format!("{b} at two moments. "),
            (Some(a), Some(b)) => format!("{b} compared with {a}. "),
            _ => String::new(),
        }
    },
};

/// One of the two runs.
#[derive(Clone, PartialEq)]
struct Side {
    /// Its file, and the index of its device.
    of: (FileKey, u32),
    /// The file's name.
    name: String,
    /// The device.
    device: DeviceSummary,
    /// Its cursor.
    cursor: u32,
}

impl Side {
    /// Returns a run; `None` while its file is not read.
    fn of(model: &Model, of: (FileKey, u32)) -> Option<Self> {
        let (key, device) = of;
        let file = model.entry(key)?;
        let cursor = if model.current == Some(key) { model.view.cursor } else { file.view.cursor };
        let device = file.summary()?.devices.get(device as usize)?.clone();
        Some(Self { of, name: file.name.clone(), cursor: cursor.min(device.events), device })
    }

    /// Returns whether the trace says how its end came about.
    const fn has_history(&self) -> bool {
        self.device.events > 1
    }
}

/// Returns the moments at which two runs are compared; `None` while the steps are not known that they depend on.
fn moments(wanted: ComparedMoment, sides: [&Side; 2], steps: Option<[&StepList; 2]>) -> Option<[MomentChoice; 2]> {
    let both = |choice: MomentChoice| [choice.clone(), choice];
    Some(match wanted {
        ComparedMoment::Peak => both(MomentChoice::Peak),
        ComparedMoment::End => both(MomentChoice::End),
        ComparedMoment::Cursor => sides.map(|side| MomentChoice::Event(side.cursor)),
        ComparedMoment::Common => {
            let [a, b] = steps?;
            let has_history = sides.iter().all(|side| side.has_history());
            both(MomentChoice::common(has_history, &a.into(), &b.into()))
        }
    })
}

/// The compare tab.
#[component]
pub fn Compare() -> Html {
    let model = use_model_of(Parts::VIEW);
    let base = model.base();
    let sides = base
        .and_then(|base| Side::of(&model, base))
        .zip(model.current.and_then(|key| Side::of(&model, (key, model.view.device))));
    // Nothing is awaited that isn't there.
    let is_absent = sides.is_none();
    use_first_picture(&model, is_absent);
    {
        let model = model.clone();
        use_effect_with(model.missing_base().cloned(), move |missing| {
            if let Some(base) = missing {
                source::open_base(&model, base);
            }
        });
    }
    let body = match sides {
        Some((a, b)) => {
            let key = format!("{:?} {:?}", a.of, b.of);
            html! { <Pair {key} {a} {b} /> }
        }
        None => absent(&model),
    };
    html! {
        <section class="compare" aria-label="Compare" data-testid="compare">
            { choose::toolbar(&model) }
            { body }
        </section>
    }
}

/// Says why there is nothing to compare with, and what would be.
fn absent(model: &ModelHandle) -> Html {
    if let Some(file) = model.base().and_then(|(key, _)| model.entry(key)) {
        return match &file.phase {
            Phase::Failed { message } => empty("This file can't be compared.", message.clone(), false),
            Phase::Loading { .. } | Phase::Away => {
                html! { <p class="canvas-empty" role="status">{ format!("Reading {}…", file.name) }</p> }
            }
            Phase::Ready { .. } | Phase::Sweep(_) => empty("It has no such device.", "Choose another run as A.", false),
        };
    }
    let on_pick = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| source::pick(&model))
    };
    let itself = model.current.map(|_| sends(model, Action::CompareSteps(None)));
    let (title, hint) = match model.missing_base() {
        Some(base) => (
            format!("This link compares with {}, which is not open.", base.name),
            "Drop that file on this page, or open it.",
        ),
        None => (
            "Compare this run with another.".to_owned(),
            "Drop a second file on this page, or open it: what changed since is shown here.",
        ),
    };
    html! {
        <div class="empty" data-testid="compare-empty">
            <h2>{ title }</h2>
            <p>{ hint }</p>
            <div class="compare-actions">
                <button type="button" class="button" onclick={on_pick} data-testid="compare-open">{ "Open file…" }</button>
                if let Some(itself) = itself {
                    <button type="button" class="button" onclick={itself} data-testid="compare-itself">{ "Compare two moments of this run" }</button>
                }
            </div>
        </div>
    }
}

/// Properties of [`Pair`].
#[derive(PartialEq, Properties)]
struct PairProps {
    /// The base.
    a: Side,
    /// What is compared with it.
    b: Side,
}

/// Two runs that have been read.
#[component]
fn Pair(props: &PairProps) -> Html {
    let model = use_model_of(Parts::VIEW);
    let PairProps { a, b } = props;
    let list = Some(Query::Steps(StepsQuery { axis: Axis::Event }));
    let steps_of = |side: &Side| list.clone().filter(|_| side.has_history());
    let lists = [use_exact_answer_of(Some(a.of), steps_of(a)), use_exact_answer_of(Some(b.of), steps_of(b))];
    let none = StepList::default();
    let steps = |run: usize, side: &Side| match lists.get(run).and_then(|list| list.as_deref()) {
        Some(Answer::Steps(list)) => Some(list),
        Some(_) => Some(&none),
        None => Some(&none).filter(|_| !side.has_history()),
    };
    let lists = steps(0, a).zip(steps(1, b)).map(|(a, b)| [a, b]);
    let steps = lists.map(|lists| lists.map(|list| list.steps.as_slice()));
    let settings = &model.view.settings;
    let is_itself = a.of == b.of;
    let chosen = match is_itself {
        true => {
            let range = model.view.extended_range().unwrap_or((0, b.cursor));
            own_moments(settings.compared_moment, model.view.compared, range, lists.map(|[own, _]| own))
        }
        false => moments(settings.compared_moment, [a, b], lists),
    };
    let asked = chosen.map(|[of_a, of_b]| {
        let query = |side: &Side, moment| RunProfileQuery { name: side.name.clone(), moment };
        [query(a, of_a), query(b, of_b)]
    });
    let profile =
        |run: usize| asked.as_ref().and_then(|asked| asked.get(run)).map(|query| Query::RunProfile(query.clone()));
    let profiles = [use_exact_answer_of(Some(a.of), profile(0)), use_exact_answer_of(Some(b.of), profile(1))];
    // While another moment is on its way, what was compared last stays.
    let last = use_mut_ref(|| None::<Query>);
    let question = match profiles.each_ref().map(|profile| profile.as_deref()) {
        [Some(Answer::RunProfile(before)), Some(Answer::RunProfile(after))] => {
            Some(Query::CompareRuns(CompareRunsQuery { before: before.clone(), after: after.clone() }))
        }
        _ => last.borrow().clone(),
    };
    last.borrow_mut().clone_from(&question);
    let compared = use_answer_of(Some(b.of), question);
    let refused = profiles.iter().chain([&compared]).find_map(|answer| match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    });
    use_first_picture(&model, compared.is_some() || refused.is_some());
    let has_history = a.has_history() && b.has_history();
    // One run has one curve, which is above.
    let chart = steps.filter(|_| has_history && !is_itself).map(|steps| {
        let whole = |side: &Side| (side.device.has_times.then_some(side.device.time), side.device.event);
        SharedAxis::of(settings.compared_axis, [whole(a), whole(b)], steps)
    });
    let has_steps = steps.is_some_and(|steps| steps.iter().all(|steps| !steps.is_empty()));
    let found: Option<&RunComparison> = match compared.as_deref() {
        Some(Answer::CompareRuns(found)) => Some(found),
        _ => None,
    };
    let moments =
        found.map(|found| [0, 1].map(|run| found.runs.get(run).map(|run| run.moment.clone()).unwrap_or_default()));
    let names = told_apart(&a.name, &b.name);
    let moved = found.map(panes::moved_lines).unwrap_or_default();
    let positions = moments.as_ref().map(|moments| moments.each_ref().map(|moment| moment.position));
    // A run has one cursor.
    let go = positions.filter(|_| !is_itself).map(|positions| panes::to_moments(&model, [a.of, b.of], positions));
    let is_apart = settings.compared_moment == ComparedMoment::Common
        && moments.as_ref().is_some_and(|moments| moments.iter().all(|moment| moment.step.is_none()))
        && has_history
        && !is_itself;
    html! {
        <div class="compare-page" aria-busy={(found.is_none() && refused.is_none()).to_string()}>
            if let Some(sentence) = refused {
                <p class="canvas-empty" data-testid="compare-refused">{ sentence }</p>
            } else if let Some(found) = found {
                { summary::summary(found, is_apart, go) }
            } else {
                <p class="compare-sentence dim" role="status">{ "Comparing…" }</p>
            }
            if let Some(axis) = chart {
                <chart::Chart {axis} a={a.clone()} b={b.clone()} names={names.clone()} {moments} {has_steps} />
            }
            if let Some(found) = found {
                { lines::table(&model, found) }
            }
            <panes::Panes a={a.of} b={b.of} {names} {positions} {moved} />
        </div>
    }
}

/// Returns two names without a long beginning that both have, so that what tells them apart has room.
fn told_apart(a: &str, b: &str) -> [String; 2] {
    /// A beginning of fewer characters stays.
    const SHORT: usize = 16;
    let same = a.char_indices().zip(b.chars()).take_while(|((_, one), other)| one == other);
    let is_end = |letter: char| !letter.is_alphanumeric();
    let cut = same.filter(|((_, letter), _)| is_end(*letter)).map(|((at, letter), _)| at + letter.len_utf8()).last();
    match cut.filter(|cut| a != b && *cut > SHORT) {
        Some(cut) => [a, b].map(|name| format!("…{}", name.get(cut..).unwrap_or_default())),
        None => [a, b].map(str::to_owned),
    }
}

/// Describes a device's memory in a menu.
fn device_note(device: &DeviceSummary) -> String {
    format!("{} · peak {}", counted(device.events.into(), "event"), Bytes(device.peak.requested))
}

#[cfg(test)]
mod tests {
    use query::{StepSpan, Window};

    use super::*;

    fn side(events: u32, cursor: u32) -> Side {
        let device = DeviceSummary { events, ..DeviceSummary::default() };
        Side { of: (FileKey(0), 0), name: "a".to_owned(), device, cursor }
    }

    fn step(number: u64, is_whole: bool) -> StepSpan {
        StepSpan { number, from: 0, to: 1, span: Window { start: 0.0, end: 1.0 }, is_whole }
    }

    #[test]
    fn names_begin_where_they_differ() {
        for (a, b, want) in [
            ("a.pickle", "b.pickle", ["a.pickle", "b.pickle"]),
            ("train_of_a_model_1.pickle", "train_of_a_model_2.pickle", ["…1.pickle", "…2.pickle"]),
            ("train_of_a_model_1.pickle", "train_of_a_model_1.pickle", ["train_of_a_model_1.pickle"; 2]),
            ("ein_sehr_langer_nä_1", "ein_sehr_langer_nä_2", ["…1", "…2"]),
        ] {
            assert_eq!(told_apart(a, b), want);
        }
    }

    #[test]
    fn the_moments_are_those_of_a_common_step_unless_another_is_wanted() {
        let (a, b) = (side(100, 7), side(100, 9));
        let list = |steps: &[StepSpan]| StepList { steps: steps.to_vec(), ..StepList::default() };
        let of_a = list(&[step(1, true), step(2, true), step(3, false)]);
        let (of_b, none) = (list(&[step(2, true), step(3, true)]), list(&[]));
        let of = |wanted, steps| moments(wanted, [&a, &b], steps);
        assert_eq!(of(ComparedMoment::Common, None), None, "the steps are not known yet");
        let both = |choice: MomentChoice| Some([choice.clone(), choice]);
        assert_eq!(of(ComparedMoment::Common, Some([&of_a, &of_b])), both(MomentChoice::Step(2)));
        assert_eq!(of(ComparedMoment::Common, Some([&of_a, &none])), both(MomentChoice::Peak));
        assert_eq!(of(ComparedMoment::End, None), both(MomentChoice::End));
        assert_eq!(of(ComparedMoment::Cursor, None), Some([MomentChoice::Event(7), MomentChoice::Event(9)]));
        let bare = side(0, 0);
        assert_eq!(moments(ComparedMoment::Common, [&a, &bare], Some([&of_a, &none])), both(MomentChoice::End));
    }
}
