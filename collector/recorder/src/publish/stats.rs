//! The statistics of a publisher.

use wire::Code;

/// Counts and conditions of a publisher at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherStats {
    /// Batches that were created.
    pub batches: u64,
    /// Batches that the server has stored.
    pub batches_acked: u64,
    /// Events that the recorder handed over.
    pub events: u64,
    /// Events that the server has stored. The events of a batch count once the whole batch is acknowledged.
    pub events_acked: u64,
    /// Bytes of messages sent, including those sent again.
    pub bytes: u64,
    /// Connections opened, or requests made where WebSockets are blocked.
    pub connections: u64,
    /// Unacknowledged bytes in memory.
    pub memory_bytes: u64,
    /// Bytes in the spool's files.
    pub spool_bytes: u64,
    /// Whether the server has accepted the hello of the present connection.
    pub is_connected: bool,
    /// Whether POST requests are used because WebSockets are blocked.
    pub is_post: bool,
    /// Whether the server has acknowledged the end of the session.
    pub is_ended: bool,
    /// Why nothing is sent any more: the server refused the session for good.
    pub failure: Option<String>,
    /// The latest error of an attempt that is being repeated.
    pub trouble: Option<String>,
    /// What `failure`, or else `trouble`, is about.
    pub cause: Cause,
    /// Why the spool accepts no data, if it does not.
    pub spool_failure: Option<String>,
}

/// The subject of a publisher's error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// The server gave no answer of its own, or the connection was lost.
    #[default]
    Connection,
    /// The server presented a certificate that is not trusted.
    Certificate,
    /// The server answered that it refuses the session.
    Refusal(Code),
}

impl Cause {
    /// Returns the name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Certificate => "certificate",
            Self::Refusal(Code::Token) => "token",
            Self::Refusal(_) => "refusal",
        }
    }
}

impl PublisherStats {
    /// Returns the number of events handed over that the server does not have.
    pub fn undelivered(&self) -> u64 {
        self.events.saturating_sub(self.events_acked)
    }
}
