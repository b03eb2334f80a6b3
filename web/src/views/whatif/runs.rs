//! The table of runs, that of the recording first.

use query::Paint;
use query::whatif::{Card, Outcome, Why};
use trace::units::Count;
use yew::prelude::*;

use crate::hooks::{ModelHandle, palette, remove_run};
use crate::model::{Action, RECORDED, Run, RunConditions, WhatIf};
use crate::render::color::Rgb;
use crate::render::palette::Palette;
use crate::source::open_run;
use crate::views::controls::sends;
use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::scroller::scroller;

/// Returns the colour of a run.
pub fn color(id: u32, palette: &Palette) -> Rgb {
    match id.checked_sub(1) {
        None => palette.text,
        Some(number) => palette.fill(Paint((number % u32::from(Paint::SLOTS)) as u16)),
    }
}

/// Returns what settings are called.
pub fn settings_text(conf: &str) -> String {
    if conf.trim().is_empty() { "default settings".to_owned() } else { conf.trim().to_owned() }
}

/// Returns what a run has beside its settings.
fn rest_text(conditions: &RunConditions) -> String {
    let parts = [
        ("torch ", conditions.torch.trim(), ""),
        ("on ", conditions.capacity.trim(), ""),
        ("fraction ", conditions.fraction.trim(), ""),
        ("", conditions.others.trim(), " held by others"),
    ];
    let known = parts.into_iter().filter(|part| !part.1.is_empty());
    known.map(|(before, text, after)| [before, text, after].concat()).collect::<Vec<_>>().join(", ")
}

/// Renders the runs.
pub fn table(model: &ModelHandle, whatif: &WhatIf, marked: &UseStateHandle<Option<u32>>) -> Html {
    html! {
        <section aria-label="Runs">
            { scroller("Table of runs", html! {
                <table class="whatif-table" data-testid="whatif-runs">
                    <thead><tr>
                        <th>{ "Run" }</th>
                        <th>{ "Out of memory" }</th>
                        <th title="With the change beside the recorded settings">{ "Peak reserved" }</th>
                        <th>{ "Peak allocated" }</th>
                        <th title="The most bytes at once that were reserved and in no tensor">{ "Most reserved but unused" }</th>
                        <th title="No request fails on this much memory, and one does on 2 MiB less; with the smallest card that has it">{ "Needs at least" }</th>
                        <th title="Segments at the end. As in PyTorch's statistics, expandable ones don't count">{ "Segments" }</th>
                        <th title="Calls that take memory from the driver, and calls that give it back">{ "Driver calls" }</th>
                        <th>{ "Retries" }</th>
                        <th><span class="visually-hidden">{ "Open or remove" }</span></th>
                    </tr></thead>
                    <tbody>{ for whatif.runs.iter().enumerate().map(|(number, run)| row(model, whatif, number, run, marked)) }</tbody>
                </table>
            }) }
        </section>
    }
}

fn row(model: &ModelHandle, whatif: &WhatIf, number: usize, run: &Run, marked: &UseStateHandle<Option<u32>>) -> Html {
    let mark = |id: Option<u32>| {
        let marked = marked.clone();
        Callback::from(move |_: PointerEvent| marked.set(id))
    };
    let fill = color(run.id, &palette(model)).css();
    let remove = {
        let (model, id) = (model.clone(), run.id);
        Callback::from(move |_: MouseEvent| remove_run(&model, id))
    };
    let open = {
        let (model, id, settings) = (model.clone(), run.id, settings_text(&run.conditions.conf));
        let stopped_at = run.outcome.as_ref().and_then(|outcome| outcome.stopped_at);
        Callback::from(move |_: MouseEvent| open_run(&model, id, &settings, stopped_at))
    };
    html! {
        <tr key={run.id} onpointerenter={mark(Some(run.id))} onpointerleave={mark(None)} data-testid="whatif-run" data-run={run.id.to_string()} data-state={if run.outcome.is_some() { "done" } else { "running" }}>
            <th scope="row">
                <span class="whatif-name">
                    <svg class="paint" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><rect width="10" height="10" rx="2" {fill} /></svg>
                    <b>{ number }</b>
                    <span>
                        <code title={run.conditions.conf.clone()}>{ settings_text(&run.conditions.conf) }</code>
                        <span class="dim">{ if run.id == RECORDED { format!("as recorded, {}", rest_text(&run.conditions)) } else { rest_text(&run.conditions) } }</span>
                    </span>
                </span>
            </th>
            { run.outcome.as_ref().map_or_else(|| html! { <td colspan="8" class="dim">{ "running…" }</td> }, |outcome| cells(model, run, outcome, whatif.recorded())) }
            <td class="whatif-row-acts">
                if run.id != RECORDED && run.outcome.is_some_and(|outcome| outcome.stopped_why != Some(Why::AtStart)) {
                    <button type="button" class="act" onclick={open} title="Open the run as a file of its own: every view shows it like a recording" data-testid="whatif-open">{ "Open" }</button>
                }
                if run.id != RECORDED {
                    <button type="button" class="icon-button" aria-label={format!("Remove run {number}")} title="Remove" onclick={remove} data-testid="whatif-remove">{ icon(Symbol::Cross) }</button>
                }
            </td>
        </tr>
    }
}

