//! The one function that changes the model. It is pure, so it is tested without a browser.

use std::rc::Rc;

use shared::analysis::own_rules::OwnRules;
use shared::diagnosis::Diagnosis;
use shared::limits::FLAME_TRANSFORMS;
use shared::limits::LINK_PINS;
use shared::order::Within;
use shared::query::{Axis, EventColumn, FlameBox, Transform, Window};

#[path = "update_live.rs"]
mod sessions;

#[path = "update_link.rs"]
mod links;

use super::action::Action;
use super::live::Span;
use super::menu::Subject;
use super::state::{Dialog, FileEntry, FileKey, Model, Phase, Shared};
use super::view::{FIRST_CURVES, MOST_SEGMENT_ZOOM, Pin, Selection, Tab, View, clamp, extent};
use super::whatif::WhatIfStep;
use super::{away, history};
use crate::worker::message::Stage;

/// The name of a shared trace until the server has sent its own.
const SHARED: &str = "Shared trace";

/// Maximum number of filters.
const CHIPS: usize = 64;

/// Returns the model after an action.
pub fn update(model: &Model, action: Action) -> Model {
    let mut next = model.clone();
    let is_gesture = action.is_gesture();
    next.preferences.hear(&action);
    match action {
        Action::FileAdded { key, name, size } => add(&mut next, key, name, size),
        Action::FileFrom { key, origin, url } => {
            if let Some(file) = entry(&mut next, key) {
                file.origin = Some(origin);
                file.url = url;
            }
        }
        Action::Offered(offer) => {
            next.offer = Some(offer);
            next.dialog = Some(Dialog::Offer);
        }
        Action::FileProgress { key, stage, done, total, bytes_per_second } => {
            if let Some(file) = entry(&mut next, key) {
                // A download may not have a size until it is complete.
                file.size = file.size.max(if stage == Stage::Reading { total.max(done) } else { 0 });
                file.phase = Phase::Loading { stage, done, total, bytes_per_second };
            }
        }
        Action::FileRefolded { key, summary } => {
            if let Some(FileEntry { phase: Phase::Ready { summary: known, .. }, .. }) = entry(&mut next, key) {
                *known = summary;
            }
        }
        Action::FileMemory { key, bytes } => {
            if let Some(file) = entry(&mut next, key) {
                file.memory = bytes;
            }
        }
        Action::PutAway(key) => away::put_away(&mut next, key),
        Action::Returned(key) => {
            if let Some(file) = entry(&mut next, key) {
                file.phase = Phase::Loading { stage: Stage::Reading, done: 0, total: file.size, bytes_per_second: 0.0 };
                file.returns = true;
            }
        }
        Action::FileKept { key, again } => {
            if let Some(file) = entry(&mut next, key) {
                file.again = again;
            }
        }
        Action::RecentListed(recent) => next.recent = recent,
        Action::FileDetail { key, detail } => {
            if let Some(file) = entry(&mut next, key) {
                file.detail = Some(detail);
            }
        }
        Action::SharedAdded { key, link } => {
            add(&mut next, key, SHARED.to_owned(), 0);
            if let Some(file) = entry(&mut next, key) {
                file.shared = Some(Box::new(link));
            }
        }
        Action::SharedNamed { key, name, bytes } => {
            if let Some(file) = entry(&mut next, key) {
                file.size = bytes;
                if !name.is_empty() {
                    file.name = name;
                }
            }
        }
        Action::SharedRefused { key, trouble } => {
            if let Some(file) = entry(&mut next, key)
                && let Some(link) = &mut file.shared
            {
                file.phase = Phase::Failed { message: trouble.sentence() };
                link.trouble = Some(trouble);
            }
        }
        Action::FileLoaded { key, summary } => links::loaded(&mut next, key, &summary),
        Action::SweepLoaded { key, sweep } => {
            if let Some(file) = entry(&mut next, key) {
                file.phase = Phase::Sweep(sweep);
            }
        }
        Action::FileHashed { key, hash } => links::hashed(&mut next, key, hash),
        Action::FileFailed { key, message } => {
            if let Some(file) = entry(&mut next, key) {
                file.phase = Phase::Failed { message };
            }
        }
        Action::FileClosed(key) => close(&mut next, key),
        Action::SessionAdded { key, session } => sessions::add(&mut next, key, session),
        Action::SessionNamed { key, name, mode } => {
            if let Some(file) = entry(&mut next, key)
                && let Some(live) = &mut file.live
            {
                live.mode = mode;
                if !name.is_empty() {
                    file.name = name;
                }
            }
        }
        Action::SessionStatus { key, status } => sessions::set_status(&mut next, key, *status),
        Action::SessionUpdated { key, grown } => sessions::grown(&mut next, key, *grown),
        Action::TogglePause => sessions::toggle_pause(&mut next),
        Action::JumpToNow => sessions::jump_to_now(&mut next),
        Action::DismissOom => {
            if let Some(live) = sessions::live(&mut next) {
                live.oom = None;
            }
        }
        Action::Diagnosed { key, device, diagnosis } => diagnosed(&mut next, key, device as usize, diagnosis),
        Action::SetVerdictOpen(is_open) => {
            if let Some(file) = next.current.and_then(|key| entry(&mut next, key)) {
                file.is_verdict_closed = !is_open;
            }
        }
        Action::WhatIf { key, step } => {
            // What a worker still says of requests that are forgotten is of no use.
            let is_wanted = |file: &&mut FileEntry| file.whatif.is_some() || !matches!(step, WhatIfStep::Heard(_));
            if let Some(file) = entry(&mut next, key).filter(is_wanted) {
                let mut whatif = file.whatif.as_deref().cloned().unwrap_or_default();
                whatif.apply(step);
                file.whatif = Some(Shared::new(whatif));
            }
        }
        Action::ShowStart => leave(&mut next),
        Action::SelectFile(key) => select_file(&mut next, key),
        Action::FirstPicture => {
            if let Some(key) = next.current
                && let Some(FileEntry { phase: Phase::Ready { is_pictured, .. }, .. }) = entry(&mut next, key)
            {
                *is_pictured = true;
            }
        }
        Action::SetTheme(theme) => next.theme = theme,
        Action::SetOwnRules(rules) => set_own_rules(&mut next, rules),
        Action::SystemTheme { is_dark } => next.is_system_dark = is_dark,
        Action::OpenDialog(dialog) => next.dialog = Some(dialog),
        Action::CloseDialog => next.dialog = None,
        Action::OpenMenu(menu) => {
            if let Subject::Frame { path, .. } = &menu.subject {
                next.view.flame_box.clone_from(path);
            }
            next.menu = Some(menu);
        }
        Action::CloseMenu => next.menu = None,
        Action::TogglePin(pin) => toggle_pin(&mut next, pin),
        Action::SetHasUploads(has) => next.has_uploads = has,
        Action::SetDetailsOpen(open) => next.is_details_open = open,
        // It is a preference and nothing else.
        Action::SetDetailsWidth(_) => {}
        Action::Notify(text) => next.notice = Some(text.into()),
        Action::DismissNotice => next.notice = None,
        Action::StepOut => step_out(&mut next),
        Action::LinkRead(link) => links::follow(&mut next, link),
        Action::ApplyWithheld => links::apply_withheld(&mut next),
        Action::StepTo(number) => step_to(&mut next, number),
        Action::StepStay(number) => drop(history::go(&mut next, number)),
        Action::StepAdopted(number) => history::adopt(&mut next, number),
        Action::StepJoined => next.history.join(),
        Action::Rested => next.history.rest(),
        other => change_view(&mut next, other),
    }
    // However its dialog was closed.
    if next.dialog != Some(Dialog::Offer) {
        next.offer = None;
    }
    // It is about what was in view.
    if next.current != model.current || next.view.tab != model.view.tab || next.dialog.is_some() {
        next.menu = None;
    }
    if is_gesture {
        history::note(model, &mut next);
    }
    next
}

