//! The legend: what the colours of the timeline stand for, and how much memory each has: at the cursor, and at the peak of what
//! is in view.

use std::rc::Rc;

use query::{
    Answer, Class, Classes, ClassesQuery, ColorBy, DeviceSummary, Memory, Moments, Query, location_of, stream_name,
};
use trace::order::SortFew;
use trace::units::Count;
use yew::prelude::*;

use super::category_rules::category_rules_button;
use super::controls::sends;
use super::moment::{listing_control, memory_text, moment_text};
use super::timeline::summary_query;
use crate::hooks::{ModelHandle, use_answer, use_baseline, use_model_of, use_paced, use_palette};
use crate::model::{Action, Listing, Model, Parts, Selection, Tab};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::site_text::site_text;

/// The least milliseconds between two looks at what is in view: the picture itself comes first.
const EVERY_MS: i32 = 200;
/// Rows of a legend. Each costs time whenever the view moves, and nobody reads more of them.
const ROWS: usize = 12;

/// Returns the question for the classes at the moment that lists are of.
pub fn classes_query(model: &Model) -> Option<Query> {
    let view = &model.view;
    let device = model.device().filter(|device| device.events > 0)?;
    Some(Query::Classes(ClassesQuery {
        moments: view.moments(device.peak_position),
        color_by: view.settings.color_by,
        filter: view.filter.clone(),
        highlight: view.highlight.clone(),
    }))
}

/// Returns the question for the classes of the picture: while only previews are here, they are the call sites of all
/// allocations.
pub fn legend_query(model: &Model) -> Option<Query> {
    let query = classes_query(model)?;
    match query {
        Query::Classes(asked) if model.is_preview() => {
            Some(Query::Classes(ClassesQuery { color_by: ColorBy::Site, filter: Vec::new(), highlight: None, ..asked }))
        }
        query => Some(query),
    }
}

/// Returns the question for the classes at the peak of what is in view, once its position is known. Only lists of the cursor have
/// them beside their own.
#[hook]
fn use_peak_in_view(model: &Model) -> Option<Query> {
    let is_wanted = model.view.settings.listing == Listing::AtCursor && !model.is_preview();
    let (axis, window) = use_paced((model.view.axis, model.view.window), EVERY_MS);
    let is_wanted = is_wanted && axis == model.view.axis && window.length() > 0.0;
    let view = model.device().map(|_| &model.view).filter(|_| is_wanted);
    let answer = use_answer(view.map(|view| Query::Timeline(summary_query(view, axis, window))));
    let Some(Answer::Timeline(summary)) = answer.as_deref() else { return None };
    let at = *summary.position.first()?;
    match classes_query(model)? {
        Query::Classes(asked) => Some(Query::Classes(ClassesQuery { moments: Moments { at, since: None }, ..asked })),
        _ => None,
    }
}

