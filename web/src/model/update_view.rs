//! Updates of the view of the current file: window, cursor, selection, range, filters, and what each tab shows.

use query::link::Setting;
use query::{Axis, EventColumn, FlameBox, SegmentsQuery, Transform, Window};
use trace::limits::{FLAME_TRANSFORMS, LINK_PINS};
use trace::order::Within;

use crate::model::action::Action;
use crate::model::state::Model;
use crate::model::view::{FIRST_CURVES, Pin, Selection, Tab, View, clamp};

/// Maximum number of filters.
const CHIPS: usize = 64;

/// Applies an action to the view of the current file.
pub(super) fn update(model: &mut Model, action: Action) {
    if let Action::SetDevice(device) = action {
        if let Some(summary) = model.shared_summary().cloned()
            && (device as usize) < summary.devices.len()
        {
            model.view.device = device;
            model.view.reset_to_device(&summary);
        }
        return;
    }
    let whole = model.extent();
    let (events, has_times) = model.device().map_or((0, false), |device| (device.events, device.has_times));
    let view = &mut model.view;
    match action {
        Action::SetTab(tab) => view.show(tab),
        Action::SetSplit(split) => view.split = split.filter(|split| split.tab != view.tab),
        Action::FocusView(tab) if view.tab != tab && view.shows(tab) => view.swap_focus(),
        Action::SetAxis(axis) if axis != view.axis => {
            if view.window == whole && (has_times || axis == Axis::Event) {
                // The whole trace is the whole trace on either axis: nothing to look up.
                view.axis = axis;
                view.wanted_axis = None;
                let whole = model.extent();
                model.view.window = whole;
            } else if has_times {
                view.wanted_axis = Some(axis);
            }
        }
        Action::SetAxis(_) => view.wanted_axis = None,
        Action::AxisMapped(axis, window) if view.wanted_axis == Some(axis) => {
            view.axis = axis;
            view.wanted_axis = None;
            let whole = model.extent();
            model.view.window = clamp(window, whole);
        }
        Action::SetWindow(window) => view.window = clamp(window, whole),
        Action::Pan(share) => {
            let by = share * view.window.length();
            view.window = clamp(Window { start: view.window.start + by, end: view.window.end + by }, whole);
        }
        Action::Zoom { factor, at } => view.window = zoom(view.window, factor, at, whole),
        Action::FitAll => {
            view.window = whole;
            view.zooms.bytes = None;
            view.zooms.heatmap_offsets = None;
        }
        Action::SetBytes(bytes) => view.zooms.bytes = bytes.filter(is_real),
        Action::SetCursor(position) => set_cursor(view, position.min(events)),
        Action::ShowPosition(position) => show_position(model, position.min(events)),
        Action::ShowPositions(first, last) => {
            let (first, last) = (first.min(events), last.min(events));
            let spare = f64::from(last.saturating_sub(first)) / 20.0;
            show_events(model, last, Window { start: f64::from(first) - spare, end: f64::from(last) + spare + 1.0 });
        }
        Action::ShowSegment { position, address } => {
            set_cursor(view, position.min(events));
            view.selection = Selection::Segment(address);
            view.show(Tab::Segments);
        }
        Action::MoveCursor(by) => {
            let position = i64::from(view.cursor).saturating_add(by).clamp(0, i64::from(events));
            set_cursor(view, u32::try_from(position).unwrap_or(0));
        }
        Action::CursorAt { position, x } if view.follows_cursor && view.cursor == position => {
            view.follows_cursor = false;
            view.window = reveal(view.window, x, whole);
        }
        Action::Select(selection) => view.selection = selection,
        Action::SetRange(range) => {
            view.range = range.map(|(a, b)| (a.min(b).min(events), a.max(b).min(events)));
            view.compared = None;
            if range.is_some() {
                view.selection = Selection::None;
            }
        }
        Action::MarkRange => mark_range(view),
        Action::ExtendRange(position) => extend_range(view, position.min(events)),
        Action::RenamePin(place, name) => {
            if let Some(pin) = view.pins.get_mut(place) {
                *pin = Pin::new(pin.position, pin.allocation, &name);
            }
        }
        Action::SetBaseline(baseline) => view.baseline = baseline,
        Action::Set(setting) => set(view, setting),
        Action::AddFilter(term) => {
            let term = term.trim();
            if !term.is_empty() && view.filter.len() < CHIPS && !view.filter.iter().any(|other| other == term) {
                view.filter.push(term.to_owned());
            }
        }
        Action::RemoveFilter(index) if index < view.filter.len() => {
            view.filter.remove(index);
        }
        Action::ClearFilters => view.filter.clear(),
        Action::SetHighlight(term) => view.highlight = term.filter(|term| !term.trim().is_empty()),
        Action::ToggleCurve(measure) => match view.settings.curves.iter().position(|shown| *shown == measure) {
            Some(i) => drop(view.settings.curves.remove(i)),
            None => view.settings.curves.push(measure),
        },
        Action::ToggleCurves if view.settings.curves.is_empty() => view.settings.curves.extend(FIRST_CURVES),
        Action::ToggleCurves => view.settings.curves.clear(),
        Action::SetSegmentZoom(zoom) if zoom.is_finite() => {
            view.zooms.segments = zoom.within(1.0, SegmentsQuery::MOST_ZOOM);
        }
        Action::SetFlameZoom(zoom) => {
            view.flame_box.clone_from(&zoom);
            view.zooms.flame = zoom;
        }
        Action::SetEventActions(actions) => view.settings.event_actions = actions,
        Action::SetEventOrder(order) => view.settings.event_order = order,
        Action::ToggleEventColumn(column) => toggle_column(view, column),
        Action::SetHeatmapPart(part) => {
            view.zooms.heatmap_part = part;
            // Offsets are those of a part.
            view.zooms.heatmap_offsets = None;
        }
        Action::AddTransform(transform) if view.settings.flame_transforms.len() < FLAME_TRANSFORMS => {
            view.settings.flame_transforms.push(transform);
            reroot(view);
        }
        Action::RemoveTransform(index) if index < view.settings.flame_transforms.len() => {
            view.settings.flame_transforms.remove(index);
            reroot(view);
        }
        Action::SetSandwich(sandwich) => {
            view.settings.flame_sandwich = sandwich;
            reroot(view);
        }
        Action::SetFlameBox(path) => view.flame_box = path,
        Action::SetHeatmapOffsets(offsets) => view.zooms.heatmap_offsets = offsets.filter(is_real),
        // Handled by `update`, or an answer that is no longer wanted.
        _ => {}
    }
}

