//! Hooks that ask the current file's worker.

use std::cell::RefCell;
use std::rc::Rc;

use query::{Answer, PositionAtQuery, Query};
use yew::prelude::*;

use super::{ModelHandle, use_model_of};
use crate::browser::use_effect_with;
use crate::model::{Action, FileKey, Model, Parts, rebased};

/// The addressee of a question: a file and one of its devices.
type Addressee = (FileKey, u32);

/// The version of the data that a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Age {
    /// Counts the updates of a growing session, and the better answers about a file that is being downloaded. It stays at 0
    /// for other files.
    revision: u32,
    /// Counts the changes of the user's rules of whose code a frame is.
    rules: u32,
    /// Counts how often the oldest events were dropped: positions are relative to it.
    epoch: u32,
}

impl Age {
    /// Returns the version of a file's data.
    fn of(model: &Model, key: FileKey) -> Self {
        let file = model.entry(key);
        let detail = file.and_then(|file| file.detail.as_ref()).map_or(0, |detail| detail.revision);
        let live = file.and_then(|file| file.live.as_ref());
        let (revision, epoch) = live.map_or((detail, 0), |live| (live.revision, live.epoch));
        Self { revision, rules: model.rules_revision, epoch }
    }
}

/// A question with its addressee and the version that it is about.
type Asked = (Addressee, Query, Age);

/// A query slot: what a hook keeps between renders. It has at most one question in flight and one waiting.
#[derive(Default)]
struct QuerySlot {
    /// The question that was sent and not answered yet.
    in_flight: Option<Asked>,
    /// The question to send next. It replaces an earlier one that was never sent.
    waiting: Option<Asked>,
    /// The last answer with its question.
    answered: Option<(Asked, Rc<Answer>)>,
    /// Incremented when the slot is reset, so that late answers are recognised.
    generation: u32,
}

/// Returns the answer to a question about the current device, and asks again whenever the question changes.
///
/// While a newer question is in flight, the last answer stays: each answer holds its question, so a picture is drawn
/// where it belongs. A slot has at most one question in flight and sends only the latest of those that pile up. Another
/// file or device resets it. `None` asks nothing and returns `None`.
///
/// When a session has grown, the question is asked again once the previous answer has arrived, so a slow worker is
/// asked less often. When a session drops its oldest events, the last answer is moved to its new positions.
#[hook]
pub fn use_answer(query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model_of(Parts::REST);
    let to = model.current.map(|key| (key, model.view.device));
    use_slot(model, to, query, false)
}

/// Returns the answer to a question about a device of any open file, as [`use_answer`] does.
#[hook]
pub fn use_answer_of(to: Option<(FileKey, u32)>, query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model_of(Parts::REST);
    use_slot(model, to, query, false)
}

/// Returns the answer to this very question about the current device, and never that to an earlier one: for what is done
/// once with an answer, such as moving the cursor.
#[hook]
pub fn use_exact_answer(query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model_of(Parts::REST);
    let to = model.current.map(|key| (key, model.view.device));
    use_slot(model, to, query, true)
}

/// Returns the answer to this very question about a device of any open file, as [`use_exact_answer`] does.
#[hook]
pub fn use_exact_answer_of(to: Option<(FileKey, u32)>, query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model_of(Parts::REST);
    use_slot(model, to, query, true)
}

#[hook]
fn use_slot(model: ModelHandle, to: Option<Addressee>, query: Option<Query>, is_exact: bool) -> Option<Rc<Answer>> {
    let slot = use_mut_ref(QuerySlot::default);
    let redraw = use_force_update();
    let is_read = |(key, _): &Addressee| model.entry(*key).is_some_and(|file| file.summary().is_some());
    let to = to.filter(is_read);
    let question: Option<Asked> = to.zip(query).map(|(to, query)| (to, query, Age::of(&model, to.0)));

    if let Some((_, _, age)) = question {
        slot.borrow_mut().rebase(&model, age);
    }
    let shown = slot.borrow().answered.as_ref().and_then(|((from, answered, _), answer)| {
        let is_for = |(to, query, _): &&Asked| to == from && (!is_exact || query == answered);
        question.as_ref().filter(is_for).map(|_| Rc::clone(answer))
    });
    {
        let slot = Rc::clone(&slot);
        use_effect_with(question, move |question| {
            let asker = Asker { slot, handle: model, redraw: Callback::from(move |()| redraw.force_update()) };
            asker.want(question.clone());
        });
    }
    {
        // An unmounted hook ignores late answers.
        use_effect_with((), move |()| move || slot.borrow_mut().generation += 1);
    }
    shown
}

impl QuerySlot {
    /// Moves the last answer to its new positions after a session dropped its oldest events.
    fn rebase(&mut self, model: &Model, now: Age) {
        let Some(((to, _, age), answer)) = &mut self.answered else { return };
        if age.epoch == now.epoch || model.current != Some(to.0) {
            return;
        }
        let trim = model.live().and_then(|live| live.trims.get(to.1 as usize));
        if age.epoch.wrapping_add(1) == now.epoch
            && let Some(moved) = trim.and_then(|trim| rebased(answer, trim, model.view.axis))
        {
            *answer = Rc::new(moved);
        }
        age.epoch = now.epoch;
    }
}

