//! Commands that need more than one action.

use std::rc::Rc;

use query::{
    AllocationQuery, Answer, Axis, EventFilter, LineStep, LineStepQuery, PositionAtQuery, Query, StateQuery,
    StepEventQuery, Window,
};
use yew::Callback;

use crate::browser;
use crate::hooks::{ModelHandle, ask, window_between};
use crate::model::{Action, Listing, Selection, Setting, Side, Split};
use crate::views::details::{go_to_pin, pin_of_allocation, pin_of_moment, window_of};
use crate::views::heatmap::{at_cursor, open_cell};
use crate::views::{first_side, panel_id};

/// Shows the whole lifetime of the selected allocation or line, or else the selected range. Shows the whole trace if
/// that is shown already, or if nothing is selected.
pub fn fit(model: &ModelHandle) {
    let now = model.now();
    let (handle, shown) = (model.clone(), model.shown());
    match now.view.selection {
        Selection::Allocation(id) => {
            let reply = Callback::from(move |answer: Rc<Answer>| {
                let Answer::Allocation(detail) = &*answer else { return };
                if handle.shown() != shown {
                    return;
                }
                let now = handle.now();
                show_or_all(&handle, window_of(detail, now.view.axis, now.extent()));
            });
            ask(model, Query::Allocation(AllocationQuery { id }), reply);
        }
        Selection::Line(stack) | Selection::Site(stack) => {
            let query = LineStepQuery { stack, from: None, position: 0, forward: true };
            let reply = Callback::from(move |answer: Rc<Answer>| {
                let Answer::LineStep(Some(LineStep { life: (from, to), .. })) = *answer else { return };
                let model = handle.clone();
                let then = Callback::from(move |window| show_or_all(&model, window));
                window_between(&handle, from, to, then);
            });
            ask(model, Query::LineStep(query), reply);
        }
        _ => match now.view.extended_range() {
            Some((from, to)) => {
                let then = Callback::from(move |window| show_or_all(&handle, window));
                window_between(model, from, to, then);
            }
            None => model.dispatch(Action::FitAll),
        },
    }
}

/// Shows a window, or the whole trace if it is shown already.
fn show_or_all(model: &ModelHandle, window: Window) {
    let before = model.now().view.window;
    model.dispatch(Action::SetWindow(window));
    if model.now().view.window == before {
        model.dispatch(Action::FitAll);
    }
}

/// Selects the next or previous allocation of the same line and moves the cursor to it. Starts from the selected
/// allocation, or from the cursor if a line is selected.
pub fn step_line(model: &ModelHandle, forward: bool) {
    let view = &model.now().view;
    let position = view.cursor;
    let handle = model.clone();
    let go = move |stack, from| {
        let model = handle.clone();
        let reply = Callback::from(move |answer: Rc<Answer>| {
            if let Answer::LineStep(Some(step)) = *answer {
                model.dispatch(Action::Select(Selection::Allocation(step.allocation)));
                model.dispatch(Action::SetCursor(step.position));
            }
        });
        ask(&handle, Query::LineStep(LineStepQuery { stack, from, position, forward }), reply);
    };
    match view.selection {
        Selection::Line(stack) | Selection::Site(stack) => go(stack, None),
        Selection::Allocation(id) => {
            let reply = Callback::from(move |answer: Rc<Answer>| {
                if let Answer::Allocation(detail) = &*answer {
                    go(detail.stack, Some(id));
                }
            });
            ask(model, Query::Allocation(AllocationQuery { id }), reply);
        }
        _ => {}
    }
}

/// Pins the selected allocation, otherwise the moment at the cursor; removes the pin if it is pinned already.
pub fn toggle_pin(model: &ModelHandle) {
    let view = &model.now().view;
    let handle = model.clone();
    let query = match view.selection {
        Selection::Allocation(id) => Query::Allocation(AllocationQuery { id }),
        _ => Query::State(StateQuery { position: view.cursor }),
    };
    let reply = Callback::from(move |answer: Rc<Answer>| {
        let pin = match &*answer {
            Answer::Allocation(detail) => pin_of_allocation(detail),
            Answer::State(state) => pin_of_moment(handle.now().device(), state),
            _ => return,
        };
        handle.dispatch(Action::TogglePin(pin));
    });
    ask(model, query, reply);
}

/// Moves the cursor to the next or previous pin, and selects its allocation.
pub fn to_pin(model: &ModelHandle, forward: bool) {
    if let Some(pin) = model.now().view.next_pin(forward) {
        go_to_pin(model, pin);
    }
}

/// Moves the cursor to the next or previous event that the filters show.
pub fn step(model: &ModelHandle, forward: bool) {
    let now = model.now();
    let filter = EventFilter { actions: now.view.settings.event_actions.clone(), terms: now.view.filter.clone() };
    if filter == EventFilter::default() {
        model.dispatch(Action::MoveCursor(if forward { 1 } else { -1 }));
        return;
    }
    let handle = model.clone();
    ask(
        model,
        Query::StepEvent(StepEventQuery { filter, position: now.view.cursor, forward }),
        Callback::from(move |answer: Rc<Answer>| {
            if let Answer::StepEvent(Some(position)) = &*answer {
                handle.dispatch(Action::SetCursor(*position));
            }
        }),
    );
}

/// The share of the window by which a key extends the range.
const EXTEND: f64 = 0.02;

