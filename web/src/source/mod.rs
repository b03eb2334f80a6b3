//! The sources of data: files that are dropped, picked or fetched as the sample, and sessions of the page's server. Each
//! is handed to a worker of its own; nothing of a trace leaves the browser. Texts go to the page's server, which explains them.

mod drop;
mod embedded;
mod fragment;
pub mod http;
pub mod json;
mod message;
mod picker;
mod place;
mod recent;
mod run;
mod sample;
pub mod server;
mod shared_trace;
pub mod shares;
mod text;
pub mod uploads;
mod url;
mod watch;

use std::cell::RefCell;

pub use drop::DropZone;
pub use embedded::open_embedded;
pub use fragment::{open_named, part, take_token};
pub use message::{accept_message, listen, refuse_message};
pub use picker::{file_picker, pick};
pub use place::place;
use query::link::{BaseRun, RunId};
pub use recent::{begin_recent, forget, open_recent, reopen_linked, set_recent, stop_waiting, use_recent};
pub use run::open_run;
pub use sample::open_sample;
pub use shared_trace::{download_on, open_again, open_shared, token_of_page, unlock};
pub use text::take_text;
use text::{explain_file, is_text};
use trace::order::Within;
pub use url::{accept_address, fetch_again, offer_address, parameters_for, refuse_address};
use wasm_bindgen::JsValue;
pub use watch::{ask_history, fetch_older, watch, watch_demo};
use web_sys::File;
use yew::Callback;

use crate::browser::{after_next_frame, clock_ms, rest_then};
use crate::hooks::ModelHandle;
use crate::model::{Action, FileKey, Model, Phase, Selection, Shared, Tab, next_to_read};
use crate::worker::message::{FromWorker, Stage};

/// Opens files, each in a worker of its own.
pub fn open(model: &ModelHandle, files: impl IntoIterator<Item = File>) {
    for file in files {
        open_one(model, &file, JsValue::UNDEFINED);
    }
}

thread_local! {
    /// The files that were opened, to know them again.
    static OPENED: RefCell<Vec<(FileKey, File)>> = const { RefCell::new(Vec::new()) };
}

/// Opens a file in a worker of its own, and keeps it for a later visit, by its handle if there is one. Shows it if it is open
/// already.
fn open_one(model: &ModelHandle, file: &File, handle: JsValue) {
    let facts = |file: &File| (file.name(), file.size(), file.last_modified());
    let now = model.now();
    if now.place.has_server() && is_text(file) {
        return explain_file(model, file);
    }
    let same = OPENED.with_borrow_mut(|opened| {
        opened.retain(|(key, _)| now.entry(*key).is_some());
        opened.iter().find(|(_, other)| facts(other) == facts(file)).map(|(key, _)| *key)
    });
    if let Some(key) = same {
        if !matches!(now.entry(key).map(|file| &file.phase), Some(Phase::Failed { .. })) {
            return show(model, key);
        }
        // The browser may be able to read it by now.
        close(model, key);
    }
    let key = open_unkept(model, file);
    OPENED.with_borrow_mut(|opened| opened.push((key, file.clone())));
    recent::remember(key, file, handle);
}

/// Shows a file that is open already, or compares the shown one with it while that is what is shown.
fn show(model: &ModelHandle, key: FileKey) {
    let now = model.now();
    let is_other = now.current.is_some_and(|current| current != key) && now.view.shows(Tab::Compare);
    model.dispatch(if is_other { Action::SetBase(key, 0) } else { Action::SelectFile(key) });
}

/// Opens the run of a link that the shown one is compared with, if it is there without a person's help.
pub fn open_base(model: &ModelHandle, base: &BaseRun) {
    match &base.id {
        RunId::Shared(token) if model.place.has_server() => open_shared(model, token),
        RunId::Session(session) if model.place.has_server() => watch(model, session),
        RunId::File(hash) => recent::open_with(model, *hash),
        RunId::Name | RunId::Shared(_) | RunId::Session(_) => {}
    }
}

/// Opens a file in a worker of its own, once fewer others are being read. Returns its key.
fn open_unkept(model: &ModelHandle, file: &File) -> FileKey {
    let key = model.workers().next_key();
    model.dispatch(Action::FileAdded { key, name: file.name(), size: file.size() as u64 });
    enter(model, key, Stage::Waiting, 0);
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    model.workers().keep(key, file, report);
    read_next(model);
    key
}

