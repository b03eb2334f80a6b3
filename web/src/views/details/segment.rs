//! The details of the selected segment at the cursor.

use query::{Answer, Query, SegmentQuery};
use trace::units::{Address, Bytes, Count};
use yew::prelude::*;

use super::facts::{act, fact, fact_with, facts, pool_text, stream_fact, unknown};
use crate::hooks::{use_answer, use_model_of};
use crate::model::{Action, Parts, Selection};
use crate::views::heatmap::pinned;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::{counted, share};
use crate::widgets::stack_list::stack_list;

/// Properties of [`SegmentPane`].
#[derive(PartialEq, Properties)]
pub struct SegmentPaneProps {
    /// An address in the segment.
    pub address: Address,
}

/// The details of a segment.
#[component]
pub fn SegmentPane(props: &SegmentPaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let answer = use_answer(Some(Query::Segment(SegmentQuery { address: props.address, position: model.view.cursor })));
    // The event at the cursor may be the one that released it.
    let is_gone = matches!(answer.as_deref(), Some(Answer::Segment(None)));
    let before = model.view.cursor.checked_sub(1).filter(|_| is_gone);
    let before = use_answer(before.map(|position| Query::Segment(SegmentQuery { address: props.address, position })));
    let segment = match [answer.as_deref(), before.as_deref()] {
        [Some(Answer::Segment(Some(segment))), _] | [_, Some(Answer::Segment(Some(segment)))] => segment,
        [Some(Answer::Segment(None)), _] => {
            return html! {
                <article class="detail" data-testid="detail-segment">
                    <header class="detail-head"><h2 class="mono">{ props.address.to_string() }</h2></header>
                    <p class="quiet">{ "Nothing is reserved at this address at the cursor. Move the cursor to a time when it is." }</p>
                </article>
            };
        }
        [Some(Answer::Refused(reason)), _] => {
            return unknown(html! { <span class="mono">{ props.address.to_string() }</span> }, reason);
        }
        _ => return html! {},
    };
    let row = &segment.row;
    let bytes = |bytes: u64| bytes_text(bytes);
    let gaps = row.size.saturating_sub(row.active);
    let since = segment.since.map(|position| {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| model.dispatch(Action::SetCursor(position)))
    });
    html! {
        <article class="detail" data-testid="detail-segment">
            <header class="detail-head"><h2 class="mono">{ row.address.to_string() }</h2></header>
            if is_gone {
                <p class="quiet" data-testid="segment-released">{ "Released by the event at the cursor. This is what it was just before." }</p>
            }
            <p class="detail-lead"><b>{ bytes(row.size) }</b>{ if row.is_expandable { " mapped in an expandable segment" } else { " segment" } }</p>
            <div class="acts">
                { act("Go to start", "detail-go-alloc", "Move the cursor to when it was reserved", since) }
            </div>
            { facts(vec![
                fact_with("Active", bytes(row.active),
                    format!("{} in {}", share(row.active, row.size), counted(segment.blocks.into(), "block")).into()),
                fact_with("Cached", bytes(gaps), format!("{}, largest {}", counted(segment.gaps.into(), "gap"), Bytes(segment.largest_gap)).into()),
                fact("Since", match segment.since {
                    Some(position) => format!("event {}", Count(position.into())),
                    None => "before the trace".to_owned(),
                }),
                fact("Stream", stream_fact(row.stream, model.device())),
                fact("Pool", pool_text(row.pool, row.is_small)),
            ]) }
            if !segment.pins.is_empty() {
                <h3>{ "Pinned by" }</h3>
                <p class="quiet">{ format!("Active blocks keep {} of gaps from being given back. The oldest first:", Bytes(gaps)) }</p>
                <ul class="pins">
                    { for segment.pins.iter().map(|pin| {
                        let (model, id) = (model.clone(), pin.id);
                        let onclick = Callback::from(move |_: MouseEvent| model.dispatch(Action::Select(Selection::Allocation(id))));
                        html! {
                            <li key={pin.id}>
                                <button type="button" class="pin" {onclick} title="Select allocation" data-testid="detail-pin">{ pinned(pin) }</button>
                            </li>
                        }
                    }) }
                </ul>
            }
            { stack_list("Reserved by", &segment.frames, segment.missing.as_ref()) }
        </article>
    }
}
