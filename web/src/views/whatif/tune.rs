//! The search for better settings: what for, how far it is, what it found.

use query::setting;
use query::whatif::CARDS;
use query::whatif::{Advice, Tuning};
use trace::units::{Bytes, Count, counted};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::plot::plot;
use super::runs::settings_text;
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, add_run, cancel_tune, change_whatif, find_settings, use_model_of};
use crate::model::{Goal, Group, Parts, RunConditions, Tune, Tuned, WhatIfStep};
use crate::widgets::bytes_text::bytes_like;
use crate::widgets::copy::CopyButton;
use crate::widgets::scroller::scroller;

const GOALS: [(Goal, &str); 3] =
    [(Goal::Reserved, "least reserved memory"), (Goal::Calls, "fewest driver calls"), (Goal::Fit, "no out-of-memory")];

/// Rows of the table that are shown at first.
const ROWS: usize = 12;

/// The search, with its result.
#[component]
pub fn TuneSection() -> Html {
    let model = use_model_of(Parts::REST);
    let node = use_node_ref();
    let shows_all = use_state_eq(|| false);
    let Some(whatif) = model.whatif() else { return Html::default() };
    let is_running = matches!(whatif.tune, Tune::Running { .. });
    let is_wanted = is_running || whatif.wants_tune;
    {
        let node = node.clone();
        use_effect_with(is_wanted, move |is_wanted| {
            if let (true, Some(element)) = (*is_wanted, node.cast::<web_sys::Element>()) {
                element.scroll_into_view();
            }
        });
    }
    let on_goal = {
        let model = model.clone();
        Callback::from(move |event: Event| {
            let index = event.target_unchecked_into::<HtmlSelectElement>().selected_index();
            let goal = usize::try_from(index).ok().and_then(|i| GOALS.get(i));
            if let Some((goal, _)) = goal {
                change_whatif(&model, WhatIfStep::Goal(*goal));
            }
        })
    };
    let on_card = {
        let model = model.clone();
        Callback::from(move |event: Event| {
            let card = event.target_unchecked_into::<HtmlSelectElement>().value();
            change_whatif(&model, WhatIfStep::Card(card));
        })
    };
    let on_start = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| find_settings(&model))
    };
    let capacity = whatif.opened.as_ref().and_then(|opened| opened.capacity);
    let capacity = capacity.map(|bytes| format!(", {}", Bytes(bytes)));
    let on_cancel = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| cancel_tune(&model))
    };
    html! {
        <section aria-label="Better settings" ref={node} data-testid="whatif-tune">
            <h2>{ "Better settings" }</h2>
            <div class="whatif-acts">
                <label class="toolbar-field">
                    <span>{ "Search for" }</span>
                    <select class="toolbar-select" onchange={on_goal} disabled={is_running} data-testid="tune-goal">
                        { for GOALS.iter().map(|(goal, name)| html! { <option selected={whatif.goal == *goal}>{ *name }</option> }) }
                    </select>
                </label>
                <label class="toolbar-field">
                    <span>{ "on" }</span>
                    <select class="toolbar-select" onchange={on_card} disabled={is_running} data-testid="tune-card">
                        <option value="" selected={whatif.card.is_empty()}>{ "the recorded device" }{ capacity }</option>
                        { for CARDS.iter().map(|card| html! { <option value={card.name} selected={whatif.card == card.name}>{ card.name }</option> }) }
                    </select>
                </label>
                if is_running {
                    <button type="button" class="button" onclick={on_cancel} data-testid="tune-cancel">{ "Cancel" }</button>
                } else {
                    <button type="button" class="button is-primary" onclick={on_start} disabled={is_wanted} data-testid="tune-start">{ "Search" }</button>
                }
            </div>
            { match &whatif.tune {
                _ if whatif.wants_tune => html! { <p class="quiet" role="status">{ "The search begins once the recorded run is known." }</p> },
                Tune::None => html! { <p class="quiet">{ "Runs this trace under all sensible settings and pairs of them, then refines the best. The release, the fraction and the memory held by others are those of the form below." }</p> },
                Tune::Running { tried, left } => progress(*tried, *left),
                Tune::Refused(sentence) => html! { <p class="is-refused" role="alert" data-testid="tune-refused">{ sentence.clone() }</p> },
                Tune::Done(tuned) => found(&model, tuned, &shows_all),
            } }
        </section>
    }
}

fn progress(tried: u32, left: u32) -> Html {
    let said = format!("{} tried, at least {} to go", counted(tried.into(), "setting"), Count(left.into()));
    html! {
        <p class="whatif-progress" data-testid="tune-progress">
            <progress max={(tried + left).max(1).to_string()} value={tried.to_string()} aria-label="Settings tried" />
            <span>{ said }</span>
        </p>
    }
}

