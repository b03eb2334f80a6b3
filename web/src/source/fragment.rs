//! What the fragment of the page's address asks the server for, beside a view: files of the server's machine
//! (`#open=ID/NAME`, which `vramscope FILE` prints), and every session of a job (`#job=NAME`, which `vramscope watch`
//! prints). The address stays valid for as long as the server runs. A server that made its token itself prints it there too
//! (`#token=TOKEN`): a browser sends no fragment, so it stands in no request and no log.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use trace::order::SortFew;

use js_sys::decode_uri_component;
use query::link::Encoded;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Url, UrlSearchParams, VisibilityState};

use super::{http, server, url, watch};
use crate::browser::{Listener, Timeout, document, window};
use crate::hooks::ModelHandle;
use crate::model::{Action, FileEntry, FileKey, Place};

/// The parameter for a file.
const OPEN: &str = "open";
/// The parameter for a job.
const JOB: &str = "job";
/// The parameter for the server's token, which has hexadecimal digits.
const TOKEN: &str = "token";
/// The folder of the server's files, relative to the page.
pub(super) const FILES: &str = "/api/v1/files/";
/// The characters of a file's id.
const ID_CHARS: usize = 64;
/// Number of requests without a session, half a minute, after which the page says more than that it waits.
const MOST_WAITS: u32 = 10;
/// Number of looks, a minute, at a job whose known sessions have all ended. Another of its processes may begin only then.
const LOOKS_AFTER_END: u32 = 16;
/// The most sessions of a job that are opened.
const MOST: usize = 64;

/// Keeps the token in the fragment as one that the user entered, and takes it out of the address, which people pass on.
pub fn take_token(place: Place) {
    // A site that opens or frames the page gives it no token.
    if place != Place::Server {
        return;
    }
    let location = window().location();
    let fragment = location.hash().unwrap_or_default();
    let is_token = |part: &&str| part.split_once('=').is_some_and(|(name, _)| name == TOKEN);
    let (tokens, rest): (Vec<_>, Vec<_>) = fragment.trim_start_matches('#').split('&').partition(is_token);
    let Some((_, token)) = tokens.last().and_then(|part| part.split_once('=')) else { return };
    http::set_token(token);
    let (path, search) = (location.pathname().unwrap_or_default(), location.search().unwrap_or_default());
    let rest = rest.join("&");
    let mark = if rest.is_empty() { "" } else { "#" };
    if let Ok(history) = window().history() {
        let state = history.state().unwrap_or_default();
        let _ = history.replace_state_with_url(&state, "", Some(&format!("{path}{search}{mark}{rest}")));
    }
}

/// Opens what the fragment names.
pub fn open_named(model: &ModelHandle) {
    if !model.place.has_server() {
        return;
    }
    let fragment = window().location().hash().unwrap_or_default();
    let Ok(parameters) = UrlSearchParams::new_with_str(fragment.trim_start_matches('#')) else { return };
    for value in parameters.get_all(OPEN).iter().filter_map(|value| value.as_string()) {
        open_file(model, &value);
    }
    if let Some(job) = parameters.get(JOB).filter(|job| !job.is_empty()) {
        model.dispatch(Action::Notify(format!("Waiting for “{job}” to use the GPU. It will open automatically.")));
        let linked = model.link.as_ref().and_then(|link| link.session.clone());
        let job = Job {
            model: model.clone(),
            name: job,
            linked,
            seen: RefCell::default(),
            timer: RefCell::default(),
            same: Cell::default(),
            waited: Cell::default(),
            ended: Cell::default(),
            shown: RefCell::default(),
        };
        let job = Rc::new(job);
        let hidden = Rc::downgrade(&job);
        // A page that is shown again asks at once.
        *job.shown.borrow_mut() = Some(Listener::new(&document(), "visibilitychange", move |_| {
            if let Some(job) = hidden.upgrade() {
                look(job);
            }
        }));
        WATCHED.set(Some(Rc::clone(&job)));
        look(job);
    }
}

/// Returns the part of the fragment that opens a file of the server again, or all sessions of the job with which a
/// session was opened. Returns `None` for any other file.
pub fn part(file: &FileEntry) -> Option<String> {
    if let Some(live) = &file.live {
        let job = WATCHED.with_borrow(Clone::clone)?;
        let is_its = job.seen.borrow().contains(&live.session);
        return is_its.then(|| format!("&{JOB}={}", Encoded(&job.name)));
    }
    let (_, value) = file.url.as_ref()?.split_once(FILES)?;
    Some(format!("&{OPEN}={value}"))
}

