//! The other end of [`crate::shares`]: sends traces to a server, and fetches those that were shared.
//!
//! A network that is cut costs no more than one part: an upload goes on from what the server has, a download from what is
//! here.

mod address;
mod baselines;
mod request;
mod sessions;

use std::time::Duration;

use reqwest::header::RANGE;
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

pub use address::LinkAddress;
use request::{ATTEMPTS, Failure, PAUSE};
pub use sessions::{DeviceStats, Listed, ListedDevice};

use crate::store::{Hash, Hasher};
use recorder::publish::Destination;

/// The time to connect, and the time in which something has to arrive.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(60);
/// Bytes of one part of a download.
const PART_BYTES: u64 = 4 << 20;

/// What is to be shared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Offer {
    /// The name of the link.
    pub name: String,
    /// The seconds until it expires, `Some(None)` for never; `None` for the server's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_seconds: Option<Option<u64>>,
    /// The password that opens it, if it gets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Whether it opens without a token of the server.
    pub is_public: bool,
}

/// A link that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The address for people.
    pub address: String,
    /// The token that deletes it.
    pub delete_token: String,
    /// The bytes that the link leads to.
    pub bytes: u64,
    /// When it expires, in microseconds since the epoch; `None` for never.
    pub expires_us: Option<i64>,
    /// Whether it asks for a password.
    pub has_password: bool,
    /// Whether it opens without a token of the server.
    pub is_public: bool,
}

/// What a server tells of a link.
#[derive(Clone, Debug, Deserialize)]
pub struct Linked {
    /// The name.
    pub name: String,
    /// The bytes of the recording.
    pub bytes: u64,
    /// The BLAKE3 hash of the recording.
    pub hash: String,
    /// When the link expires, in microseconds since the epoch; `None` for never.
    pub expires_us: Option<i64>,
    /// Whether it asks for a password.
    pub has_password: bool,
    /// Whether it opens without a token of the server.
    pub is_public: bool,
}

#[derive(Deserialize)]
struct Begun {
    id: String,
    token: String,
    delete_token: String,
    part_bytes: usize,
}

#[derive(Deserialize)]
struct Progress {
    received: u64,
    #[serde(default)]
    is_finishing: bool,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

/// Receives the progress of a transfer: the bytes transferred so far, and the total.
pub type Report<'a> = &'a mut dyn FnMut(u64, u64);

/// A server that shares traces. Errors are sentences for people.
#[derive(Debug)]
pub struct Remote {
    client: Client,
    /// The page's address, with a slash at its end.
    address: String,
    token: Option<String>,
}

impl Remote {
    /// Prepares requests to a server.
    pub fn new(destination: &Destination) -> Result<Self, String> {
        let tls = destination.tls()?;
        let client = Client::builder();
        // A proxy on another machine can't reach this one by such an address, and must not get the server's secret.
        let client = if address::is_local(&destination.address()) { client.no_proxy() } else { client };
        let client = client
            .tls_backend_preconfigured((*tls).clone())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build()
            .map_err(|error| format!("Requests can't be sent: {error}."))?;
        Ok(Self { client, address: destination.address(), token: destination.bearer().map(str::to_owned) })
    }

    /// Returns why the server does not answer, if it doesn't within `time`. It is asked once.
    pub async fn absence(&self, time: Duration) -> Option<String> {
        let request = self.request(Method::GET, "health/live");
        match tokio::time::timeout(time, request.send_once(&self.client)).await {
            // Whatever it refuses, it is there.
            Ok(Ok(_) | Err(Failure::Refused(..))) => None,
            Ok(Err(Failure::Network(what))) => Some(what),
            Err(_) => Some(format!("no answer within {} s", time.as_secs())),
        }
    }

    /// Uploads a recording and returns its link.
    pub async fn push(&self, recording: &[u8], offer: &Offer, report: Report<'_>) -> Result<Pushed, String> {
        #[derive(Serialize)]
        struct Upload<'a> {
            bytes: usize,
            hash: String,
            #[serde(flatten)]
            offer: &'a Offer,
        }
        let upload = Upload { bytes: recording.len(), hash: Hash::of(recording).to_string(), offer };
        let body = serde_json::to_vec(&upload).map_err(|error| format!("The request can't be written: {error}."))?;
        let begun: Begun = self.json(self.request(Method::POST, "traces/uploads").json(body)).await?;
        let path = format!("traces/uploads/{}", begun.id);
        let sent = self.send_parts(&path, recording, begun.part_bytes.max(1), report).await;
        let finished = match sent {
            Ok(()) => self.finish(&path).await,
            Err(sentence) => Err(sentence),
        };
        match finished {
            Ok(Linked { bytes, expires_us, has_password, is_public, .. }) => {
                let address = format!("{}s-{}", self.address, begun.token);
                Ok(Pushed { address, delete_token: begun.delete_token, bytes, expires_us, has_password, is_public })
            }
            Err(sentence) => {
                // The server gives it up by itself if this fails, too.
                let _ = self.request(Method::DELETE, &path).send_once(&self.client).await;
                Err(sentence)
            }
        }
    }

