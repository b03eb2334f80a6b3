//! Asks for the diagnosis of the current device, which every view reads from the model.

use std::cell::RefCell;
use std::rc::Rc;

use query::diagnosis::DiagnosisQuery;
use query::{Answer, Query};
use trace::limits::live_diagnosis_rest_ms;
use yew::prelude::*;

use super::use_model_of;
use crate::browser::{Timeout, clock_ms};
use crate::model::{Action, DataState, FileKey, Model, Parts, Shared};

/// What is diagnosed: the file, its device, and the version of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    key: FileKey,
    device: u32,
    revision: u32,
    /// Counts the changes of the user's rules of whose code a frame is.
    rules: u32,
    epoch: u32,
    /// The position of the failure that stopped the following.
    oom: Option<u32>,
}

/// What the hook keeps between renders.
#[derive(Default)]
struct Pace {
    asked: Option<Subject>,
    asked_ms: f64,
    /// When the next question about the same session may be sent.
    next_ms: f64,
    is_in_flight: bool,
    timer: Option<Timeout>,
}

/// Keeps diagnoses up to date. Those of a file's devices are asked for once, after its first picture, the current device
/// first. That of a running job is asked for as it grows, and at once when a request fails.
#[hook]
pub fn use_diagnosis() {
    let model = use_model_of(Parts::REST);
    let redraw = use_force_update();
    let pace: Rc<RefCell<Pace>> = use_mut_ref(Pace::default);
    let subject = model.current.filter(|_| model.data_state() == DataState::Ready).map(|key| {
        let live = model.live();
        let detail = model.file().and_then(|file| file.detail.as_ref()).map_or(0, |detail| detail.revision);
        Subject {
            key,
            device: next_device(&model),
            revision: live.map_or(detail, |live| live.revision),
            rules: model.rules_revision,
            epoch: live.map_or(0, |live| live.epoch),
            oom: live.and_then(|live| live.oom.as_ref()).map(|oom| oom.position),
        }
    });
    let known = model.file().and_then(|file| file.diagnoses.get(subject?.device as usize)).and_then(Option::as_ref);
    let is_known = known.is_some();
    use_effect(move || {
        let Some(subject) = subject else { return };
        let mut now = pace.borrow_mut();
        let before = now.asked.filter(|before| (before.key, before.device) == (subject.key, subject.device));
        let is_waiting = now.is_in_flight && before.is_some();
        if is_waiting || before == Some(subject) || is_known && before.is_none() {
            return;
        }
        let is_urgent = !is_known || before.is_some_and(|before| before.oom != subject.oom);
        let rest = now.next_ms - clock_ms();
        if !is_urgent && rest > 0.0 {
            let redraw = redraw.clone();
            now.timer = Some(Timeout::new(rest.ceil() as i32, move || redraw.force_update()));
            return;
        }
        now.asked = Some(subject);
        now.asked_ms = clock_ms();
        now.is_in_flight = true;
        now.timer = None;
        drop(now);
        let handle = model.clone();
        let reply = Callback::from(move |answer: Rc<Answer>| {
            {
                let mut now = pace.borrow_mut();
                if now.asked == Some(subject) {
                    now.is_in_flight = false;
                    let took = clock_ms() - now.asked_ms;
                    now.next_ms = clock_ms() + live_diagnosis_rest_ms(took);
                }
            }
            let live = handle.now();
            let epoch = live.entry(subject.key).and_then(|file| file.live.as_ref()).map_or(0, |live| live.epoch);
            let Answer::Diagnosis(diagnosis) = &*answer else { return };
            if epoch == subject.epoch {
                let (Subject { key, device, revision, .. }, diagnosis) = (subject, Shared::new((**diagnosis).clone()));
                handle.dispatch(Action::Diagnosed { key, device, diagnosis, revision });
            } else {
                // What was dropped in the meantime has moved all positions.
                pace.borrow_mut().asked = None;
                redraw.force_update();
            }
        });
        model.workers().ask(subject.key, subject.device, Query::Diagnosis(DiagnosisQuery), reply);
    });
}

/// Returns the device to diagnose next: the current one, and then the others of a file, whose findings are listed too.
fn next_device(model: &Model) -> u32 {
    let current = model.view.device;
    let Some(file) = model.file().filter(|file| file.live.is_none()) else { return current };
    let is_open = |device: &u32| file.diagnoses.get(*device as usize).is_none_or(Option::is_none);
    let devices = file.summary().map_or(0, |summary| summary.devices.len()) as u32;
    std::iter::once(current).chain(0..devices).find(is_open).unwrap_or(current)
}
