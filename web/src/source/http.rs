//! Requests to the API of the server that the page comes from. A page from elsewhere (a folder, a static host) finds no
//! such API.

use protocol::server::{AWAY, code_and_message, refusal, request_with};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Blob, RequestInit, Response};

use super::json::{Fields, Json};
use crate::browser::window;

/// The token's key in session storage, which ends with the tab. The token never stands in a URL.
const TOKEN_KEY: &str = "vramscope-token";
/// The path of the API, relative to the page.
pub(super) const API: &str = "api/v1/";

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

/// Returns the URL of an API path.
pub fn href(path: &str) -> String {
    format!("./{API}{path}")
}

/// Why a request brought nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response; 0 if none arrived. 404 also stands for a response that is not of this API: some static
    /// hosts answer every request with a page.
    pub status: u16,
    /// The server's code for the reason; empty if it sent none.
    pub code: String,
    /// The server's own message, as one line of limited length; empty if it sent none.
    pub message: String,
    /// The number of seconds to wait before the next request, from `Retry-After`; `None` without it, and where it is a date.
    pub wait_seconds: Option<u32>,
}

impl Refusal {
    const NOT_OF_THIS_API: u16 = 404;

    /// Returns the sentence for the user.
    pub fn sentence(&self) -> String {
        if self.status == 0 { AWAY.to_owned() } else { refusal(self.status, &self.code, &self.message) }
    }

    async fn of(response: &Response) -> Self {
        let (code, message) = code_and_message(response).await;
        // Of a server in front of this one it may be a date.
        let wait = response.headers().get("retry-after").ok().flatten();
        let wait_seconds = wait.and_then(|seconds| seconds.trim().parse().ok());
        Self { status: response.status(), code, message, wait_seconds }
    }
}

/// A request that is being put together.
pub struct Request {
    url: String,
    init: RequestInit,
}

impl Request {
    /// Begins a request of an API path, with the user's token.
    pub fn new(method: &str, path: &str) -> Self {
        Self::with_headers(method, path, &[])
    }

    /// Begins a request with further headers. Those without a value are left out.
    pub fn with_headers(method: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        Self { url: href(path), init: request_with(method, &token(), headers) }
    }

    /// Begins a request with a body of JSON, and further headers.
    pub fn with_fields(method: &str, path: &str, fields: &Fields, header: (&str, &str)) -> Self {
        let request = Self::with_headers(method, path, &[("Content-Type", "application/json"), header]);
        request.init.set_body(&fields.text().into());
        request
    }

    /// Begins a request of a file beside the page.
    pub fn of_file(method: &str, url: &str) -> Self {
        Self { url: url.to_owned(), init: request_with(method, &token(), &[]) }
    }

    /// Sets the bytes to send, and what ends the request early.
    #[must_use]
    pub fn with_bytes(self, bytes: &Blob, abort: &AbortSignal) -> Self {
        self.init.set_body(bytes);
        self.init.set_signal(Some(abort));
        self
    }

    /// Sets the text to send.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        self.init.set_body(&text.into());
        self
    }

    /// Sends the request. Returns a response that reports success.
    pub async fn send(self) -> Result<Response, Refusal> {
        let response = JsFuture::from(window().fetch_with_str_and_init(&self.url, &self.init)).await;
        let response: Response = response.map_err(|_| Refusal::default())?.unchecked_into();
        if response.ok() { Ok(response) } else { Err(Refusal::of(&response).await) }
    }

    /// Sends the request. Returns the JSON of the response.
    pub async fn json(self) -> Result<Json, Refusal> {
        let text = text(&self.send().await?).await;
        let other = || Refusal { status: Refusal::NOT_OF_THIS_API, ..Refusal::default() };
        text.as_deref().and_then(Json::parse).ok_or_else(other)
    }
}

/// Returns the text of a response; `None` if the connection ends before it is whole.
pub async fn text(response: &Response) -> Option<String> {
    JsFuture::from(response.text().ok()?).await.ok()?.as_string()
}