/// The classes that are in view or have memory at the cursor: sizes and lifetimes in their order, all others with the largest
/// first. The pointer over one shows it in the picture; a click selects it, a second click clears the selection;
/// with Shift, a click filters to a line.
#[component]
pub fn Legend() -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    use_baseline(&model);
    let answer = use_answer(legend_query(&model));
    let peak_in_view = use_peak_in_view(&model);
    let in_view = use_answer(peak_in_view);
    let is_open = use_state_eq(|| true);
    let held = use_mut_ref(|| (false, Vec::new()));
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_| is_open.set(!*is_open))
    };
    let title = match model.view.settings.color_by {
        _ if model.is_preview() => "Call sites",
        ColorBy::Site => "Call sites",
        ColorBy::Size => "Sizes",
        ColorBy::Stream => "Streams",
        ColorBy::Pool => "Pools",
        ColorBy::Lifetime => "Lifetimes",
        ColorBy::Category => "Categories",
    };
    let (classes, device) = match (answer.as_deref(), model.device()) {
        (Some(Answer::Classes(classes)), Some(device)) => (classes, device),
        // What stands below waits for an answer, whatever it is.
        (Some(_), _) => return html! { <p /> },
        _ => return Html::default(),
    };
    // Of the same classes: a change of the colouring has two answers, one after the other.
    let in_view = match in_view.as_deref() {
        Some(Answer::Classes(other)) if is_alike(classes, other) => Some(other),
        _ => None,
    };
    let listing = model.view.settings.listing;
    let in_view = in_view.filter(|_| listing == Listing::AtCursor);
    let mut listed = listed(classes, in_view);
    if held.borrow().0 {
        hold(&mut listed, classes, &held.borrow().1);
    }
    let (rows, rest) = match classes.query.color_by {
        // A scale is whole.
        ColorBy::Size | ColorBy::Lifetime => (&*listed, &[][..]),
        _ => shortened(&listed),
    };
    let all_in_table = sends(&model, Action::SetTab(Tab::Allocations));
    held.borrow_mut().1 = rows.iter().map(|i| stack_of(classes, *i)).collect();
    let onpointerenter = {
        let held = Rc::clone(&held);
        Callback::from(move |_: PointerEvent| held.borrow_mut().0 = true)
    };
    let onpointerleave = {
        let unhint = hints(&model, None);
        Callback::from(move |event: PointerEvent| {
            held.borrow_mut().0 = false;
            unhint.emit(event);
        })
    };
    html! {
        <div class="legend" role="group" aria-label={title} data-testid="legend">
            <button type="button" class="legend-head" aria-expanded={is_open.to_string()} onclick={toggle} data-testid="legend-toggle">
                <span class="fold-mark" aria-hidden="true">{ if *is_open { "▾" } else { "▸" } }</span>
                <b>{ title }</b>
                <span class="legend-unit" data-testid="legend-moment">{ moment_text(&model.view, device) }</span>
            </button>
            if *is_open {
                { listing_control(&model) }
                if model.view.settings.color_by == ColorBy::Category { { category_rules_button(&model) } }
                if in_view.is_some() {
                    <p class="legend-columns" aria-hidden="true"><span>{ "at cursor ↓" }</span><span>{ "at view’s peak" }</span></p>
                }
                <ul class="legend-list" {onpointerenter} {onpointerleave}>
                    // Without keys: to write a row anew costs less than to move it.
                    { for rows.iter().filter_map(|i| {
                        let (class, memory) = classes.classes.get(*i as usize).zip(classes.memory.get(*i as usize))?;
                        let own = class.stack.map_or(Selection::Class(*i), Selection::Line);
                        let is_selected = model.view.selection == own;
                        let select = Action::Select(if is_selected { Selection::None } else { own });
                        let filter = class.stack.map(|_| Action::AddFilter(location_of(&class.label).to_owned()));
                        let onclick = {
                            let model = model.clone();
                            Callback::from(move |event: MouseEvent| {
                                let filter = filter.clone().filter(|_| event.shift_key());
                                model.dispatch(filter.unwrap_or_else(|| select.clone()));
                            })
                        };
                        let peak = in_view.and_then(|other| other.memory.get(*i as usize));
                        Some(html! {
                            <li onpointermove={hints(&model, Some(own))}>
                                <button type="button" class="legend-row" aria-pressed={is_selected.to_string()} title={told(device, classes.query.color_by, class)} {onclick} data-menu={class.stack.map(|stack| format!("l{stack}"))} data-testid="legend-row">
                                    // The picture gives each of the others its own colour.
                                    if !is_rest(classes, *i) { { paint_chip(&palette, class.paint) } }
                                    <span class="legend-label">{ if class.stack.is_some() { site_text(&class.label) } else { class.label.clone().into() } }</span>
                                    { memory_text(listing, memory) }
                                    { peak.map(peak_text).unwrap_or_default() }
                                </button>
                            </li>
                        })
                    }) }
                    if !rest.is_empty() {
                        <li onpointermove={hints(&model, None)}>
                            <button type="button" class="legend-row" title="All allocations in a table" onclick={all_in_table.clone()} data-testid="legend-rest">
                                <span class="legend-label dim">{ format!("{} more", Count(rest.len() as u64)) }</span>
                                { memory_text(listing, &sum(classes, rest)) }
                                { in_view.map(|other| peak_text(&sum(other, rest))).unwrap_or_default() }
                            </button>
                        </li>
                    }
                </ul>
                <button type="button" class="link legend-more" onclick={all_in_table} data-testid="legend-more">{ "All allocations in a table" }</button>
            }
        </div>
    }
}