/// Goes to a step.
fn step_to(model: &mut Model, number: u32) {
    let Some((file, view, follows)) = history::go(model, number) else { return };
    let Some(key) = file else { return leave(model) };
    select_file(model, key);
    let view = history::with_settings(view, &model.view);
    let Some(summary) = model.shared_summary().cloned() else {
        // It is clamped to the file once that has been read.
        model.view = view;
        return;
    };
    let mut link = view.link(summary.devices.get(view.device as usize));
    model.view = View::restore(&link, &summary);
    if follows {
        (link.window, link.cursor) = (None, None);
    }
    sessions::follow_link(model, &link);
}

/// Applies what a person does to the view, and decides whether a session is still followed.
fn change_view(model: &mut Model, action: Action) {
    let Some((is_following, span)) = model.live().map(|live| (live.is_following, live.span)) else {
        return update_view(model, action);
    };
    let before = model.view.clone();
    match action {
        // The newest event stays in place.
        Action::Zoom { factor, .. } if is_following => {
            update_view(model, Action::Zoom { factor, at: Some(before.window.end) });
        }
        // The newest events are known on both axes: nothing to look up.
        Action::SetAxis(axis) if is_following && !matches!(span, Span::Length(_)) => {
            if axis == Axis::Event || model.device().is_some_and(|device| device.has_times) {
                model.view.axis = axis;
                model.view.wanted_axis = None;
            }
        }
        other => update_view(model, other),
    }
    sessions::keep_or_stop(model, &before);
}

