//! Sessions of the server: watches them, and downloads spans that the page no longer holds as files.

use wasm_bindgen_futures::spawn_local;
use yew::Callback;

use super::{http, receive, server};
use crate::hooks::ModelHandle;
use crate::model::{Action, Again};
use crate::worker::message::ToWorker;

/// Watches a session, or shows it if it is being watched already.
pub fn watch(model: &ModelHandle, session: &str) {
    let now = model.now();
    if !now.place.has_server() {
        return model.dispatch(Action::Notify(NO_JOBS.to_owned()));
    }
    let is_it = |live: &crate::model::Live| live.session == session;
    if let Some(file) = now.files.iter().find(|file| file.live.as_deref().is_some_and(is_it)) {
        // A session without events was refused, or ended early: it is requested again.
        if file.summary().is_some() {
            return super::show(model, file.key);
        }
        super::close(model, file.key);
    }
    let key = model.workers().next_key();
    model.dispatch(Action::SessionAdded { key, session: session.to_owned() });
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    let first = ToWorker::Watch { url: server::socket_url(session), token: http::token() };
    if let Err(message) = model.workers().open_by(key, &first, report) {
        return model.dispatch(Action::FileFailed { key, message });
    }
    let (model, path) = (model.clone(), format!("sessions/{session}"));
    spawn_local(async move {
        match server::get(&path).await {
            Ok(session) => {
                let (name, mode) = (session.text("name"), session.text("mode"));
                model.dispatch(Action::SessionNamed { key, name, mode });
            }
            // The socket reports everything else.
            Err(server::Failure::Absent) if model.now().entry(key).is_some_and(|file| file.summary().is_none()) => {
                model.workers().close(key);
                model.dispatch(Action::FileFailed { key, message: server::Failure::Absent.sentence() });
            }
            Err(_) => {}
        }
    });
}

/// Shown for a link to a job in a page that shows none.
const NO_JOBS: &str = "This link is for a job, and this page can't watch jobs. Open the link on the server itself.";

/// Starts the server's demo workload and watches it.
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

/// Shown when the page comes from another server than Vramscope's.
const NO_DEMO: &str = "This server has no demo. Start a server that has one with: vramscope serve";

/// Requests the whole history from the job of the session that is shown.
pub fn ask_history(model: &ModelHandle) {
    let Some(session) = model.now().live().map(|live| live.session.clone()) else { return };
    let model = model.clone();
    spawn_local(async move {
        let notice = match server::ask_history(&session).await {
            Ok(()) => "The job is sending its whole history. It appears here once the job has read it.".to_owned(),
            Err(failure) => failure.sentence(),
        };
        model.dispatch(Action::Notify(notice));
    });
}

/// Opens a span of a session as a file, which the server still has and the page no longer holds. Times are microseconds
/// since the epoch; without `from_us`, the span begins with the session.
pub fn fetch_older(model: &ModelHandle, session: &str, name: &str, from_us: Option<i64>, to_us: i64) {
    let from = from_us.map_or_else(String::new, |from| format!("&from_us={from}"));
    let url = http::href(&format!("sessions/{session}/trace?format=vramscope{from}&to_us={to_us}"));
    let key = model.workers().next_key();
    model.dispatch(Action::FileAdded { key, name: name.to_owned(), size: 0 });
    model.dispatch(Action::FileKept { key, again: Again::Here });
    model.dispatch(Action::SelectFile(key));
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    if let Err(message) = model.workers().open_by(key, &ToWorker::Fetch { url, token: http::token() }, report) {
        model.dispatch(Action::FileFailed { key, message });
    }
}
