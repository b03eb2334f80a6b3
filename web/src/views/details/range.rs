//! The details of the selected range: its sums, and the lines that kept, grew, churned or waited in it.

use query::{Answer, Query, RangeAmounts, RangeOrder, RangeQuery, RangeSums};
use trace::totals::{Amount, difference};
use trace::units::{Bytes, Count, Micros};
use yew::prelude::*;

use super::facts::{act, fact_with, facts};
use crate::hooks::{ModelHandle, use_answer, use_model_of, use_palette, zoom_to_range};
use crate::model::{Action, Parts, Selection, Setting};
use crate::views::controls::{choice, sends};
use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::chips::paint_chip;
use crate::widgets::format::counted;

/// Maximum number of lines.
const LINES: u32 = 50;

/// An order of the lines: its test id, name, and description.
const ORDERS: [(RangeOrder, &str, &str, &str); 6] = [
    (RangeOrder::Kept, "range-kept", "Still live", "Allocated in the range and still live at its end"),
    (RangeOrder::Growth, "range-growth", "Growth", "By how much the live memory grew"),
    (RangeOrder::Churn, "range-churn", "Churn", "Allocated in the range and freed in it"),
    (RangeOrder::Allocated, "range-allocated", "Allocated", "Allocated in the range"),
    (RangeOrder::Freed, "range-freed", "Freed", "Freed in the range"),
    (RangeOrder::Waiting, "range-waiting", "Waiting", "Time for which freed blocks waited for a stream"),
];

/// Properties of [`RangePane`].
#[derive(PartialEq, Properties)]
pub struct RangePaneProps {
    /// The first and the last position.
    pub range: (u32, u32),
}

/// The details of a range.
#[component]
pub fn RangePane(props: &RangePaneProps) -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let order = model.view.settings.range_order;
    let (from, to) = props.range;
    let answer = use_answer(Some(Query::Range(RangeQuery { from, to, order, rows: LINES })));
    let Some(Answer::Range(sums)) = answer.as_deref() else { return html! {} };
    let has_times = model.device().is_some_and(|device| device.has_times);
    let shown = sums.query.order;
    let zoom = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| zoom_to_range(&model))
    };
    html! {
        <article class="detail" data-testid="detail-range" data-range={format!("{},{}", sums.query.from, sums.query.to)}>
            <header class="detail-head"><h2>{ extent(sums, has_times) }</h2></header>
            <div class="acts">
                { act("Zoom to range", "range-zoom", "Show the range over the whole width (Enter)", Some(zoom)) }
                { act("Compare its ends", "range-compare", "Show what changed from the start of the range to its end", Some(sends(&model, Action::CompareRange(from, to)))) }
                { act("Clear", "range-clear", "Clear the range (Esc)", Some(sends(&model, Action::SetRange(None)))) }
            </div>
            { facts(sum_facts(&model, sums, has_times)) }
            <h3>{ "By line" }</h3>
            <div class="choices range-orders" role="group" aria-label="Order of the lines">
                { for ORDERS.iter().filter(|(of, ..)| *of != RangeOrder::Waiting || has_times && sums.waits.blocks > 0).map(|&(of, testid, name, title)| {
                    choice(testid, name, title, order == of, sends(&model, Action::Set(Setting::RangeOrder(of))))
                }) }
            </div>
            if sums.lines.is_empty() {
                <p class="quiet">{ nothing(shown) }</p>
            }
            <ul class="legend-list">
                { for sums.lines.iter().map(|line| {
                    let own = Selection::Line(line.stack);
                    html! {
                        <li key={line.stack}>
                            <button type="button" class="legend-row" onclick={sends(&model, Action::Select(own))} title={line.label.clone()} data-testid="range-line">
                                { paint_chip(&palette, line.paint) }
                                <span class="legend-label">{ line.label.clone() }</span>
                                { amount_text(shown, &line.amounts) }
                            </button>
                        </li>
                    }
                }) }
                if sums.others > 0 && sums.rest.by(shown) != 0 {
                    <li class="legend-row dim">
                        <span class="legend-label">{ counted(sums.others.into(), "other call site") }</span>
                        { amount_text(shown, &sums.rest) }
                    </li>
                }
            </ul>
            if !model.view.filter.is_empty() {
                <p class="hint">{ "Ranges count all allocations, whatever the filter." }</p>
            }
        </article>
    }
}

