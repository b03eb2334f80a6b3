//! Downloads from the server that the page came from, and from others.

use protocol::failure::{refused_elsewhere, unreachable_elsewhere};
use protocol::server::{AWAY, refusal_of, request};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStream, ReferrerPolicy, RequestCredentials, RequestInit, Response};

use crate::entry::scope;

/// Requests `url`. Returns the body of the response and its length in bytes, 0 if the server doesn't send it. The error
/// is a sentence for the user.
pub async fn get(url: &str, token: &str) -> Result<(ReadableStream, u64), String> {
    let response = scope().fetch_with_str_and_init(url, &request("GET", token));
    let response: Response = JsFuture::from(response).await.map_err(|_| AWAY.to_owned())?.unchecked_into();
    match response.body() {
        Some(body) if response.ok() => Ok((body, length_of(&response))),
        _ => Err(refusal_of(&response).await),
    }
}

/// Returns the length of a response's body; 0 if it is not known.
fn length_of(response: &Response) -> u64 {
    let length = response.headers().get("content-length").ok().flatten();
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Requests `url` of another server, as [`get`] does of this one. The other server gets no cookies and does not learn which
/// page asks, apart from its origin.
pub async fn get_elsewhere(url: &str) -> Result<(ReadableStream, u64), String> {
    // The page sends a whole URL: a scheme, two slashes, and the host.
    let host = url.split('/').nth(2).unwrap_or(url);
    let request = RequestInit::new();
    request.set_credentials(RequestCredentials::Omit);
    request.set_referrer_policy(ReferrerPolicy::NoReferrer);
    let response = JsFuture::from(scope().fetch_with_str_and_init(url, &request)).await;
    // Browsers don't report to scripts why they failed.
    let response: Response =
        response.map_err(|_| unreachable_elsewhere(host, &scope().location().origin()))?.unchecked_into();
    match response.body() {
        Some(body) if response.ok() => Ok((body, length_of(&response))),
        _ => Err(refused_elsewhere(host, response.status())),
    }
}
