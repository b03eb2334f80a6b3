//! Asking the server for something, with a token where one is needed.

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Headers, ReadableStream, RequestInit, Response};

use super::entry::scope;

/// What is to be sent along with a request.
pub fn request(method: &str, token: &str) -> RequestInit {
    let request = RequestInit::new();
    request.set_method(method);
    if !token.is_empty()
        && let Ok(headers) = Headers::new()
        // Refused for what no header can hold; the server refuses the request then.
        && headers.set("Authorization", &["Bearer ", token].concat()).is_ok()
    {
        request.set_headers(&headers);
    }
    request
}

/// The body of an answer, and its length; 0 where that is not told. The error is a sentence.
pub async fn get(url: &str, token: &str) -> Result<(ReadableStream, u64), String> {
    let coming = scope().fetch_with_str_and_init(url, &request("GET", token));
    let response: Response = JsFuture::from(coming).await.map_err(|_| AWAY.to_owned())?.unchecked_into();
    let length = response.headers().get("content-length").ok().flatten().and_then(|length| length.parse().ok());
    match response.body() {
        Some(body) if response.ok() => Ok((body, length.unwrap_or(0))),
        _ => Err(refusal(response.status())),
    }
}

/// What is said when no answer comes.
pub const AWAY: &str = "The server that this page came from doesn't answer. Is it running, and can it be reached?";

/// What is said of an answer that is no success.
pub fn refusal(status: u16) -> String {
    match status {
        401 | 403 => "The server wants a token for this. It is asked for on the start page.".to_owned(),
        404 => "The server no longer has this job: it keeps each for a time, or was given another folder.".to_owned(),
        409 => "The server can't do this while the session is live.".to_owned(),
        status => format!("The server could not do this (status {status}). Its log says more."),
    }
}