fn set(view: &mut View, setting: Setting) {
    view.settings.set(setting);
    match setting {
        Setting::FitsRequested(_) => view.zooms.bytes = None,
        // The index of a class depends on the colouring.
        Setting::ColorBy(_) if matches!(view.selection, Selection::Class(_)) => view.selection = Selection::None,
        // The boxes of the flame graph are others now.
        Setting::FlameBottomUp(_) | Setting::FlameByCategory(_) | Setting::Folds(_) => unfocus(view),
        _ => {}
    }
}

fn toggle_column(view: &mut View, column: EventColumn) {
    match view.settings.hidden_columns.iter().position(|hidden| *hidden == column) {
        Some(i) => drop(view.settings.hidden_columns.remove(i)),
        None if view.settings.hidden_columns.len() + 1 < EventColumn::ALL.len() => {
            let is_hidden = |other: &EventColumn| *other == column || view.settings.hidden_columns.contains(other);
            view.settings.hidden_columns = EventColumn::ALL.into_iter().filter(is_hidden).collect();
        }
        None => {}
    }
}

/// Clears the paths of the flame graph, whose boxes no longer exist.
pub(super) fn reroot(view: &mut View) {
    view.zooms.flame.clear();
    view.flame_box.clear();
}

/// Clears the paths of the flame graph, and removes the transforms that depend on a path or on a library's number.
pub(super) fn unfocus(view: &mut View) {
    reroot(view);
    let is_of_function = |transform: &Transform| transform.parts().1 < FlameBox::FOLDED;
    view.settings
        .flame_transforms
        .retain(|transform| !matches!(transform, Transform::FocusSubtree(_)) && is_of_function(transform));
}

fn is_real(window: &Window) -> bool {
    window.start.is_finite() && window.end.is_finite() && window.end > window.start
}

fn set_cursor(view: &mut View, position: u32) {
    view.follows_cursor = view.cursor != position;
    view.cursor = position;
}

pub(super) fn toggle_pin(model: &mut Model, pin: Pin) {
    let pins = &mut model.view.pins;
    if let Some(place) = pins.iter().position(|known| known.is_at(&pin)) {
        pins.remove(place);
    } else if pins.len() < LINK_PINS {
        pins.push(pin);
        model.view.sort_pins();
    } else {
        model.notice = Some(format!("You can have at most {LINK_PINS} pins. Remove one to add another.").into());
    }
}

fn mark_range(view: &mut View) {
    let at = view.cursor;
    view.range = Some(match view.range {
        None => (at, at),
        Some((from, to)) if at <= from => (at, to),
        Some((from, to)) if at >= to => (from, at),
        Some((from, to)) if at - from < to - at => (at, to),
        Some((from, _)) => (from, at),
    });
    view.selection = Selection::None;
}

fn extend_range(view: &mut View, position: u32) {
    let fixed = match view.range {
        Some((from, to)) if view.cursor == to => from,
        Some((from, to)) if view.cursor == from => to,
        _ => view.cursor,
    };
    view.range = Some((fixed.min(position), fixed.max(position)));
    view.selection = Selection::None;
    set_cursor(view, position);
}

/// Shows the events before a position on the timeline, with the cursor at the position.
fn show_position(model: &mut Model, position: u32) {
    let Some(device) = model.device().cloned() else { return };
    let view = &mut model.view;
    view.show_before(&device, position);
    view.show(Tab::Timeline);
    view.selection = Selection::None;
}

/// Shows a window of events on the timeline, with the cursor at a position.
fn show_events(model: &mut Model, position: u32, window: Window) {
    let Some(device) = model.device().cloned() else { return };
    let view = &mut model.view;
    view.show_events(&device, position, window);
    view.show(Tab::Timeline);
    view.selection = Selection::None;
}

/// Returns the window scaled around a coordinate.
fn zoom(window: Window, factor: f64, at: Option<f64>, whole: Window) -> Window {
    if !(factor.is_finite() && factor > 0.0) {
        return window;
    }
    let middle = window.start + window.length() / 2.0;
    let at = at.filter(|x| *x >= window.start && *x <= window.end).unwrap_or(middle);
    let shorter = Window { start: at - (at - window.start) * factor, end: at + (window.end - at) * factor };
    clamp(shorter, whole)
}

/// Returns the window moved just far enough to contain a coordinate, with a tenth of its length to spare.
fn reveal(window: Window, x: f64, whole: Window) -> Window {
    let spare = window.length() / 10.0;
    let by = if x < window.start {
        x - spare - window.start
    } else if x >= window.end {
        x + spare - window.end
    } else {
        return window;
    };
    clamp(Window { start: window.start + by, end: window.end + by }, whole)
}
