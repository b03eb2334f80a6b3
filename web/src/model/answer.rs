//! The hooks by which views ask the current file's worker.

use std::cell::RefCell;
use std::rc::Rc;

use shared::query::{Answer, Query};
use yew::prelude::*;

use super::{Action, FileKey, ModelHandle, Tab, use_model};
use crate::browser::after_next_frame;
use crate::hooks::use_effect_with;
use crate::worker::client::Workers;

/// Whom a question is for: a file and a device of it.
type Addressee = (FileKey, u32);

/// What a hook remembers from one render to the next.
#[derive(Default)]
struct Desk {
    /// What was asked and has not been answered.
    in_flight: Option<(Addressee, Query)>,
    /// What is to be asked next; an earlier one that was never sent is forgotten.
    waiting: Option<(Addressee, Query)>,
    /// The last answer, and to what.
    answered: Option<(Addressee, Query, Rc<Answer>)>,
    /// Goes up when the hook starts anew, so that late answers are told.
    generation: u32,
}

/// The answer to a question about the current device, asked again whenever the question changes.
///
/// While a newer question is out the last answer stays (each answer of a picture holds the question that it is to, so
/// it is drawn where it belongs). At most one question of a hook is out at a time, and of those that pile up only the
/// latest is asked. With another file or device everything starts anew. `None` asks nothing and yields nothing.
#[hook]
pub fn use_answer(query: Option<Query>) -> Option<Rc<Answer>> {
    let model = use_model();
    let desk = use_mut_ref(Desk::default);
    let redraw = use_force_update();
    let to = model.shared_summary().and(model.current).map(|key| (key, model.view.device));
    let question = to.zip(query);

    let shown = desk
        .borrow()
        .answered
        .as_ref()
        .and_then(|(from, _, answer)| question.as_ref().filter(|(to, _)| to == from).map(|_| Rc::clone(answer)));
    {
        let desk = Rc::clone(&desk);
        use_effect_with(question, move |question| {
            let asker = Asker { desk, handle: model, redraw: Callback::from(move |()| redraw.force_update()) };
            asker.want(question.clone());
        });
    }
    {
        // A hook that is gone wants no answer.
        use_effect_with((), move |()| move || desk.borrow_mut().generation += 1);
    }
    shown
}

/// What is needed to send the next question.
#[derive(Clone)]
struct Asker {
    desk: Rc<RefCell<Desk>>,
    handle: ModelHandle,
    redraw: Callback<()>,
}

impl Asker {
    fn want(&self, question: Option<(Addressee, Query)>) {
        {
            let mut desk = self.desk.borrow_mut();
            let to = question.as_ref().map(|(to, _)| *to);
            let is_elsewhere = desk.in_flight.as_ref().is_some_and(|(other, _)| Some(*other) != to);
            if is_elsewhere {
                // The old worker may never answer: don't wait for it.
                desk.in_flight = None;
                desk.generation += 1;
            }
            if desk.answered.as_ref().is_some_and(|(from, _, _)| Some(*from) != to) {
                desk.answered = None;
            }
            let is_known = question.as_ref().is_some_and(|(_, query)| {
                desk.in_flight.is_none() && desk.answered.as_ref().is_some_and(|(_, asked, _)| asked == query)
            });
            desk.waiting = question.filter(|_| !is_known);
        }
        self.send();
    }

    fn send(&self) {
        let (to, query, generation) = {
            let mut desk = self.desk.borrow_mut();
            if desk.in_flight.is_some() {
                return;
            }
            let Some((to, query)) = desk.waiting.take() else { return };
            desk.in_flight = Some((to, query.clone()));
            (to, query, desk.generation)
        };
        let asker = self.clone();
        let reply = Callback::from(move |answer| asker.receive(generation, answer));
        self.handle.workers().ask(to.0, to.1, query, reply);
    }

    fn receive(&self, generation: u32, answer: Answer) {
        {
            let mut desk = self.desk.borrow_mut();
            if desk.generation != generation {
                return;
            }
            let Some((to, query)) = desk.in_flight.take() else { return };
            desk.answered = Some((to, query, Rc::new(answer)));
        }
        self.send();
        self.redraw.emit(());
        self.picture();
    }

    /// Views of text are whole with their first answer; those that paint on a canvas say so themselves.
    fn picture(&self) {
        let model = self.handle.now();
        let desk = self.desk.borrow();
        let answer = desk.answered.as_ref().map(|(_, _, answer)| answer.as_ref());
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
pub(crate) fn ask(handle: &ModelHandle, query: Query, reply: Callback<Answer>) {
    let workers: &Workers = handle.workers();
    let now = handle.now();
    if let Some(key) = now.current {
        workers.ask(key, now.view.device, query, reply);
    }
}
