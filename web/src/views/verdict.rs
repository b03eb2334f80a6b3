//! The verdict card: why memory ran out, the line, the numbers, and what to try.

use query::category::Category;
use query::diagnosis::FailureDiagnosisQuery;
use query::diagnosis::{Cause, Diagnosis, FailedRequest, HeldLine, InnerLines, Verdict};
use query::finding::{FindingCode, Remedy};
use query::{Answer, Paint, Query, location_of};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::controls::sends;
use crate::hooks::{ModelHandle, Tries, find_remedy, palette, use_answer, use_model_of, use_remedies};
use crate::model::{Action, Live, Parts, Selection, Tab};
use crate::render::palette::Palette;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::copy::CopyButton;
use crate::widgets::format::{share, unbroken};
use crate::widgets::icon::{Symbol, icon};

/// Maximum number of remedies on the card; the findings tab has all of them.
const REMEDIES: usize = 3;

/// The card over the view: why a request failed, or in one line that none did.
#[component]
pub fn VerdictCard() -> Html {
    let model = use_model_of(Parts::PLACE);
    let failure = model.failure_on_card();
    let position = failure.map(|failure| failure.event + 1);
    let whole = model.diagnosis().filter(|whole| whole.verdict.position == position);
    // A diagnosis is about the failure that matters most. Those of others are made when one is looked at.
    let other = use_answer(
        position
            .filter(|_| whole.is_none())
            .map(|position| Query::FailureDiagnosis(FailureDiagnosisQuery { position })),
    );
    let diagnosed = match (whole, other.as_deref()) {
        (Some(whole), _) => Some(&**whole),
        (None, Some(Answer::FailureDiagnosis(other))) => Some(&**other),
        _ => None,
    };
    let diagnosed = diagnosed.filter(|diagnosis| diagnosis.verdict.position == position);
    let verdict = diagnosed.map(|diagnosis| &diagnosis.verdict);
    let tries = use_remedies(&model, verdict);
    // Of this failure: another one's card begins folded.
    let unfolded = use_state_eq(|| None::<u32>);
    // No failure has the position 0, which stands for a trace without one.
    let about = position.unwrap_or(0);
    let is_unfolded = *unfolded == Some(about);
    let fold = Callback::from(move |_: MouseEvent| unfolded.set((!is_unfolded).then_some(about)));
    let folding = html! {
        <button type="button" class="toolbar-button verdict-fold" aria-expanded={is_unfolded.to_string()} onclick={fold} data-testid="verdict-fold">{ if is_unfolded { "Less" } else { "More" } }</button>
    };
    let (Some(failure), Some(position)) = (failure, position) else { return unfailed(&model, is_unfolded, folding) };
    let asked = format!("{} asked", Bytes(failure.requested));
    // While a job runs, its failures are news; the card of the next one opens by itself.
    let is_live = model.live().is_some_and(Live::is_open);
    let close = if is_live { Action::DismissOom } else { Action::SetVerdictOpen(false) };
    let about = verdict.and_then(|verdict| verdict.line.as_deref());
    let mut rows = tries_list(&tries, about).into_iter();
    let first = rows.next();
    let first = if is_unfolded { list("Try first", first.into_iter().collect()) } else { fix(&tries, about) };
    let inner = diagnosed.and_then(|diagnosis| diagnosis.inner_lines.as_ref());
    let mut inner_rows = inner.map(|inner| inner_rows(&model, inner)).unwrap_or_default().into_iter();
    // One row of them is on the folded card, if that has their line.
    let first_inner = inner.filter(|inner| about == Some(&inner.line)).and_then(|_| inner_rows.next());
    html! {
        <section class={classes!("verdict", is_unfolded.then_some("is-unfolded"))} role={is_live.then_some("alert")} aria-label="Why memory ran out" data-testid="verdict" data-cause={verdict.map_or(failure.cause, |verdict| verdict.cause).name()}>
            <header class="verdict-head">
                { icon(Symbol::Flag) }
                { headline(verdict.map_or(&asked, |verdict| &verdict.headline), "Out of memory. ") }
                { place(&model, position) }
                <span class="verdict-acts">
                    { show(&model, position) }
                    { saver(&model, verdict.map_or(failure.cause, |verdict| verdict.cause)) }
                    { folding }
                    { closer(&model, close) }
                </span>
            </header>
            <div class="verdict-brief" data-testid="verdict-brief">
                { verdict.map_or_else(no_line, |verdict| line(&model, verdict)) }
                { first_inner }
                { first }
            </div>
            if is_unfolded {
                <div class="verdict-more">
                    { words(verdict.map_or(&failure.message, |verdict| &verdict.sentence), about) }
                    { holder(&model, failure, verdict) }
                    { for inner_rows }
                    { requester(&model, failure) }
                    { list("What to try", rows.collect()) }
                    { numbers(failure) }
                    { used_for(&palette(&model), failure) }
                    { to_findings(&model) }
                </div>
            }
        </section>
    }
}

