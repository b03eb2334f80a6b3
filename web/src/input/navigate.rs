//! Commands that need more than one action.

use shared::query::{Answer, Axis, EventFilter, Query};
use yew::Callback;

use crate::hooks::{ModelHandle, ask};
use crate::model::{Action, Listing, Selection};
use crate::views::details::window_of;
use crate::views::heatmap::{at_cursor, open_cell};

/// Shows the whole lifetime of the selected allocation, or the whole trace if that is shown already or no allocation is
/// selected.
pub fn fit(model: &ModelHandle) {
    let now = model.now();
    let Selection::Allocation(id) = now.view.selection else {
        model.dispatch(Action::FitAll);
        return;
    };
    let handle = model.clone();
    ask(
        model,
        Query::Allocation { id },
        Callback::from(move |answer| {
            let Answer::Allocation(detail) = answer else { return };
            let now = handle.now();
            let target = window_of(&detail, now.view.axis, now.extent());
            let before = now.view.window;
            handle.dispatch(Action::SetWindow(target));
            if handle.now().view.window == before {
                handle.dispatch(Action::FitAll);
            }
        }),
    );
}

/// Moves the cursor to the next or previous event that the filters show.
pub fn step(model: &ModelHandle, forward: bool) {
    let now = model.now();
    let filter = EventFilter { actions: now.view.event_actions.clone(), terms: now.view.filter.clone() };
    if filter == EventFilter::default() {
        model.dispatch(Action::MoveCursor(if forward { 1 } else { -1 }));
        return;
    }
    let handle = model.clone();
    ask(
        model,
        Query::StepEvent { filter, position: now.view.cursor, forward },
        Callback::from(move |answer| {
            if let Answer::Position(Some(position)) = answer {
                handle.dispatch(Action::SetCursor(position));
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
        Query::Allocation { id },
        Callback::from(move |answer| {
            if let Answer::Allocation(detail) = answer {
                let (from, to) = (detail.allocated_at.unwrap_or(0), detail.free_completed_at.unwrap_or(u32::MAX));
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
    let on_state = Callback::from(move |answer| {
        let Answer::State(state) = answer else { return };
        let model = handle.clone();
        let on_position = Callback::from(move |answer| match answer {
            Answer::Position(Some(position)) if (position > cursor) == forward && position != cursor => {
                model.dispatch(Action::ExtendRange(position));
            }
            _ => extend_by(&model, if forward { 1 } else { -1 }),
        });
        ask(&handle, Query::PositionAt { axis: Axis::Time, x: (state.time_us + by).max(0.0) }, on_position);
    });
    ask(model, Query::State { position: cursor }, on_state);
}

/// Lists the memory of the next moment: the cursor's, the peak's, growth.
pub fn next_listing(model: &ModelHandle) {
    model.dispatch(Action::SetListing(match model.now().view.listing {
        Listing::AtCursor => Listing::AtPeak,
        Listing::AtPeak => Listing::Growth,
        Listing::Growth => Listing::AtCursor,
    }));
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

/// Selects the next or previous allocation that matches the search, and moves the cursor there.
pub fn to_hit(model: &ModelHandle, forward: bool) {
    let now = model.now();
    let Some(term) = now.view.highlight.clone() else { return };
    let from = match now.view.selection {
        Selection::Allocation(id) => Some(id),
        _ => None,
    };
    let handle = model.clone();
    ask(
        model,
        Query::NextHit { term, from, forward },
        Callback::from(move |answer| {
            if let Answer::Hit(Some(hit)) = answer {
                handle.dispatch(Action::Select(Selection::Allocation(hit.allocation)));
                handle.dispatch(Action::SetCursor(hit.position));
            }
        }),
    );
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
    let is_copied = crate::widgets::copy::copy_text(&crate::address::url(&model.now()));
    let said = if is_copied && model.now().live().is_some() {
        "Link copied. It opens this session for anyone who can reach the server."
    } else if is_copied {
        "Link copied. It contains the view, not the file. The recipient needs the same file."
    } else {
        "The browser blocked copying. Copy the link from the address bar instead."
    };
    model.dispatch(Action::Notify(said.to_owned()));
}

/// Shows the segment whose memory matters most at the cursor: that with the largest gap that is too small to be usable,
/// if there is one.
pub fn to_worst_gap(model: &ModelHandle) {
    open_cell(model, at_cursor(&model.now()));
}
