//! The status line: the cursor's position and the totals there.

use shared::query::{Answer, DeviceSummary, Query, StateAt};
use shared::units::{Bytes, Count};
use yew::prelude::*;

use crate::hooks::{use_answer, use_model};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::{seconds, wall_clock};

/// The status line.
#[component]
pub fn Status() -> Html {
    let model = use_model();
    let answer = use_answer(Some(Query::State { position: model.view.cursor }));
    let Some(device) = model.device() else { return html! {} };
    // The line keeps its place so that nothing above it is laid out twice.
    let Some(Answer::State(state)) = answer.as_deref() else { return html! { <div class="status" /> } };
    html! {
        <div class="status" data-testid="status" data-position={state.position.to_string()}>
            if device.has_times {
                <span class="status-time" title={clock(state)} data-testid="status-time">
                    { seconds(state.time_us) }{ " s" }
                </span>
            }
            if device.events == 0 {
                <span data-testid="status-event">{ no_event(device, model.live().is_some()) }</span>
            } else {
                <span>{ "event " }<b data-testid="status-event">{ Count(state.position.into()).to_string() }</b>
                    { format!(" of {}", Count(device.events.into())) }</span>
            }
            { for SUMS.iter().map(|sum| html! {
                <span key={sum.name} title={format!("{}: {}", Bytes((sum.of)(state)).exact(), sum.meaning)}>
                    { sum.name }{ " " }<b data-testid={format!("status-{}", sum.name.replace(' ', "-"))}>{ bytes_text((sum.of)(state)) }</b>
                    if sum.name == GAPS {
                        { " (largest " }{ bytes_text(state.totals.largest_gap) }{ ")" }
                    }
                </span>
            }) }
        </div>
    }
}

/// One of the totals.
struct Sum {
    name: &'static str,
    meaning: &'static str,
    of: fn(&StateAt) -> u64,
}

const GAPS: &str = "free gaps";

const SUMS: [Sum; 5] = [
    Sum { name: "requested", meaning: "bytes that the program asked for", of: |state| state.totals.requested },
    Sum { name: "allocated", meaning: "allocated blocks, including rounding", of: |state| state.totals.allocated },
    Sum {
        name: "active",
        meaning: "allocated blocks, and freed blocks that wait for a stream",
        of: |state| state.totals.active,
    },
    Sum { name: "reserved", meaning: "reserved from the driver", of: |state| state.totals.reserved },
    Sum { name: GAPS, meaning: "reserved, but not in an active block", of: |state| state.totals.cached },
];

/// Describes the source of the totals of a device without events.
pub fn no_event(device: &DeviceSummary, is_live: bool) -> &'static str {
    if device.has_times {
        "from statistics; no events yet"
    } else if is_live {
        "from the last report; no events yet"
    } else {
        "from the snapshot; no history was recorded"
    }
}

fn clock(state: &StateAt) -> Option<String> {
    (state.wall_us != 0).then(|| wall_clock(state.wall_us))
}