/// Renders the button that shows a failure.
fn show(model: &ModelHandle, position: u32) -> Html {
    let onclick = sends(model, Action::ShowPosition(position));
    html! { <button type="button" class="toolbar-button is-primary" title="Show the window before the failure, with the request that failed" {onclick} data-testid="verdict-show">{ "Show" }</button> }
}

/// Renders the place of the line of code until it is known.
pub fn no_line() -> Html {
    html! { <p class="verdict-line"><span class="link" /></p> }
}

/// Renders the verdict where no request has failed: one line, and the rest once it is unfolded.
fn unfailed(model: &ModelHandle, is_unfolded: bool, folding: Html) -> Html {
    // Of a job that has ended, only the verdict on all of it.
    let is_of_all = |live: &Live| !live.is_open() && live.diagnosed == live.revision;
    let file = model.file().filter(|file| !file.is_verdict_closed && file.live.as_deref().is_none_or(is_of_all));
    let diagnosis = model.diagnosis().filter(|diagnosis| diagnosis.failed == 0);
    let Some((file, verdict)) = file.zip(diagnosis.map(|diagnosis| &diagnosis.verdict)) else { return Html::default() };
    // The place of a job's verdict was not kept while it ran.
    if verdict.headline.is_empty() || !verdict.is_growing && file.live.is_some() {
        return Html::default();
    }
    let (label, name) = match verdict.is_growing {
        true => ("What grows", "verdict-growth"),
        false => ("Verdict", "verdict-unfailed"),
    };
    html! {
        <section class={classes!("verdict", "is-slim", verdict.is_growing.then_some("is-growth"), is_unfolded.then_some("is-unfolded"))} aria-label={label} data-testid={name}>
            <header class="verdict-head">
                { headline(&verdict.headline, "") }
                <div class="verdict-brief" data-testid="verdict-brief">{ line(model, verdict) }</div>
                <span class="verdict-acts">
                    { folding }
                    { closer(model, Action::SetVerdictOpen(false)) }
                </span>
            </header>
            if is_unfolded {
                <div class="verdict-more">
                    { words(&verdict.sentence, verdict.line.as_deref()) }
                    { remedies(verdict.remedies.iter(), verdict.line.as_deref()) }
                    { to_findings(model) }
                </div>
            }
        </section>
    }
}

/// Renders the headline, with its cause, which ends with a colon, in bold. `before` is for screen readers, which see no flag.
fn headline(text: &str, before: &'static str) -> Html {
    let (cause, rest) = text.split_once(": ").unwrap_or((text, ""));
    html! {
        <h2 title={text.to_owned()} data-testid="verdict-headline">
            <span class="visually-hidden">{ before }</span>
            <b class="verdict-cause">{ cause.to_owned() }{ if rest.is_empty() { "" } else { ": " } }</b>{ unbroken(rest) }
        </h2>
    }
}

