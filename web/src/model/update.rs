//! The one function that changes the model. It is pure, so it is tested without a browser.

use std::rc::Rc;

use query::diagnosis::{Cause, Diagnosis};
use query::own_rules::OwnRules;
use query::{Axis, ComparedMoment};
use trace::units::counted;

#[path = "update_live.rs"]
mod sessions;

#[path = "update_link.rs"]
mod links;

#[path = "update_view.rs"]
mod views;

use super::action::Action;
use super::base::Base;
use super::live::Span;
use super::menu::Subject;
use super::state::{Dialog, FileEntry, FileKey, Model, Notice, Phase, Shared};
use super::view::{Selection, Tab, View};
use super::whatif::WhatIfStep;
use super::{away, history};
use crate::worker::message::Stage;

/// The name of a shared trace until the server has sent its own.
const SHARED: &str = "Shared trace";

/// Returns the model after an action.
pub fn update(model: &Model, action: Action) -> Model {
    let mut next = model.clone();
    let is_gesture = action.is_gesture();
    let begins_comparison = matches!(action, Action::SetTab(Tab::Compare) | Action::SetBase(..));
    next.preferences.hear(&action);
    if matches!(action, Action::SetSplit(None)) {
        next.preferences.keep_split(model.view.split);
    }
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
                tell_of_failed(&mut next, key);
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
        Action::Diagnosed { key, device, diagnosis, revision } => {
            diagnosed(&mut next, (key, device as usize), diagnosis, revision);
        }
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
            // The paths of callers lead to no box of the graph.
            if let Subject::Frame { path, .. } = &menu.subject
                && !path.is_empty()
            {
                next.view.flame_box.clone_from(path);
            }
            next.menu = Some(menu);
        }
        Action::CloseMenu => next.menu = None,
        Action::SetBase(key, device) => next.view.base = Some(Base::Open(key, device)),
        Action::SwapBase => swap_base(&mut next),
        Action::CompareSteps(steps) => {
            // It may have said that there is no such step.
            (next.view.compared, next.notice) = (steps, None);
            if next.view.settings.compared_moment == ComparedMoment::Cursor {
                next.view.settings.compared_moment = ComparedMoment::Common;
            }
            compare_with_itself(&mut next);
        }
        Action::CompareRange(a, b) => {
            views::update(&mut next, Action::SetRange(Some((a, b))));
            next.view.settings.compared_moment = ComparedMoment::Cursor;
            compare_with_itself(&mut next);
        }
        Action::Of(of, action) => {
            return match next.beside(of) {
                Some(other) => next.with_beside(of, update(&other, *action)),
                None => next,
            };
        }
        Action::TogglePin(pin) => views::toggle_pin(&mut next, pin),
        Action::SetHasUploads(has) => next.has_uploads = has,
        Action::SetDetailsOpen(open) | Action::SetSheetOpen(open) => next.is_details_open = open,
        // Only the preferences have the width.
        Action::SetDetailsWidth(_) => {}
        Action::Hint(hint) => next.hint = hint,
        Action::Notify(text) => next.notice = Some(text.into()),
        Action::Reopening(is_reopening) => next.is_reopening = is_reopening,
        Action::Waits(Some(text)) => next.notice = Some(Notice { is_waiting: true, ..text.into() }),
        Action::Waits(None) => next.notice = next.notice.filter(|notice| !notice.is_waiting),
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
    next.settle_base();
    if begins_comparison && next.shown_base() != model.shown_base() {
        next.choose_moment();
    }
    // However its dialog was closed.
    if next.dialog != Some(Dialog::Offer) {
        next.offer = None;
    }
    // The menu closes when another file, tab or dialog is shown.
    if next.current != model.current || next.view.tab != model.view.tab || next.dialog.is_some() {
        next.menu = None;
    }
    if is_gesture {
        if next.view != model.view
            && let Some(file) = model.current.and_then(|key| entry(&mut next, key))
        {
            file.is_as_opened = false;
        }
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
        // The file is not read yet. The view waits for that.
        model.view = view;
        return;
    };
    let mut link = view.link(summary.devices.get(view.device as usize));
    let View { base, compared, tab, split, .. } = view;
    model.view = View { base, compared, tab, split, ..View::restore(&link, &summary) };
    if follows {
        (link.window, link.cursor) = (None, None);
    }
    sessions::follow_link(model, &link);
}

/// Applies what a person does to the view, and decides whether a session is still followed.
fn change_view(model: &mut Model, action: Action) {
    let Some((is_following, span)) = model.live().map(|live| (live.is_following, live.span)) else {
        return views::update(model, action);
    };
    let before = model.view.clone();
    match action {
        // The newest event stays in place.
        Action::Zoom { factor, .. } if is_following => {
            views::update(model, Action::Zoom { factor, at: Some(before.window.end) });
        }
        // The newest events are known on both axes: nothing to look up.
        Action::SetAxis(axis) if is_following && !matches!(span, Span::Length(_)) => {
            if axis == Axis::Event || model.device().is_some_and(|device| device.has_times) {
                model.view.axis = axis;
                model.view.wanted_axis = None;
            }
        }
        other => views::update(model, other),
    }
    sessions::keep_or_stop(model, &before);
}

