//! The tooltip of the timeline.

use query::{AllocationDetail, AllocationQuery, Answer, Class, Paint, Query, StateQuery, Timeline};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::hover::{self, Hover, Thing};
use crate::hooks::{use_answer, use_model_of, use_palette};
use crate::model::{Live, Parts};
use crate::views::controls::site_line;
use crate::views::details::still_live;
use crate::widgets::chips::paint_chip;
use crate::widgets::format::{self, counted};

/// Properties of [`Tooltip`].
#[derive(PartialEq, Properties)]
pub struct TooltipProps {
    /// What is under the pointer.
    pub hover: Option<Hover>,
    /// Its class, if any.
    pub class: Option<Class>,
    /// The text of an annotation or a loss.
    pub words: Option<String>,
}

/// Returns the class of a thing, if the answer has it.
pub fn class_of(timeline: &Timeline, thing: Thing) -> Option<Class> {
    match thing {
        Thing::Class(i) => timeline.classes.get(i as usize).cloned(),
        Thing::Sum(paint) => hover::class_of(timeline, paint).cloned(),
        _ => None,
    }
}

/// The contents of the tooltip. The caller positions it.
#[component]
pub fn Tooltip(props: &TooltipProps) -> Html {
    let id = match props.hover.map(|hover| hover.thing) {
        Some(Thing::Allocation(id)) => Some(id),
        _ => None,
    };
    let detail = use_answer(id.map(|id| Query::Allocation(AllocationQuery { id })));
    let palette = use_palette();
    let state = use_answer(props.hover.map(|hover| Query::State(StateQuery { position: hover.position })));
    let model = use_model_of(Parts::REST);
    let has_times = model.device().is_some_and(|device| device.has_times);
    let Some(hover) = props.hover else { return html! {} };
    if matches!(hover.thing, Thing::Annotation(_) | Thing::Loss(_)) {
        return html! {
            <>
                <div class="canvas-tip-title">{ props.words.clone() }</div>
                if matches!(hover.thing, Thing::Loss(_)) {
                    <div class="dim">{ "Events are missing here. Values that depend on them are not exact." }</div>
                    <div class="canvas-tip-more">{ "after " }{ moment(hover.position, state.as_deref().filter(|_| has_times)) }</div>
                }
            </>
        };
    }
    let found = id.and_then(|id| allocation(id, detail.as_deref()));
    let is_running = model.live().is_some_and(Live::is_open);
    let (title, paint) = title(hover.thing, props.class.as_ref(), found);
    // The height on the screen may be cut off by the window; the requested size is exact.
    let bytes = found.map_or(hover.bytes, |detail| detail.requested);
    html! {
        <>
            <div class="canvas-tip-title">
                if let Some(paint) = paint {
                    { paint_chip(&palette, paint) }
                }
                <span>{ title }</span>
            </div>
            <dl class="canvas-tip-facts">
                if let Some(name) = own_bytes_name(hover.thing) {
                    { fact(name, bytes) }
                }
                { fact(if hover.is_filtered { "Matches the filter" } else { "Total requested" }, hover.requested) }
                { fact("Total active", hover.active) }
                { fact("Total reserved", hover.reserved) }
            </dl>
            if let Some(detail) = found {
                <div class="canvas-tip-more">{ &detail.name }{ " · " }{ lived(detail, has_times, is_running) }</div>
            }
            <div class="canvas-tip-more">{ moment(hover.position, state.as_deref().filter(|_| has_times)) }</div>
        </>
    }
}

/// Returns the label of a thing's own bytes.
fn own_bytes_name(thing: Thing) -> Option<&'static str> {
    match thing {
        Thing::Allocation(_) => Some("This allocation"),
        Thing::Class(_) | Thing::Sum(_) => Some("This group"),
        Thing::Rest | Thing::HeldBack | Thing::Cached => Some("This area"),
        Thing::Free | Thing::Annotation(_) | Thing::Loss(_) => None,
    }
}

fn fact(name: &'static str, bytes: u64) -> Html {
    html! { <><dt>{ name }</dt><dd>{ Bytes(bytes).to_string() }</dd></> }
}

fn allocation(id: u32, answer: Option<&Answer>) -> Option<&AllocationDetail> {
    match answer {
        Some(Answer::Allocation(detail)) if detail.id == id => Some(detail),
        _ => None,
    }
}

/// Describes how long an allocation lived, as far as the trace shows.
fn lived(detail: &AllocationDetail, has_times: bool, is_running: bool) -> String {
    match (detail.allocated_at, detail.free_completed_at) {
        (Some(_), Some(_)) if has_times => {
            format!("lived {}", format::duration(detail.end_us - detail.start_us))
        }
        (Some(from), Some(to)) => format!("lived {}", counted(to.saturating_sub(from).into(), "event")),
        (Some(_), None) => still_live(is_running).to_owned(),
        (None, Some(_)) => "allocated before the trace".to_owned(),
        (None, None) => "live throughout the trace".to_owned(),
    }
}

/// Formats the moment of a column: its event, and its time once known.
fn moment(position: u32, state: Option<&Answer>) -> String {
    let mut text = format!("event {}", Count(position.into()));
    if let Some(Answer::State(state)) = state
        && state.position == position
    {
        text.push_str(" · ");
        text.push_str(&format::moment(state.time_us));
    }
    text
}

fn title(thing: Thing, class: Option<&Class>, found: Option<&AllocationDetail>) -> (String, Option<Paint>) {
    match thing {
        Thing::Class(_) => class.map_or((String::new(), None), |class| (class.label.clone(), Some(class.paint))),
        Thing::Allocation(_) => match found {
            Some(detail) => (site_line(&detail.alloc_stack), Some(detail.paint)),
            None => ("Allocation".to_owned(), None),
        },
        Thing::Sum(paint) => {
            let of = class.map_or_else(|| "Several groups".to_owned(), |class| class.label.clone());
            (format!("{of}, too small to draw separately"), Some(paint))
        }
        Thing::Rest => ("Lost to rounding".to_owned(), Some(Paint::ROUNDING)),
        Thing::Cached => ("Cached: reserved, not in an active block".to_owned(), Some(Paint::CACHED)),
        Thing::HeldBack => ("Filtered out".to_owned(), None),
        Thing::Free | Thing::Annotation(_) | Thing::Loss(_) => ("Not reserved".to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use query::StateAt;
    use trace::totals::Totals;

    use super::*;

    #[test]
    fn a_column_is_an_event_and_a_time() {
        let state = |position| {
            let totals = Totals::default();
            Answer::State(StateAt { position, time_us: 1_500_000.0, wall_us: 0, totals, event: None })
        };
        assert_eq!(moment(48_113, None), "event 48,113");
        assert_eq!(moment(48_113, Some(&state(48_113))), "event 48,113 · 1.500000\u{a0}s");
        assert_eq!(moment(48_113, Some(&state(7))), "event 48,113");
    }
}
