//! The API of the server that the page comes from. A page from elsewhere (a folder, a static host) finds no such API.

use js_sys::{Array, JSON, Reflect};
use trace::text::is_hidden;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, Headers, RequestInit, Response};

use crate::browser::{document, rest_then, window};
use protocol::server::{AWAY, message_of, refusal, refusal_of, request};

/// The token's key in session storage, which ends with the tab. The token never stands in a URL.
const TOKEN_KEY: &str = "vramscope-token";
/// The path of the API, relative to the page.
const API: &str = "api/v1/";

/// Returns the token that the user entered; empty if there is none.
pub fn token() -> String {
    let storage = window().session_storage().ok().flatten();
    storage.and_then(|storage| storage.get_item(TOKEN_KEY).ok().flatten()).unwrap_or_default()
}

/// Stores a token for as long as the tab is open.
pub fn set_token(token: &str) {
    if let Ok(Some(storage)) = window().session_storage() {
        let _ = storage.set_item(TOKEN_KEY, token.trim());
    }
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

/// A JSON value.
#[derive(Clone, Debug)]
pub struct Json(JsValue);

impl Json {
    fn get(&self, key: &str) -> JsValue {
        Reflect::get(&self.0, &key.into()).unwrap_or_default()
    }

    /// Returns a field's text; empty if there is none.
    pub fn text(&self, key: &str) -> String {
        self.get(key).as_string().unwrap_or_default()
    }

    /// Returns a field's number, if there is one.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key).as_f64()
    }

    /// Returns whether a field is `true`.
    pub fn is(&self, key: &str) -> bool {
        self.get(key).as_bool() == Some(true)
    }

    /// Returns a field's list; empty if there is none.
    pub fn list(&self, key: &str) -> Vec<Self> {
        Self(self.get(key)).values()
    }

    /// Returns this list's values; none if it is no list.
    pub fn values(&self) -> Vec<Self> {
        self.0.dyn_ref::<Array>().map(|list| list.iter().map(Self).collect()).unwrap_or_default()
    }

    /// Parses a JSON text.
    pub fn parse(text: &str) -> Option<Self> {
        JSON::parse(text).ok().map(Self)
    }

    /// Returns a field's object; one without fields if there is none.
    pub fn object(&self, key: &str) -> Self {
        Self(self.get(key))
    }

    /// Returns the texts of a field's list.
    pub fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(|value| value.0.as_string()).collect()
    }

    /// Returns the numbers of this list.
    pub fn numbers(&self) -> Vec<f64> {
        self.0
            .dyn_ref::<Array>()
            .map(|list| list.iter().filter_map(|value| value.as_f64()).collect())
            .unwrap_or_default()
    }
}

/// Returns the URL of an API path.
pub fn href(path: &str) -> String {
    format!("./{API}{path}")
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

async fn send(method: &str, path: &str) -> Result<Response, Failure> {
    send_with(request(method, &token()), path).await
}

async fn send_with(request: RequestInit, path: &str) -> Result<Response, Failure> {
    let response = window().fetch_with_str_and_init(&href(path), &request);
    let away = |_| Failure::Other(AWAY.to_owned());
    let response: Response = JsFuture::from(response).await.map_err(away)?.unchecked_into();
    Ok(response)
}

/// Returns the JSON in a response's body; `None` if it is something else.
pub async fn json(response: &Response) -> Option<Json> {
    let text = JsFuture::from(response.text().ok()?).await.ok()?.as_string()?;
    Json::parse(&text)
}

async fn failure(response: &Response) -> Failure {
    match response.status() {
        401 | 403 => Failure::Token(message_of(response).await),
        404 => Failure::Absent,
        _ => Failure::Other(refusal_of(response).await),
    }
}

/// Sends a GET request. Returns the response's JSON.
pub async fn get(path: &str) -> Result<Json, Failure> {
    let response = send("GET", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
    // Some static hosts answer every request with a page.
    json(&response).await.ok_or(Failure::Absent)
}

/// Sends a POST request. Returns the response's JSON.
pub async fn post(path: &str) -> Result<Json, Failure> {
    let response = send("POST", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
    json(&response).await.ok_or(Failure::Absent)
}

/// Requests the whole history of a session from its job.
pub async fn ask_history(session: &str) -> Result<(), Failure> {
    send_json("POST", &format!("sessions/{session}/ask"), "{\"what\":\"history\"}").await
}

/// Pins a session, so that the server keeps it, or unpins it.
pub async fn pin(session: &str, is_pinned: bool) -> Result<(), Failure> {
    send_json("PUT", &format!("sessions/{session}/pin"), &format!("{{\"pinned\":{is_pinned}}}")).await
}

/// Adds a header to a request.
pub(super) fn add_header(request: &RequestInit, name: &str, value: &str) {
    // Without a token, the request has no headers yet.
    let headers = Reflect::get(request, &"headers".into()).ok().and_then(|headers| headers.dyn_into::<Headers>().ok());
    if let Some(headers) = headers.or_else(|| Headers::new().ok()) {
        // Fails only for invalid names and values.
        let _ = headers.set(name, value);
        request.set_headers(&headers);
    }
}

/// Sends a request with a body of JSON, whose response has none.
async fn send_json(method: &str, path: &str, body: &str) -> Result<(), Failure> {
    let request = request(method, &token());
    add_header(&request, "Content-Type", "application/json");
    request.set_body(&body.into());
    let response = send_with(request, path).await?;
    if response.ok() { Ok(()) } else { Err(failure(&response).await) }
}

/// Sends a DELETE request.
pub async fn delete(path: &str) -> Result<(), Failure> {
    let response = send("DELETE", path).await?;
    if response.ok() { Ok(()) } else { Err(failure(&response).await) }
}

/// Saves a response as a file. A link can't do that, because it sends no token.
pub async fn download(path: &str, name: &str) -> Result<(), Failure> {
    let response = send("GET", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
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
