//! The event list. It may have millions of rows, of which only the visible ones are requested.

mod actions;
mod columns;
mod filters;
mod glyph;
mod lost;
mod row;

use std::rc::Rc;

use actions::action_toggles;
use columns::{column_menu, fitting, head};
use filters::FilterForm;
pub use glyph::glyph;
pub use lost::sentence as lost_sentence;
use query::{
    Answer, EventColumn, EventFilter, EventOrder, EventRow, EventTextQuery, EventsQuery, ListRow, PartnerQuery, Query,
};
use row::{Row, RowAction};
use trace::units::{Count, Stream, counted};
use yew::prelude::*;

use super::description::Description;
use crate::browser::{has_selected_text, use_effect_with, use_size};
use crate::hooks::{ModelHandle, ask, use_answer, use_model_of, use_palette};
use crate::model::{Action, Parts, Selection};
use crate::views::controls::use_first_picture;
use crate::views::status::no_events_view;
use crate::widgets::chips::toggle;
use crate::widgets::copy::{NOT_COPIED, copy_text};
use crate::widgets::empty::empty;
use crate::widgets::style::set_style;
use crate::widgets::toolbar::Toolbar;
use crate::widgets::virtual_list::use_virtual_list;

/// What would fill an empty list.
/// Rows are requested in pages that start at a multiple of this, so that scrolling a little requests nothing.
const PAGE_ROWS: u32 = 64;
/// Additional rows requested on each side of the visible ones.
const SPARE_ROWS: u32 = 64;

/// Returns the rows to request when `first..end` are visible: first row and count.
fn page_around(first: u32, end: u32) -> (u32, u32) {
    let start = first.saturating_sub(SPARE_ROWS) / PAGE_ROWS * PAGE_ROWS;
    let stop = end.saturating_add(SPARE_ROWS).div_ceil(PAGE_ROWS).saturating_mul(PAGE_ROWS);
    (start, stop.saturating_sub(start))
}

/// Returns the query for some rows of the list.
fn rows_of(filter: &EventFilter, order: EventOrder, first: u32, count: u32, locate: u32) -> Query {
    let filter = filter.clone();
    if order == EventOrder::default() {
        return Query::Events(EventsQuery { order: EventOrder::default(), filter, first, count, locate });
    }
    Query::Events(EventsQuery { filter, order, first, count, locate })
}

/// What a screen reader hears of the event list.
pub const DESCRIPTION: Description = Description {
    question: |model, moment| {
        let (actions, terms) = (model.view.settings.event_actions.clone(), model.view.filter.clone());
        Some(Query::Events(EventsQuery {
            filter: EventFilter { actions, terms },
            order: EventOrder::default(),
            first: 0,
            count: 0,
            locate: moment.position,
        }))
    },
    text: |model, known| {
        let Some(Answer::Events(events)) = known.answer else { return String::new() };
        let row = Count(events.located.map_or(0, |row| u64::from(row) + 1));
        // The cursor of a job that is followed is at the newest event, whose row is the last one. More rows have come since.
        if model.live().is_some_and(|live| live.is_following) {
            format!("Events: row {row}, the last. ")
        } else {
            format!("Events: row {row} of {}. ", Count(events.total.into()))
        }
    },
};