/// Says that a file is at the beginning of a stage, before its worker says so.
fn enter(model: &ModelHandle, key: FileKey, stage: Stage, total: u64) {
    model.dispatch(Action::FileProgress { key, stage, done: 0, total, bytes_per_second: 0.0 });
}

/// Starts the workers of files that wait, of as many as may be read at a time.
fn read_next(model: &ModelHandle) {
    while let Some(key) = next_to_read(&model.now()) {
        enter(model, key, Stage::Reading, model.now().entry(key).map_or(0, |file| file.size));
        if let Err(message) = model.workers().bring_back(key, is_identity_awaited(model)) {
            model.dispatch(Action::FileFailed { key, message });
        }
    }
}

/// Returns whether a link waits for a file of a certain content: to be laid over it, or to be compared with it.
fn is_identity_awaited(model: &ModelHandle) -> bool {
    let now = model.now();
    now.missing_base().is_some() || now.link.as_ref().is_some_and(|link| link.hash.is_some() || link.base.is_some())
}

/// A new state of a session may take this many milliseconds to the screen before the page pauses between states.
const SMOOTH_MS: f64 = 60.0;
/// The longest pause, in milliseconds.
const MOST_PAUSE_MS: f64 = 500.0;

/// Applies a worker's message to the model.
fn receive(model: &ModelHandle, key: FileKey, message: FromWorker) {
    match message {
        FromWorker::Progress { stage, done, total, bytes_per_second } => {
            model.dispatch(Action::FileProgress { key, stage, done, total, bytes_per_second });
        }
        FromWorker::Loaded(summary) => model.dispatch(Action::FileLoaded { key, summary: Shared::new(*summary) }),
        FromWorker::Sweep(sweep) => {
            // All of it is here: there is nothing to ask.
            model.workers().close(key);
            model.dispatch(Action::SweepLoaded { key, sweep: Shared::new(*sweep) });
        }
        FromWorker::Hashed { hash } => model.dispatch(Action::FileHashed { key, hash }),
        FromWorker::Refolded(summary) => model.dispatch(Action::FileRefolded { key, summary: Shared::new(*summary) }),
        FromWorker::Detail(detail) => model.dispatch(Action::FileDetail { key, detail }),
        FromWorker::Memory { bytes } => model.dispatch(Action::FileMemory { key, bytes }),
        FromWorker::Update(grown) => {
            let began = clock_ms();
            model.dispatch(Action::SessionUpdated { key, grown });
            // The next state is requested when this one is on the screen: a page that draws slowly gets fewer of them, and
            // a hidden page gets none.
            let model = model.clone();
            after_next_frame(move || {
                let pause = (clock_ms() - began - SMOOTH_MS).within(0.0, MOST_PAUSE_MS);
                rest_then(pause as i32, move || model.workers().drawn(key, selected(&model.now(), key)));
            });
        }
        FromWorker::Live(status) => model.dispatch(Action::SessionStatus { key, status }),
        FromWorker::Failed { message } => {
            // A failed worker still holds its memory.
            model.workers().close(key);
            model.dispatch(Action::FileFailed { key, message });
        }
        // The client delivers answers, copies and requests to the callback of their question.
        FromWorker::Answer { .. }
        | FromWorker::Contents { .. }
        | FromWorker::Packed { .. }
        | FromWorker::Requests { .. } => {}
    }
    read_next(model);
}

/// Returns the allocation that is selected in a session: its device's index, and its number.
fn selected(model: &Model, key: FileKey) -> Option<(u32, u32)> {
    let view = if model.current == Some(key) { &model.view } else { &model.entry(key)?.view };
    match view.selection {
        Selection::Allocation(id) => Some((view.device, id)),
        _ => None,
    }
}

/// Closes a file and terminates its worker, whatever that is doing.
pub fn close(model: &ModelHandle, key: FileKey) {
    if model.now().entry(key).is_some_and(|file| file.url.is_some()) {
        // The page's address brought it.
        refuse_address();
    }
    model.workers().close(key);
    recent::drop_fresh(key);
    model.dispatch(Action::FileClosed(key));
    read_next(model);
}

/// Closes all files, and stops watching all sessions.
pub fn close_all(model: &ModelHandle) {
    for file in &model.now().files {
        close(model, file.key);
    }
}

/// Closes the file that is shown.
pub fn close_current(model: &ModelHandle) {
    if let Some(key) = model.now().current {
        close(model, key);
    }
}
