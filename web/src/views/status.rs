//! The status line: the cursor's position and the totals there.

use query::finding::Integrity;
use query::{Answer, DeviceSummary, Query, RangeOrder, RangeQuery, StateAt};
use trace::totals::difference;
use trace::units::{Bytes, Count, Micros};
use yew::prelude::*;

use super::controls::sends;
use crate::hooks::{ModelHandle, Near, use_answer, use_cursor, use_model_of, use_near, zoom_to_range};
use crate::model::{Action, Model, Parts};
use crate::widgets::bytes_text::{bytes_text, change_text};
use crate::widgets::empty::empty;
use crate::widgets::format::{counted, moment, seconds, wall_clock};

/// The status line.
#[component]
pub fn Status() -> Html {
    let model = use_model_of(Parts::VIEW);
    let answer = use_cursor(&model);
    let near = use_near(&model);
    let sums = use_answer(model.view.extended_range().map(range_query));
    let Some(device) = model.device() else { return html! {} };
    let range = || {
        let range = model.view.range;
        range.map(|range| range_line(&model, range, sums.as_deref(), device.has_times)).unwrap_or_default()
    };
    let state = match answer.as_deref() {
        Some(Answer::State(state)) => state,
        Some(Answer::Refused(_)) if model.is_preview() => {
            return html! {
                <div class="status" data-testid="status-preview">
                    { range() }
                    <span>{ "event " }<b data-testid="status-event">{ Count(model.view.cursor.into()).to_string() }</b>
                        { format!(" of {}", Count(device.events.into())) }</span>
                    { near.map(bounds).unwrap_or_default() }
                </div>
            };
        }
        // The line keeps its place so that nothing above it is laid out twice.
        _ => return html! { <div class="status" /> },
    };
    html! {
        <div class="status" data-testid="status" data-position={state.position.to_string()}>
            { range() }
            if device.has_times {
                <span class="status-time" title={clock(state)} data-testid="status-time">
                    { moment(state.time_us) }
                </span>
            }
            if device.events == 0 {
                <span data-testid="status-event">{ no_event(&model, device) }</span>
            } else {
                <span>{ "event " }<b data-testid="status-event">{ Count(state.position.into()).to_string() }</b>
                    { format!(" of {}", Count(device.events.into())) }</span>
            }
            { for SUMS.iter().map(|sum| html! {
                <span key={sum.name} title={format!("{}: {}", Bytes((sum.of)(state)).exact(), sum.meaning)}>
                    { sum.name }{ " " }<b data-testid={format!("status-{}", sum.name)}>{ bytes_text((sum.of)(state)) }</b>
                    if sum.name == ACTIVE && state.totals.active > state.totals.allocated {
                        <span title="Freed, but not reusable yet: the blocks wait for a stream" data-testid="status-waiting">
                            { " (" }{ bytes_text(state.totals.active - state.totals.allocated) }{ " waiting)" }
                        </span>
                    }
                    if sum.name == CACHED {
                        <span class="status-largest">{ " (largest gap " }{ bytes_text(state.totals.largest_gap) }{ ")" }</span>
                    }
                </span>
            }) }
        </div>
    }
}

/// Renders what previews tell of the totals at the cursor.
fn bounds(near: Near) -> Html {
    let title = "The largest total near the cursor. The exact one needs the whole trace.";
    let sum = |name: &'static str, bytes: u64| {
        html! {
            <span key={name} data-testid={format!("near-{name}")}>{ name }{ " " }<b>{ bytes_text(bytes) }</b></span>
        }
    };
    let bound = |name: &'static str, bytes: u64| {
        html! {
            <span key={name} {title} data-testid={format!("near-{name}")}>{ name }{ " at most " }<b>{ bytes_text(bytes) }</b></span>
        }
    };
    html! {
        <>
            if let Some((requested, active)) = near.exact {
                { sum("requested", requested) }
                { sum("active", active) }
            } else {
                { bound("requested", near.requested) }
            }
            { bound("reserved", near.reserved) }
        </>
    }
}

/// Returns the question for the sums of a range.
pub fn range_query((from, to): (u32, u32)) -> Query {
    Query::Range(RangeQuery { from, to, order: RangeOrder::Kept, rows: 0 })
}

