//! Where a copy is made: in the worker of the shown file, or, for a session, in a worker of its own that reads the server's
//! recording. The page may hold only a part of a session.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Function, Promise};
use query::copy::Named;
use query::finding::FindingCode;
use query::{Answer, Axis, DeviceSummary, PositionAtQuery, Query, StateQuery, Summary};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use yew::prelude::*;

use super::moved_view::Start;
use crate::browser::use_effect_with;
use crate::hooks::ModelHandle;
use crate::model::{FileKey, Live, Model, Selection, Shared, View, extent};
use crate::source::http;
use crate::worker::client::Workers;
use crate::worker::message::{Detail, DetailState, FromWorker, Stage, ToWorker};

/// A part of the trace that can be shared alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Whether it is the selected range; otherwise it is the window.
    pub is_range: bool,
    /// Its positions.
    pub positions: Range<u32>,
}

/// The trace that is copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Its worker.
    pub key: FileKey,
    /// What the view names.
    pub named: Named,
    /// The shown device's number.
    pub device: i64,
    /// The number of devices.
    pub devices: usize,
    /// The part that is shown, if it is not the whole trace.
    pub shown: Option<Shown>,
    /// Where it begins in the trace that is shown.
    pub start: Start,
    /// The view, and the summary that it is of. A running job's go on meanwhile.
    pub view: View,
    /// See `view`.
    pub summary: Shared<Summary>,
    /// Whether its job still runs.
    pub is_running: bool,
    /// What is missing from the trace: sentences of its findings.
    pub damage: Vec<String>,
    /// Which request it answers: a running job's recording is read again each time.
    pub turn: u32,
}

impl Origin {
    /// Returns the shown device.
    pub fn shown_device(&self) -> Option<&DeviceSummary> {
        self.summary.devices.get(self.view.device as usize)
    }
}

/// Returns the sentences that say what of a trace could not be read. The end of a job that still runs is not missing.
fn damage(summary: &Summary, is_running: bool) -> Vec<String> {
    let is_damage = |code: FindingCode| match code {
        FindingCode::Truncated => !is_running,
        FindingCode::EventsLost
        | FindingCode::NamesLost
        | FindingCode::Malformed
        | FindingCode::Damaged
        | FindingCode::Inconsistent => true,
        _ => false,
    };
    let found = summary.findings.iter().filter(|finding| is_damage(finding.code));
    found.map(|finding| finding.message.clone()).take(MOST_DAMAGE).collect()
}

/// The most sentences about damage that the dialog says.
const MOST_DAMAGE: usize = 3;

/// How far the trace to be copied is.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The recording is read from the server. Holds the share that is done.
    Reading(f64),
    /// The shown trace is still being downloaded. Holds the share that is done.
    Downloading(f64),
    /// The download of the shown trace has stopped. Holds its file's key.
    Stopped(FileKey),
    /// It is there.
    Ready(Rc<Origin>),
    /// It can't be had. Holds a sentence.
    Failed(String),
}

/// Returns the trace of the file or the session that is shown when the component is mounted. With another `turn`, the
/// recording of a session is read again; until that is there, the one before is returned.
#[hook]
pub fn use_origin(model: &ModelHandle, turn: u32) -> Source {
    let source = use_state_eq(|| Source::Reading(0.0));
    let missing = model.file().and_then(|file| Some((file.key, file.missing_detail()?.clone())));
    let (model, set) = (model.clone(), source.setter());
    use_effect_with((turn, missing.is_none()), move |&(turn, is_complete)| {
        let model = model.clone();
        // A preview can't be copied.
        let current = model.current.filter(|_| is_complete);
        let workers = model.workers().clone();
        let (shown, own) = match model.live().map(|live| live.session.clone()) {
            None => (current, None),
            Some(session) => (current, Some((workers.next_key(), session))),
        };
        let (own_key, to_close) = (own.as_ref().map(|(key, _)| *key), workers.clone());
        match (shown, own) {
            (Some(key), None) => spawn_local(async move {
                if let Some(origin) = of_file(&model, key).await {
                    set.set(Source::Ready(Rc::new(origin)));
                }
            }),
            (Some(key), Some((own, session))) => read(&model, key, (own, turn), &session, &set),
            (None, _) => {}
        }
        move || match (own_key, shown) {
            (Some(own), _) => to_close.close(own),
            (None, Some(key)) => to_close.forget_copy(key),
            (None, None) => {}
        }
    });
    match missing {
        None => (*source).clone(),
        Some((key, Detail { state: DetailState::Stopped(_), .. })) => Source::Stopped(key),
        Some((_, Detail { done, total, .. })) => Source::Downloading(done as f64 / total.max(1) as f64),
    }
}

/// Returns what the view names by number.
fn named(model: &Model) -> Named {
    let view = &model.view;
    let (allocation, stack) = match view.selection {
        Selection::Allocation(number) => (Some(number), None),
        Selection::Site(stack) | Selection::Line(stack) => (None, Some(stack)),
        _ => (None, None),
    };
    Named { device: view.device, allocation, stack }
}

/// Describes the trace of a file, which is copied as it is shown.
async fn of_file(model: &ModelHandle, key: FileKey) -> Option<Origin> {
    let summary = model.shared_summary()?.clone();
    let (device, view) = (model.device()?, model.view.clone());
    let asker = Asker { workers: model.workers().clone(), key, device: view.device };
    let shown = match shown(model, &asker).await {
        Some((is_range, positions)) => (positions != (0..device.events)).then_some(Shown { is_range, positions }),
        None => None,
    };
    let (named, devices) = (named(model), summary.devices.len());
    let (start, damage) = (Start::default(), damage(&summary, false));
    Some(Origin {
        key,
        named,
        device: device.device,
        devices,
        shown,
        start,
        view,
        summary,
        is_running: false,
        damage,
        turn: 0,
    })
}

