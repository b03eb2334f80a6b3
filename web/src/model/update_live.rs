//! Updates of watched sessions.

use query::link::{Link, Read};
use query::{Axis, DeviceSummary, Summary};

use super::{entry, links, select_file};
use crate::model::Tab;
use crate::model::history::with_settings;
use crate::model::live::{Live, follow, kept, reselect, resumed, shift};
use crate::model::state::{FileEntry, FileKey, Model, Phase, Shared};
use crate::model::view::{View, clamp, extent};
use crate::worker::message::{Connection, Failed, LiveStatus, MovedSelection, Stage, Trim, Update};

/// Returns the current session.
pub(super) fn live(model: &mut Model) -> Option<&mut Live> {
    let key = model.current?;
    entry(model, key)?.live.as_deref_mut()
}

pub(super) fn add(model: &mut Model, key: FileKey, session: String) {
    let phase = Phase::Loading { stage: Stage::Waiting, done: 0, total: 0, bytes_per_second: 0.0 };
    let name = format!("session {}", session.get(..8).unwrap_or_default());
    let live = Some(Box::new(Live::new(session)));
    let mut file = FileEntry::new(key, name, 0, phase, live);
    model.preferences.apply(&mut file.view);
    model.files.push(file);
    if !super::is_taken_as_base(model, key) {
        select_file(model, key);
    }
}

/// Changes a session's entry and its view, which is the model's own view while the session is shown.
fn with_view<T>(model: &mut Model, key: FileKey, change: impl FnOnce(&mut FileEntry, &mut View) -> T) -> Option<T> {
    let is_current = model.current == Some(key);
    let mut view =
        if is_current { std::mem::take(&mut model.view) } else { std::mem::take(&mut entry(model, key)?.view) };
    let result = entry(model, key).map(|file| change(file, &mut view));
    if is_current {
        model.view = view;
    } else if let Some(file) = entry(model, key) {
        file.view = view;
    }
    result
}

pub(super) fn set_status(model: &mut Model, key: FileKey, status: LiveStatus) {
    let link = link_to(model, key);
    let has_begun = with_view(model, key, |file, view| {
        let summary = file.summary().cloned();
        let Some(live) = file.live.as_deref_mut() else { return false };
        let has_come = live.set_status(status);
        file.size = live.status.held_bytes;
        if let Connection::Refused { message, .. } = &live.status.connection
            && summary.is_none()
        {
            file.phase = Phase::Failed { message: message.clone() };
            return false;
        }
        // Everything that existed has been received: follow its newest part, or show all of a session that has ended.
        if let Some(summary) = summary {
            if has_come {
                begin(live, view, &summary, link.as_ref().map(|link| &link.link));
            } else if live.is_following && !live.is_open() {
                live.is_following = false;
                live.is_ending = true;
            }
            return has_come;
        }
        false
    });
    if has_begun == Some(true) && link.is_some() {
        links::used(model);
    }
}

/// Called after a link has set the view of an open session: it is followed unless the link has a window or a cursor.
pub(super) fn follow_link(model: &mut Model, link: &Link) {
    let device = model.device().cloned();
    let Some((live, device)) = live(model).zip(device) else { return };
    (live.is_fresh, live.is_ending) = (false, false);
    live.is_following = live.is_open() && !live.is_paused && !has_place(link);
    let (is_following, span) = (live.is_following, live.span);
    if is_following {
        follow(&mut model.view, &device, span);
    }
}

/// Returns whether a link has a window or a cursor.
fn has_place(link: &Link) -> bool {
    link.window.is_some() || link.cursor.is_some()
}

/// Returns the link that waits for a session.
fn link_to(model: &Model, key: FileKey) -> Option<Box<Read>> {
    let session = &model.entry(key)?.live.as_ref()?.session;
    model.link.clone().filter(|link| link.session.as_ref() == Some(session) || !link.is_bound())
}

/// Sets the first view of a session, on the time axis: its newest events, or all of a session that has ended with the
/// cursor at the last out-of-memory event or at its end.
fn begin(live: &mut Live, view: &mut View, summary: &Summary, link: Option<&Link>) {
    let is_placed = link.is_some_and(has_place);
    if let Some(link) = link {
        *view = View::restore(link, summary);
    } else if live.is_fresh {
        let tab = view.tab;
        let first = with_settings(View::first(summary), view);
        // Without a timeline, the default tab is another one.
        *view = if tab == Tab::Timeline { first } else { View { tab, ..first } };
    }
    live.is_following &= live.is_open() && !is_placed;
    if live.is_fresh
        && !is_placed
        && let Some(device) = summary.devices.get(view.device as usize)
    {
        if device.has_times {
            view.axis = Axis::Time;
        }
        view.window = extent(device, view.axis);
        view.cursor = device.decisive_oom.unwrap_or(device.events);
        // If the job has ended, its failure matters most.
        if let Some(position) = device.decisive_oom.filter(|_| !live.is_open()) {
            view.show_before(device, position);
        }
    }
    if live.is_following {
        keep_up(live, view, summary);
    }
}

fn keep_up(live: &Live, view: &mut View, summary: &Summary) {
    if let Some(device) = summary.devices.get(view.device as usize) {
        follow(view, device, live.span);
    }
}

pub(super) fn grown(model: &mut Model, key: FileKey, grown: Update) {
    let link = link_to(model, key);
    let is_linked = link.is_some();
    model.history.shift(key, &grown.trims, grown.kept);
    let has_begun = with_view(model, key, |file, view| apply(file, view, grown, link.as_ref().map(|link| &link.link)));
    if is_linked && has_begun == Some(true) {
        links::used(model);
    }
}

