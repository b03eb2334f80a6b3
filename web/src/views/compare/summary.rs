//! The comparison in brief: the sentence, under which conditions the runs differ, and sums that add up.

use query::FROM_BEFORE;
use query::run_comparison::{ChangedPart, Comparability, RunComparison};
use query::run_profile::{ProfiledMemory, ProfiledMoment};
use trace::totals::difference;
use trace::units::Bytes;
use yew::prelude::*;

use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::format::moment;
use crate::widgets::scroller::scroller;

/// Renders it. `has_no_step` says that steps were wanted, and the runs have none in common; `go` takes the cursors to the moments.
pub fn summary(found: &RunComparison, has_no_step: bool, go: Option<Callback<MouseEvent>>) -> Html {
    // What says that the sentence means nothing comes before it.
    let is_refused = found.comparability == Comparability::No;
    let class = classes!("compare-sentence", is_refused.then_some("dim"));
    html! {
        <div class="compare-summary">
            if is_refused { { conditions(found) } }
            <p {class} data-testid="compare-sentence">{ found.sentence.clone() }</p>
            { moments(found, has_no_step, go) }
            if !is_refused { { conditions(found) } }
            <div class="compare-tables">
                { scroller("Memory of both runs", accounting(found)) }
                { scroller("Categories of both runs", categories(found)) }
                if !found.pools.is_empty() { { scroller("Pools of both runs", parts("Reserved by pool", &found.pools)) } }
                if !found.streams.is_empty() { { scroller("Streams of both runs", parts("Reserved by stream", &found.streams)) } }
            </div>
        </div>
    }
}

/// Says at which moments the runs are compared.
fn moments(found: &RunComparison, has_no_step: bool, go: Option<Callback<MouseEvent>>) -> Html {
    let name = |at: &ProfiledMoment| html! { <span title={moment(at.time_us as f64)}>{ at.named() }</span> };
    let [a, b] = &found.runs;
    html! {
        <p class="compare-moments dim" data-testid="compare-moments">
            <span><span class="compare-key is-a">{ "A" }</span>{ name(&a.moment) }</span>
            <span><span class="compare-key is-b">{ "B" }</span>{ name(&b.moment) }</span>
            if let Some(onclick) = go {
                <button type="button" class="link" {onclick} title="Move the cursor of each run to the moment at which they are compared, in every view" data-testid="compare-to-moments">{ "Go there" }</button>
            }
            if has_no_step { <span>{ "No step is in both, so the peaks are compared." }</span> }
        </p>
    }
}

/// Renders what differs beside the program.
fn conditions(found: &RunComparison) -> Html {
    let head = match found.comparability {
        Comparability::Yes if found.differences.is_empty() => return Html::default(),
        Comparability::Yes => "They differ in ",
        Comparability::WithCare => "Compare with care: ",
        Comparability::No => "This difference means nothing: ",
    };
    let class = classes!("compare-conditions", (found.comparability == Comparability::No).then_some("is-refused"));
    html! {
        <div {class} data-testid="compare-conditions">
            <span class="compare-warning">{ head }</span>
            <ul>
                { for found.differences.iter().map(|difference| {
                    let [a, b] = &difference.values;
                    html! {
                        <li key={difference.what.clone()}>
                            { difference.what.clone() }{ " " }<b>{ a.clone() }</b>{ " → " }<b>{ b.clone() }</b>
                            if !difference.consequence.is_empty() { <span class="dim">{ format!(" · {}", difference.consequence) }</span> }
                        </li>
                    }
                }) }
            </ul>
        </div>
    }
}

/// Renders a row about the whole runs.
fn whole(name: &str, title: &'static str, [a, b]: [u64; 2]) -> Html {
    row(name, title, [bytes_text(a), bytes_text(b)], difference(b, a))
}

