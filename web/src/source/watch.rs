//! Sessions as sources: watched from the server, and spans of them that are no longer held fetched as files.

use wasm_bindgen_futures::spawn_local;
use yew::Callback;

use super::{server, told};
use crate::model::{Action, ModelHandle};
use crate::worker::message::ToWorker;

/// Watches a session; shows it if it is watched already.
pub fn watch(model: &ModelHandle, session: &str) {
    let now = model.now();
    let is_it = |live: &crate::model::Live| live.session == session;
    if let Some(file) = now.files.iter().find(|file| file.live.as_deref().is_some_and(is_it)) {
        // One that was refused, or came to its end before the last events, is asked for again.
        if file.summary().is_some() {
            return model.dispatch(Action::SelectFile(file.key));
        }
        super::close(model, file.key);
    }
    let key = model.workers().next_key();
    model.dispatch(Action::SessionAdded { key, session: session.to_owned() });
    let report = {
        let model = model.clone();
        Callback::from(move |message| told(&model, key, message))
    };
    let first = ToWorker::Watch { url: server::socket_url(session), token: server::token() };
    if let Err(message) = model.workers().open_by(key, &first, report) {
        return model.dispatch(Action::FileFailed { key, message });
    }
    let (model, path) = (model.clone(), ["sessions/", session].concat());
    spawn_local(async move {
        match server::get(&path).await {
            Ok(session) => {
                let (name, mode) = (session.text("name"), session.text("mode"));
                model.dispatch(Action::SessionNamed { key, name, mode });
            }
            // The socket tells of everything else by itself.
            Err(server::Failure::Absent) if model.now().entry(key).is_some_and(|file| file.summary().is_none()) => {
                model.workers().close(key);
                model.dispatch(Action::FileFailed { key, message: server::Failure::Absent.sentence() });
            }
            Err(_) => {}
        }
    });
}

/// Starts the server's own workload, and watches it.
pub fn watch_demo(model: &ModelHandle) {
    let model = model.clone();
    spawn_local(async move {
        match server::post("demo").await {
            Ok(session) => watch(&model, &session.text("id")),
            Err(server::Failure::Absent) => model.dispatch(Action::Notify(NO_DEMO.to_owned())),
            Err(failure) => model.dispatch(Action::Notify(failure.sentence())),
        }
    });
}

/// What is said where the page was not served by the program.
const NO_DEMO: &str = "The host of this page runs no demo. Start one with: vramscope serve";

/// Asks the job of the session that is shown for all events that it knows of.
pub fn ask_history(model: &ModelHandle) {
    let Some(session) = model.now().live().map(|live| live.session.clone()) else { return };
    let model = model.clone();
    spawn_local(async move {
        let said = match server::ask_history(&session).await {
            Ok(()) => "The job was asked for its whole history. It comes as soon as the job has read it.".to_owned(),
            Err(failure) => failure.sentence(),
        };
        model.dispatch(Action::Notify(said));
    });
}

/// Opens a span of a session as a file: what the server still has, and the page no longer holds. Microseconds since the
/// epoch; `from_us` is the session's start where it is absent.
pub fn fetch_older(model: &ModelHandle, session: &str, name: &str, from_us: Option<i64>, to_us: i64) {
    let from = from_us.map_or_else(String::new, |from| ["&from_us=", &from.to_string()].concat());
    let url =
        server::href(&["sessions/", session, "/trace?format=vramscope", &from, "&to_us=", &to_us.to_string()].concat());
    let key = model.workers().next_key();
    model.dispatch(Action::FileAdded { key, name: name.to_owned(), size: 0 });
    model.dispatch(Action::SelectFile(key));
    let report = {
        let model = model.clone();
        Callback::from(move |message| told(&model, key, message))
    };
    if let Err(message) = model.workers().open_by(key, &ToWorker::Fetch { url, token: server::token() }, report) {
        model.dispatch(Action::FileFailed { key, message });
    }
}
