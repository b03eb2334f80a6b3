//! The steps that Back and Forward go through and undo takes back.
//!
//! A step is added when a person changes the file, device, tab, zoom, selection, range, search, or the moment at which two runs
//! are compared. Moving the cursor is no step, and neither is a setting such as the colouring: settings stay as they are when a
//! step is taken back. A run of changes of one kind (turns of the wheel, a key that is held, letters of a search) is one step, until the view
//! rests.
//!
//! The model itself is the current step. A step of the list is filled in when it is left, so that most changes cost
//! nothing here. The numbers of steps increase. The browser keeps a step's number with its history entry, and returns
//! it when a person goes to that entry.

use query::ComparedMoment;
use trace::limits::HISTORY_STEPS;

use super::live::{reselect, shift};
use super::state::{FileKey, Model, Shared};
use super::view::View;
use crate::worker::message::{MovedSelection, Trim};

const FILE: u8 = 1;
const DEVICE: u8 = 2;
const TAB: u8 = 4;
const ZOOM: u8 = 8;
const SELECTION: u8 = 16;
const RANGE: u8 = 32;
const SEARCH: u8 = 64;
/// The next change of the file belongs to the current step.
const ALL: u8 = u8::MAX;

/// Kinds of changes that come in runs.
const RUNS: u8 = ZOOM | SELECTION | RANGE | SEARCH;

/// Milliseconds without a change after which the next one is a step of its own.
const REST_MS: f64 = 500.0;
/// Milliseconds between two letters of a search after which the next one is a step of its own.
const TYPING_REST_MS: f64 = 2_000.0;

/// What was shown: a file and its view.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    number: u32,
    /// The file; `None` for the start page.
    file: Option<FileKey>,
    view: View,
    /// Whether a session was followed. Going back to such a step shows the newest events.
    follows: bool,
}

/// The steps, and which of them is the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    steps: Shared<Vec<Step>>,
    at: usize,
    /// The kinds of changes that would continue the current step; 0 if the view has rested.
    open: u8,
    /// Incremented with each change that adds a step or continues one.
    pub changes: u32,
}

impl Default for History {
    fn default() -> Self {
        Self::starting(0)
    }
}

impl History {
    /// Creates a history with one step, the start page, which gets the number.
    pub fn starting(number: u32) -> Self {
        let first = Step { number, file: None, view: View::default(), follows: false };
        Self { steps: Shared::new(vec![first]), at: 0, open: 0, changes: 0 }
    }

    /// Returns the number of the current step.
    pub fn number(&self) -> u32 {
        self.steps.get(self.at).map_or(0, |step| step.number)
    }

    /// Returns the numbers of the steps after a number, up to the current one. The browser has no entries for them yet.
    pub fn since(&self, number: u32) -> impl Iterator<Item = u32> {
        self.steps.iter().take(self.at + 1).map(|step| step.number).filter(move |found| *found > number)
    }

    /// Returns the milliseconds without a change after which the view rests; `None` if it rests already.
    pub fn rest_ms(&self) -> Option<f64> {
        match self.open {
            0 => None,
            SEARCH => Some(TYPING_REST_MS),
            _ => Some(REST_MS),
        }
    }

    /// Notes that the view has rested, so that the next change is a new step.
    pub(super) fn rest(&mut self) {
        self.open = 0;
    }

    /// Makes the next change of the file part of the current step, as when a link opens what it names.
    pub(super) fn join(&mut self) {
        self.open = ALL;
        self.changes = self.changes.wrapping_add(1);
    }

    fn index(&self, number: u32) -> Result<usize, usize> {
        self.steps.binary_search_by_key(&number, |step| step.number)
    }

    /// Changes a copy of the list, and keeps that.
    fn edit(&mut self, change: impl FnOnce(&mut Vec<Step>)) {
        let mut steps = (*self.steps).clone();
        change(&mut steps);
        self.steps = Shared::new(steps);
    }

    /// Fills in the current step, which is about to be left.
    fn keep(&mut self, present: Step) {
        let at = self.at;
        self.edit(|steps| {
            if let Some(step) = steps.get_mut(at) {
                *step = present;
            }
        });
    }