/// Renders the memory at the peak of what is in view.
fn peak_text(memory: &Memory) -> Html {
    html! { <span class="legend-peak">{ bytes_text(memory.now.bytes) }</span> }
}

/// Returns the classes that have rows of their own, and those that share the last one.
fn shortened(listed: &[u32]) -> (&[u32], &[u32]) {
    // A row for a single other class would say less than its own.
    listed.split_at(if listed.len() > ROWS + 1 { ROWS } else { listed.len() })
}

/// Puts the rows that are under the pointer first, in the order that they have, so that none moves away from it.
fn hold(listed: &mut [u32], classes: &Classes, held: &[Option<u32>]) {
    listed.sort_few_by_key(|i| held.iter().position(|row| *row == stack_of(classes, *i)).unwrap_or(held.len()));
}

fn stack_of(classes: &Classes, i: u32) -> Option<u32> {
    classes.classes.get(i as usize).and_then(|class| class.stack)
}

/// Returns the memory of some classes together.
fn sum(classes: &Classes, some: &[u32]) -> Memory {
    let mut sum = Memory::default();
    some.iter().filter_map(|i| classes.memory.get(*i as usize)).for_each(|memory| sum.plus(*memory));
    sum
}

/// Returns a callback that sets what the pointer is over, so that the picture shows where it is. For movements: a row that comes
/// under a pointer which rests is not pointed at.
fn hints(model: &ModelHandle, hint: Option<Selection>) -> Callback<PointerEvent> {
    let model = model.clone();
    Callback::from(move |event: PointerEvent| {
        // A finger that scrolls a list points at nothing.
        if hint.is_none() || event.pointer_type() == "mouse" {
            model.dispatch(Action::Hint(hint));
        }
    })
}

/// Returns whether two answers are of the same classes, at two moments.
fn is_alike(one: &Classes, other: &Classes) -> bool {
    let at = |moments| ClassesQuery { moments, ..one.query.clone() };
    at(other.query.moments) == other.query && one.memory.len() == other.memory.len()
}

/// Returns the indices of the classes in the order of the legend. Sizes and lifetimes are in the order of the stack,
/// with the largest and longest-lived at the bottom; all others are [`ranked`], and those that have memory at the peak of what is in
/// view alone follow.
fn listed(classes: &Classes, in_view: Option<&Classes>) -> Vec<u32> {
    let mut listed = ranked(classes);
    if let Some(in_view) = in_view {
        let is_at_cursor = |i: &u32| classes.memory.get(*i as usize).is_some_and(|memory| memory.now.count > 0);
        listed.extend(ranked(in_view).into_iter().filter(|i| !is_at_cursor(i)));
    }
    if matches!(classes.query.color_by, ColorBy::Size | ColorBy::Lifetime) {
        listed.sort_few_by_key(|i| std::cmp::Reverse(*i));
    }
    listed
}

/// Returns what the tip of a class says: its label, with the recorded value if it is named after a stream.
fn told(device: &DeviceSummary, color_by: ColorBy, class: &Class) -> String {
    let label = &class.label;
    if class.stack.is_some() {
        return format!("{label}\nShift-click to filter to it");
    }
    let streams = if color_by == ColorBy::Stream { device.streams.as_slice() } else { &[] };
    let found = streams.iter().find(|stream| stream_name(**stream, streams) == *label);
    found.map_or_else(|| label.clone(), |raw| format!("{label}: recorded as {raw}"))
}

/// Returns whether a class is what is left of the call sites: all that are too small for a class of their own.
fn is_rest(classes: &Classes, i: u32) -> bool {
    let class = classes.classes.get(i as usize);
    classes.query.color_by == ColorBy::Site && class.is_some_and(|class| class.stack.is_none())
}

/// Returns the places of the classes in the stack, the one with the most memory, or the largest growth, first, and what is left of
/// the call sites last. Classes without memory at the moment are left out.
pub fn ranked(classes: &Classes) -> Vec<u32> {
    let growth = |i: &u32| classes.memory.get(*i as usize).map(Memory::growth);
    let has_memory =
        |i: &u32| classes.memory.get(*i as usize).is_some_and(|memory| memory.now.count + memory.before.count > 0);
    let mut ranked: Vec<u32> = (0..classes.classes.len() as u32).filter(has_memory).collect();
    ranked.sort_few_by_key(|i| (is_rest(classes, *i), std::cmp::Reverse(growth(i))));
    ranked
}

