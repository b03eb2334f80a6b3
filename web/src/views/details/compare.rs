//! The details of two steps: what one holds more than the other, line by line.

use query::{
    Answer, Axis, CompareStepsQuery, ComparedLine, ComparedStep, Query, StepMemory, StepsQuery, step_growth, step_mark,
};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::facts::{act, fact_with, facts};
use crate::hooks::{ModelHandle, use_answer, use_model, use_palette};
use crate::model::{Action, Selection, Setting};
use crate::views::controls::{choice, sends};
use crate::widgets::bytes_text::change_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::draft_field::DraftField;
use crate::widgets::format::counted;

/// Maximum number of lines.
const LINES: u32 = 100;

/// Returns the question about two steps, by their places in the list of steps.
pub fn steps_query((earlier, later): (u32, u32), by_peak: bool) -> Query {
    Query::CompareSteps(CompareStepsQuery { earlier, later, by_peak, rows: LINES })
}

/// Properties of [`ComparePane`].
#[derive(PartialEq, Properties)]
pub struct ComparePaneProps {
    /// The places of the earlier and the later step in the list of steps.
    pub steps: (u32, u32),
}

/// The details of two steps.
#[component]
pub fn ComparePane(props: &ComparePaneProps) -> Html {
    let model = use_model();
    let palette = use_palette();
    let by_peak = model.view.settings.compares_peaks;
    let answer = use_answer(Some(steps_query(props.steps, by_peak)));
    let list = use_answer(Some(Query::Steps(StepsQuery { axis: Axis::Event })));
    let found = match answer.as_deref() {
        Some(Answer::CompareSteps(found)) => found,
        Some(Answer::Refused(sentence)) => return html! { <p class="quiet">{ sentence.clone() }</p> },
        _ => return html! {},
    };
    let shown = found.query.by_peak;
    let choose = {
        let (model, steps) = (model.clone(), props.steps);
        move |is_later: bool| {
            let (model, list) = (model.clone(), list.clone());
            Callback::from(move |typed: String| {
                let Some(Answer::Steps(list)) = list.as_deref() else { return };
                let wanted = typed.trim().parse::<u64>().ok();
                let place = list.steps.iter().position(|step| Some(step.number) == wanted);
                match place.and_then(|place| u32::try_from(place).ok()) {
                    Some(place) if is_later => model.dispatch(Action::CompareSteps(Some((steps.0, place)))),
                    Some(place) => model.dispatch(Action::CompareSteps(Some((place, steps.1)))),
                    None => {
                        let ends = list.steps.first().zip(list.steps.last());
                        let ends = ends.map_or((0, 0), |(first, last)| (first.number, last.number));
                        let text = format!("No such step. Steps run from {} to {}.", Count(ends.0), Count(ends.1));
                        model.dispatch(Action::Notify(text));
                    }
                }
            })
        }
    };
    let field = |name: &'static str, test_id: &'static str, step: &ComparedStep, on_finish: Callback<String>| {
        html! { <DraftField kind="number" {name} value={step.number.to_string()} {on_finish} {test_id} /> }
    };
    let (earlier, later) = (&found.earlier, &found.later);
    let growth = |line: &ComparedLine| step_growth(&line.earlier, &line.later, shown);
    let same = found.lines.iter().filter(|line| growth(line) == 0).count() as u64;
    html! {
        <article class="detail" data-testid="detail-steps">
            <header class="detail-head"><h2>{ format!("Step {} over step {}", Count(later.number), Count(earlier.number)) }</h2></header>
            <p class="compare-steps">
                { "Step " }{ field("The later step", "compare-later", later, choose(true)) }
                { " over step " }{ field("The earlier step", "compare-earlier", earlier, choose(false)) }
                <span class="dim">{ format!(" of {}, found {}", counted(found.count.into(), "step"), found.source) }</span>
            </p>
            if !(earlier.is_whole && later.is_whole) {
                <p class="hint">{ "One of them is cut off by the start or the end of the trace." }</p>
            }
            <div class="acts">
                { act("Go to its peak", "compare-peak", "Move the cursor to the later step's peak", Some(sends(&model, Action::SetCursor(later.peak_position)))) }
                { act("Clear", "compare-clear", "Clear the comparison (Esc)", Some(sends(&model, Action::CompareSteps(None)))) }
            </div>
            { facts(vec![
                fact_with("End", change_text(step_growth(&earlier.memory, &later.memory, false)), ends(&earlier.memory, &later.memory, false).into()),
                fact_with("Peak", change_text(step_growth(&earlier.memory, &later.memory, true)), ends(&earlier.memory, &later.memory, true).into()),
            ]) }
            <h3>{ "By line" }</h3>
            <div class="choices range-orders" role="group" aria-label="What is compared">
                { for [(false, "compare-ends", "At the end", "Compare what is live where the steps end"), (true, "compare-peaks", "Peak", "Compare the most that each line holds at once in the steps")].into_iter().map(|(peak, testid, name, title)| {
                    choice(testid, name, title, by_peak == peak, sends(&model, Action::Set(Setting::ComparesPeaks(peak))))
                }) }
            </div>
            <ul class="legend-list compare-list">
                { for found.lines.iter().filter(|line| growth(line) != 0).map(|line| {
                    html! {
                        <li key={line.stack}>
                            <button type="button" class="legend-row" onclick={sends(&model, Action::Select(Selection::Line(line.stack)))} title={line.label.clone()} data-menu={format!("l{}", line.stack)} data-testid="compare-line">
                                { paint_chip(&palette, line.paint) }
                                <span class="legend-label">{ line.label.clone() }</span>
                                { mark(line) }
                                { change_text(growth(line)) }
                                <span class="compare-ends">{ ends(&line.earlier, &line.later, shown) }</span>
                            </button>
                        </li>
                    }
                }) }
                if same > 0 {
                    <li class="legend-row dim" data-testid="compare-same">
                        <span class="legend-label">{ format!("{} with no change", counted(same, "call site")) }</span>
                    </li>
                }
                if found.others > 0 {
                    <li class="legend-row dim">
                        <span class="legend-label">{ counted(found.others.into(), "other call site") }</span>
                        if !shown { { change_text(step_growth(&found.rest.0, &found.rest.1, false)) } }
                    </li>
                }
            </ul>
            if !model.view.filter.is_empty() {
                <p class="hint">{ "Steps count all allocations, whatever the filter." }</p>
            }
        </article>
    }
}

fn ends(earlier: &StepMemory, later: &StepMemory, by_peak: bool) -> String {
    format!("{} to {}", Bytes(earlier.bytes(by_peak)), Bytes(later.bytes(by_peak)))
}

fn mark(line: &ComparedLine) -> Html {
    step_mark(&line.earlier, &line.later)
        .map_or_else(Html::default, |mark| html! { <span class="compare-mark">{ mark }</span> })
}

/// Describes two steps for a screen reader.
pub fn steps_text(model: &ModelHandle, answer: Option<&Answer>) -> String {
    let (Some(_), Some(Answer::CompareSteps(found))) = (model.view.compared, answer) else { return String::new() };
    let largest = found.lines.first().filter(|line| step_growth(&line.earlier, &line.later, false) > 0);
    let largest = largest.map(|line| {
        let grown = Bytes(step_growth(&line.earlier, &line.later, false).unsigned_abs());
        format!("; {} grew by {grown}", line.label)
    });
    format!(
        "Step {} over step {}: {} at the end{}. ",
        Count(found.later.number),
        Count(found.earlier.number),
        ends(&found.earlier.memory, &found.later.memory, false),
        largest.unwrap_or_default()
    )
}