/// Returns the positions of the selected range, or of the window if there is none; and whether it is the range.
async fn shown(model: &Model, asker: &Asker) -> Option<(bool, Range<u32>)> {
    if let Some((from, to)) = model.view.extended_range() {
        return Some((true, from..to));
    }
    let (window, axis) = (model.view.window, model.view.axis);
    if window == extent(model.device()?, axis) || window.length() <= 0.0 {
        return None;
    }
    let events = model.device()?.events;
    let (from, to) = match axis {
        Axis::Event => (window.start.max(0.0) as u32, window.end.max(0.0) as u32),
        Axis::Time => (asker.position(window.start).await?, asker.position(window.end).await?),
    };
    let (from, to) = (from.min(events), to.min(events));
    (from < to).then_some((false, from..to))
}

/// Reads a session's recording from the server.
fn read(model: &ModelHandle, shown: FileKey, (own, turn): (FileKey, u32), session: &str, set: &UseStateSetter<Source>) {
    let url = http::href(&format!("sessions/{session}/trace?format=vramscope"));
    let report = {
        let (model, set) = (model.clone(), set.clone());
        Callback::from(move |message| match message {
            FromWorker::Progress { stage: Stage::Reading, done, total, .. } if turn == 0 => {
                set.set(Source::Reading(done as f64 / total.max(1) as f64));
            }
            FromWorker::Loaded(summary) => {
                let (model, set) = (model.clone(), set.clone());
                spawn_local(async move {
                    let nothing = "The server has no events of the shown device yet. Try again in a moment.";
                    let origin = of_session(&model, shown, (own, turn), &summary).await;
                    set.set(origin.map_or_else(|| Source::Failed(nothing.to_owned()), |it| Source::Ready(Rc::new(it))));
                });
            }
            FromWorker::Failed { message } => set.set(Source::Failed(message)),
            _ => {}
        })
    };
    let first = ToWorker::Fetch { url, token: http::token() };
    if let Err(message) = model.workers().open_by(own, &first, report) {
        set.set(Source::Failed(message));
    }
}

/// Describes a session's recording. The view is found in it by its times.
async fn of_session(
    handle: &ModelHandle,
    shown_key: FileKey,
    (own, turn): (FileKey, u32),
    summary: &Summary,
) -> Option<Origin> {
    let model = handle.now();
    let is_running = model.live().is_some_and(Live::is_open);
    let damage = damage(summary, is_running);
    let here = model.device().filter(|_| model.current == Some(shown_key))?;
    let at = summary.devices.iter().position(|device| device.device == here.device)?;
    let there: &DeviceSummary = summary.devices.get(at)?;
    let workers = handle.workers();
    let page = Asker { workers: workers.clone(), key: shown_key, device: model.view.device };
    let copy = Asker { workers: workers.clone(), key: own, device: at as u32 };
    let us = here.start_us.saturating_sub(there.start_us) as f64;
    let is_whole = model.live().is_some_and(|live| live.status.dropped_events == 0 && !live.status.is_late);
    let events = if is_whole {
        0
    } else {
        let cursor = model.view.cursor;
        i64::from(copy.position(page.time(cursor).await? + us).await?) - i64::from(cursor)
    };
    let shown = shown(&model, &page).await.map(|(is_range, positions)| {
        let there = |position: u32| u32::try_from((i64::from(position) + events).max(0)).unwrap_or(u32::MAX);
        Shown { is_range, positions: there(positions.start)..there(positions.end) }
    });
    let shown = shown.filter(|shown| shown.positions != (0..there.events));
    let Named { allocation, stack, .. } = named(&model);
    // Numbers are those of the recording only if both begin with the same event.
    let of_whole = |number: Option<u32>| number.filter(|_| is_whole);
    let named = Named { device: at as u32, allocation: of_whole(allocation), stack: of_whole(stack) };
    let (device, devices) = (there.device, summary.devices.len());
    let (view, summary) = (model.view.clone(), model.shared_summary()?.clone());
    let start = Start { events, us };
    Some(Origin { key: own, named, device, devices, shown, start, view, summary, is_running, damage, turn })
}

/// Asks a worker about one device.
struct Asker {
    workers: Workers,
    key: FileKey,
    device: u32,
}

impl Asker {
    /// Returns the position at a time.
    async fn position(&self, us: f64) -> Option<u32> {
        match *self.answer(Query::PositionAt(PositionAtQuery { axis: Axis::Time, x: us.max(0.0) })).await? {
            Answer::PositionAt(position) => Some(position),
            _ => None,
        }
    }

    /// Returns the time of a position.
    async fn time(&self, position: u32) -> Option<f64> {
        match &*self.answer(Query::State(StateQuery { position })).await? {
            Answer::State(state) => Some(state.time_us),
            _ => None,
        }
    }

    async fn answer(&self, query: Query) -> Option<Rc<Answer>> {
        let found: Rc<RefCell<Option<Rc<Answer>>>> = Rc::default();
        let promise = Promise::new(&mut |resolve: Function, _| {
            let found = Rc::clone(&found);
            let reply = Callback::from(move |answer| {
                *found.borrow_mut() = Some(answer);
                // A promise's own function never throws.
                let _ = resolve.call0(&JsValue::NULL);
            });
            self.workers.ask(self.key, self.device, query.clone(), reply);
        });
        JsFuture::from(promise).await.ok()?;
        found.take()
    }
}