/// Renders which of the failures it is, with buttons to the ones beside it, and its event.
fn place(model: &ModelHandle, position: u32) -> Html {
    let ooms = model.device().map_or(&[][..], |device| &device.ooms);
    let number = ooms.iter().position(|(at, _)| *at == position);
    let step = |to: Option<usize>, label: &'static str, mark: &'static str, name: &'static str| {
        let at = to.and_then(|to| ooms.get(to)).map(|(at, _)| *at);
        let onclick = at.map(|at| sends(model, Action::ShowPosition(at)));
        html! { <button type="button" class="icon-button" aria-label={label} title={label} disabled={at.is_none()} {onclick} data-testid={name}>{ mark }</button> }
    };
    html! {
        <span class="verdict-place dim">
            if let Some(number) = number.filter(|_| ooms.len() > 1) {
                { step(number.checked_sub(1), "Previous failure", "‹", "verdict-previous") }
                { format!("{} of {}", Count(number as u64 + 1), Count(ooms.len() as u64)) }
                { step(Some(number + 1), "Next failure", "›", "verdict-next") }
                { " " }
            }
            { format!("event {}", Count(position.into())) }
        </span>
    }
}

/// Renders the link to the findings tab.
fn to_findings(model: &ModelHandle) -> Html {
    let onclick = sends(model, Action::SetTab(Tab::Findings));
    html! { <button type="button" class="link" {onclick} data-testid="verdict-findings">{ "All findings" }</button> }
}

/// Renders the button that closes the card.
fn closer(model: &ModelHandle, close: Action) -> Html {
    let onclick = sends(model, close);
    html! { <button type="button" class="icon-button" aria-label="Close the verdict" title="Close; the Findings tab keeps it" {onclick} data-testid="verdict-close">{ icon(Symbol::Cross) }</button> }
}

/// The verdict on the current device, for the findings tab: also where nothing failed.
#[component]
pub fn VerdictSection() -> Html {
    let model = use_model_of(Parts::PLACE);
    let tries = use_remedies(&model, model.diagnosis().map(|diagnosis| &diagnosis.verdict));
    let Some(diagnosis) = model.diagnosis() else { return Html::default() };
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
            { words(&verdict.sentence, verdict.line.as_deref()) }
            { line(&model, verdict) }
            { failure.map(|failure| holder(&model, failure, Some(verdict))).unwrap_or_default() }
            { diagnosis.inner_lines.as_ref().map(|inner| inner_section(&model, inner, diagnosis)).unwrap_or_default() }
            { failure.map(|failure| requester(&model, failure)).unwrap_or_default() }
            { list("What to try", tries_list(&tries, verdict.line.as_deref())) }
            if failure.is_some() || diagnosis.findings.iter().any(|finding| finding.code == FindingCode::Fragmentation) {
                <p>{ verdict.position.map(|position| show(&model, position)).unwrap_or_default() }{ " " }{ saver(&model, verdict.cause) }</p>
            }
            { failure.map(numbers).unwrap_or_default() }
            { failure.map(|failure| used_for(&palette(&model), failure)).unwrap_or_default() }
        </section>
    }
}

/// Renders the button that searches for settings under which the run would have been better off.
fn saver(model: &ModelHandle, cause: Cause) -> Html {
    // What is not here yet can't be run.
    if model.is_preview() {
        return Html::default();
    }
    let onclick = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| find_remedy(&model))
    };
    let label = match cause {
        Cause::None => "Try other settings",
        Cause::Leak => "Settings that delay it",
        _ => "What would have saved it?",
    };
    html! {
        <button type="button" class="toolbar-button" {onclick} title="Run this trace again under other allocator settings, and find the best" data-testid="verdict-whatif">{ label }</button>
    }
}

/// Renders the whole sentence, and the line that it is about.
fn words(sentence: &str, line: Option<&str>) -> Html {
    html! { <p data-testid="verdict-sentence">{ marked(sentence, line) }</p> }
}

