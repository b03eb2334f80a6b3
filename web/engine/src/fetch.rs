//! Downloads from the server that the page came from.

use protocol::server::{AWAY, refusal_of, request};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStream, Response};

use crate::entry::scope;

/// Requests `url`. Returns the body of the response and its length in bytes, 0 if the server doesn't send it. The error
/// is a sentence for the user.
pub async fn get(url: &str, token: &str) -> Result<(ReadableStream, u64), String> {
    let response = scope().fetch_with_str_and_init(url, &request("GET", token));
    let response: Response = JsFuture::from(response).await.map_err(|_| AWAY.to_owned())?.unchecked_into();
    let length = response.headers().get("content-length").ok().flatten().and_then(|length| length.parse().ok());
    match response.body() {
        Some(body) if response.ok() => Ok((body, length.unwrap_or(0))),
        _ => Err(refusal_of(&response).await),
    }
}