fn cells(model: &ModelHandle, run: &Run, outcome: &Outcome, recorded: Option<&Outcome>) -> Html {
    let before = recorded.map_or(0, |recorded| recorded.peak_reserved);
    let change = outcome.peak_reserved as i64 - before as i64;
    html! {
        <>
            <td>{ out_of_memory(model, outcome) }</td>
            <td data-testid="whatif-reserved">
                { bytes_text(outcome.peak_reserved) }
                if let Some(why) = outcome.stopped_why {
                    <span class="whatif-second dim">{ match why {
                        Why::Failed => "until it failed",
                        Why::Served => "until then",
                        Why::AtStart => "at the start",
                    } }</span>
                } else if change != 0 {
                    <span class="whatif-second">{ change_text(change) }</span>
                }
            </td>
            <td>{ bytes_text(outcome.peak_allocated) }</td>
            <td>{ bytes_text(outcome.most_unused) }</td>
            { smallest(run) }
            <td>{ Count(outcome.segments_end).to_string() }</td>
            <td title={format!("{} take memory, {} give it back. By published times of one call, without waiting for the GPU: {}", Count(outcome.device_allocs), Count(outcome.device_frees), outcome.driver_time())}>
                { Count(outcome.driver_calls()).to_string() }
                <span class="whatif-second dim">{ outcome.driver_time() }</span>
            </td>
            <td>{ Count(outcome.retries).to_string() }</td>
        </>
    }
}

/// Renders whether a run ran out of memory, and where.
fn out_of_memory(model: &ModelHandle, outcome: &Outcome) -> Html {
    let place = |event: u32, before: &str, title: &'static str| {
        let position = event + 1;
        html! {
            <button type="button" class="link" {title} onclick={sends(model, Action::ShowPosition(position))} data-testid="whatif-place">
                { format!("{before} event {}", Count(position.into())) }
            </button>
        }
    };
    match (outcome.stopped_at, outcome.stopped_why) {
        (_, Some(Why::AtStart)) => html! {
            <span title="What was in use before the first event is more than this device has">{ "before it begins" }</span>
        },
        (Some(event), Some(Why::Served)) => html! {
            <>
                { "not until the run ends" }
                <span class="whatif-second">
                    { place(event, "served at", "A request is served that failed in the recording. What the job would have requested next is not known, so the run ends here.") }
                </span>
            </>
        },
        (Some(event), _) => place(
            event,
            "at",
            "A request fails that was served in the recording. What the job would have done next is not known, so the run ends here.",
        ),
        (None, _) if outcome.ooms > 0 => html! { { format!("{}, as recorded", Count(outcome.ooms)) } },
        (None, _) => html! { "no" },
    }
}

fn smallest(run: &Run) -> Html {
    match &run.smallest {
        None => html! { <td class="dim">{ "…" }</td> },
        Some(Err(sentence)) => html! { <td title={sentence.clone()}>{ "–" }</td> },
        Some(Ok(bytes)) => html! {
            <td data-testid="whatif-smallest">
                { bytes_text(*bytes) }
                <span class="whatif-second dim">{ Card::smallest_for(*bytes).map_or("no card", |card| card.name) }</span>
            </td>
        },
    }
}
