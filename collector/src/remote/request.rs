//! One request, which is repeated while the network fails.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use tokio::time::sleep;

/// Attempts of one request while the network fails.
pub(super) const ATTEMPTS: u32 = 6;
/// The pause before the second attempt, doubled with each further one.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// A request that can be sent more than once.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: Method,
    url: String,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It did not arrive, or its answer didn't.
    Network(String),
    /// The server refused it.
    Refused(StatusCode, Reason),
}

#[derive(Deserialize)]
struct Refusal {
    error: Reason,
}

/// Why a server refused a request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reason {
    #[serde(default)]
    code: String,
    message: String,
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        // The innermost cause says most; the URL, which may hold a link's token, is left out.
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        Self::Network(cause.to_string())
    }
}

impl Failure {
    /// Whether the same request may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Network(_) => true,
            Self::Refused(status, _) => {
                let waits = [StatusCode::REQUEST_TIMEOUT, StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE];
                waits.contains(status) || *status == StatusCode::GATEWAY_TIMEOUT
            }
        }
    }

    /// Whether the server refused it with this code.
    pub(super) fn has_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused(_, Reason { code, .. }) if code == wanted)
    }

    /// Returns the sentence for people.
    pub(super) fn sentence(self, address: &str) -> String {
        match self {
            Self::Network(what) => {
                format!("The server {address} can't be reached: {what}. Check that it runs, and the address.")
            }
            Self::Refused(_, Reason { message, .. }) if !message.is_empty() => message,
            Self::Refused(status, _) => {
                format!(
                    "The server {address} answers with {status}. Check the address, and that a proxy lets this pass."
                )
            }
        }
    }
}

impl Request {
    pub(super) fn new(method: Method, url: String, token: Option<&str>) -> Self {
        let headers = token.map(|token| (AUTHORIZATION, format!("Bearer {token}")));
        Self { method, url, headers: headers.into_iter().collect(), body: Vec::new() }
    }

    /// Sets a body of JSON.
    pub(super) fn json(self, body: Vec<u8>) -> Self {
        Self { body, ..self }.header(CONTENT_TYPE, "application/json".to_owned())
    }

    /// Sets a body of bytes.
    pub(super) fn bytes(self, body: Vec<u8>) -> Self {
        Self { body, ..self }.header(CONTENT_TYPE, "application/octet-stream".to_owned())
    }

    /// Adds a header.
    pub(super) fn header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds a header of this project.
    pub(super) fn header_text(self, name: &'static str, value: &str) -> Self {
        self.header(HeaderName::from_static(name), value.to_owned())
    }

    /// Adds the key of a link with a password.
    pub(super) fn key(self, key: Option<&str>) -> Self {
        match key {
            Some(key) => self.header_text("x-vramscope-key", key),
            None => self,
        }
    }

    /// Sends it once.
    pub(super) async fn send_once(&self, client: &Client) -> Result<Response, Failure> {
        let mut request = client.request(self.method.clone(), &self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request.body(self.body.clone()).send().await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = response.bytes().await.unwrap_or_default();
        let refusal = serde_json::from_slice::<Refusal>(&bytes);
        Err(Failure::Refused(status, refusal.map(|refusal| refusal.error).unwrap_or_default()))
    }

    /// Sends it, again while the network fails.
    pub(super) async fn send(self, client: &Client) -> Result<Response, Failure> {
        let mut attempt = 0;
        loop {
            match self.send_once(client).await {
                Err(failure) if failure.is_temporary() && attempt + 1 < ATTEMPTS => {
                    sleep(PAUSE * 2_u32.pow(attempt)).await;
                    attempt += 1;
                }
                sent => return sent,
            }
        }
    }

    /// Sends it and reads the whole answer, again while the network fails.
    pub(super) async fn send_whole(self, client: &Client) -> Result<(StatusCode, Vec<u8>), Failure> {
        let mut attempt = 0;
        loop {
            let failure = match self.send_once(client).await {
                Ok(response) => {
                    let status = response.status();
                    match response.bytes().await {
                        Ok(bytes) => return Ok((status, bytes.to_vec())),
                        Err(error) => error.into(),
                    }
                }
                Err(failure) => failure,
            };
            if !failure.is_temporary() || attempt + 1 >= ATTEMPTS {
                return Err(failure);
            }
            sleep(PAUSE * 2_u32.pow(attempt)).await;
            attempt += 1;
        }
    }
}