/// The events tab.
#[component]
pub fn Events() -> Html {
    let model = use_model_of(Parts::PLACE);
    let cursor = model.view.cursor;
    let filter = EventFilter { actions: model.view.settings.event_actions.clone(), terms: model.view.filter.clone() };
    let is_filtered = filter != EventFilter::default();
    let (events, lost) = model.device().map_or((0, 0), |device| (device.events, device.lost));
    // Row numbers are event numbers only if nothing is filtered and no event is lost.
    let order = model.view.settings.event_order;
    let is_plain = !is_filtered && lost == 0 && order == EventOrder::default();
    let is_filtering = use_state_eq(|| false);

    let located = use_answer((!is_plain).then(|| rows_of(&filter, order, 0, 0, cursor)));
    let (rows, at) = match located.as_deref() {
        _ if is_plain => (events, cursor.checked_sub(1)),
        Some(Answer::Events(found)) => (found.total, found.located),
        _ => (0, None),
    };
    let is_live = model.live().is_some_and(|live| live.is_open() && !live.is_paused);
    let is_following = is_live && model.live().is_some_and(|live| live.is_following);
    // A list that is sorted anew is read from its top. It follows the cursor once that moves.
    let is_by_column = !matches!(order.by, EventColumn::Number | EventColumn::Time);
    let sorted_at = use_memo((filter.clone(), order), |_| cursor);
    let list = use_virtual_list(rows, at.filter(|_| !is_by_column || cursor != *sorted_at), is_following);
    {
        let list = list.clone();
        use_effect_with((filter.clone(), order), move |_| {
            if is_by_column {
                list.to_top();
            }
        });
    }
    let (first, count) = page_around(list.visible.start, list.visible.end);
    let page = use_answer((rows > 0 && !list.visible.is_empty()).then(|| rows_of(&filter, order, first, count, 0)));
    // Until the engine has sorted the list, the rows stay in the previous order.
    let is_sorting = matches!(page.as_deref(), Some(Answer::Events(page)) if page.order != order);

    let node = use_node_ref();
    let width = use_size(&node).width;
    let (columns, template) = fitting(&model.view.settings.hidden_columns, width);
    {
        let node = node.clone();
        use_effect_with(template, move |template| set_style(&node, "--event-columns", template));
    }

    // If the cursor's row is on the screen, its number is known without waiting for an answer.
    let at = page.as_deref().and_then(|page| row_of(page, cursor)).or(at);

    let go = {
        let (model, page, filter) = (model.clone(), page.clone(), filter.clone());
        // Keys select a row by number; its event may have to be requested.
        Callback::from(move |row: u32| {
            if let Some(row) = page.as_deref().and_then(|page| row_at(page, row)) {
                stand_on(&model, row);
                return;
            }
            if is_plain {
                model.dispatch(Action::SetCursor(row.saturating_add(1)));
            }
            let (now, asked_at) = (model.clone(), model.now().view.cursor);
            let reply = Callback::from(move |answer: Rc<Answer>| {
                // Another key has moved the cursor since.
                if let Answer::Events(page) = &*answer
                    && let Some(row) = page.rows.first()
                    && now.now().view.cursor == asked_at
                {
                    stand_on(&now, row);
                }
            });
            ask(&model, rows_of(&filter, order, row, 1, 0), reply);
        })
    };
    // Without events there is nothing to wait for.
    let is_answered = [&page, &located].into_iter().any(|answer| matches!(answer.as_deref(), Some(Answer::Events(_))));
    use_first_picture(&model, events == 0 || is_answered);
    let onkeydown = {
        let (model, page, list) = (model.clone(), page.clone(), list.clone());
        Callback::from(move |event: KeyboardEvent| {
            let is_copy =
                (event.ctrl_key() || event.meta_key()) && !event.shift_key() && event.key().eq_ignore_ascii_case("c");
            if is_copy && !has_selected_text() {
                event.prevent_default();
                event.stop_propagation();
                return copy_event(&model);
            }
            let Some(mut row) = list.step(&event, at) else { return };
            let shown = page.as_deref().and_then(|page| row_at(page, row));
            // A row of lost events is skipped: the cursor is already before it.
            if event.key() == "ArrowDown" && shown.is_some_and(|row| row.event().is_none()) && row + 1 < rows {
                row += 1;
                list.move_to(row);
            }
            go.emit(row);
        })
    };
    // A stable callback, so that unchanged rows are not rendered again.
    let on_action = {
        let model = model.clone();
        use_callback((), move |action: RowAction, ()| match action {
            RowAction::Stand(row) => stand_on(&model, &row),
            RowAction::Copy(index) => copy_at(&model, index),
            RowAction::Partner(row, position) => {
                model.dispatch(Action::SetCursor(position));
                model.dispatch(Action::Select(row.event().map_or(Selection::None, subject)));
            }
        })
    };
    let on_filter = {
        let is_filtering = is_filtering.clone();
        Callback::from(move |()| is_filtering.set(!*is_filtering))
    };
    let is_followed = is_following && !list.is_away;
    let on_follow = {
        let (model, list) = (model.clone(), list.clone());
        Callback::from(move |()| {
            if is_followed {
                // Moving the cursor back by one event stops the following.
                model.dispatch(Action::SetCursor(model.now().view.cursor.saturating_sub(1)));
            } else {
                list.stay();
                model.dispatch(Action::JumpToNow);
            }
        })
    };

    let palette = use_palette();
    let streams: Rc<[Stream]> = model.device().map_or_else(Rc::default, |device| device.streams.as_slice().into());
    let selected = match model.view.selection {
        Selection::Allocation(id) => Some(id),
        _ => None,
    };
    let has_times = model.device().is_some_and(|device| device.has_times);
    let html_rows = list.visible.clone().map(|number| {
        let shown = page.as_deref().and_then(|page| row_at(page, number)).cloned();
        let event = shown.as_ref().and_then(ListRow::event);
        let is_cursor = match &shown {
            Some(row) => event.is_some() && row.position() == cursor,
            None => at == Some(number) && is_plain,
        };
        let is_selected = selected.is_some() && event.is_some_and(|event| event.allocation == selected);
        html! {
            <Row key={number} {number} {shown} columns={columns.clone()} {is_cursor} {is_selected} {has_times} palette={palette.clone()} streams={streams.clone()}
                on_action={on_action.clone()} />
        }
    });

    html! {
        <section class="events" ref={node} data-testid="events">
            <Toolbar label="Events">
                { action_toggles(&model) }
                <div class="toggles">
                    if is_live {
                        { toggle(is_followed, &on_follow, "events-follow", Some("Show new events as they come"), html! { "Follow" }) }
                    }
                    { toggle(*is_filtering, &on_filter, "events-filter", Some("Filter by line, size or stream"), html! { "Filter…" }) }
                    { column_menu(&model, &columns) }
                </div>
                <span class="toolbar-note" data-testid="events-count">
                    if is_filtered {
                        { format!("{} of {}", Count(rows.into()), counted(events.into(), "event")) }
                    } else {
                        { counted(events.into(), "event") }
                    }
                    if lost > 0 {
                        <b class="bar-lost">{ format!(" · {} lost", Count(lost)) }</b>
                    }
                    if is_sorting {
                        { " · sorting…" }
                    }
                </span>
            </Toolbar>
            if *is_filtering {
                <FilterForm on_close={on_filter.clone()} />
            }
            if events == 0 {
                { no_events_view(&model) }
            } else if rows == 0 && located.is_some() {
                { empty("No events match the filter.", "Remove a filter to see more.", false) }
            } else {
                <div class="grid" role="grid" tabindex="0" aria-label="Events" aria-rowcount={(u64::from(rows) + 1).to_string()}
                    aria-activedescendant={at.map(|at| format!("event-row-{at}"))} aria-busy={is_sorting.to_string()} {onkeydown}>
                    { head(&model, &columns) }
                    { list.wrap("rowgroup", html_rows.collect()) }
                </div>
            }
        </section>
    }
}