/// Renders a text in which a line of code looks like one, and not like a verb.
fn marked(text: &str, line: Option<&str>) -> Html {
    // A hostile file may have a line without a name.
    let Some(place) = line.map(location_of).filter(|place| !place.is_empty()) else { return unbroken(text).into() };
    let code = html! { <code class="mono">{ place.to_owned() }</code> };
    let mut parts = text.split(place).map(unbroken);
    let first = parts.next();
    html! { <>{ first }{ for parts.map(|part| html! { <>{ code.clone() }{ part }</> }) }</> }
}

/// Renders the line that a verdict is about, as a button that selects it, with what that line did.
fn line(model: &ModelHandle, verdict: &Verdict) -> Html {
    let Some(line) = &verdict.line else { return Html::default() };
    let part = match verdict.cause {
        Cause::Leak => "Keeps what it allocates: ",
        Cause::None if verdict.is_growing => "Keeps what it allocates: ",
        Cause::Spike => "Brief spike from ",
        Cause::Fragmented if verdict.is_one_of_many => "In the way, among others: ",
        Cause::Fragmented => "Most in the way: ",
        _ => "Held most: ",
    };
    line_button(model, part, line, verdict.stack, "verdict-line")
}

/// Renders the line that held most, unless the verdict is about it.
fn holder(model: &ModelHandle, failure: &FailedRequest, verdict: Option<&Verdict>) -> Html {
    let held = failure.lines.first().filter(|held| held.stack != 0);
    let Some(held) = held.filter(|held| verdict.is_none_or(|verdict| verdict.line.as_ref() != Some(&held.line))) else {
        return Html::default();
    };
    line_button(model, "Held most: ", &held.line, Some(held.stack), "verdict-holder")
}

/// Renders what a line called that held most, the largest first. A line such as `trainer.train()` says nothing by itself.
fn inner_rows(model: &ModelHandle, inner: &InnerLines) -> Vec<Html> {
    let row = |held: &HeldLine| {
        let part = format!("└ {} in ", Bytes(held.bytes));
        line_button(model, &part, &held.line, Some(held.stack), "verdict-inner")
    };
    inner.lines.iter().map(row).collect()
}

/// Renders the same below the line that it is of, which stands there already if a request failed.
fn inner_section(model: &ModelHandle, inner: &InnerLines, diagnosis: &Diagnosis) -> Html {
    let stack = inner.lines.first().map(|held| held.stack);
    html! {
        <>
            if diagnosis.verdict.position.is_none() { { line_button(model, "Held most at the peak: ", &inner.line, stack, "verdict-holder") } }
            { for inner_rows(model, inner) }
        </>
    }
}

/// Renders the line that made the request which failed, or why none is known.
fn requester(model: &ModelHandle, failure: &FailedRequest) -> Html {
    if failure.line.is_empty() {
        if failure.no_stack.is_empty() {
            return Html::default();
        }
        return html! { <p class="verdict-line dim" data-testid="verdict-requester">{ format!("Made the request: {}", failure.no_stack) }</p> };
    }
    line_button(model, "Made the request: ", &failure.line, Some(failure.stack), "verdict-requester")
}

fn line_button(model: &ModelHandle, part: &str, line: &str, stack: Option<u32>, name: &'static str) -> Html {
    let select = stack.map(|stack| sends(model, Action::Select(Selection::Line(stack))));
    html! {
        <p class="verdict-line">
            <span class="dim">{ part.to_owned() }</span>
            { paint_chip(&palette(model), Paint::line(line)) }
            <button type="button" class="link mono" onclick={select} title="Select this line" data-testid={name}>{ line.to_owned() }</button>
        </p>
    }
}

/// Renders what to try, each by itself, with a place for what is still being checked, so that nothing moves once that is done.
fn tries_list(Tries { remedies, checking }: &Tries, line: Option<&str>) -> Vec<Html> {
    let mut list: Vec<Html> = remedies.iter().map(|advice| remedy(advice, line)).collect();
    if let Some(place) = *checking {
        list.insert(place.min(list.len()), html! { <li>{ being_checked() }</li> });
    }
    list.truncate(REMEDIES);
    list
}

