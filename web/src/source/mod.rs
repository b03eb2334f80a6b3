//! Where files come in: dropped anywhere on the page, picked, or the sample; and sessions of the server that the page
//! comes from. Each is handed to a worker of its own; nothing of a file leaves the browser.

mod drop;
mod picker;
mod sample;
pub mod server;
mod watch;

pub use drop::DropZone;
pub use picker::{FilePicker, pick};
pub use sample::open_sample;
use shared::order::Within;
pub use watch::{ask_history, fetch_older, watch, watch_demo};
use web_sys::File;
use yew::Callback;

use crate::browser::{after_next_frame, clock_ms, rest_then};
use crate::hooks::ModelHandle;
use crate::model::{Action, FileKey, Model, Selection, Shared};
use crate::worker::message::FromWorker;

/// Opens files, each in a worker of its own.
pub fn open(model: &ModelHandle, files: impl IntoIterator<Item = File>) {
    for file in files {
        let key = model.workers().next_key();
        model.dispatch(Action::FileAdded { key, name: file.name(), size: file.size() as u64 });
        let report = {
            let model = model.clone();
            Callback::from(move |message| told(&model, key, message))
        };
        if let Err(message) = model.workers().open(key, &file, report) {
            model.dispatch(Action::FileFailed { key, message });
        }
    }
}

/// Milliseconds that a new state of a session may take to the screen before the page is given a rest.
const SMOOTH_MS: f64 = 60.0;
/// The longest rest, in milliseconds.
const MOST_REST_MS: f64 = 500.0;

/// What a worker's message means to the model.
fn told(model: &ModelHandle, key: FileKey, message: FromWorker) {
    match message {
        FromWorker::Progress { stage, done, total, bytes_per_second } => {
            model.dispatch(Action::FileProgress { key, stage, done, total, bytes_per_second });
        }
        FromWorker::Loaded(summary) => model.dispatch(Action::FileLoaded { key, summary: Shared::new(*summary) }),
        FromWorker::Grown(grown) => {
            let began = clock_ms();
            model.dispatch(Action::SessionGrown { key, grown });
            // The next one is asked for when this one is on the screen: a page that draws slowly is told seldom, and one
            // that is hidden isn't told at all.
            let model = model.clone();
            after_next_frame(move || {
                let rest = (clock_ms() - began - SMOOTH_MS).within(0.0, MOST_REST_MS);
                rest_then(rest as i32, move || model.workers().taken(key, selected(&model.now(), key)));
            });
        }
        FromWorker::Live(status) => model.dispatch(Action::SessionStatus { key, status }),
        FromWorker::Failed { message } => {
            // A worker that broke down still holds its memory.
            model.workers().close(key);
            model.dispatch(Action::FileFailed { key, message });
        }
        // Answers go straight to whoever asked.
        FromWorker::Answer { .. } => {}
    }
}

/// The allocation that is selected in a session: the device's index, and its number.
fn selected(model: &Model, key: FileKey) -> Option<(u32, u32)> {
    let view = if model.current == Some(key) { &model.view } else { &model.entry(key)?.view };
    match view.selection {
        Selection::Allocation(id) => Some((view.device, id)),
        _ => None,
    }
}

/// Forgets a file and ends its worker, whatever that is doing.
pub fn close(model: &ModelHandle, key: FileKey) {
    model.workers().close(key);
    model.dispatch(Action::FileClosed(key));
}

/// Forgets the file that is shown.
pub fn close_current(model: &ModelHandle) {
    if let Some(key) = model.now().current {
        close(model, key);
    }
}
