//! The sessions of a server, and the files of its machine that it shows.

use std::path::Path;

use reqwest::Method;
use serde::Deserialize;

use super::Remote;

/// A session, as the server lists it.
#[derive(Clone, Debug, Deserialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The job that it belongs to.
    pub job: String,
    /// `live`, `ended` or `lost`.
    pub state: String,
    /// The rank of its process, if it is one of several.
    pub rank: Option<u32>,
    /// Events that arrived.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes in the store.
    pub bytes: u64,
}

impl Listed {
    /// Whether more of it may arrive.
    pub fn is_live(&self) -> bool {
        self.state == "live"
    }
}

impl Remote {
    /// Returns the sessions of a job, by rank; `None` if the token may not read.
    pub async fn sessions_of(&self, job: &str) -> Result<Option<Vec<Listed>>, String> {
        #[derive(Deserialize)]
        struct Sessions {
            sessions: Vec<Listed>,
        }
        let sent = self.request(Method::GET, "sessions").send(&self.client).await;
        if sent.as_ref().is_err_and(|failure| failure.has_code("role")) {
            return Ok(None);
        }
        let Sessions { mut sessions } = self.read(sent).await?;
        sessions.retain(|session| session.job == job);
        sessions.sort_by_key(|session| session.rank);
        Ok(Some(sessions))
    }

    /// Downloads what the server has of a session, as a recording.
    pub async fn trace_of(&self, session: &str) -> Result<Vec<u8>, String> {
        let get = self.request(Method::GET, &format!("sessions/{session}/trace?format=vramscope"));
        let (_, bytes) = get.send_whole(&self.client).await.map_err(|failure| self.sentence(failure))?;
        Ok(bytes)
    }

    /// Asks the server to show a file of its own machine; the token is the server's secret. Returns the file's address as part
    /// of a fragment: `ID/NAME`.
    pub async fn offer(&self, file: &Path) -> Result<String, String> {
        #[derive(Deserialize)]
        struct Offered {
            address: String,
        }
        let path = file.to_str().ok_or("The file's name is not valid Unicode. Drop the file on the page.")?;
        let body = serde_json::json!({ "path": path }).to_string().into_bytes();
        let offered: Offered = self.json(self.request(Method::POST, "files").json(body)).await?;
        let known = offered.address.strip_prefix("api/v1/files/").map(str::to_owned);
        known.ok_or_else(|| "The server answered in a way that can't be read.".to_owned())
    }
}
