//! The tooltip of the segment map: the block, gap or segment under the pointer.

use query::{
    AllocationDetail, AllocationQuery, Answer, DeviceSummary, Paint, Query, SegmentRow, pool_name, stream_name,
};
use trace::units::{Bytes, Stream};
use yew::prelude::*;

use super::picture::{GapShape, Hover};
use crate::hooks::{use_answer, use_model_of};
use crate::model::Parts;
use crate::views::controls::site_line;

/// Properties of [`Tooltip`].
#[derive(PartialEq, Properties)]
pub struct TooltipProps {
    /// What is under the pointer.
    pub hover: Option<Hover>,
}

/// The contents of the tooltip.
#[component]
pub fn Tooltip(props: &TooltipProps) -> Html {
    let id = props.hover.and_then(|hover| hover.allocation);
    let answer = use_answer(id.map(|id| Query::Allocation(AllocationQuery { id })));
    let gap = props.hover.and_then(|hover| hover.gap);
    let before = use_answer(gap.and_then(|gap| gap.before).map(|id| Query::Allocation(AllocationQuery { id })));
    let after = use_answer(gap.and_then(|gap| gap.after).map(|id| Query::Allocation(AllocationQuery { id })));
    let model = use_model_of(Parts::REST);
    let Some(hover) = props.hover else { return html! {} };
    let detail = match answer.as_deref() {
        Some(Answer::Allocation(detail)) if Some(detail.id) == hover.allocation => Some(detail.as_ref()),
        _ => None,
    };
    let segment = &hover.segment;
    let gap = gap.and_then(|gap| gap_size(segment, gap, before.as_deref(), after.as_deref()));
    html! {
        <>
            <div class="canvas-tip-title">{ title(hover.paint, hover.allocation, detail) }</div>
            <dl class="canvas-tip-facts">
                if let Some(gap) = gap {
                    { fact("Gap", Bytes(gap).to_string()) }
                }
                if let Some(detail) = detail {
                    { fact("Block", Bytes(detail.size).to_string()) }
                    { fact("Requested", Bytes(detail.requested).to_string()) }
                }
                { fact("Segment", Bytes(segment.size).to_string()) }
                { fact("Active in segment", Bytes(segment.active).to_string()) }
            </dl>
            if hover.is_pin {
                <div class="canvas-tip-more">{ "Keeps a mostly free segment from being given back" }</div>
            }
            <div class="canvas-tip-more">{ place(segment, model.device()) }</div>
        </>
    }
}

/// Renders a fact of a tooltip.
pub fn fact(name: &'static str, value: String) -> Html {
    html! { <><dt>{ name }</dt><dd>{ value }</dd></> }
}

fn title(paint: Paint, allocation: Option<u32>, detail: Option<&AllocationDetail>) -> String {
    match (paint.base(), detail) {
        (Paint::UNMAPPED, _) => "Unmapped: address space without memory (not to scale)".to_owned(),
        (Paint::CACHED, _) => "Gap: cached, free for reuse".to_owned(),
        (Paint::PENDING, Some(detail)) => format!("Freed, waiting for a stream: {}", site_line(&detail.alloc_stack)),
        (Paint::ROUNDING, Some(detail)) => format!("Lost to rounding: {}", site_line(&detail.alloc_stack)),
        (_, Some(detail)) => site_line(&detail.alloc_stack),
        (_, None) if allocation.is_some() => "Block".to_owned(),
        (_, None) => "Blocks too small to draw separately".to_owned(),
    }
}

/// Returns the bytes between a gap's neighbours, once both are known.
fn gap_size(segment: &SegmentRow, gap: GapShape, before: Option<&Answer>, after: Option<&Answer>) -> Option<u64> {
    let edge = |id: Option<u32>, answer: Option<&Answer>, end: u64, of: fn(&AllocationDetail) -> u64| match (id, answer)
    {
        (None, _) => Some(end),
        (Some(id), Some(Answer::Allocation(detail))) if detail.id == id => Some(of(detail)),
        _ => None,
    };
    let first = segment.address.0;
    let from = edge(gap.before, before, first, |block| block.address.0.saturating_add(block.size))?;
    let to = edge(gap.after, after, first.saturating_add(segment.size), |block| block.address.0)?;
    to.checked_sub(from)
}

/// Formats the address, pool and stream of a segment, with the recorded values of stream and pool.
pub fn place(row: &SegmentRow, device: Option<&DeviceSummary>) -> String {
    let kind = if row.is_small { "small pool" } else { "large pool" };
    let stream = stream_name(row.stream, device.map_or(&[], |device| &device.streams));
    let mut text = format!("{} · {kind} · {stream}", row.address);
    let recorded = row.stream.to_string();
    if !stream.ends_with(&recorded) && row.stream != Stream::default() {
        text.push_str(&format!(" ({recorded})"));
    }
    if row.pool.is_private() {
        text.push_str(&format!(" · {}", pool_name(row.pool)));
    }
    if row.is_expandable {
        text.push_str(" · expandable");
    }
    text
}

#[cfg(test)]
mod tests {
    use trace::units::{Address, PoolId};

    use super::*;

    #[test]
    fn a_segment_has_its_address_pool_and_stream() {
        let row = SegmentRow {
            address: Address(0x7f00_0000),
            size: 1 << 21,
            active: 0,
            stream: Stream(7),
            pool: PoolId(0, 3),
            is_small: true,
            is_expandable: true,
        };
        let device = DeviceSummary { streams: vec![Stream(7)], ..DeviceSummary::default() };
        let text = |row: &SegmentRow| place(row, Some(&device));
        assert_eq!(text(&row), "0x7f000000 · small pool · stream 7 · pool (0, 3) · expandable");
        let other = SegmentRow { stream: Stream(0), pool: PoolId::default(), is_expandable: false, ..row };
        assert_eq!(text(&other), "0x7f000000 · small pool · default stream");
    }

    #[test]
    fn a_gap_between_the_ends_is_the_whole_segment() {
        let row = SegmentRow {
            address: Address(4096),
            size: 1 << 21,
            active: 0,
            stream: Stream(0),
            pool: PoolId::default(),
            is_small: false,
            is_expandable: false,
        };
        assert_eq!(gap_size(&row, GapShape { before: None, after: None }, None, None), Some(1 << 21));
        assert_eq!(gap_size(&row, GapShape { before: Some(3), after: None }, None, None), None);
    }

    #[test]
    fn gaps_and_merged_blocks_need_no_allocation() {
        assert_eq!(title(Paint::CACHED, None, None), "Gap: cached, free for reuse");
        assert_eq!(title(Paint::OTHER, None, None), "Blocks too small to draw separately");
        assert_eq!(title(Paint::OTHER, Some(3), None), "Block");
    }
}