/// Applies an action to the view of the current file.
fn update_view(model: &mut Model, action: Action) {
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
            view.bytes = None;
            view.heatmap_offsets = None;
        }
        Action::SetBytes(bytes) => view.bytes = bytes.filter(is_real),
        Action::SetFitsRequested(requested) => {
            view.fits_requested = requested;
            view.bytes = None;
        }
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
        Action::CompareSteps(steps) => {
            view.compared = steps.map(|(a, b)| (a.min(b), a.max(b))).filter(|(a, b)| a < b);
            if view.compared.is_some() {
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
        Action::SetRangeOrder(order) => view.range_order = order,
        Action::SetComparesPeaks(peaks) => view.compares_peaks = peaks,
        Action::SetListing(listing) => view.listing = listing,
        Action::SetColorBy(color_by) => {
            view.color_by = color_by;
            // The index of a class depends on the colouring.
            if matches!(view.selection, Selection::Class(_)) {
                view.selection = Selection::None;
            }
        }
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
        Action::ToggleCurve(measure) => match view.curves.iter().position(|shown| *shown == measure) {
            Some(i) => drop(view.curves.remove(i)),
            None => view.curves.push(measure),
        },
        Action::ToggleCurves if view.curves.is_empty() => view.curves.extend(FIRST_CURVES),
        Action::ToggleCurves => view.curves.clear(),
        Action::SetSegmentLayout(layout) => view.segment_layout = layout,
        Action::SetSegmentZoom(zoom) if zoom.is_finite() => view.segment_zoom = zoom.within(1.0, MOST_SEGMENT_ZOOM),
        Action::SetSegmentsByClass(by_class) => view.segments_by_class = by_class,
        Action::SetFlameBottomUp(bottom_up) => {
            view.flame_bottom_up = bottom_up;
            unfocus(view);
        }
        Action::SetFlameByCategory(by_category) => {
            view.flame_by_category = by_category;
            unfocus(view);
        }
        Action::SetFlameAsTable(as_table) => view.flame_as_table = as_table,
        Action::SetFlameZoom(zoom) => {
            view.flame_box.clone_from(&zoom);
            view.flame_zoom = zoom;
        }
        Action::SetFolds(folds) => {
            view.folds = folds;
            unfocus(view);
        }
        Action::SetEventActions(actions) => view.event_actions = actions,
        Action::SetEventOrder(order) => view.event_order = order,
        Action::ToggleEventColumn(column) => toggle_column(view, column),
        Action::SetHeatmapSizes(by_size) => view.heatmap_sizes = by_size,
        Action::SetHeatmapPart(part) => {
            view.heatmap_part = part;
            // Offsets are those of a part.
            view.heatmap_offsets = None;
        }
        Action::AddTransform(transform) if view.flame_transforms.len() < FLAME_TRANSFORMS => {
            view.flame_transforms.push(transform);
            reroot(view);
        }
        Action::RemoveTransform(index) if index < view.flame_transforms.len() => {
            view.flame_transforms.remove(index);
            reroot(view);
        }
        Action::SetSandwich(sandwich) => {
            view.flame_sandwich = sandwich;
            reroot(view);
        }
        Action::SetFlameDiffers(differs) => view.flame_differs = differs,
        Action::SetFlameBox(path) => view.flame_box = path,
        Action::SetSegmentOrder(order) => view.segment_order = order,
        Action::SetSegmentGroup(group) => view.segment_group = group,
        Action::SetHeatmapOffsets(offsets) => view.heatmap_offsets = offsets.filter(is_real),
        // Handled by `update`, or an answer that is no longer wanted.
        _ => {}
    }
}

