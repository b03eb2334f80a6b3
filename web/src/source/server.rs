//! What the server that the page comes from says of its sessions. A page from elsewhere (a folder, a static host) finds
//! nothing there.

use js_sys::{Array, JSON, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, Headers, RequestInit, Response};

use crate::browser::{document, window};
use protocol::server::{AWAY, refusal, request};

/// Where the token is kept: gone with the tab, and never in an address.
const TOKEN_KEY: &str = "vramscope-token";
/// All of the server's answers begin with this path, from where the page is.
const API: &str = "api/v1/";

/// The token that a person typed; empty where there is none.
pub fn token() -> String {
    let storage = window().session_storage().ok().flatten();
    storage.and_then(|storage| storage.get_item(TOKEN_KEY).ok().flatten()).unwrap_or_default()
}

/// Keeps a token for as long as the tab is open.
pub fn set_token(token: &str) {
    if let Ok(Some(storage)) = window().session_storage() {
        let _ = storage.set_item(TOKEN_KEY, token.trim());
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No such server is there, or it has no such thing.
    Absent,
    /// It wants a token, or another one.
    Token,
    /// A sentence.
    Other(String),
}

impl Failure {
    /// For a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Absent => refusal(404),
            Self::Token => refusal(401),
            Self::Other(sentence) => sentence.clone(),
        }
    }
}

/// A value that came as JSON.
#[derive(Clone, Debug)]
pub struct Json(JsValue);

impl Json {
    fn get(&self, key: &str) -> JsValue {
        Reflect::get(&self.0, &key.into()).unwrap_or_default()
    }

    /// A text; empty where there is none.
    pub fn text(&self, key: &str) -> String {
        self.get(key).as_string().unwrap_or_default()
    }

    /// A number; `None` where there is none.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key).as_f64()
    }

    /// Whether something is so; `false` where nothing is said of it.
    pub fn is(&self, key: &str) -> bool {
        self.get(key).as_bool() == Some(true)
    }

    /// A list; empty where there is none.
    pub fn list(&self, key: &str) -> Vec<Self> {
        self.get(key).dyn_ref::<Array>().map(|list| list.iter().map(Self).collect()).unwrap_or_default()
    }

    /// The texts of a list.
    pub fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(|value| value.0.as_string()).collect()
    }

    /// The numbers of a list.
    pub fn numbers(&self) -> Vec<f64> {
        self.0
            .dyn_ref::<Array>()
            .map(|list| list.iter().filter_map(|value| value.as_f64()).collect())
            .unwrap_or_default()
    }
}

/// The address of something of the server's, for a link.
pub fn href(path: &str) -> String {
    ["./", API, path].concat()
}

/// The address of a session's socket.
pub fn socket_url(session: &str) -> String {
    let location = window().location();
    let part = |part: Result<String, JsValue>| part.unwrap_or_default();
    let scheme = if part(location.protocol()) == "https:" { "wss://" } else { "ws://" };
    let path = part(location.pathname());
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    [scheme, &part(location.host()), folder, "/", API, "sessions/", session, "/live"].concat()
}

async fn send(method: &str, path: &str) -> Result<Response, Failure> {
    send_with(request(method, &token()), path).await
}

async fn send_with(request: RequestInit, path: &str) -> Result<Response, Failure> {
    let coming = window().fetch_with_str_and_init(&href(path), &request);
    let away = |_| Failure::Other(AWAY.to_owned());
    let response: Response = JsFuture::from(coming).await.map_err(away)?.unchecked_into();
    Ok(response)
}

async fn json(response: &Response) -> Option<Json> {
    let text = JsFuture::from(response.text().ok()?).await.ok()?.as_string()?;
    JSON::parse(&text).ok().map(Json)
}

async fn failure(response: &Response) -> Failure {
    match response.status() {
        401 => Failure::Token,
        404 => Failure::Absent,
        status => {
            let said = match json(response).await {
                Some(body) => Json(body.get("error")).text("message"),
                None => String::new(),
            };
            Failure::Other(if said.is_empty() { refusal(status) } else { said })
        }
    }
}

/// Asks for something.
pub async fn get(path: &str) -> Result<Json, Failure> {
    let response = send("GET", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
    // A host that answers everything with its page has no sessions either.
    json(&response).await.ok_or(Failure::Absent)
}

/// Has something begun: the session that came of it, or the one that was there already.
pub async fn post(path: &str) -> Result<Json, Failure> {
    let response = send("POST", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
    json(&response).await.ok_or(Failure::Absent)
}

/// Asks a session's job for all events that it knows of.
pub async fn ask_history(session: &str) -> Result<(), Failure> {
    let request = request("POST", &token());
    // A header set of its own where no token made one.
    let headers = Reflect::get(&request, &"headers".into()).ok().and_then(|headers| headers.dyn_into::<Headers>().ok());
    if let Some(headers) = headers.or_else(|| Headers::new().ok()) {
        // Neither name nor value is refused.
        let _ = headers.set("Content-Type", "application/json");
        request.set_headers(&headers);
    }
    request.set_body(&"{\"what\":\"history\"}".into());
    let response = send_with(request, &["sessions/", session, "/ask"].concat()).await?;
    if response.ok() { Ok(()) } else { Err(failure(&response).await) }
}

/// Has something deleted.
pub async fn delete(path: &str) -> Result<(), Failure> {
    let response = send("DELETE", path).await?;
    if response.ok() { Ok(()) } else { Err(failure(&response).await) }
}

/// Downloads something that a link alone can't fetch, because a token goes with it.
pub async fn download(path: &str, name: &str) -> Result<(), Failure> {
    let response = send("GET", path).await?;
    if !response.ok() {
        return Err(failure(&response).await);
    }
    let broken = |_| Failure::Other(AWAY.to_owned());
    let blob: Blob = JsFuture::from(response.blob().map_err(broken)?).await.map_err(broken)?.unchecked_into();
    let refused = |_| Failure::Other("The browser did not let the page save the file.".to_owned());
    let url = web_sys::Url::create_object_url_with_blob(&blob).map_err(refused)?;
    let anchor = document().create_element("a").map_err(refused)?;
    if let Ok(anchor) = anchor.dyn_into::<web_sys::HtmlAnchorElement>() {
        anchor.set_href(&url);
        anchor.set_download(name);
        anchor.click();
    }
    // The browser keeps what it has begun to save.
    let _ = web_sys::Url::revoke_object_url(&url);
    Ok(())
}
