//! A trace at a URL that the page's address names (`?url=`). The browser fetches it if the person agrees; the page's server
//! is not asked.

use js_sys::decode_uri_component;
use shared::limits::ADDRESS_BYTES;
use web_sys::Url;
use yew::Callback;

use super::place::parameters;
use super::receive;
use crate::browser::window;
use crate::hooks::ModelHandle;
use crate::model::{Action, Offer, OfferedBy, Place};
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
    let OfferedBy::Address { url } = offer.by else { return };
    let key = model.workers().next_key();
    model.dispatch(Action::FileAdded { key, name: offer.name, size: 0 });
    model.dispatch(Action::FileFrom { key, origin: offer.origin });
    let report = {
        let model = model.clone();
        Callback::from(move |message| receive(&model, key, message))
    };
    if let Err(message) = model.workers().open_by(key, &ToWorker::FetchElsewhere { url }, report) {
        model.dispatch(Action::FileFailed { key, message });
    }
}