    async fn send_parts(&self, path: &str, recording: &[u8], part: usize, report: Report<'_>) -> Result<(), String> {
        let (mut at, mut failures) = (0, 0);
        while at < recording.len() {
            report(at as u64, recording.len() as u64);
            let bytes = recording[at..].chunks(part).next().unwrap_or_default().to_vec();
            let put = self.request(Method::PUT, &format!("{path}?from={at}")).bytes(bytes);
            let answered = match put.send_once(&self.client).await {
                Err(failure) if failure.is_temporary() && failures + 1 < ATTEMPTS => {
                    sleep(PAUSE * 2_u32.pow(failures)).await;
                    failures += 1;
                    // Part of it may have arrived.
                    self.request(Method::GET, path).send(&self.client).await
                }
                Ok(answered) => {
                    failures = 0;
                    Ok(answered)
                }
                failed => failed,
            };
            let progress: Progress = self.read(answered).await?;
            at = usize::try_from(progress.received).unwrap_or(usize::MAX);
        }
        report(recording.len() as u64, recording.len() as u64);
        Ok(())
    }

    /// Finishes an upload. The server may need minutes to store it, longer than a proxy waits for an answer: as long as it says
    /// that it goes on, it is asked again.
    async fn finish(&self, path: &str) -> Result<Linked, String> {
        let mut failures = 0;
        loop {
            let sent = self.request(Method::POST, &format!("{path}/finish")).send_once(&self.client).await;
            match sent {
                Err(failure) if failure.is_temporary() && failures + 1 < ATTEMPTS => {
                    sleep(PAUSE * 2_u32.pow(failures)).await;
                    let progress = self.request(Method::GET, path).send(&self.client).await;
                    let goes_on = progress.is_ok() && self.read::<Progress>(progress).await?.is_finishing;
                    failures = if goes_on { 0 } else { failures + 1 };
                }
                sent => return self.read(sent).await,
            }
        }
    }

    /// Returns what the server tells of a link, and the key of one with a password. `None` if it has one, and none was given.
    pub async fn look(&self, token: &str, password: Option<&str>) -> Result<Option<(Linked, Option<String>)>, String> {
        let path = format!("traces/{token}");
        let key = match password {
            Some(password) => {
                let body = serde_json::json!({ "password": password }).to_string().into_bytes();
                let opened: Key = self.json(self.request(Method::POST, &format!("{path}/open")).json(body)).await?;
                Some(opened.key)
            }
            None => None,
        };
        let sent = self.request(Method::GET, &path).key(key.as_deref()).send(&self.client).await;
        if sent.as_ref().is_err_and(|failure| failure.has_code("password")) {
            return Ok(None);
        }
        Ok(Some((self.read(sent).await?, key)))
    }

    /// Downloads the recording of a link, and checks its hash.
    pub async fn pull(
        &self,
        token: &str,
        (linked, key): (&Linked, Option<&str>),
        report: Report<'_>,
    ) -> Result<Vec<u8>, String> {
        let (mut bytes, mut hasher) = (Vec::new(), Hasher::default());
        while (bytes.len() as u64) < linked.bytes {
            let at = bytes.len() as u64;
            report(at, linked.bytes);
            let last = linked.bytes.min(at + PART_BYTES) - 1;
            let get = self.request(Method::GET, &format!("traces/{token}/trace")).key(key);
            let answered = get.header(RANGE, format!("bytes={at}-{last}")).send_whole(&self.client).await;
            let (status, part) = answered.map_err(|failure| self.sentence(failure))?;
            if status != StatusCode::PARTIAL_CONTENT || part.is_empty() {
                return Err(format!(
                    "The server {} does not send parts of a trace. A proxy may be in between.",
                    self.address
                ));
            }
            hasher.update(&part);
            bytes.extend_from_slice(&part);
        }
        report(linked.bytes, linked.bytes);
        if hasher.finish().to_string() != linked.hash {
            return Err("What arrived is not what was shared: its hash differs. Try again.".to_owned());
        }
        Ok(bytes)
    }

    /// Deletes a link.
    pub async fn delete(&self, token: &str, delete_token: &str) -> Result<(), String> {
        let delete = self.request(Method::DELETE, &format!("traces/{token}"));
        let sent = delete.header_text("x-vramscope-delete-token", delete_token).send(&self.client).await;
        match sent {
            Err(failure) if failure.has_code("gone") => Err("This link was deleted, or expired, before.".to_owned()),
            other => other.map(drop).map_err(|failure| self.sentence(failure)),
        }
    }

    fn request(&self, method: Method, path: &str) -> request::Request {
        request::Request::new(method, format!("{}api/v1/{path}", self.address), self.token.as_deref())
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, request: request::Request) -> Result<T, String> {
        self.read(request.send(&self.client).await).await
    }

    async fn read<T: serde::de::DeserializeOwned>(
        &self,
        sent: Result<reqwest::Response, Failure>,
    ) -> Result<T, String> {
        let response = sent.map_err(|failure| self.sentence(failure))?;
        let bytes = response.bytes().await.map_err(|error| self.sentence(error.into()))?;
        serde_json::from_slice(&bytes)
            .map_err(|_| format!("{} does not answer like a Vramscope server. Check the address.", self.address))
    }

    fn sentence(&self, failure: Failure) -> String {
        // The server's own sentence is for those who write requests.
        if self.token.is_none() && failure.has_code("token") {
            let address = &self.address;
            return format!(
                "The server {address} requires a token. Name its file with --token-file, or set VRAMSCOPE_TOKEN."
            );
        }
        failure.sentence(&self.address)
    }
}