/// Opens a file of the server's machine, given its id and name: `ID/NAME`.
fn open_file(model: &ModelHandle, value: &str) {
    let Some((id, name)) = value.split_once('/') else { return };
    if id.len() != ID_CHARS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) || name.contains('/') {
        return model.dispatch(Action::Notify("The address names a file in a way that can't be read.".to_owned()));
    }
    let location = window().location();
    let base = location.href().unwrap_or_default();
    // Decoding the fragment decoded the name once.
    let path = format!(".{FILES}{id}/{}", js_sys::encode_uri_component(name));
    if let Ok(url) = Url::new_with_base(&path, &base) {
        let shown = decode_uri_component(name).map_or_else(|_| name.to_owned(), String::from);
        url::fetch(model, super::message::printable(&shown), location.origin().unwrap_or_default(), url.href());
    }
}

thread_local! {
    /// The job that the page's address named.
    static WATCHED: RefCell<Option<Rc<Job>>> = const { RefCell::new(None) };
}

/// A job whose sessions are opened as they appear.
struct Job {
    model: ModelHandle,
    name: String,
    /// The session that the address names too: the one that was shown before the page was reloaded.
    linked: Option<String>,
    /// The sessions that were opened. One that the person closed is not opened again.
    seen: RefCell<HashSet<String>>,
    timer: RefCell<Option<Timeout>>,
    /// The number of answers in a row that had no new session, and after which as many ran.
    same: Cell<usize>,
    /// How often the server was asked.
    waited: Cell<u32>,
    /// How often in a row all sessions had ended.
    ended: Cell<u32>,
    /// Asks again once the page is shown.
    shown: RefCell<Option<Listener>>,
}

/// Opens the new sessions of a job, and looks again until all have ended and [`LOOKS_AFTER_END`] more looks found no other.
fn look(job: Rc<Job>) {
    if job.ended.get() > LOOKS_AFTER_END || document().visibility_state() == VisibilityState::Hidden {
        return;
    }
    spawn_local(async move {
        job.same.set(job.same.get().saturating_add(1));
        if let Ok(answer) = server::get("sessions").await {
            let mut found: Vec<_> =
                answer.list("sessions").into_iter().filter(|session| session.text("job") == job.name).collect();
            found.sort_few_by_key(|session| session.number("rank").map_or(0, |rank| rank as u32));
            let have_ended = !found.is_empty() && found.iter().all(|session| session.text("state") != "live");
            let (had_ended, ended) = (job.ended.get() > 0, if have_ended { job.ended.get() + 1 } else { 0 });
            job.ended.set(ended);
            if had_ended != have_ended {
                job.same.set(0);
            }
            let is_first = job.seen.borrow().is_empty();
            let mut first: Option<FileKey> = None;
            if is_first {
                job.model.dispatch(Action::StepJoined);
            }
            for id in found.iter().map(|session| session.text("id")).take(MOST) {
                let is_new = job.seen.borrow_mut().insert(id.clone());
                if is_new {
                    job.same.set(0);
                    let shown = job.model.now().current;
                    watch(&job.model, &id);
                    let opened = job.model.now().current;
                    if first.is_none() || job.linked.as_ref() == Some(&id) {
                        first = opened;
                    }
                    // A rank that appears later doesn't take the place of the one that is being looked at.
                    if let Some(shown) = shown.filter(|_| !is_first) {
                        job.model.dispatch(Action::SelectFile(shown));
                    }
                }
            }
            if let Some(first) = first.filter(|_| is_first) {
                job.model.dispatch(Action::SelectFile(first));
                job.model.dispatch(Action::DismissNotice);
            }
        }
        let waited = job.waited.replace(job.waited.get().saturating_add(1));
        if waited == MOST_WAITS && job.seen.borrow().is_empty() {
            // The server learns of a job only with its first event.
            job.model.dispatch(Action::Notify(format!(
                "“{}” has not used the GPU yet. If it has ended, see its terminal for the reason. Otherwise it will appear here.",
                job.name
            )));
        }
        let next = Rc::clone(&job);
        *job.timer.borrow_mut() = Some(Timeout::new(server::rest_ms(job.same.get()), move || look(next)));
    });
}
