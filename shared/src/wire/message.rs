//! The frames, as Rust has them. What each means stands in the module's documentation.

use serde::{Deserialize, Serialize};

/// The protocol that this build speaks.
pub const PROTOCOL: u32 = 1;
/// Bytes of a frame before its body.
pub const HEAD_BYTES: usize = 8;

/// Who a collector is: the first frame of every stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender.
    pub protocol: u32,
    /// The session's name; see [`super::is_session`].
    pub session: String,
    /// The session's secret, of the same form.
    pub key: String,
    /// What the server's owner gave out; empty where none is needed.
    pub token: String,
    /// How events are had, for people.
    pub mode: String,
    /// The payload of the trace's header chunk.
    pub header: Vec<u8>,
}

/// Chunks of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Its number: from 1, by one.
    pub seq: u64,
    /// When it was sent, in microseconds since the epoch by the collector's clock.
    pub sent_us: i64,
    /// Whole chunks of the trace format.
    pub chunks: &'a [u8],
}

/// The session ended as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goodbye {
    /// Its last batch.
    pub seq: u64,
}

/// The hello was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// [`PROTOCOL`] of the server.
    pub protocol: u32,
    /// The number of the batch that is wanted next.
    pub next: u64,
}

/// What is safely stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// All batches up to this one.
    pub seq: u64,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// The other side's protocol is not spoken here.
    Protocol,
    /// A token is wanted.
    Token,
    /// The session is another collector's.
    Key,
    /// There is no such session, or its name is malformed.
    Session,
    /// The session has ended.
    Ended,
    /// A batch was left out.
    Order,
    /// No room.
    Full,
    /// Too many at once.
    Busy,
    /// The server stops.
    Restart,
    /// A frame or chunk is not what it should be; and any code that this build doesn't know.
    #[default]
    Malformed,
}

/// Why a stream ends, for programs and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// For programs.
    pub code: Code,
    /// A sentence.
    pub message: String,
    /// Whether the same may be tried later.
    pub retry: bool,
}

/// Something that a person wants to know of a running job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// `history` or `state`.
    pub what: String,
}

/// From where a viewer wants a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// [`PROTOCOL`] of the viewer.
    pub protocol: u32,
    /// What the server's owner gave out; empty where none is needed.
    pub token: String,
    /// The last batch that it has; 0 for none.
    pub after: u64,
    /// How many events it can hold: of a longer session the newest are enough. 0 for as many as are sent.
    pub events: u64,
}

/// How a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its collector is connected, or was a moment ago.
    #[default]
    Live,
    /// It ended as it should.
    Ended,
    /// Its collector went away without a word.
    Lost,
}

impl SessionState {
    /// The word for it: `live`, `ended` or `lost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Ended => "ended",
            Self::Lost => "lost",
        }
    }
}

/// How a session is, for its viewers.
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
    /// How long ago the newest batch came, in microseconds.
    pub behind_us: i64,
}

/// Batches that will not come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The first of them.
    pub from: u64,
    /// The first that may come again.
    pub to: u64,
    /// Why, for people.
    pub reason: String,
}

/// One frame.
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
    /// A kind of a later build, by its number.
    Unknown(u8),
}