    /// Moves the views of a session's steps to the new positions after its oldest events were dropped.
    pub(super) fn shift(&mut self, key: FileKey, trims: &[Trim], kept: Option<MovedSelection>) {
        if trims.is_empty() || !self.steps.iter().any(|step| step.file == Some(key)) {
            return;
        }
        self.edit(|steps| {
            for Step { view, .. } in steps.iter_mut().filter(|step| step.file == Some(key)) {
                if let Some(trim) = trims.get(view.device as usize).filter(|trim| **trim != Trim::default()) {
                    shift(view, trim);
                    if trim.events > 0 {
                        reselect(view, kept);
                    }
                }
            }
        });
    }
}

/// What steps are compared by: a file, its view, and whether it is followed.
type Place<'a> = (Option<FileKey>, &'a View, bool);

fn place(model: &Model) -> Place<'_> {
    (model.current, &model.view, model.live().is_some_and(|live| live.is_following))
}

fn present(model: &Model) -> Step {
    let (file, view, follows) = place(model);
    Step { number: model.history.number(), file, view: view.clone(), follows }
}

/// Returns the kinds of the changes between two places.
fn changed((file, a, follows): Place<'_>, (other, b, also_follows): Place<'_>) -> u8 {
    if file != other {
        return FILE;
    }
    if a.device != b.device {
        return DEVICE;
    }
    // A change of the axis keeps what is visible, and the window of a followed session moves by itself.
    let is_moved = a.axis == b.axis && a.window != b.window && !(follows && also_follows);
    let is_zoomed = is_moved || follows != also_follows || a.zooms != b.zooms;
    let kinds = [
        (TAB, a.tab != b.tab || a.base != b.base),
        (ZOOM, is_zoomed),
        (SELECTION, a.selection != b.selection),
        (RANGE, a.range != b.range || a.compared != b.compared || moment(a) != moment(b)),
        (SEARCH, a.highlight != b.highlight || a.filter != b.filter),
    ];
    kinds.into_iter().filter(|(_, is_so)| *is_so).map(|(kind, _)| kind).sum()
}

const fn moment(view: &View) -> ComparedMoment {
    view.settings.compared_moment
}

/// Adds a step if an action of a person has changed what steps consist of, and continues the current step if that is
/// possible.
pub(super) fn note(before: &Model, after: &mut Model) {
    let kinds = changed(place(before), place(after));
    // A file that is being read has no view yet: only the change of the file counts.
    if kinds == 0 || kinds != FILE && after.shared_summary().is_none() {
        return;
    }
    let step = present(after);
    let history = &mut after.history;
    history.changes = history.changes.wrapping_add(1);
    let is_joined = history.open == ALL && kinds == FILE;
    if is_joined || history.open == kinds && kinds & RUNS == kinds {
        return;
    }
    history.keep(Step { number: history.number(), ..present(before) });
    let (at, number) = (history.at, history.number().saturating_add(1));
    history.edit(|steps| {
        // Steps that were taken back can no longer be reached.
        steps.truncate(at + 1);
        steps.push(Step { number, ..step });
        let excess = steps.len().saturating_sub(HISTORY_STEPS);
        steps.drain(..excess);
    });
    history.at = history.steps.len() - 1;
    history.open = kinds;
}

/// What to do when the browser has gone to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The step shows something else: go there.
    There,
    /// The step shows the same, or its file was closed: go further by this number of steps, which may be 0.
    Further(i32),
    /// No step has this number: it is from before the page was loaded again, or from very long ago.
    Unknown,
}

fn leads_anywhere(model: &Model, step: &Step) -> bool {
    let is_open = step.file.is_none_or(|key| model.entry(key).is_some());
    is_open && changed(place(model), (step.file, &step.view, step.follows)) != 0
}

