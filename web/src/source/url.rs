//! A trace at a URL that the page's address names (`?url=`). The browser fetches it if the person agrees; the page's server
//! does not see it.

use std::cell::RefCell;

use js_sys::decode_uri_component;
use trace::limits::ADDRESS_BYTES;
use web_sys::{Url, UrlSearchParams};
use yew::Callback;

use super::fragment::FILES;
use super::place::parameters;
use super::{http, receive};
use crate::browser::window;
use crate::hooks::ModelHandle;
use crate::model::{Action, FileEntry, Offer, OfferedBy, Place};
use crate::worker::message::ToWorker;

/// The parameter of the page's address.
const PARAMETER: &str = "url";

/// Asks the person about the URL that the page's address names, if it names one.
pub fn offer_address(model: &ModelHandle) {
    // A page in one file connects to nothing.
    if model.place == Place::OneFile {
        return;
    }
    let Some(text) = parameters().and_then(|parameters| parameters.get(PARAMETER)) else { return };
    let action = match offer(&text) {
        Ok(offer) => Action::Offered(offer),
        Err(why) => Action::Notify(format!("The address in this link can't be opened: {why}")),
    };
    model.dispatch(action);
}

/// Returns the offer of a URL, or why it is not accepted, as a sentence.
fn offer(text: &str) -> Result<Offer, &'static str> {
    if text.len() > ADDRESS_BYTES {
        return Err("it is too long.");
    }
    // Without a base, relative addresses are refused.
    let url = Url::new(text).map_err(|_| "it is not a whole URL, such as https://example.org/trace.pickle.")?;
    let scheme = url.protocol();
    if scheme != "https:" && scheme != "http:" {
        return Err("only http:// and https:// are allowed.");
    }
    // What is before the @ may look like a host, and passwords don't belong in addresses.
    if !url.username().is_empty() || !url.password().is_empty() {
        return Err("it contains a user name or a password.");
    }
    // The browser would refuse without telling the reason.
    let is_here = ["localhost", "127.0.0.1", "[::1]"].contains(&url.hostname().as_str());
    if scheme == "http:" && !is_here && window().location().protocol().is_ok_and(|own| own == "https:") {
        return Err("it is not encrypted, and this page is. Use https://.");
    }
    let last = url.pathname().rsplit('/').next().unwrap_or_default().to_owned();
    let name = decode_uri_component(&last).map_or(last, String::from);
    let name = if name.is_empty() { url.host() } else { super::message::printable(&name) };
    Ok(Offer { origin: url.origin(), name, by: OfferedBy::Address { url: url.href() } })
}

/// Fetches and opens an accepted trace.
pub fn accept_address(model: &ModelHandle, offer: Offer) {
    if let OfferedBy::Address { url } = offer.by {
        fetch(model, offer.name, offer.origin, url);
    }
}

thread_local! {
    /// The parameters of the page's own address, from `?` on; without the URL once that was refused or closed.
    static PARAMETERS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the parameters of the page's address while a file is shown, from `?` on. Only the trace that came from the
/// URL keeps the URL in its address, so that reloading the page with another file doesn't ask about it.
pub fn parameters_for(file: Option<&FileEntry>) -> String {
    let first = PARAMETERS
        .with_borrow_mut(|known| known.get_or_insert_with(|| window().location().search().unwrap_or_default()).clone());
    let is_its = file.and_then(|file| file.url.as_ref()).is_some_and(|url| !is_own(url));
    if is_its { first } else { without_url(&first) }
}

fn without_url(parameters: &str) -> String {
    let Ok(rest) = UrlSearchParams::new_with_str(parameters) else { return String::new() };
    if !rest.has(PARAMETER) {
        return parameters.to_owned();
    }
    rest.delete(PARAMETER);
    let rest = String::from(rest.to_string());
    if rest.is_empty() { rest } else { format!("?{rest}") }
}

/// Drops the URL from the page's address: a page that is loaded again does not ask again. The rest of the address stays.
pub fn refuse_address() {
    let location = window().location();
    let rest = without_url(&location.search().unwrap_or_default());
    PARAMETERS.set(Some(rest.clone()));
    let (path, fragment) = (location.pathname().unwrap_or_default(), location.hash().unwrap_or_default());
    if let Ok(history) = window().history() {
        // If the browser refuses, the page asks once more.
        let state = history.state().unwrap_or_default();
        let _ = history.replace_state_with_url(&state, "", Some(&format!("{path}{rest}{fragment}")));
    }
}

/// Fetches a trace again that could not be opened.
pub fn fetch_again(model: &ModelHandle, file: &FileEntry, url: &str) {
    model.workers().close(file.key);
    model.dispatch(Action::FileClosed(file.key));
    fetch(model, file.name.clone(), file.origin.clone().unwrap_or_default(), url.to_owned());
}

/// Fetches a trace and opens it.
pub(super) fn fetch(model: &ModelHandle, name: String, origin: String, url: String) {
    let key = model.workers().next_key();
    model.dispatch(Action::FileAdded { key, name, size: 0 });
    model.dispatch(Action::FileFrom { key, origin, url: Some(url.clone()) });
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    // The page's own server says why it refuses.
    let first = match is_own(&url) {
        true => ToWorker::Fetch { url, token: http::token() },
        false => ToWorker::FetchElsewhere { url },
    };
    if let Err(message) = model.workers().open_by(key, &first, report) {
        model.dispatch(Action::FileFailed { key, message });
    }
}

/// Whether a URL is one of the files of the server's machine.
fn is_own(url: &str) -> bool {
    let origin = window().location().origin().unwrap_or_default();
    url.strip_prefix(&origin).is_some_and(|path| path.contains(FILES))
}