fn toggle_column(view: &mut View, column: EventColumn) {
    match view.hidden_columns.iter().position(|hidden| *hidden == column) {
        Some(i) => drop(view.hidden_columns.remove(i)),
        None if view.hidden_columns.len() + 1 < EventColumn::ALL.len() => {
            let is_hidden = |other: &EventColumn| *other == column || view.hidden_columns.contains(other);
            view.hidden_columns = EventColumn::ALL.into_iter().filter(is_hidden).collect();
        }
        None => {}
    }
}

/// Forgets the paths of the flame graph, which consist of boxes that are no longer there.
fn reroot(view: &mut View) {
    view.flame_zoom.clear();
    view.flame_box.clear();
}

/// Forgets the paths of the flame graph, and the transforms that have one or are about a library by its number.
fn unfocus(view: &mut View) {
    reroot(view);
    let is_of_function = |transform: &Transform| transform.parts().1 < FlameBox::FOLDED;
    view.flame_transforms
        .retain(|transform| !matches!(transform, Transform::FocusSubtree(_)) && is_of_function(transform));
}

fn is_real(window: &Window) -> bool {
    window.start.is_finite() && window.end.is_finite() && window.end > window.start
}

/// Sets the user's own rules. Libraries have other numbers then, which zoom paths consist of.
fn set_own_rules(model: &mut Model, rules: Rc<OwnRules>) {
    if model.rules != rules {
        model.rules = rules;
        model.rules_revision = model.rules_revision.wrapping_add(1);
        unfocus(&mut model.view);
        for file in &mut model.files {
            unfocus(&mut file.view);
            // A verdict names a line, and a failure the categories.
            file.diagnoses.clear();
        }
    }
}

fn entry(model: &mut Model, key: FileKey) -> Option<&mut FileEntry> {
    model.files.iter_mut().find(|file| file.key == key)
}

fn add(model: &mut Model, key: FileKey, name: String, size: u64) {
    let phase = Phase::Loading { stage: Stage::Reading, done: 0, total: size, bytes_per_second: 0.0 };
    model.files.push(FileEntry::new(key, name, size, phase, None));
    // Of several files dropped together the first is shown, unless a link waits for a later one.
    let is_idle = model.file().is_none_or(|file| !matches!(file.phase, Phase::Loading { .. }));
    let is_linked = |file: &FileEntry| links::is_awaited(model, file);
    if is_idle || (model.files.last().is_some_and(is_linked) && !model.file().is_some_and(is_linked)) {
        select_file(model, key);
    }
}

