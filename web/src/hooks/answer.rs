//! The hooks by which views ask the current file's worker.

use std::cell::RefCell;
use std::rc::Rc;

use shared::query::{Answer, Query};
use yew::prelude::*;

use super::{ModelHandle, use_model};
use crate::browser::after_next_frame;
use crate::model::{Action, FileKey, Model, Tab, rebased};
use crate::worker::client::Workers;

/// Whom a question is for: a file and a device of it.
type Addressee = (FileKey, u32);

/// What of a session that grows a question is about. A file stays at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Age {
    /// Which of its states.
    revision: u32,
    /// How often it let go of its oldest events: what a question counts from.
    epoch: u32,
}

impl Age {
    fn of(model: &Model) -> Self {
        model.live().map_or_else(Self::default, |live| Self { revision: live.revision, epoch: live.epoch })
    }
}

/// A question, for whom, and about what state.
type Asked = (Addressee, Query, Age);

/// What a hook remembers from one render to the next.
#[derive(Default)]
struct QuerySlot {
    /// What was asked and has not been answered.
    in_flight: Option<Asked>,
    /// What is to be asked next; an earlier one that was never sent is forgotten.
    waiting: Option<Asked>,
    /// The last answer, and to what.
    answered: Option<(Asked, Rc<Answer>)>,
    /// Goes up when the hook starts anew, so that late answers are told.
    generation: u32,
}

/// The answer to a question about the current device, asked again whenever the question changes.
///
/// While a newer question is out the last answer stays (each answer of a picture holds the question that it is to, so
/// it is drawn where it belongs). At most one question of a hook is out at a time, and of those that pile up only the
/// latest is asked. With another file or device everything starts anew. `None` asks nothing and yields nothing.
///
/// About a session that has grown the same question is asked again, and no sooner than it was answered: a worker that is
/// slow is asked seldom. Where the session let go of its oldest events, the last answer is moved to where it now belongs.
#[hook]
pub fn use_answer(query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model();
    let slot = use_mut_ref(QuerySlot::default);
    let redraw = use_force_update();
    let to = model.shared_summary().and(model.current).map(|key| (key, model.view.device));
    let age = Age::of(&model);
    let question: Option<Asked> = to.zip(query).map(|(to, query)| (to, query, age));

    slot.borrow_mut().catch_up(&model, age);
    let shown =
        slot.borrow().answered.as_ref().and_then(|((from, ..), answer)| {
            question.as_ref().filter(|(to, ..)| to == from).map(|_| Rc::clone(answer))
        });
    {
        let slot = Rc::clone(&slot);
        use_effect_with(question, move |question| {
            let asker = Asker { slot, handle: model, redraw: Callback::from(move |()| redraw.force_update()) };
            asker.want(question.clone());
        });
    }
    {
        // A hook that is gone wants no answer.
        use_effect_with((), move |()| move || slot.borrow_mut().generation += 1);
    }
    shown
}

impl QuerySlot {
    /// Moves the last answer to where it belongs since the session let go of its oldest events.
    fn catch_up(&mut self, model: &Model, now: Age) {
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

/// What is needed to send the next question.
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
                // The old worker may never answer: don't wait for it.
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
            slot.in_flight = Some((to, query.clone(), age));
            (to, query, slot.generation)
        };
        let asker = self.clone();
        let reply = Callback::from(move |answer| asker.receive(generation, answer));
        self.handle.workers().ask(to.0, to.1, query, reply);
    }

    fn receive(&self, generation: u32, answer: Answer) {
        {
            let mut slot = self.slot.borrow_mut();
            if slot.generation != generation {
                return;
            }
            let Some(asked) = slot.in_flight.take() else { return };
            // Asked before the oldest events were let go, answered after: positions meant something else. The question
            // is on its way again.
            if asked.2.epoch == Age::of(&self.handle.now()).epoch {
                slot.answered = Some((asked, Rc::new(answer)));
            }
        }
        self.send();
        self.redraw.emit(());
        self.picture();
    }

    /// Views of text are whole with their first answer; those that paint on a canvas say so themselves.
    fn picture(&self) {
        let model = self.handle.now();
        let slot = self.slot.borrow();
        let answer = slot.answered.as_ref().map(|(_, answer)| answer.as_ref());
        let is_whole = matches!(
            (model.view.tab, answer),
            (Tab::Events, Some(Answer::Events(_))) | (Tab::Flame, Some(Answer::Flame(_) | Answer::Refused(_)))
        );
        if is_whole {
            let handle = self.handle.clone();
            after_next_frame(move || handle.dispatch(Action::FirstPicture));
        }
    }
}

/// A way to ask a single question of the current device from an event's handler. The reply comes once, or never when
/// the file is closed first.
#[hook]
pub fn use_ask() -> Rc<dyn Fn(Query, Callback<Answer>)> {
    let model = use_model();
    Rc::new(move |query, reply| ask(&model, query, reply))
}

/// Asks a single question of the current device.
pub fn ask(handle: &ModelHandle, query: Query, reply: Callback<Answer>) {
    let workers: &Workers = handle.workers();
    let now = handle.now();
    if let Some(key) = now.current {
        workers.ask(key, now.view.device, query, reply);
    }
}