/// Sets the user's own rules. Libraries have other numbers then, which zoom paths consist of.
fn set_own_rules(model: &mut Model, rules: Rc<OwnRules>) {
    if model.rules != rules {
        model.rules = rules;
        model.rules_revision = model.rules_revision.wrapping_add(1);
        views::unfocus(&mut model.view);
        for file in &mut model.files {
            views::unfocus(&mut file.view);
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
    if is_taken_as_base(model, key) {
        return;
    }
    // Of several files dropped together the first is shown, unless a link waits for a later one.
    let is_idle = model.file().is_none_or(|file| !matches!(file.phase, Phase::Loading { .. }));
    let is_linked = |file: &FileEntry| links::is_awaited(model, file);
    if is_idle || (model.files.last().is_some_and(is_linked) && !model.file().is_some_and(is_linked)) {
        select_file(model, key);
    }
}

/// Names a file that can't be opened while another one is shown, unless a notice waits for an answer. The one that is shown says
/// it itself.
fn tell_of_failed(model: &mut Model, key: FileKey) {
    let is_asking = model.notice.as_ref().is_some_and(|notice| notice.is_waiting || notice.withheld.is_some());
    if is_asking || model.current == Some(key) {
        return;
    }
    let Some(file) = model.entry(key) else { return };
    let Phase::Failed { message } = &file.phase else { return };
    let name = links::shortened(&file.name);
    let is_failed = |other: &&FileEntry| matches!(other.phase, Phase::Failed { .. });
    let all = model.files.iter().filter(is_failed).filter(|other| model.current != Some(other.key)).count();
    let said = match all.saturating_sub(1) {
        0 => format!("{name} can't be opened. {message}"),
        more => {
            let others = counted(more as u64, "other file");
            format!("{name} and {others} can't be opened. The menu of files has them, and each says why.")
        }
    };
    model.notice = Some(said.into());
}

/// Keeps a diagnosis. A leak shows in the whole trace, and not in the window before the failure that the file was opened with.
fn diagnosed(model: &mut Model, (key, device): (FileKey, usize), diagnosis: Shared<Diagnosis>, revision: u32) {
    let is_current = model.current == Some(key);
    let Some(file) = model.files.iter_mut().find(|file| file.key == key) else { return };
    let Some(summary) = file.summary().cloned() else { return };
    let view = if is_current { &mut model.view } else { &mut file.view };
    if let Some(of) = summary.devices.get(device)
        && diagnosis.verdict.cause == Cause::Leak
        && view.device as usize == device
        && std::mem::take(&mut file.is_as_opened)
    {
        view.show_whole(of);
    }
    if let Some(live) = &mut file.live {
        live.diagnosed = revision;
    }
    file.diagnoses.resize(summary.devices.len(), None);
    if let Some(known) = file.diagnoses.get_mut(device) {
        *known = Some(diagnosis);
    }
}

/// Compares the shown file with one that was just opened, if the comparison is shown and lacks its base. Returns whether it does.
/// If it has one, or was just begun, the new file is compared with the shown one instead.
fn is_taken_as_base(model: &mut Model, key: FileKey) -> bool {
    let Some(current) = model.current.filter(|_| model.view.shows(Tab::Compare)) else { return false };
    if let Some(base) = model.missing_base() {
        model.view.base = Some(Base::Open(key, base.device));
        return true;
    }
    let base = (current, model.view.device);
    if let Some(file) = entry(model, key) {
        file.compared_with = Some(base);
    }
    false
}

/// Shows the comparison of the shown run with itself.
fn compare_with_itself(model: &mut Model) {
    if let Some(current) = model.current {
        model.view.base = Some(Base::Open(current, model.view.device));
        model.view.show(Tab::Compare);
    }
}

/// Shows the base, and compares it with what was shown, as in the same view.
fn swap_base(model: &mut Model) {
    let Some(((key, device), current)) = model.base().zip(model.current) else { return };
    let (before, settings) = (Base::Open(current, model.view.device), model.view.settings.clone());
    select_file(model, key);
    if model.view.device != device {
        views::update(model, Action::SetDevice(device));
    }
    model.view.show(Tab::Compare);
    (model.view.base, model.view.settings) = (Some(before), settings);
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
    let file = model.files.remove(index);
    // The link named where to fetch the file. Nobody has it to drop it here.
    if file.url.is_some() && links::is_awaited(model, &file) {
        model.link = None;
    }
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

/// Closes or clears the innermost thing: an overlay first, then the search term, the selection, the range, and what a tab
/// has zoomed into. The window stays: whoever presses Esc once more to be sure has chosen it.
fn step_out(model: &mut Model) {
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
    } else if view.range.is_some() {
        view.range = None;
    } else if view.tab == Tab::Flame && !view.zooms.flame.is_empty() {
        view.zooms.flame.pop();
        view.flame_box.clone_from(&view.zooms.flame);
    } else if view.tab == Tab::Flame && !view.flame_box.is_empty() {
        view.flame_box.clear();
    } else if view.tab == Tab::Flame && view.settings.flame_sandwich.is_some() {
        view.settings.flame_sandwich = None;
    } else if view.tab == Tab::Flame && !view.settings.flame_transforms.is_empty() {
        view.settings.flame_transforms.pop();
        views::reroot(view);
    } else if view.tab == Tab::Segments && view.zooms.segments > 1.0 {
        view.zooms.segments = 1.0;
    } else if view.tab == Tab::Heatmap && view.zooms.heatmap_offsets.is_some() {
        view.zooms.heatmap_offsets = None;
    }
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