/// Sends the questions of a slot.
#[derive(Clone)]
struct Asker {
    slot: Rc<RefCell<QuerySlot>>,
    handle: ModelHandle,
    redraw: Callback<()>,
}

impl Asker {
    fn want(&self, question: Option<Asked>) {
        {
            let mut slot = self.slot.borrow_mut();
            let to = question.as_ref().map(|(to, ..)| *to);
            let is_elsewhere = slot.in_flight.as_ref().is_some_and(|(other, ..)| Some(*other) != to);
            if is_elsewhere {
                // The previous worker may never answer: don't wait for it.
                slot.in_flight = None;
                slot.generation += 1;
            }
            if slot.answered.as_ref().is_some_and(|((from, ..), _)| Some(*from) != to) {
                slot.answered = None;
            }
            let is_known = question.as_ref().is_some_and(|(_, query, age)| {
                slot.in_flight.is_none()
                    && slot.answered.as_ref().is_some_and(|((_, asked, then), _)| asked == query && then == age)
            });
            slot.waiting = question.filter(|_| !is_known);
        }
        self.send();
    }

    fn send(&self) {
        let (to, query, generation) = {
            let mut slot = self.slot.borrow_mut();
            if slot.in_flight.is_some() {
                return;
            }
            let Some((to, query, age)) = slot.waiting.take() else { return };
            // It may have been asked before, by another view or by this one when it was shown last.
            if let Some(answer) = self.handle.workers().recall(to.0, to.1, &query) {
                slot.answered = Some(((to, query, age), answer));
                drop(slot);
                return self.redraw.emit(());
            }
            slot.in_flight = Some((to, query.clone(), age));
            (to, query, slot.generation)
        };
        let asker = self.clone();
        let reply = Callback::from(move |answer: Rc<Answer>| asker.receive(generation, answer));
        self.handle.workers().ask(to.0, to.1, query, reply);
    }

    fn receive(&self, generation: u32, answer: Rc<Answer>) {
        {
            let mut slot = self.slot.borrow_mut();
            if slot.generation != generation {
                return;
            }
            let Some(asked) = slot.in_flight.take() else { return };
            // If events were dropped in between, the positions of this answer are out of date. The question is already
            // being sent again.
            if asked.2.epoch == Age::of(&self.handle.now(), asked.0.0).epoch {
                slot.answered = Some((asked, answer));
            }
        }
        self.send();
        self.redraw.emit(());
    }
}

/// Asks a single question about the current device. The reply comes once, or never if another file or device is shown
/// by then, or if the session has dropped its oldest events, since positions are relative to them.
pub fn ask(handle: &ModelHandle, query: Query, reply: Callback<Rc<Answer>>) {
    let Some(asked) = subject(&handle.now()) else { return };
    let ((key, device), _) = asked;
    let model = handle.clone();
    let reply = Callback::from(move |answer| {
        if subject(&model.now()) == Some(asked) {
            reply.emit(answer);
        }
    });
    handle.workers().ask(key, device, query, reply);
}

/// Moves the cursor to a coordinate of the x axis.
pub fn bring_cursor(handle: &ModelHandle, x: f64) {
    let model = handle.clone();
    let reply = Callback::from(move |answer: Rc<Answer>| {
        if let Answer::PositionAt(position) = *answer {
            model.dispatch(Action::SetCursor(position));
        }
    });
    ask(handle, Query::PositionAt(PositionAtQuery { axis: handle.now().view.axis, x }), reply);
}

/// Returns what a single question is about: the addressee, and the epoch of its positions.
fn subject(model: &Model) -> Option<(Addressee, u32)> {
    let key = model.current?;
    Some(((key, model.view.device), Age::of(model, key).epoch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{added, after, read, watched};
    use crate::model::{Action, Tab, update};
    use crate::worker::message::{Trim, Update};

    #[test]
    fn an_answer_is_of_use_for_its_file_its_device_and_its_positions() {
        let file =
            after([added(0, "a"), read(0, &[10, 10]), added(1, "b"), read(1, &[10]), Action::SelectFile(FileKey(0))]);
        let session = after(watched(2, 10));
        let grown = |trims| {
            let summary = (*session.shared_summary().unwrap().rc()).clone();
            Action::SessionUpdated {
                key: FileKey(2),
                grown: Box::new(Update { summary, trims, kept: None, oom: None }),
            }
        };
        let trimmed = grown(vec![Trim { events: 5, ..Trim::default() }]);
        for (model, action, is_same) in [
            (&file, Action::SetTab(Tab::Events), true),
            (&file, Action::SetCursor(5), true),
            (&file, Action::SetDevice(1), false),
            (&file, Action::SelectFile(FileKey(1)), false),
            (&file, Action::FileClosed(FileKey(0)), false),
            (&file, Action::ShowStart, false),
            (&session, grown(Vec::new()), true),
            (&session, trimmed, false),
        ] {
            assert_eq!(subject(model) == subject(&update(model, action.clone())), is_same, "{action:?}");
        }
    }
}
