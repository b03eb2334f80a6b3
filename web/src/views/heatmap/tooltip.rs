//! The tooltip of the heatmap: what is in the cell under the pointer.

use query::diagnosis::FailedRequest;
use query::{AddressCell, Answer, DeviceSummary, HeatmapCell, HeatmapNeed, HeatmapThing, Pin, Query, SizeCell};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::picture::Hover;
use crate::hooks::{use_answer, use_model_of};
use crate::model::Parts;
use crate::views::segments::tooltip::{fact, place};
use crate::widgets::format::{counted, seconds};

/// The number of blocks that pin a segment and are listed.
const PINS: usize = 4;

/// Properties of [`Tooltip`].
#[derive(PartialEq, Properties)]
pub struct TooltipProps {
    /// What is under the pointer.
    pub hover: Option<Hover>,
}

/// The contents of the tooltip. The caller positions it.
#[component]
pub fn Tooltip(props: &TooltipProps) -> Html {
    let cell = match props.hover {
        Some(Hover::Cell(cell)) => Some(cell),
        _ => None,
    };
    let answer = use_answer(cell.map(Query::HeatmapCell));
    let model = use_model_of(Parts::REST);
    if let Some(Hover::Failure(position)) = props.hover {
        return model.failure_at(position).map(failed).unwrap_or_default();
    }
    let Some(wanted) = cell else { return html! {} };
    match answer.as_deref() {
        Some(Answer::HeatmapCell(Some(HeatmapCell::Address(cell)))) if cell.query == wanted => {
            address(cell, model.device())
        }
        Some(Answer::HeatmapCell(Some(HeatmapCell::Size(cell)))) if cell.query == wanted => size(cell),
        _ => html! { <div class="canvas-tip-title">{ "…" }</div> },
    }
}

/// Renders the facts about a failed request.
fn failed(failure: &FailedRequest) -> Html {
    let facts = [
        ("Requested", Some(failure.requested)),
        ("This gap", failure.nearest_gap.map(|(_, size)| size)),
        ("Largest gap for it", Some(failure.largest_servable)),
        ("Largest gap of the device", Some(failure.largest_gap)),
        ("Driver free", Some(failure.driver_free)),
    ];
    html! {
        <>
            <div class="canvas-tip-title">{ "Out of memory: this request failed" }</div>
            <dl class="canvas-tip-facts">
                { for facts.iter().filter_map(|(name, bytes)| Some(fact(name, Bytes((*bytes)?).to_string()))) }
            </dl>
            <div class="canvas-tip-more">{ format!("event {}", Count(failure.position().into())) }</div>
        </>
    }
}

fn address(cell: &AddressCell, device: Option<&DeviceSummary>) -> Html {
    const NAMES: [&str; 5] = ["Allocated", "Waiting for a stream", "Cached, usable", "Cached, too small", "Unmapped"];
    let has_times = device.is_some_and(|device| device.has_times);
    let time = if has_times { format!(" · {} s", seconds(cell.time_us)) } else { String::new() };
    html! {
        <>
            <div class="canvas-tip-title">{ title(&cell.thing) }</div>
            if let HeatmapThing::Gap { size, threshold, .. } = cell.thing {
                <div class="dim">{ reason(size, threshold, cell.query.needed) }</div>
            }
            <dl class="canvas-tip-facts">
                { for NAMES.iter().zip(cell.most).filter(|(_, bytes)| *bytes > 0).map(|(name, bytes)| fact(name, Bytes(bytes).to_string())) }
            </dl>
            if let Some(segment) = &cell.segment {
                <div class="canvas-tip-more">{ format!("Segment of {}, {} active in {}", Bytes(segment.size), Bytes(segment.active), counted(cell.blocks.into(), "block")) }</div>
                <div class="canvas-tip-more">{ place(segment, device) }</div>
            }
            if !cell.pins.is_empty() {
                <div class="canvas-tip-more">{ "Pinned by" }</div>
                { for cell.pins.iter().take(PINS).map(|pin| html! { <div class="heatmap-pin">{ pinned(pin) }</div> }) }
                if cell.blocks as usize > PINS.min(cell.pins.len()) {
                    <div class="canvas-tip-more">{ format!("and {}", counted(u64::from(cell.blocks) - PINS.min(cell.pins.len()) as u64, "newer block")) }</div>
                }
            }
            <div class="canvas-tip-more">{ format!("{} · event {}{time}", span(cell.positions), Count(cell.position.into())) }</div>
        </>
    }
}

fn size(cell: &SizeCell) -> Html {
    let free = |(bytes, gaps, position): (u64, u32, u32)| {
        format!("{} in {} · event {}", Bytes(bytes), counted(gaps.into(), "gap"), Count(position.into()))
    };
    html! {
        <>
            <div class="canvas-tip-title">{ format!("Requests of {}", Bytes(cell.size)) }</div>
            if cell.least.0 == 0 {
                <div class="dim">{ "At some moment no cached memory could serve one." }</div>
            }
            <dl class="canvas-tip-facts">
                { fact("Most that could serve it", free(cell.most)) }
                { fact("Least", free(cell.least)) }
            </dl>
            <div class="canvas-tip-more">{ span(cell.positions) }</div>
        </>
    }
}

fn title(thing: &HeatmapThing) -> String {
    match thing {
        HeatmapThing::Unmapped => "Not reserved".to_owned(),
        HeatmapThing::Block { size, is_waiting: true, .. } => {
            format!("Freed, waiting for a stream: {}", Bytes(*size))
        }
        HeatmapThing::Block { size, .. } => format!("Block of {}", Bytes(*size)),
        HeatmapThing::Gap { size, .. } => format!("Gap of {}", Bytes(*size)),
    }
}

/// Says why a gap is usable or not.
fn reason(size: u64, threshold: u64, needed: Option<HeatmapNeed>) -> String {
    let half = "half of the bytes that this pool and stream request";
    if needed.is_some_and(|needed| needed.size == threshold) && size < threshold {
        format!("Too small for the request of {} that failed.", Bytes(threshold))
    } else if size >= threshold {
        format!("Usable: holds requests up to {}, at least {half}.", Bytes(size))
    } else {
        format!("Too small: over {half} come in requests of {} or more.", Bytes(threshold))
    }
}

/// Describes a block that pins its segment.
pub fn pinned(pin: &Pin) -> String {
    let since =
        pin.since.map_or_else(|| "before the trace".to_owned(), |since| format!("event {}", Count(since.into())));
    format!("{} · {} · since {since}", Bytes(pin.size), pin.site)
}

/// Describes the positions of a cell.
fn span((first, last): (u32, u32)) -> String {
    if first == last {
        return "1 event".to_owned();
    }
    format!("{} in this column", counted(u64::from(last - first) + 1, "event"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_says_why_it_is_of_use() {
        let cases = [
            (
                (3 << 20, 2 << 20),
                "Usable: holds requests up to 3.00 MiB, at least half of the bytes that this pool and stream request.",
            ),
            (
                (1 << 20, 2 << 20),
                "Too small: over half of the bytes that this pool and stream request come in requests of 2.00 MiB or more.",
            ),
        ];
        for ((size, threshold), want) in cases {
            assert_eq!(reason(size, threshold, None), want);
        }
        let gap = HeatmapThing::Gap { address: trace::units::Address(1), size: 1 << 20, threshold: 1 };
        assert_eq!(title(&gap), "Gap of 1.00 MiB");
        let pin = Pin { id: 3, size: 512, since: None, site: "forward model.py:5".to_owned() };
        assert_eq!(pinned(&pin), "512 B · forward model.py:5 · since before the trace");
    }
}