/// Formats what an order compares.
fn amount_text(order: RangeOrder, amounts: &RangeAmounts) -> Html {
    match order {
        RangeOrder::Kept => bytes_text(amounts.kept.bytes),
        RangeOrder::Growth => change_text(amounts.growth()),
        RangeOrder::Churn => bytes_text(amounts.churned().bytes),
        RangeOrder::Allocated => bytes_text(amounts.allocated.bytes),
        RangeOrder::Freed => bytes_text(amounts.freed.bytes),
        RangeOrder::Waiting => html! { <span class="dim">{ micros(amounts.waited_us) }</span> },
    }
}

const fn nothing(order: RangeOrder) -> &'static str {
    match order {
        RangeOrder::Kept => "Everything that was allocated in the range was freed in it.",
        RangeOrder::Growth => "No line grew.",
        RangeOrder::Churn => "Nothing was allocated and freed in the range.",
        RangeOrder::Allocated => "Nothing was allocated.",
        RangeOrder::Freed => "Nothing was freed.",
        RangeOrder::Waiting => "No block waited.",
    }
}

fn micros(us: u64) -> String {
    Micros(i64::try_from(us).unwrap_or(i64::MAX)).to_string()
}

/// Describes where the range is: `Events 1,200 to 3,400, 12.3 ms`. It begins with the state after an event, so the next one is
/// its first.
fn extent(sums: &RangeSums, has_times: bool) -> String {
    let mut text = format!("Events {} to {}", Count(u64::from(sums.query.from) + 1), Count(sums.query.to.into()));
    if has_times {
        text.push_str(", ");
        text.push_str(&Micros(sums.to_us.saturating_sub(sums.from_us)).to_string());
    }
    text
}

/// Renders the sums.
fn sum_facts(model: &ModelHandle, sums: &RangeSums, has_times: bool) -> Vec<Html> {
    let (before, after, amounts) = (&sums.before, &sums.after, &sums.amounts);
    let change = |name, before: u64, after: u64| {
        let ends = format!("to {}", Bytes(after));
        fact_with(name, change_text(difference(after, before)), ends.into())
    };
    let amount = |name, amount: Amount| {
        fact_with(name, bytes_text(amount.bytes), counted(amount.count.into(), "allocation").into())
    };
    let peak = html! {
        <button type="button" class="link" onclick={sends(model, Action::SetCursor(sums.peak.1))} title="Move the cursor there" data-testid="range-go-peak">
            { format!("at event {}", Count(sums.peak.1.into())) }
        </button>
    };
    let mut rows = vec![
        change("Requested", before.requested, after.requested),
        change("Allocated", before.allocated, after.allocated),
        change("Reserved", before.reserved, after.reserved),
        fact_with("Peak inside", bytes_text(sums.peak.0), peak),
        amount("Newly allocated", amounts.allocated),
        amount("Freed", amounts.freed),
        amount("Still live", amounts.kept),
        amount("Churn", amounts.churned()),
    ];
    if has_times && sums.waits.blocks > 0 {
        rows.push(waiting(model, sums));
    }
    if sums.taken.count > 0 || sums.released.count > 0 {
        let calls = |amount: Amount, what: &str| {
            html! { <div>{ bytes_text(amount.bytes) }<span class="remark">{ format!("{what} {}", counted(amount.count.into(), "call")) }</span></div> }
        };
        let driver = html! { <>{ calls(sums.taken, "reserved in") }{ calls(sums.released, "released in") }</> };
        rows.push(fact_with("Driver", driver, Html::default()));
    }
    rows
}

/// Renders how long freed blocks waited for a stream: the average that waited, the longest wait, and the sum.
fn waiting(model: &ModelHandle, sums: &RangeSums) -> Html {
    let waits = &sums.waits;
    let length = sums.to_us.saturating_sub(sums.from_us).max(1).unsigned_abs();
    let average = u64::try_from(waits.byte_us / u128::from(length)).unwrap_or(u64::MAX);
    let longest = waits.longest.map(|id| sends(model, Action::Select(Selection::Allocation(id))));
    let value = html! {
        <>
            { bytes_text(average) }{ " on average" }
            <div class="dim">
                { counted(waits.blocks.into(), "block") }{ format!(", {} in total, ", micros(sums.amounts.waited_us)) }
                <button type="button" class="link" onclick={longest} title="Select this allocation" data-testid="range-longest">
                    { format!("longest {}", micros(waits.longest_us)) }
                </button>
            </div>
        </>
    };
    fact_with("Waiting for streams", value, Html::default())
}
