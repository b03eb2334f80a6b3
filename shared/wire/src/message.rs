//! The messages as Rust types. The module's documentation describes their meaning.

use serde::{Deserialize, Serialize};

/// The protocol version of this build. It rises with every change that the other side can't skip; keys and kinds are added
/// without one.
pub const PROTOCOL: u32 = 1;
/// Bytes of a message before its body.
pub const HEAD_BYTES: usize = 8;

/// Identifies a collector: the first message of every stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The sender's [`PROTOCOL`].
    pub protocol: u32,
    /// The session's name; see [`super::is_session`].
    pub session: String,
    /// The session's secret, in the form of a session's name.
    pub key: String,
    /// The server's token; empty if none is required.
    pub token: String,
    /// How events are recorded, for people.
    pub mode: String,
    /// The payload of the recording's header chunk.
    pub header: Vec<u8>,
    /// The number of the oldest batch that the collector still has. A server that lost earlier ones goes on without them.
    /// 0 if unknown.
    pub first: u64,
}

/// Chunks of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Its number, counted from 1.
    pub seq: u64,
    /// The time of sending, in microseconds since the epoch by the collector's clock.
    pub sent_us: i64,
    /// Whole chunks of the recording.
    pub chunks: &'a [u8],
}

/// The session ended normally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goodbye {
    /// The number of its last batch.
    pub seq: u64,
}

/// The hello was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// The server's [`PROTOCOL`].
    pub protocol: u32,
    /// The number of the batch that the server expects next.
    pub next: u64,
}

/// Acknowledges durable batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// All batches up to this one are durable.
    pub seq: u64,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// The other side uses another protocol version.
    Protocol,
    /// The token is missing or wrong.
    Token,
    /// The session belongs to another collector.
    Key,
    /// There is no such session, or its name is malformed.
    Session,
    /// The session has ended.
    Ended,
    /// A batch is missing.
    Order,
    /// The disk or a limit of the server is full.
    Full,
    /// There are too many sessions or viewers at once.
    Busy,
    /// The server is stopping.
    Restart,
    /// The server's store failed, or what it holds of the session is damaged.
    Store,
    /// A message or chunk is malformed. Unknown codes are read as this one.
    #[default]
    Malformed,
}

/// Why a stream ends, for programs and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The code, for programs.
    pub code: Code,
    /// A sentence, for people.
    pub message: String,
    /// Whether to try again later.
    pub retry: bool,
}

/// A question of a person to a running job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// `history` or `state`.
    pub what: String,
}

/// States which part of a session a viewer wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The viewer's [`PROTOCOL`].
    pub protocol: u32,
    /// The server's token; empty if none is required.
    pub token: String,
    /// The last batch that the viewer has; 0 for none.
    pub after: u64,
    /// How many events the viewer can hold: of a longer session it gets the newest. 0 for no limit.
    pub events: u64,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its collector is connected, or was a moment ago.
    #[default]
    Live,
    /// It ended normally.
    Ended,
    /// The job disconnected unexpectedly.
    Lost,
}

impl SessionState {
    /// Returns the state's name: `live`, `ended` or `lost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Ended => "ended",
            Self::Lost => "lost",
        }
    }
}

/// The state of a session, for its viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Live, ended or lost.
    pub state: SessionState,
    /// The last batch that is stored.
    pub last: u64,
    /// The server's clock, in microseconds since the epoch.
    pub now_us: i64,
    /// Events of the session.
    pub events: u64,
    /// Events that were lost on the way out of the job.
    pub lost_events: u64,
    /// The time since the newest batch was received, in microseconds.
    pub behind_us: i64,
}

/// Batches that will not be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The first of them.
    pub from: u64,
    /// The first batch that may be sent again.
    pub to: u64,
    /// Why, for people.
    pub reason: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Kind 1.
    Hello(Hello),
    /// Kind 2.
    Batch(Batch<'a>),
    /// Kind 3.
    Goodbye(Goodbye),
    /// Kind 4.
    Welcome(Welcome),
    /// Kind 5.
    Ack(Ack),
    /// Kind 6.
    Refused(Refused),
    /// Kind 7.
    Ask(Ask),
    /// Kind 8.
    Watch(Watch),
    /// Kind 9.
    Status(Status),
    /// Kind 10.
    Skipped(Skipped),
    /// A kind of a later version, by its number.
    Unknown(u8),
}
