//! The sessions of a server, and the files of its machine that it shows.

use std::path::Path;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::Remote;

/// A session, as the server lists it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The job that it belongs to; empty if it belongs to none.
    pub job: String,
    /// `live`, `ended` or `lost`.
    pub state: String,
    /// The rank of its process, if it is one of several.
    pub rank: Option<u32>,
    /// The machine of its process.
    pub host: String,
    /// When the process began, by its clock, in microseconds since the epoch.
    pub started_us: i64,
    /// Events that arrived.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes in the store.
    pub bytes: u64,
    /// Requests that failed for lack of memory.
    pub oom: u64,
    /// Events that arrive in a second.
    pub events_per_second: f64,
    /// The devices that its process uses.
    pub devices: Vec<ListedDevice>,
}

/// A device of a session. Sizes are in bytes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ListedDevice {
    /// Its number.
    pub number: i64,
    /// The name of its model; empty if it is not known.
    pub name: String,
    /// Its memory; 0 if it is not known.
    pub capacity: u64,
    /// What is allocated, as last known.
    pub allocated: u64,
    /// What is reserved, as last known.
    pub reserved: u64,
}

/// The memory of a session's device over time.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeviceStats {
    /// The device's number.
    pub number: i64,
    /// Each point: the start of its time span, in microseconds since the epoch, and the most bytes that were allocated, active and
    /// reserved in it.
    pub points: Vec<(i64, u64, u64, u64)>,
    /// The most bytes that were ever reserved.
    pub peak_reserved: u64,
    /// The most bytes that were ever allocated.
    pub peak_allocated: u64,
}

impl Listed {
    /// Returns the name of its job, or its own if it belongs to none.
    pub fn title(&self) -> &str {
        if self.job.is_empty() { &self.name } else { &self.job }
    }

    /// Whether more of it may arrive.
    pub fn is_live(&self) -> bool {
        self.state == "live"
    }
}

impl Remote {
    /// Returns the newest sessions, at most 1,000; `None` if the token may not read.
    pub async fn sessions(&self) -> Result<Option<Vec<Listed>>, String> {
        #[derive(Deserialize)]
        struct Sessions {
            sessions: Vec<Listed>,
        }
        let sent = self.request(Method::GET, "sessions").send(&self.client).await;
        if sent.as_ref().is_err_and(|failure| failure.has_code("role")) {
            return Ok(None);
        }
        let Sessions { sessions } = self.read(sent).await?;
        Ok(Some(sessions))
    }

    /// Returns the sessions of a job, by rank; `None` if the token may not read.
    pub async fn sessions_of(&self, job: &str) -> Result<Option<Vec<Listed>>, String> {
        let Some(mut sessions) = self.sessions().await? else { return Ok(None) };
        sessions.retain(|session| session.job == job);
        sessions.sort_by_key(|session| session.rank);
        Ok(Some(sessions))
    }

    /// Returns the memory of a session's devices over its whole length.
    pub async fn stats_of(&self, session: &str) -> Result<Vec<DeviceStats>, String> {
        #[derive(Deserialize)]
        struct Stats {
            devices: Vec<DeviceStats>,
        }
        let Stats { devices } = self.json(self.request(Method::GET, &format!("sessions/{session}/stats"))).await?;
        Ok(devices)
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
