//! The few lines beside the pointer that say what is under it.

use std::rc::Rc;

use shared::query::{Answer, Class, Paint, Query, Timeline};
use shared::units::Bytes;
use yew::prelude::*;

use super::hover::{self, Hover, Thing};
use crate::model::use_answer;
use crate::views::controls::site_line;
use crate::widgets::chips::paint_chip;
use crate::widgets::colors::use_palette;

/// Properties of [`Tooltip`].
#[derive(Properties, PartialEq)]
pub struct TooltipProps {
    /// What is under the pointer.
    pub hover: Option<Hover>,
    /// Its class, where it is one.
    pub class: Option<Class>,
}

/// The class of a thing, where an answer knows it.
pub fn class_of(timeline: &Timeline, thing: Thing) -> Option<Class> {
    match thing {
        Thing::Class(i) => timeline.classes.get(i as usize).cloned(),
        Thing::Sum(paint) => hover::class_of(timeline, paint).cloned(),
        _ => None,
    }
}

/// The lines. They are laid out by the caller; this says only what is in them.
#[component]
pub fn Tooltip(props: &TooltipProps) -> Html {
    let id = match props.hover.map(|hover| hover.thing) {
        Some(Thing::Allocation(id)) => Some(id),
        _ => None,
    };
    let detail = use_answer(id.map(|id| Query::Allocation { id }));
    let palette = use_palette();
    let Some(hover) = props.hover else { return html! {} };
    let (title, paint) = title(hover.thing, props.class.as_ref(), detail.as_ref());
    let bytes = match hover.thing {
        // The height on the screen may be cut off by the window; what was asked for is known exactly.
        Thing::Allocation(id) => requested(id, detail.as_ref()).unwrap_or(hover.bytes),
        _ => hover.bytes,
    };
    html! {
        <>
            <div class="canvas-tip-title">
                if let Some(paint) = paint {
                    { paint_chip(&palette, paint) }
                }
                <span>{ title }</span>
            </div>
            <dl class="canvas-tip-facts">
                if hover.thing != Thing::Free {
                    { fact("this", bytes) }
                }
                { fact("requested in all", hover.requested) }
                { fact("active", hover.active) }
                { fact("reserved", hover.reserved) }
            </dl>
            if let Some(name) = second_line(hover.thing, detail.as_ref()) {
                <div class="canvas-tip-more">{ name }</div>
            }
        </>
    }
}

fn fact(name: &'static str, bytes: u64) -> Html {
    html! { <><dt>{ name }</dt><dd>{ Bytes(bytes).to_string() }</dd></> }
}

fn allocation(id: u32, answer: Option<&Rc<Answer>>) -> Option<&shared::query::AllocationDetail> {
    match answer.map(Rc::as_ref) {
        Some(Answer::Allocation(detail)) if detail.id == id => Some(detail),
        _ => None,
    }
}

fn requested(id: u32, answer: Option<&Rc<Answer>>) -> Option<u64> {
    allocation(id, answer).map(|detail| detail.requested)
}

fn title(thing: Thing, class: Option<&Class>, answer: Option<&Rc<Answer>>) -> (String, Option<Paint>) {
    match thing {
        Thing::Class(_) => class.map_or((String::new(), None), |class| (class.label.clone(), Some(class.paint))),
        Thing::Allocation(id) => match allocation(id, answer) {
            Some(detail) => (site_line(&detail.alloc_stack), Some(detail.paint)),
            None => ("allocation".to_owned(), None),
        },
        Thing::Sum(paint) => {
            let of = class.map_or_else(|| "many".to_owned(), |class| class.label.clone());
            ([&of, ", too small to draw one by one"].concat(), Some(paint))
        }
        Thing::Rest => ("lost to rounding".to_owned(), Some(Paint::ROUNDING)),
        Thing::Cached => ("cached: reserved, in no active block".to_owned(), Some(Paint::CACHED)),
        Thing::Free => ("not reserved".to_owned(), None),
    }
}

fn second_line(thing: Thing, answer: Option<&Rc<Answer>>) -> Option<String> {
    match thing {
        Thing::Allocation(id) => allocation(id, answer).map(|detail| detail.name.clone()),
        _ => None,
    }
}