/// Renders the sums of the selected range, with buttons that zoom to it and clear it.
fn range_line(model: &ModelHandle, range: (u32, u32), sums: Option<&Answer>, has_times: bool) -> Html {
    let zoom = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| zoom_to_range(&model))
    };
    let sums = match sums {
        Some(Answer::Range(sums)) if (sums.query.from, sums.query.to) == range => Some(sums),
        _ => None,
    };
    let length = match sums {
        Some(sums) if has_times => Micros(sums.to_us.saturating_sub(sums.from_us)).to_string(),
        _ if range.0 == range.1 => format!("from event {}: press M elsewhere to extend it", Count(range.0.into())),
        _ => counted(u64::from(range.1 - range.0), "event"),
    };
    html! {
        <span class="status-range" data-testid="range-sums">
            { "range " }<b>{ length }</b>
            if let Some(sums) = sums {
                <span title={format!("Change of requested memory, from event {} to {}", Count(range.0.into()), Count(range.1.into()))}>
                    { " · requested " }<b data-testid="range-change">{ change_text(difference(sums.after.requested, sums.before.requested)) }</b>
                </span>
                <span title="The largest requested total in the range">{ " · peak " }<b data-testid="range-peak">{ bytes_text(sums.peak.0) }</b></span>
                <span title="Allocated in the range and still live at its end">{ " · still live " }<b data-testid="range-live">{ bytes_text(sums.amounts.kept.bytes) }</b></span>
                <button type="button" class="link" onclick={zoom} title="Show the range over the whole width (Enter)" data-testid="status-range-zoom">{ "Zoom" }</button>
            }
            <button type="button" class="link" onclick={sends(model, Action::SetRange(None))} title="Clear the range (Esc)" data-testid="status-range-clear">{ "Clear" }</button>
        </span>
    }
}

/// One of the totals.
struct Sum {
    name: &'static str,
    meaning: &'static str,
    of: fn(&StateAt) -> u64,
}

const CACHED: &str = "cached";

const ACTIVE: &str = "active";

const SUMS: [Sum; 5] = [
    // The memory of a freed block stays requested until it is free, though it is no longer allocated.
    Sum {
        name: "requested",
        meaning: "bytes that the program asked for, of allocated blocks and of freed ones that wait for a stream",
        of: |state| state.totals.requested,
    },
    Sum { name: "allocated", meaning: "allocated blocks, including rounding", of: |state| state.totals.allocated },
    Sum {
        name: ACTIVE,
        meaning: "allocated blocks, and freed blocks that wait for a stream",
        of: |state| state.totals.active,
    },
    Sum { name: "reserved", meaning: "reserved from the driver", of: |state| state.totals.reserved },
    Sum { name: CACHED, meaning: "reserved, but not in an active block", of: |state| state.totals.cached },
];

/// Describes the source of the totals of a device without events.
pub fn no_event(model: &Model, device: &DeviceSummary) -> &'static str {
    let Integrity { is_cut, is_damaged } = model.integrity();
    if device.has_times {
        "from statistics; no events yet"
    } else if model.live().is_some() {
        "from the last report; no events yet"
    } else if is_cut {
        "of the segments that were read; the file ends before its first event"
    } else if is_damaged {
        "of the segments that were read; the file is damaged, and no event could be read"
    } else {
        "from the snapshot; no history was recorded"
    }
}

/// Renders why there is nothing to show over time, and how to record it.
pub fn no_events_view(model: &Model) -> Html {
    let Integrity { is_cut, is_damaged } = model.integrity();
    if is_cut || is_damaged {
        let why = if is_cut {
            "The file ends before its first event."
        } else {
            "No event could be read: the file is damaged."
        };
        return empty(why, "If the original is whole, copy it again.", false);
    }
    empty(
        "No events were recorded for this device.",
        "The Segments tab shows its final state. To record history too, start before the part of interest:",
        true,
    )
}

/// Returns the cursor's time in seconds, which other tools show, and by the clock on the wall if that is known.
fn clock(state: &StateAt) -> String {
    let since = format!("{} s from the start", seconds(state.time_us));
    if state.wall_us == 0 { since } else { format!("{since}, {}", wall_clock(state.wall_us)) }
}

#[cfg(test)]
mod tests {
    use trace::totals::Totals;

    use super::*;

    #[test]
    fn a_sum_above_what_is_allocated_says_what_else_it_counts() {
        // A block was freed and waits for a stream.
        let totals = Totals { requested: 1000, active: 1024, reserved: 2048, cached: 1024, ..Totals::default() };
        let state = StateAt { position: 1, time_us: 0.0, wall_us: 0, totals, event: None };
        let counting: Vec<&str> =
            SUMS.iter().filter(|sum| sum.meaning.contains("wait for a stream")).map(|sum| sum.name).collect();
        let counted: Vec<&str> = SUMS[..3].iter().filter(|sum| (sum.of)(&state) > 0).map(|sum| sum.name).collect();
        assert_eq!(counting, counted);
    }
}