/// Renders what to try.
pub fn remedies<'a>(remedies: impl Iterator<Item = &'a Remedy>, line: Option<&str>) -> Html {
    list("What to try", remedies.take(REMEDIES).map(|advice| remedy(advice, line)).collect())
}

/// Renders a list of what to try; nothing if it is empty.
fn list(label: &'static str, items: Vec<Html>) -> Html {
    if items.is_empty() {
        return Html::default();
    }
    html! { <ul class="remedies" aria-label={label}>{ for items }</ul> }
}

fn remedy(remedy: &Remedy, line: Option<&str>) -> Html {
    html! {
        <li>
            <span class="dim">{ if remedy.checked { "Checked on this trace: " } else { "Try: " } }</span>
            { marked(&remedy.text, line) }{ " " }
            { code(remedy) }
        </li>
    }
}

/// Renders the code of a piece of advice, with a button that copies it.
fn code(remedy: &Remedy) -> Html {
    if remedy.copy.is_empty() {
        return Html::default();
    }
    html! { <span class="remedy-code"><code class="mono" title={remedy.copy.clone()}>{ remedy.copy.clone() }</code><CopyButton text={remedy.copy.clone()} label="Copy" /></span> }
}

/// Renders what to try first for the folded card: a setting as the line to copy, anything else in words.
fn fix(tries: &Tries, line: Option<&str>) -> Html {
    let what = match tries.remedies.first() {
        _ if tries.checking == Some(0) => being_checked(),
        None => return Html::default(),
        Some(first) if first.setting().is_none() => html! { <>{ "Try: " }{ marked(&first.text, line) }</> },
        Some(first) => {
            html! { <>{ if first.checked { "Serves this request, checked: " } else { "Try: " } }{ code(first) }</> }
        }
    };
    html! { <p class="verdict-fix dim" data-testid="verdict-fix">{ what }</p> }
}

/// Says that it is not known yet what to try.
fn being_checked() -> Html {
    html! { <span class="dim" data-testid="verdict-checking">{ "Checking which settings would have saved it…" }</span> }
}

/// Renders what the memory was used for at a failure.
fn used_for(palette: &Palette, failure: &FailedRequest) -> Html {
    if failure.categories.iter().all(|of| of.category == Category::Unknown) {
        return Html::default();
    }
    let all = failure.categories.iter().fold(0_u64, |sum, of| sum.saturating_add(of.bytes));
    html! {
        <p class="verdict-numbers" data-testid="verdict-categories">
            <span class="dim" title="From stacks, sizes and lifetimes: the details of an allocation name the rule">{ "By category, guessed:" }</span>
            { for failure.categories.iter().map(|of| html! {
                <span key={of.category.code()}>{ paint_chip(palette, Paint::category(of.category)) }{ of.category.name() }{ " " }{ bytes_text(of.bytes) }<span class="dim">{ format!(" {}", share(of.bytes, all)) }</span></span>
            }) }
        </p>
    }
}

/// Renders the numbers of a failure.
fn numbers(failure: &FailedRequest) -> Html {
    let segment = Some(failure.asked_of_driver).filter(|asked| *asked != failure.requested);
    let rows = [
        ("Capacity", failure.capacity),
        ("Failed request", Some(failure.requested)),
        ("As a segment", segment),
        ("Driver free", Some(failure.driver_free)),
        ("Cached", Some(failure.cached)),
        ("Largest gap for it", Some(failure.largest_servable)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_name_marks_nothing() {
        assert_eq!(marked("It kept 3 GiB.", Some("")), marked("It kept 3 GiB.", None));
        assert_ne!(marked("f  m.py:3 kept 3 GiB.", Some("f  m.py:3")), marked("f  m.py:3 kept 3 GiB.", None));
    }
}