/// Applies an update of a session. Returns true if its view has just been set up from everything that existed.
fn apply(file: &mut FileEntry, view: &mut View, grown: Update, link: Option<&Link>) -> bool {
    let FileEntry { phase, live: Some(live), name, diagnoses, whatif, .. } = file else { return false };
    if let Some(origin) = &grown.summary.origin
        && name.starts_with("session ")
        && !origin.name.is_empty()
    {
        name.clone_from(&origin.name);
    }
    let is_news = live.is_news(&grown);
    let Update { summary, trims, kept, oom } = grown;
    let is_first = !matches!(phase, Phase::Ready { .. });
    let shows = |device: &DeviceSummary| device.events > 0 || device.has_times || device.end.reserved > 0;
    if is_first && live.is_open() && !summary.devices.iter().any(shows) {
        // Nothing to show yet.
        return false;
    }
    let has_events = |summary: &Summary| summary.devices.iter().any(|device| device.events > 0);
    // Until the first event, there are only a state and statistics.
    let is_first_event = has_events(&summary) && matches!(phase, Phase::Ready { summary, .. } if !has_events(summary));
    let summary = Shared::new(summary);
    let is_trimmed = trims.iter().any(|trim| *trim != Trim::default());
    live.revision = live.revision.wrapping_add(1);
    if is_trimmed {
        live.epoch = live.epoch.wrapping_add(1);
        // Their positions are those of before.
        diagnoses.clear();
        *whatif = None;
        drop_oldest(live, view, &trims, kept);
        live.trims = trims;
    }
    let is_pictured = matches!(phase, Phase::Ready { is_pictured: true, .. });
    *phase = Phase::Ready { summary: summary.clone(), is_pictured };
    if is_first {
        begin(live, view, &summary, link);
        return live.status.is_caught_up;
    }
    if is_first_event && live.is_fresh {
        if view.tab == Tab::Segments {
            view.tab = Tab::Timeline;
        }
        begin(live, view, &summary, link);
    }
    if is_news && let Some(oom) = oom {
        ran_out(live, view, &summary, oom);
    } else if live.is_fresh && !live.has_caught_up {
        begin(live, view, &summary, link);
    } else if live.is_following || live.is_ending {
        keep_up(live, view, &summary);
    } else if let Some(device) = summary.devices.get(view.device as usize) {
        view.window = clamp(view.window, extent(device, view.axis));
        view.cursor = view.cursor.min(device.events);
    }
    false
}

fn drop_oldest(live: &mut Live, view: &mut View, trims: &[Trim], kept: Option<MovedSelection>) {
    if let Some(trim) = trims.get(view.device as usize) {
        shift(view, trim);
        if trim.events > 0 {
            reselect(view, kept);
        }
    }
    if let Some(oom) = live.oom.take() {
        let by = trims.get(oom.device as usize).map_or(0, |trim| trim.events);
        live.oom = oom.position.checked_sub(by).map(|position| Failed { position, ..oom });
    }
}

/// Stops the picture at an out-of-memory event.
fn ran_out(live: &mut Live, view: &mut View, summary: &Summary, oom: Failed) {
    let Failed { device, position, .. } = oom;
    let Some(found) = summary.devices.get(device as usize) else { return };
    if view.device != device {
        view.device = device;
        view.reset_to_device(summary);
    }
    follow(view, found, live.span);
    live.oom = Some(oom);
    live.is_following = false;
    live.left = view.window.length();
    // The window follows once the event's coordinate is known.
    view.cursor = position;
    view.follows_cursor = true;
}

/// Decides after a change of the view whether the session is still followed, and at what length.
pub(super) fn keep_or_stop(model: &mut Model, before: &View) {
    let Some(device) = model.device().cloned() else { return };
    let mut view = model.view.clone();
    let tab = std::mem::replace(&mut view.tab, before.tab);
    let Some(live) = live(model) else { return };
    let is_same = view == *before;
    view.tab = tab;
    live.is_fresh &= is_same;
    live.is_ending &= is_same;
    if !live.is_following {
        return;
    }
    match kept(before, &view, &device, live.span) {
        Some(span) => {
            live.span = span;
            if view.window != before.window || view.axis != before.axis || view.device != before.device {
                follow(&mut model.view, &device, span);
            }
        }
        None => {
            live.is_following = false;
            live.left = before.window.length();
        }
    }
}

pub(super) fn toggle_pause(model: &mut Model) {
    let length = model.view.window.length();
    match live(model) {
        Some(live) if live.is_paused => jump_to_now(model),
        Some(live) if live.is_open() => {
            if live.is_following {
                live.left = length;
            }
            live.is_paused = true;
            live.is_following = false;
        }
        _ => {}
    }
}

pub(super) fn jump_to_now(model: &mut Model) {
    let Some(live) = live(model) else { return };
    if !live.can_jump() {
        return;
    }
    let was_paused = std::mem::take(&mut live.is_paused);
    live.is_following = live.is_open();
    live.is_ending = !live.is_following;
    live.oom = None;
    let (span, left) = (live.span, live.left);
    let Some(device) = model.device().cloned() else { return };
    // A pause ends where it began, at what the person has zoomed to.
    let span = if was_paused { resumed(&model.view, &device, span, left) } else { span };
    if let Some(live) = self::live(model) {
        live.span = span;
    }
    follow(&mut model.view, &device, span);
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