/// Returns the distance from step `from` to the nearest step in a direction that shows something else; 0 if none does.
fn distance(model: &Model, from: usize, is_forward: bool) -> i32 {
    let steps = &model.history.steps;
    let mut at = from;
    loop {
        let next = if is_forward { at.checked_add(1) } else { at.checked_sub(1) };
        let Some((next, step)) = next.and_then(|next| Some((next, steps.get(next)?))) else { return 0 };
        if leads_anywhere(model, step) {
            return next as i32 - from as i32;
        }
        at = next;
    }
}

/// Returns how many steps to go back (negative) or forward to one that shows something else; 0 if there is none.
pub fn steps_to_go(model: &Model, is_forward: bool) -> i32 {
    distance(model, model.history.at, is_forward)
}

/// Returns how many steps undo (negative) or redo goes; 0 if there is none. It never leaves the shown file, as Back does.
pub fn steps_to_undo(model: &Model, is_forward: bool) -> i32 {
    let steps = steps_to_go(model, is_forward);
    let step = model.history.at.checked_add_signed(steps as isize).and_then(|at| model.history.steps.get(at));
    if model.current.is_none() || step.is_some_and(|step| step.file == model.current) { steps } else { 0 }
}

/// Returns what to do when the browser has gone to the step with a number. Back from the start page over the steps of closed files leads to
/// the first step at once.
pub fn way(model: &Model, number: u32) -> Way {
    let history = &model.history;
    let Ok(index) = history.index(number) else { return Way::Unknown };
    match history.steps.get(index) {
        Some(step) if index != history.at && leads_anywhere(model, step) => return Way::There,
        _ => {}
    }
    match distance(model, index, index > history.at) {
        0 if index < history.at => Way::Further(-(index as i32)),
        steps => Way::Further(steps),
    }
}

/// Makes the step with a number the current one, and returns its file, its view, and whether it was followed. Returns
/// `None` if there is no such step.
pub(super) fn go(model: &mut Model, number: u32) -> Option<(Option<FileKey>, View, bool)> {
    let present = present(model);
    let history = &mut model.history;
    let index = history.index(number).ok()?;
    history.keep(present);
    history.at = index;
    history.rest();
    history.steps.get(index).map(|step| (step.file, step.view.clone(), step.follows))
}

/// Adds a step for an entry of the browser's history and makes it the current one; the change that follows immediately
/// belongs to it. Without a number, the entry is a new one after the current step.
pub(super) fn adopt(model: &mut Model, number: Option<u32>) {
    let step = present(model);
    let history = &mut model.history;
    history.keep(step.clone());
    let at = history.at;
    let index = match number {
        Some(number) => history.index(number).unwrap_or_else(|index| index),
        None => at + 1,
    };
    let new = number.unwrap_or_else(|| history.number().saturating_add(1));
    history.edit(|steps| {
        if number.is_none() {
            steps.truncate(at + 1);
        }
        if steps.get(index).is_none_or(|step| step.number != new) {
            steps.insert(index.min(steps.len()), Step { number: new, ..step });
        }
    });
    history.at = index.min(history.steps.len() - 1);
    history.join();
}

/// Returns the view of a step with the current settings, but for the moment at which runs are compared.
pub(super) fn with_settings(mut step: View, now: &View) -> View {
    // A path of boxes leads nowhere in another graph.
    let graph = |view: &View| {
        (
            view.settings.flame_bottom_up,
            view.settings.flame_by_category,
            view.settings.folds,
            view.settings.flame_sandwich,
        )
    };
    if graph(&step) != graph(now) || step.settings.flame_transforms != now.settings.flame_transforms {
        step.zooms.flame.clear();
    }
    // The index of a class depends on the colouring.
    if matches!(step.selection, super::Selection::Class(_)) && step.settings.color_by != now.settings.color_by {
        step.selection = super::Selection::None;
    }
    // Pins are of a device, as positions are.
    if step.device == now.device {
        step.pins.clone_from(&now.pins);
    }
    let compared_moment = moment(&step);
    step.settings.clone_from(&now.settings);
    step.settings.compared_moment = compared_moment;
    step.flame_box.clone_from(&now.flame_box);
    step.split = now.split;
    step.baseline = now.baseline;
    step.wanted_axis = now.wanted_axis;
    step.follows_cursor = now.follows_cursor;
    step
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