/// Moves the cursor to just after an event and selects its subject, or to just before lost events.
fn stand_on(model: &ModelHandle, row: &ListRow) {
    model.dispatch(Action::SetCursor(row.position()));
    model.dispatch(Action::Select(row.event().map_or(Selection::None, subject)));
}

/// Copies the event before the cursor.
pub fn copy_event(model: &ModelHandle) {
    if let Some(index) = model.now().view.cursor.checked_sub(1) {
        copy_at(model, index);
    }
}

/// Copies an event: a line with its exact numbers, and its stack.
fn copy_at(model: &ModelHandle, index: u32) {
    let handle = model.clone();
    let reply = Callback::from(move |answer: Rc<Answer>| {
        let Answer::EventText(Some(text)) = &*answer else { return };
        let handle = handle.clone();
        copy_text(text, move |is_copied| {
            let copied = || format!("Copied event {}", Count(u64::from(index) + 1));
            handle.dispatch(Action::Notify(if is_copied { copied() } else { NOT_COPIED.to_owned() }));
        });
    });
    ask(model, Query::EventText(EventTextQuery { index }), reply);
}

/// Moves the cursor to the free of the allocation that it stands behind, or from the free to the allocation.
pub fn to_partner(model: &ModelHandle) {
    let handle = model.clone();
    let reply = Callback::from(move |answer: Rc<Answer>| match *answer {
        Answer::Partner(Some(position)) => handle.dispatch(Action::SetCursor(position)),
        Answer::Partner(None) => {
            handle.dispatch(Action::Notify("The trace has no matching alloc or free for this event.".to_owned()));
        }
        _ => {}
    });
    ask(model, Query::Partner(PartnerQuery { position: model.now().view.cursor }), reply);
}

/// Returns the subject of an event.
fn subject(event: &EventRow) -> Selection {
    let is_segment = trace::event::Action::from_name(&event.action).is_some_and(trace::event::Action::is_segment);
    match event.allocation {
        Some(id) => Selection::Allocation(id),
        None if is_segment => Selection::Segment(event.address),
        None => Selection::None,
    }
}

/// Returns a row, if the answer has it.
fn row_at(answer: &Answer, row: u32) -> Option<&ListRow> {
    match answer {
        Answer::Events(page) => page.rows.get(row.checked_sub(page.first)? as usize),
        _ => None,
    }
}

/// Returns the row of the event at a position, if the answer has it.
fn row_of(answer: &Answer, position: u32) -> Option<u32> {
    let Answer::Events(page) = answer else { return None };
    let i = page.rows.iter().position(|row| row.event().is_some() && row.position() == position)?;
    Some(page.first + i as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_covers_what_is_visible_and_changes_seldom() {
        for (first, end) in [(0, 30), (63, 93), (64, 94), (1000, 1031), (5_399_970, 5_400_000)] {
            let (start, count) = page_around(first, end);
            assert!(start <= first && start + count >= end + SPARE_ROWS, "{first}..{end}: {start} + {count}");
            assert!(start == 0 || first - start >= SPARE_ROWS);
            assert!(count <= 5 * PAGE_ROWS, "{count} rows for {first}..{end}");
        }
        assert_eq!(page_around(200, 230), page_around(210, 240));
    }
}