fn found(model: &ModelHandle, tuned: &Tuned, shows_all: &UseStateHandle<bool>) -> Html {
    let Tuning { groups, advice, tried, .. } = &tuned.tuning;
    let line = advice.conf.as_ref().map(|conf| setting::line(conf));
    let rows = if **shows_all { groups.len() } else { ROWS };
    let least = groups.iter().map(|group| group.outcome.peak_reserved).min().unwrap_or_default();
    let show_all = {
        let shows_all = shows_all.clone();
        Callback::from(move |_: MouseEvent| shows_all.set(true))
    };
    html! {
        <>
            <p role="status" data-testid="tune-verdict" data-complete={tuned.is_complete.to_string()}>
                { advice.text.clone() }{ " " }{ advice.cost.clone() }
                <span class="dim">
                    { format!(" {} tried{}.", counted((*tried).into(), "setting"), if tuned.is_complete { "" } else { " before the search was cancelled" }) }
                </span>
            </p>
            if let Some(line) = line {
                <p class="whatif-line is-answer" data-testid="tune-recommended">
                    <code>{ line.clone() }</code>
                    <CopyButton text={line} label="Copy" class="button is-primary" />
                    if let Some(conf) = advice.conf.as_ref().filter(|conf| !is_run(model, conf)) {
                        <button type="button" class="button" onclick={adds(model, conf)} title="Run it beside the recorded settings" data-testid="tune-add-recommended">{ "Add run" }</button>
                    }
                </p>
            }
            if groups.len() > 1 {
                { plot(groups, advice.conf.as_deref()) }
            }
            if !groups.is_empty() {
                <p class="quiet">{ order_of(tuned.tuning.goal) }</p>
                { scroller("Table of settings", html! {
                    <table class="whatif-table" data-testid="tune-groups">
                        <thead><tr>
                            <th>{ "Settings" }</th>
                            <th title="No other settings are better in both, reserved memory and driver calls">{ "Best trade-off" }</th>
                            <th>{ "Peak reserved" }</th>
                            <th>{ "Driver calls" }</th>
                            <th>{ "Retries" }</th>
                            <th>{ "Out of memory" }</th>
                            <th><span class="visually-hidden">{ "Add as a run" }</span></th>
                        </tr></thead>
                        <tbody>{ for groups.iter().take(rows).map(|group| row(model, advice, group, least)) }</tbody>
                    </table>
                }) }
                if rows < groups.len() {
                    <button type="button" class="act" onclick={show_all}>{ format!("Show all {} outcomes", Count(groups.len() as u64)) }</button>
                }
            }
        </>
    }
}

/// Returns whether there is a run under settings.
fn is_run(model: &ModelHandle, conf: &str) -> bool {
    model.whatif().is_some_and(|whatif| whatif.runs.iter().any(|run| run.conditions.conf == conf))
}

/// Returns what the table is ordered by.
const fn order_of(goal: Goal) -> &'static str {
    match goal {
        Goal::Reserved => "The least reserved memory first.",
        Goal::Calls => "The fewest driver calls first.",
        Goal::Fit => "What fits first: with hardly a retry, then with the fewest settings.",
    }
}

/// Returns a callback that adds a run under settings.
fn adds(model: &ModelHandle, conf: &str) -> Callback<MouseEvent> {
    let (model, conf) = (model.clone(), conf.to_owned());
    Callback::from(move |_: MouseEvent| {
        let draft = model.now().whatif().map(|whatif| whatif.draft.clone()).unwrap_or_default();
        add_run(&model, &RunConditions { conf: conf.clone(), ..draft });
    })
}

/// Renders a group. `least` is the smallest peak of the table.
fn row(model: &ModelHandle, advice: &Advice, group: &Group, least: u64) -> Html {
    let Some((first, others)) = group.confs.split_first() else { return Html::default() };
    let is_chosen = advice.conf.as_ref().is_some_and(|chosen| group.confs.contains(chosen));
    let note = match (group.is_recorded, is_chosen) {
        (true, _) => "as recorded",
        (_, true) => "recommended",
        _ => "",
    };
    html! {
        <tr key={first.clone()} class={classes!(is_chosen.then_some("is-chosen"))} data-testid="tune-group">
            <th scope="row">
                <code title={setting::line(first)}>{ settings_text(first) }</code>
                if !others.is_empty() {
                    <details class="whatif-others" data-testid="tune-others">
                        <summary>{ format!("and {} with the same result", Count(others.len() as u64)) }</summary>
                        { for others.iter().map(|conf| html! { <code key={conf.clone()}>{ settings_text(conf) }</code> }) }
                    </details>
                }
                if !note.is_empty() { <span class="remark">{ note }</span> }
            </th>
            <td>{ if group.is_on_front { "yes" } else { "" } }</td>
            <td>{ bytes_like(group.outcome.peak_reserved, least) }</td>
            <td>{ Count(group.outcome.driver_calls()).to_string() }</td>
            <td>{ Count(group.outcome.retries).to_string() }</td>
            <td>{ if group.outcome.fails() { "yes" } else { "no" } }</td>
            <td><button type="button" class="act" onclick={adds(model, first)} title="Add it to the runs above" data-testid="tune-add">{ "Add" }</button></td>
        </tr>
    }
}
