//! Traces that are shared by a link of the page's server: `…/s-TOKEN`.

use protocol::server::KEY_HEADER;
use trace::order::Within;
use wasm_bindgen_futures::spawn_local;
use wire::is_link_token;
use yew::Callback;

use super::http::{Refusal, Request, href, token};
use super::json::{Fields, Json};
use super::{close, receive};
use crate::browser::window;
use crate::hooks::ModelHandle;
use crate::model::{Action, FileKey, SHARED_PREFIX, SharedLink, Trouble};
use crate::worker::message::ToWorker;

/// The seconds to wait if the server doesn't say how many.
const WAIT_SECONDS: u32 = 10;
/// The longest wait that is believed, in seconds.
const MOST_WAIT_SECONDS: u32 = 3_600;

/// Returns the token of the shared trace that the page's own address names. It may be cut off.
pub fn token_of_page() -> Option<String> {
    token_of(&window().location().pathname().unwrap_or_default()).map(str::to_owned)
}

/// Returns the token in a path, whether or not it is whole.
fn token_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_prefix(SHARED_PREFIX)
}

/// Opens a shared trace.
pub fn open_shared(model: &ModelHandle, token: &str) {
    let link = SharedLink { token: token.to_owned(), ..SharedLink::default() };
    if is_link_token(token) {
        return begin(model, link);
    }
    let (key, characters) = (model.workers().next_key(), token.chars().count());
    model.dispatch(Action::SharedAdded { key, link });
    model.dispatch(Action::SharedRefused { key, trouble: Trouble::Incomplete { characters } });
}

/// Opens a shared trace again that could not be opened.
pub fn open_again(model: &ModelHandle, key: FileKey, link: &SharedLink) {
    close(model, key);
    begin(model, SharedLink { trouble: None, ..link.clone() });
}

/// Goes on with the download of a shared trace.
pub fn download_on(model: &ModelHandle, key: FileKey) {
    model.workers().tell(key, &ToWorker::ResumeDownload);
}

/// Exchanges a link's password for a key, and opens the trace with it.
pub fn unlock(model: &ModelHandle, key: FileKey, link: &SharedLink, password: &str) {
    let (model, link) = (model.clone(), link.clone());
    let tried = match link.trouble {
        Some(Trouble::Password { tried, .. }) => tried,
        _ => 0,
    };
    let fields = Fields::default().with("password", password);
    spawn_local(async move {
        let path = format!("traces/{}/open", link.token);
        match Request::with_fields("POST", &path, &fields, ("", "")).json().await {
            Ok(answer) => open_again(&model, key, &SharedLink { key: answer.text("key"), ..link }),
            Err(refusal) => {
                let trouble = match trouble(&refusal) {
                    // Too many passwords.
                    _ if refusal.status == 429 => {
                        let wait_seconds = refusal.wait_seconds.unwrap_or(WAIT_SECONDS).within(1, MOST_WAIT_SECONDS);
                        Trouble::Password { tried: tried + 1, wait_seconds }
                    }
                    Trouble::Password { wait_seconds, .. } => Trouble::Password { tried: tried + 1, wait_seconds },
                    other => other,
                };
                model.dispatch(Action::SharedRefused { key, trouble });
            }
        }
    });
}

fn begin(model: &ModelHandle, link: SharedLink) {
    let key = model.workers().next_key();
    model.dispatch(Action::SharedAdded { key, link: link.clone() });
    let model = model.clone();
    spawn_local(async move {
        let headers = [(KEY_HEADER, &*link.key)];
        match Request::with_headers("GET", &format!("traces/{}", link.token), &headers).json().await {
            Ok(trace) => download(&model, key, &link, &trace),
            Err(refusal) => model.dispatch(Action::SharedRefused { key, trouble: trouble(&refusal) }),
        }
    });
}

/// Starts a worker on a shared trace.
fn download(model: &ModelHandle, key: FileKey, link: &SharedLink, trace: &Json) {
    // It was closed in the meantime.
    if model.now().entry(key).is_none() {
        return;
    }
    // Casts of floating point saturate.
    let bytes = trace.number("bytes").unwrap_or(0.0).within(0.0, u64::MAX as f64) as u64;
    model.dispatch(Action::SharedNamed { key, name: trace.text("name"), bytes });
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    let url = href(&format!("traces/{}/trace", link.token));
    let first = ToWorker::OpenShared { url, token: token(), key: link.key.clone() };
    if let Err(message) = model.workers().open_by(key, &first, report) {
        model.dispatch(Action::FileFailed { key, message });
    }
}

/// Returns what stands in the way.
fn trouble(refusal: &Refusal) -> Trouble {
    match (refusal.status, refusal.code.as_str()) {
        (401, "password") => Trouble::Password { tried: 0, wait_seconds: 0 },
        (401 | 403, _) => Trouble::Token,
        (404, _) => Trouble::Unknown,
        (410, _) => Trouble::Gone(refusal.message.clone()),
        _ => Trouble::Other(refusal.sentence()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_the_path_may_name_a_shared_trace() {
        let token = "abcdefghijklmnopqrstuvwxyz234567abcdefg";
        for (path, want) in [
            (format!("/s-{token}"), Some(token)),
            (format!("/vram/scope/s-{token}"), Some(token)),
            (format!("/s-{token}/"), None),
            (format!("/s-{token}a"), Some(&*format!("{token}a"))),
            ("/s-abc".to_owned(), Some("abc")),
            (format!("/{token}"), None),
            ("/s-../../api/v1/sessions/abcdefghijklmnopqr".to_owned(), None),
            ("/".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(token_of(&path), want, "{path}");
        }
    }

    #[test]
    fn the_status_and_the_code_tell_what_stands_in_the_way() {
        let gone = "This link was deleted on 1 May.";
        for (status, code, want) in [
            (401, "password", Trouble::Password { tried: 0, wait_seconds: 0 }),
            (401, "token", Trouble::Token),
            (403, "role", Trouble::Token),
            (404, "share", Trouble::Unknown),
            (404, "", Trouble::Unknown),
            (410, "gone", Trouble::Gone(gone.to_owned())),
            (429, "rate", Trouble::Other(gone.to_owned())),
        ] {
            let refusal = Refusal { status, code: code.to_owned(), message: gone.to_owned(), wait_seconds: None };
            assert_eq!(trouble(&refusal), want, "{status} {code}");
        }
    }
}