/// Selects the lifetime of the selected allocation as the range; without one, marks the range at the cursor.
pub fn mark_range(model: &ModelHandle) {
    let Selection::Allocation(id) = model.now().view.selection else {
        return model.dispatch(Action::MarkRange);
    };
    let handle = model.clone();
    ask(
        model,
        Query::Allocation(AllocationQuery { id }),
        Callback::from(move |answer: Rc<Answer>| {
            if let Answer::Allocation(detail) = &*answer {
                // Its own `alloc` is the first event of the range.
                let from = detail.allocated_at.unwrap_or(0).saturating_sub(1);
                let to = detail.free_completed_at.unwrap_or(u32::MAX);
                handle.dispatch(Action::SetRange(Some((from, to))));
            }
        }),
    );
}

/// Extends the range, and moves the cursor, by a number of events.
pub fn extend_by(model: &ModelHandle, events: i64) {
    let position = i64::from(model.now().view.cursor).saturating_add(events).max(0);
    model.dispatch(Action::ExtendRange(u32::try_from(position).unwrap_or(u32::MAX)));
}

/// Extends the range, and moves the cursor, by a share of the window, and at least by one event.
pub fn extend_range(model: &ModelHandle, forward: bool) {
    let now = model.now();
    let by = now.view.window.length() * if forward { EXTEND } else { -EXTEND };
    if now.view.axis == Axis::Event {
        let events = by.round() as i64;
        return extend_by(model, if events == 0 { if forward { 1 } else { -1 } } else { events });
    }
    let handle = model.clone();
    let cursor = now.view.cursor;
    let on_state = Callback::from(move |answer: Rc<Answer>| {
        let Answer::State(state) = &*answer else { return };
        let model = handle.clone();
        let on_position = Callback::from(move |answer: Rc<Answer>| match *answer {
            Answer::PositionAt(position) if (position > cursor) == forward && position != cursor => {
                model.dispatch(Action::ExtendRange(position));
            }
            _ => extend_by(&model, if forward { 1 } else { -1 }),
        });
        ask(
            &handle,
            Query::PositionAt(PositionAtQuery { axis: Axis::Time, x: (state.time_us + by).max(0.0) }),
            on_position,
        );
    });
    ask(model, Query::State(StateQuery { position: cursor }), on_state);
}

/// Lists the memory of the next moment: the cursor's, the peak's, growth.
pub fn next_listing(model: &ModelHandle) {
    model.dispatch(Action::Set(Setting::Listing(match model.now().view.settings.listing {
        Listing::AtCursor => Listing::AtPeak,
        Listing::AtPeak => Listing::Growth,
        Listing::Growth => Listing::AtCursor,
    })));
}

/// Moves the cursor to the peak of requested bytes.
pub fn to_peak(model: &ModelHandle) {
    if let Some(device) = model.now().device() {
        model.dispatch(Action::SetCursor(device.peak_position));
    }
}

/// Moves the cursor to the next out-of-memory event; after the last one, to the first.
pub fn to_next_oom(model: &ModelHandle) {
    let now = model.now();
    let Some(device) = now.device() else { return };
    let positions = || device.ooms.iter().map(|(position, _)| *position);
    let next = positions().find(|position| *position > now.view.cursor).or_else(|| positions().next());
    if let Some(position) = next {
        model.dispatch(Action::SetCursor(position));
    }
}

/// Shows a second view as the last one was, or closes it.
pub fn toggle_split(model: &ModelHandle) {
    let now = model.now();
    let split = match now.view.split {
        Some(_) => None,
        None => Some(now.preferences.second(now.view.tab, first_side())),
    };
    model.dispatch(Action::SetSplit(split));
}

/// Shows two views, the second one on a side, or puts it there.
pub fn split(model: &ModelHandle, side: Side) {
    let now = model.now();
    let split = match now.view.split {
        // The view that comes first stays first.
        Some(split) if split.side.is_before() => Split { side: side.opposite(), ..split },
        Some(split) => Split { side, ..split },
        None => Split { side, ..now.preferences.second(now.view.tab, side) },
    };
    model.dispatch(Action::SetSplit(Some(split)));
}

/// Moves the focus to the other of two views.
pub fn to_other_view(model: &ModelHandle) {
    if let Some(split) = model.now().view.split {
        model.dispatch(Action::FocusView(split.tab));
        browser::focus(&panel_id(split.tab));
    }
}

/// Turns the search term into a filter.
pub fn filter_by_search(model: &ModelHandle) {
    if let Some(term) = model.now().view.highlight.clone() {
        model.dispatch(Action::AddFilter(term));
        model.dispatch(Action::SetHighlight(None));
    }
}

/// Shows the next open file; after the last, the first.
pub fn to_next_file(model: &ModelHandle) {
    let now = model.now();
    let at = now.files.iter().position(|file| Some(file.key) == now.current).map_or(0, |i| i + 1);
    if let Some(file) = now.files.get(at).or_else(|| now.files.first()) {
        model.dispatch(Action::SelectFile(file.key));
    }
}

/// Copies the current address of the page.
pub fn copy_link(model: &ModelHandle) {
    let model = model.clone();
    let copied = match model.now().live() {
        Some(_) => "Link copied. It opens this session for anyone who can reach the server.",
        None => "Link copied. It contains the view, not the file. The recipient needs the same file.",
    };
    crate::widgets::copy::copy_text(&crate::address::url(&model.now()), move |is_copied| {
        let refused = "The browser blocked copying. Copy the link from the address bar instead.";
        model.dispatch(Action::Notify((if is_copied { copied } else { refused }).to_owned()));
    });
}

/// Shows the segment whose memory matters most at the cursor: that with the largest gap that is too small to be usable,
/// if there is one.
pub fn to_worst_gap(model: &ModelHandle) {
    open_cell(model, at_cursor(&model.now()));
}
