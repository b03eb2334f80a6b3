//! What the page asks of its server about jobs.

use trace::text::is_hidden;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

use super::http::{API, Refusal, Request};
use super::json::{Fields, Json};
use crate::browser::{document, rest_then, window};
use protocol::server::{AWAY, refusal};

/// Milliseconds between an answer and the next request, after each number of answers that said the same. The last holds for all
/// others.
const REST_MS: [i32; 4] = [1_000, 1_000, 2_000, 4_000];

/// Returns the milliseconds until the next request, after a number of answers in a row that said the same.
pub fn rest_ms(same: usize) -> i32 {
    REST_MS[same.min(REST_MS.len() - 1)]
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such server, or it has no such resource.
    Absent,
    /// The server requires a token, or a different one. Holds its reason, as a sentence.
    Token(String),
    /// Any other reason, as a sentence.
    Other(String),
}

impl Failure {
    /// Returns the sentence for the user.
    pub fn sentence(&self) -> String {
        match self {
            Self::Absent => refusal(404, "", ""),
            Self::Token(reason) if reason.is_empty() => refusal(401, "", ""),
            Self::Token(reason) => reason.clone(),
            Self::Other(sentence) => sentence.clone(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal.status {
            401 | 403 => Self::Token(refusal.message),
            404 => Self::Absent,
            _ => Self::Other(refusal.sentence()),
        }
    }
}

/// Returns the URL of a session's WebSocket.
pub fn socket_url(session: &str) -> String {
    let location = window().location();
    let part = |part: Result<String, JsValue>| part.unwrap_or_default();
    let scheme = if part(location.protocol()) == "https:" { "wss://" } else { "ws://" };
    let path = part(location.pathname());
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{scheme}{}{folder}/{API}sessions/{session}/live", part(location.host()))
}

/// Sends a GET request. Returns the response's JSON.
pub async fn get(path: &str) -> Result<Json, Failure> {
    Ok(Request::new("GET", path).json().await?)
}

/// Sends a POST request. Returns the response's JSON.
pub async fn post(path: &str) -> Result<Json, Failure> {
    Ok(Request::new("POST", path).json().await?)
}

/// Sends a DELETE request.
pub async fn delete(path: &str) -> Result<(), Failure> {
    Request::new("DELETE", path).send().await?;
    Ok(())
}

/// Requests the whole history of a session from its job.
pub async fn ask_history(session: &str) -> Result<(), Failure> {
    send_fields("POST", &format!("sessions/{session}/ask"), Fields::default().with("what", "history")).await
}

/// Pins a session, so that the server keeps it, or unpins it.
pub async fn pin(session: &str, is_pinned: bool) -> Result<(), Failure> {
    send_fields("PUT", &format!("sessions/{session}/pin"), Fields::default().with("pinned", is_pinned)).await
}

/// Sends a request with a body of JSON, whose response has none.
async fn send_fields(method: &str, path: &str, fields: Fields) -> Result<(), Failure> {
    Request::with_fields(method, path, &fields, ("", "")).send().await?;
    Ok(())
}

/// Saves a response as a file. A link can't do that, because it sends no token.
pub async fn download(path: &str, name: &str) -> Result<(), Failure> {
    let response = Request::new("GET", path).send().await?;
    let broken = |_| Failure::Other(AWAY.to_owned());
    let blob: Blob = JsFuture::from(response.blob().map_err(broken)?).await.map_err(broken)?.unchecked_into();
    save(&blob, name)
}

/// How long the bytes of a download are kept, in milliseconds.
const KEPT_MS: i32 = 60_000;

/// Saves bytes as a file.
pub fn save(blob: &Blob, name: &str) -> Result<(), Failure> {
    let refused = |_| Failure::Other("The browser did not allow this page to save the file.".to_owned());
    let url = web_sys::Url::create_object_url_with_blob(blob).map_err(refused)?;
    let anchor = document().create_element("a").map_err(refused)?;
    if let Ok(anchor) = anchor.dyn_into::<web_sys::HtmlAnchorElement>() {
        anchor.set_href(&url);
        anchor.set_download(&name.replace(is_hidden, "-"));
        anchor.click();
    }
    // Some browsers read the bytes only once the person has chosen a place.
    rest_then(KEPT_MS, move || drop(web_sys::Url::revoke_object_url(&url)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_change_is_asked_for_less_and_less_often() {
        let rests: Vec<_> = (0..6).map(rest_ms).collect();
        assert_eq!(rests, [1_000, 1_000, 2_000, 4_000, 4_000, 4_000]);
    }
}