#[cfg(test)]
mod tests {
    use query::{Class, Memory, Moments, Paint};
    use trace::totals::Amount;
    use trace::units::Stream;

    use super::*;

    #[test]
    fn the_largest_class_leads_and_keeps_its_number() {
        let class = Class { label: String::new(), paint: Paint::OTHER, stack: Some(1), peak_bytes: 0 };
        let memory =
            |bytes: u64| Memory { now: Amount { bytes, count: bytes.min(1) as u32 }, before: Amount::default() };
        let moments = Moments { at: 0, since: None };
        let query = ClassesQuery { moments, color_by: ColorBy::Site, filter: Vec::new(), highlight: None };
        let classes = Classes { query, classes: vec![class; 5], memory: [1, 5, 5, 2, 0].map(memory).to_vec() };
        assert_eq!((ranked(&classes), listed(&classes, None)), (vec![1, 2, 3, 0], vec![1, 2, 3, 0]));
        let in_view = Classes { memory: [0, 0, 0, 7, 9].map(memory).to_vec(), ..classes.clone() };
        assert_eq!(listed(&classes, Some(&in_view)), [1, 2, 3, 0, 4], "first by the cursor, then by the peak in view");
        assert!(is_alike(&classes, &in_view));
        let other = ClassesQuery { color_by: ColorBy::Pool, ..classes.query.clone() };
        assert!(!is_alike(&classes, &Classes { query: other, ..in_view }));
        let by_size = Classes { query: ClassesQuery { color_by: ColorBy::Size, ..classes.query.clone() }, ..classes };
        assert_eq!(listed(&by_size, None), [3, 2, 1, 0], "in the order of the scale");
        assert_eq!(sum(&by_size, &[1, 3]).now, Amount { bytes: 7, count: 2 });
        let mut others =
            Classes { query: ClassesQuery { color_by: ColorBy::Site, ..by_size.query.clone() }, ..by_size };
        others.classes[1].stack = None;
        assert_eq!(ranked(&others), [2, 3, 0, 1], "what is left of the call sites is last, however much it is");
    }

    #[test]
    fn rows_under_the_pointer_stay_in_place() {
        let class = |stack| Class { label: String::new(), paint: Paint::OTHER, stack: Some(stack), peak_bytes: 0 };
        let moments = Moments { at: 0, since: None };
        let query = ClassesQuery { moments, color_by: ColorBy::Site, filter: Vec::new(), highlight: None };
        let classes = Classes { query, classes: [7, 8, 9].map(class).into(), memory: Vec::new() };
        for (held, wanted) in [([8, 9], [1, 2, 0]), ([5, 8], [1, 2, 0]), ([9, 7], [2, 0, 1])] {
            let mut listed = [2, 0, 1];
            hold(&mut listed, &classes, &held.map(Some));
            assert_eq!(listed, wanted);
        }
    }

    #[test]
    fn a_dozen_classes_have_rows_and_the_others_share_one() {
        let all: Vec<u32> = (0..40).collect();
        for (count, rows) in [(0, 0), (12, 12), (13, 13), (14, 12), (40, 12)] {
            let (own, rest) = shortened(&all[..count]);
            assert_eq!((own.len(), rest.len()), (rows, count - rows));
        }
    }

    #[test]
    fn the_tooltip_has_what_was_recorded() {
        let device = DeviceSummary { streams: vec![Stream(0), Stream(94_534_543)], ..DeviceSummary::default() };
        let of = |color_by, stack, label: &str| {
            told(&device, color_by, &Class { label: label.to_owned(), paint: Paint::OTHER, stack, peak_bytes: 0 })
        };
        assert_eq!(
            of(ColorBy::Site, Some(7), "forward  model.py:54"),
            "forward  model.py:54\nShift-click to filter to it"
        );
        assert_eq!(of(ColorBy::Stream, None, "stream 1"), "stream 1: recorded as 94534543");
        assert_eq!(of(ColorBy::Pool, None, "stream 1"), "stream 1");
        assert_eq!(of(ColorBy::Pool, None, "large pool"), "large pool");
    }
}