/// Keeps a diagnosis.
fn diagnosed(model: &mut Model, key: FileKey, device: usize, diagnosis: Shared<Diagnosis>) {
    let Some(file) = entry(model, key) else { return };
    let Some(devices) = file.summary().map(|summary| summary.devices.len()) else { return };
    file.diagnoses.resize(devices, None);
    if let Some(known) = file.diagnoses.get_mut(device) {
        *known = Some(diagnosis);
    }
}

fn select_file(model: &mut Model, key: FileKey) {
    if model.current == Some(key) || model.entry(key).is_none() {
        model.dialog = None;
        return;
    }
    leave(model);
    let last = model.files.iter().map(|file| file.looked_at).max().unwrap_or_default();
    model.current = Some(key);
    if let Some(file) = entry(model, key) {
        file.looked_at = last.saturating_add(1);
        model.view = file.view.clone();
    }
}

/// Shows no file, and keeps the view of the current one.
fn leave(model: &mut Model) {
    if let Some(old) = model.current.take() {
        let view = std::mem::take(&mut model.view);
        if let Some(file) = entry(model, old) {
            file.view = view;
        }
    }
    model.dialog = None;
}

fn close(model: &mut Model, key: FileKey) {
    let Some(index) = model.files.iter().position(|file| file.key == key) else { return };
    model.files.remove(index);
    if model.current == Some(key) {
        model.current = None;
        model.view = View::default();
        // The file that took its place, otherwise the one before.
        let neighbour = model.files.get(index).or(model.files.last()).map(|file| file.key);
        if let Some(neighbour) = neighbour {
            select_file(model, neighbour);
        }
    }
}

fn set_cursor(view: &mut View, position: u32) {
    view.follows_cursor = view.cursor != position;
    view.cursor = position;
}

fn toggle_pin(model: &mut Model, pin: Pin) {
    let pins = &mut model.view.pins;
    if let Some(place) = pins.iter().position(|known| known.is_at(&pin)) {
        pins.remove(place);
    } else if pins.len() < LINK_PINS {
        pins.push(pin);
        model.view.sort_pins();
    } else {
        model.notice = Some(format!("There can be {LINK_PINS} pins. Remove one to pin something else.").into());
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

/// Shows the window before a position on the timeline, with the cursor there.
fn show_position(model: &mut Model, position: u32) {
    let Some(device) = model.device().cloned() else { return };
    let view = &mut model.view;
    view.show_position(&device, position);
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

/// Closes or clears the innermost thing: an overlay first, then the search term, the selection, the range, and the zoom.
fn step_out(model: &mut Model) {
    let whole = model.device().map(|device| extent(device, model.view.axis));
    let view = &mut model.view;
    if model.menu.is_some() {
        model.menu = None;
    } else if model.dialog.is_some() {
        model.dialog = None;
    } else if model.notice.is_some() {
        model.notice = None;
    } else if view.highlight.is_some() {
        view.highlight = None;
    } else if view.selection != Selection::None {
        view.selection = Selection::None;
    } else if view.compared.is_some() {
        view.compared = None;
    } else if view.range.is_some() {
        view.range = None;
    } else if view.tab == Tab::Flame && !view.flame_zoom.is_empty() {
        view.flame_zoom.pop();
        view.flame_box.clone_from(&view.flame_zoom);
    } else if view.tab == Tab::Flame && !view.flame_box.is_empty() {
        view.flame_box.clear();
    } else if view.tab == Tab::Flame && view.flame_sandwich.is_some() {
        view.flame_sandwich = None;
    } else if view.tab == Tab::Flame && !view.flame_transforms.is_empty() {
        view.flame_transforms.pop();
        reroot(view);
    } else if view.tab == Tab::Segments && view.segment_zoom > 1.0 {
        view.segment_zoom = 1.0;
    } else if view.tab == Tab::Heatmap && view.heatmap_offsets.is_some() {
        view.heatmap_offsets = None;
    } else if let Some(whole) = whole {
        view.window = whole;
        view.bytes = None;
    }
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
