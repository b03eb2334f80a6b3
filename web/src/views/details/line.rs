//! The details of the selected line: the sums of all of its stacks, and the stacks.

use query::folding::best_frame;
use query::{Answer, LineDetail, LineQuery, Query};
use trace::units::Count;
use yew::prelude::*;

use super::allocation::search_term;
use super::facts::{act, fact_with, facts, picks, unknown};
use crate::browser::use_effect_with;
use crate::hooks::{use_answer, use_model_of, use_palette, use_site_name};
use crate::model::{Action, Listing, Parts, Selection};
use crate::views::controls::sends;
use crate::views::moment::{memory_text, moment_text};
use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::chips::paint_chip;
use crate::widgets::format::{counted, span_text};
use crate::widgets::stack_list::stack_list;

/// Properties of [`LinePane`].
#[derive(PartialEq, Properties)]
pub struct LinePaneProps {
    /// The number of one of its stacks.
    pub stack: u32,
}

/// The details of a line.
#[component]
pub fn LinePane(props: &LinePaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let palette = use_palette();
    let site_name = use_site_name(&model, props.stack);
    let (view, stack) = (&model.view, props.stack);
    let answer = use_answer(model.device().map(|device| {
        let (moments, range) = (view.moments(device.peak_position), view.extended_range());
        Query::Line(LineQuery { stack, moments, range, filter: view.filter.clone() })
    }));
    {
        // Lists and pictures know a line by its first stack.
        let first = match answer.as_deref() {
            Some(Answer::Line(line)) if line.query.stack == stack => line.stack,
            _ => stack,
        };
        let model = model.clone();
        use_effect_with((stack, first), move |(stack, first)| {
            if first != stack {
                model.dispatch(Action::Select(Selection::Line(*first)));
            }
        });
    }
    let line = match answer.as_deref() {
        Some(Answer::Line(line)) => line,
        Some(Answer::Refused(reason)) => {
            return unknown(site_name.unwrap_or_else(|| format!("Stack {}", Count(props.stack.into()))), reason);
        }
        _ => return html! {},
    };
    let Some(device) = model.device() else { return html! {} };
    let listing = view.settings.listing;
    let send = |action: Action| sends(&model, action);
    let term = best_frame(&line.frames).map(|frame| search_term(&frame.name, &frame.filename, frame.line));
    let name = if listing == Listing::Growth { "Growth" } else { "Requested" };
    let count = format!("{}, {}", counted(line.memory.now.count.into(), "allocation"), moment_text(view, device));
    let (peak_bytes, peak_position) = line.peak;
    let mut rows = vec![fact_with(name, memory_text(listing, &line.memory), count.into())];
    rows.extend(range_facts(line));
    rows.extend([
        fact_with(
            "Peak of the line",
            bytes_text(peak_bytes),
            format!("at event {}", Count(peak_position.into())).into(),
        ),
        fact_with("In total", bytes_text(line.all.bytes), counted(line.all.count.into(), "allocation").into()),
        fact_with(
            "Never freed",
            bytes_text(line.live_at_end.bytes),
            counted(line.live_at_end.count.into(), "allocation").into(),
        ),
    ]);
    html! {
        <article class="detail" data-testid="detail-line" data-id={line.stack.to_string()}>
            <header class="detail-head">
                { paint_chip(&palette, line.paint) }
                <h2>{ line.label.clone() }</h2>
            </header>
            <div class="acts">
                { act("Go to peak", "detail-go-peak", "Move the cursor to where this line held the most memory",
                    Some(send(Action::SetCursor(peak_position)))) }
                { act("Search this line", "detail-search", "Highlight all allocations from this line",
                    term.clone().map(|term| send(Action::SetHighlight(Some(term))))) }
                { act("Filter", "detail-filter", "Show only allocations from this line",
                    term.map(|term| send(Action::AddFilter(term)))) }
            </div>
            { facts(rows) }
            if line.stacks.len() > 1 {
                <h3>{ format!("{} of this line", counted(line.stacks.len() as u64 + u64::from(line.other_stacks.0), "stack")) }</h3>
                <ul class="legend-list">
                    { for line.stacks.iter().map(|row| html! {
                        <li key={row.stack}>
                            <button type="button" class="legend-row is-whole" onclick={send(Action::Select(Selection::Site(row.stack)))}
                                title="Show this stack" data-testid="line-stack">
                                <span class="legend-label">
                                    if row.caller.is_empty() { { "outermost" } } else { { "from " }{ row.caller.clone() } }
                                </span>
                                { memory_text(listing, &row.memory) }
                            </button>
                        </li>
                    }) }
                    if line.other_stacks.0 > 0 {
                        <li class="legend-row dim">
                            <span class="legend-label">{ counted(line.other_stacks.0.into(), "other stack") }</span>
                            { memory_text(listing, &line.other_stacks.1) }
                        </li>
                    }
                </ul>
            }
            { picks(&model, "Largest live allocations", &line.largest) }
            { stack_list(if line.stacks.len() > 1 { "Largest stack" } else { "Stack" }, &line.frames, line.missing.as_ref()) }
        </article>
    }
}

/// Renders the sums of the selected range.
fn range_facts(line: &LineDetail) -> Vec<Html> {
    let Some(range) = &line.range else { return Vec::new() };
    let count = |count: u32| Html::from(counted(count.into(), "allocation"));
    let churned = range.churned();
    let mut rows = vec![
        fact_with("Range: still live", bytes_text(range.kept.bytes), count(range.kept.count)),
        fact_with("Range: growth", change_text(range.growth()), Html::default()),
        fact_with("Range: churn", bytes_text(churned.bytes), count(churned.count)),
        fact_with("Range: allocated", bytes_text(range.allocated.bytes), count(range.allocated.count)),
        fact_with("Range: freed", bytes_text(range.freed.bytes), count(range.freed.count)),
    ];
    if range.waited_us > 0 {
        let waited = i64::try_from(range.waited_us).unwrap_or(i64::MAX);
        rows.push(fact_with("Range: waiting", span_text(waited).into(), "freed, and waiting for a stream".into()));
    }
    rows
}