/// Renders the memory of both at their moments.
fn accounting(found: &RunComparison) -> Html {
    let [a, b] = &found.runs;
    let signed = |bytes: i64| if bytes < 0 { change_text(bytes) } else { bytes_text(bytes.unsigned_abs()) };
    let part = |name: &'static str, title: &'static str, of: &dyn Fn(&ProfiledMemory) -> i64| {
        let (before, after) = (of(&a.memory), of(&b.memory));
        row(name, title, [signed(before), signed(after)], after.saturating_sub(before))
    };
    let most = [a.most, b.most];
    let outside = a.memory.outside.zip(b.memory.outside);
    html! {
        <table class="compare-table" data-testid="compare-accounting">
            { table_head("Memory") }
            <tbody>
                { part("in tensors", "What live tensors requested", &|memory| signed_of(memory.allocated)) }
                { part("+ rounding", "What blocks are larger than what was requested", &ProfiledMemory::rounding) }
                { part("+ waiting", "Freed, but waiting for a stream", &ProfiledMemory::waiting) }
                { part("+ free gaps", "Reserved, and in no block in use", &ProfiledMemory::gaps) }
                { part("= reserved", "Taken from the driver", &|memory| signed_of(memory.reserved)) }
                if most.iter().all(|most| most.reserved > 0) && !found.is_of_one_run() {
                    { whole("peak of the run", "The most that tensors requested in the whole run", most.map(|most| most.allocated)) }
                    { whole("most reserved", "The most that was taken from the driver in the whole run", most.map(|most| most.reserved)) }
                }
                if let Some((before, after)) = outside {
                    { row("outside", "Of this process, outside PyTorch's allocator", [bytes_text(before), bytes_text(after)], difference(after, before)) }
                }
            </tbody>
        </table>
    }
}

fn signed_of(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Renders what is reserved for each stream, or for each pool.
fn parts(title: &'static str, parts: &[ChangedPart]) -> Html {
    html! {
        <table class="compare-table" data-testid="compare-parts">
            { table_head(title) }
            <tbody>
                { for parts.iter().map(|part| {
                    let ([a, b], [held_a, held_b]) = (part.reserved, part.held);
                    let title = format!("In tensors: {} in A, {} in B", Bytes(held_a.bytes), Bytes(held_b.bytes));
                    row(&part.name, title, [bytes_text(a), bytes_text(b)], part.growth())
                }) }
            </tbody>
        </table>
    }
}

/// Renders the head of a table of bytes in both runs.
fn table_head(title: &'static str) -> Html {
    html! {
        <thead><tr>
            <th scope="col">{ title }</th>
            <th scope="col"><span class="compare-key is-a">{ "A" }</span></th>
            <th scope="col"><span class="compare-key is-b">{ "B" }</span></th>
            <th scope="col">{ "Change" }</th>
        </tr></thead>
    }
}

/// Renders a row of such a table.
fn row(name: &str, title: impl Into<AttrValue>, [a, b]: [Html; 2], growth: i64) -> Html {
    html! {
        <tr key={name} title={title.into()}><th scope="row">{ name }</th><td>{ a }</td><td>{ b }</td><td>{ change_text(growth) }</td></tr>
    }
}

/// Renders the categories that differ.
fn categories(found: &RunComparison) -> Html {
    if found.categories.is_empty() {
        return Html::default();
    }
    let [a, b] = found.runs.each_ref().map(|run| run.memory.allocated);
    let listed = |run: usize| {
        let held = found.categories.iter().filter_map(|(_, held)| held.get(run));
        held.fold(0_u64, |sum, held| sum.saturating_add(held.bytes))
    };
    let [before_a, before_b] = found.at_start();
    let rest = |all: u64, listed: u64, before: u64| all.saturating_sub(listed).saturating_sub(before);
    let (rest_a, rest_b) = (rest(a, listed(0), before_a), rest(b, listed(1), before_b));
    html! {
        <table class="compare-table" data-testid="compare-categories">
            { table_head("Used for") }
            <tbody>
                { for found.categories.iter().map(|(category, [before, after])| {
                    row(category.name(), "", [bytes_text(before.bytes), bytes_text(after.bytes)], difference(after.bytes, before.bytes))
                }) }
                if rest_a > 0 || rest_b > 0 {
                    { row("the rest", "Categories that hold the same in both", [bytes_text(rest_a), bytes_text(rest_b)], difference(rest_b, rest_a)) }
                }
                if before_a > 0 || before_b > 0 {
                    { row(FROM_BEFORE, "Tensors without a stack that were there when recording began", [bytes_text(before_a), bytes_text(before_b)], difference(before_b, before_a)) }
                }
            </tbody>
        </table>
    }
}
