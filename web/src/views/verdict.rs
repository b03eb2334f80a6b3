//! The verdict card: why memory ran out, the line, the numbers, and what to try.

use shared::diagnosis::{Cause, Diagnosis, FailedRequest};
use shared::finding::Remedy;
use shared::units::Count;
use yew::prelude::*;

use super::controls::sends;
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, Selection, Tab};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::copy::CopyButton;
use crate::widgets::icon::{Symbol, icon};

/// Maximum number of remedies on the card; the findings tab has all of them.
const REMEDIES: usize = 3;

/// Returns what a cause is called on the page.
const fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::None => "No failure",
        Cause::Leak => "Leak",
        Cause::Full => "Full",
        Cause::Fragmented => "Fragmented",
        Cause::OutOfReach => "Out of reach",
        Cause::Limit => "Limit",
        Cause::OtherProcess => "Other process",
        Cause::Spike => "Spike",
    }
}

/// The card over the view of a trace in which a request failed. It is about the failure at the cursor, otherwise about
/// the one that matters most.
#[component]
pub fn VerdictCard() -> Html {
    let model = use_model();
    let is_open = model.file().is_some_and(|file| !file.is_verdict_closed);
    let Some(diagnosis) = model.diagnosis().filter(|_| is_open).map(|diagnosis| diagnosis.rc()) else {
        return Html::default();
    };
    let Some(failure) = shown(&model, &diagnosis) else { return Html::default() };
    let position = failure.event + 1;
    let is_decisive = diagnosis.verdict.position == Some(position);
    let verdict = &diagnosis.verdict;
    let (cause, sentence) =
        if is_decisive { (verdict.cause, &verdict.sentence) } else { (failure.cause, &failure.message) };
    let count = diagnosis.ooms.len();
    let is_live = model.live().is_some();
    html! {
        <section class="verdict" role={is_live.then_some("alert")} aria-label="Why memory ran out" data-testid="verdict" data-cause={cause.name()}>
            <div class="verdict-text">
                <h2>
                    { icon(Symbol::Flag) }
                    <span class="verdict-cause">{ cause_name(cause) }</span>
                    <span class="verdict-place">
                        { format!("Out of memory at event {}", Count(position.into())) }
                        if count > 1 { { format!(", {} failures in all", Count(count as u64)) } }
                    </span>
                </h2>
                <p data-testid="verdict-sentence">{ sentence.clone() }</p>
                if is_decisive {
                    { line(&model, &diagnosis) }
                    { remedies(&verdict.remedies) }
                }
            </div>
            { numbers(failure) }
            <div class="verdict-acts">
                <button type="button" class="toolbar-button is-primary" title="Show the window before the failure, with the request that failed" onclick={sends(&model, Action::ShowPosition(position))} data-testid="verdict-show">{ "Show" }</button>
                if model.view.tab != Tab::Findings {
                    <button type="button" class="toolbar-button" onclick={sends(&model, Action::SetTab(Tab::Findings))} data-testid="verdict-findings">{ "Findings" }</button>
                }
                <button type="button" class="icon-button" aria-label="Close the verdict" title="Close; the Findings tab keeps it" onclick={sends(&model, Action::SetVerdictOpen(false))} data-testid="verdict-close">{ icon(Symbol::Cross) }</button>
            </div>
        </section>
    }
}

/// The verdict on the current device, for the findings tab: also where nothing failed.
#[component]
pub fn VerdictSection() -> Html {
    let model = use_model();
    let Some(diagnosis) = model.diagnosis().map(|diagnosis| diagnosis.rc()) else { return Html::default() };
    let verdict = &diagnosis.verdict;
    if verdict.sentence.is_empty() {
        return Html::default();
    }
    let failure = verdict.position.and_then(|at| diagnosis.ooms.iter().find(|failure| failure.event + 1 == at));
    let several = model.shared_summary().is_some_and(|summary| summary.devices.len() > 1);
    html! {
        <section class="verdict-section" aria-label="Verdict" data-testid="verdict-section" data-cause={verdict.cause.name()}>
            <h2>
                { "Verdict" }
                if several { <span class="remark">{ format!(" device {}", diagnosis.device) }</span> }
            </h2>
            <p>
                if failure.is_some() { <b class="verdict-cause">{ cause_name(verdict.cause) }{ ". " }</b> }
                { verdict.sentence.clone() }
            </p>
            { line(&model, &diagnosis) }
            { remedies(&verdict.remedies) }
            { failure.map(numbers).unwrap_or_default() }
        </section>
    }
}

/// Returns the failure that the card is about; of a running job, the one that stopped the following.
fn shown<'a>(model: &'a ModelHandle, diagnosis: &'a Diagnosis) -> Option<&'a FailedRequest> {
    let at = |position: u32| diagnosis.ooms.iter().find(|failure| failure.event + 1 == position);
    if model.live().is_some_and(|live| live.is_open()) {
        let oom = model.live()?.oom.as_ref().filter(|oom| oom.device == model.view.device)?;
        return at(oom.position);
    }
    at(model.view.cursor).or_else(|| at(diagnosis.verdict.position?))
}

/// Renders the line that the verdict is about, as a button that selects it.
fn line(model: &ModelHandle, diagnosis: &Diagnosis) -> Html {
    let Some(line) = &diagnosis.verdict.line else { return Html::default() };
    let select = diagnosis.verdict.stack.map(|stack| sends(model, Action::Select(Selection::Site(stack))));
    html! {
        <p class="verdict-line">
            <span class="dim">{ "Line " }</span>
            <button type="button" class="link mono" onclick={select} title="Select this line" data-testid="verdict-line">{ line.clone() }</button>
        </p>
    }
}

/// Renders what to try.
pub fn remedies(remedies: &[Remedy]) -> Html {
    if remedies.is_empty() {
        return Html::default();
    }
    html! {
        <ul class="remedies" aria-label="What to try">
            { for remedies.iter().take(REMEDIES).enumerate().map(|(i, remedy)| html! {
                <li key={i}>
                    <span>{ remedy.text.clone() }</span>
                    if !remedy.copy.is_empty() { <CopyButton text={remedy.copy.clone()} label="Copy" /> }
                    <span class="remark">{ if remedy.checked { "checked on this trace" } else { "advice" } }</span>
                </li>
            }) }
        </ul>
    }
}

/// Renders the numbers of a failure.
fn numbers(failure: &FailedRequest) -> Html {
    let segment = Some(failure.asked_of_driver).filter(|asked| *asked != failure.requested);
    let rows = [
        ("Requested", Some(failure.requested)),
        ("Asked of the driver", segment),
        ("Driver free", Some(failure.driver_free)),
        ("Cached", Some(failure.cached)),
        ("Largest it could use", Some(failure.largest_servable)),
        ("Allocated", Some(failure.allocated)),
        ("Held by others", failure.held_by_others),
        ("Missing", Some(failure.missing).filter(|missing| *missing > 0)),
    ];
    html! {
        <dl class="verdict-numbers">
            { for rows.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).map(|(name, bytes)| html! {
                <div key={name}><dt>{ name }</dt><dd>{ bytes_text(bytes) }</dd></div>
            }) }
        </dl>
    }
}
