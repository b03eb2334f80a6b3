//! The frames, as Rust has them. What each means stands in the module's documentation.

use serde::{Deserialize, Serialize};

/// The protocol that this build speaks.
pub const PROTOCOL: u32 = 1;
/// Bytes of a frame before its body.
pub const HEAD_BYTES: usize = 8;

/// Who a collector is: the first frame of every stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    #[serde(with = "serde_bytes")]
    pub header: Vec<u8>,
}

/// Chunks of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batch<'a> {
    /// Its number: from 1, by one.
    pub seq: u64,
    /// When it was sent, in microseconds since the epoch by the collector's clock.
    pub sent_us: i64,
    /// Whole chunks of the trace format.
    #[serde(borrow, with = "serde_bytes")]
    pub chunks: &'a [u8],
}

/// The session ended as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goodbye {
    /// Its last batch.
    pub seq: u64,
}

/// The hello was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Welcome {
    /// [`PROTOCOL`] of the server.
    pub protocol: u32,
    /// The number of the batch that is wanted next.
    pub next: u64,
}

/// What is safely stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ack {
    /// All batches up to this one.
    pub seq: u64,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    #[serde(other)]
    Malformed,
}

/// Why a stream ends, for programs and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// For programs.
    pub code: Code,
    /// A sentence.
    pub message: String,
    /// Whether the same may be tried later.
    pub retry: bool,
}

/// Something that a person wants to know of a running job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ask {
    /// `history` or `state`.
    pub what: String,
}

/// From where a viewer wants a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// [`PROTOCOL`] of the viewer.
    pub protocol: u32,
    /// What the server's owner gave out; empty where none is needed.
    pub token: String,
    /// The last batch that it has; 0 for none.
    pub after: u64,
}

/// How a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its collector is connected, or was a moment ago.
    #[default]
    Live,
    /// It ended as it should.
    Ended,
    /// Its collector went away without a word.
    Lost,
}

impl State {
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Live, ended or lost.
    pub state: State,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// The first of them.
    pub from: u64,
    /// The first that may come again.
    pub to: u64,
    /// Why, for people.
    pub reason: String,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
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
    Gap(Gap),
    /// A kind of a later build, by its number.
    Unknown(u8),
}

/// The first byte of a body: a MessagePack array of two.
const PAIR: u8 = 0x92;

impl<'a> Frame<'a> {
    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        match self {
            Self::Hello(frame) => body(1, frame, out),
            Self::Batch(frame) => body(2, frame, out),
            Self::Goodbye(frame) => body(3, frame, out),
            Self::Welcome(frame) => body(4, frame, out),
            Self::Ack(frame) => body(5, frame, out),
            Self::Refused(frame) => body(6, frame, out),
            Self::Ask(frame) => body(7, frame, out),
            Self::Watch(frame) => body(8, frame, out),
            Self::Status(frame) => body(9, frame, out),
            Self::Gap(frame) => body(10, frame, out),
            Self::Unknown(kind) => out.extend_from_slice(&[PAIR, *kind & 0x7f, 0x80]),
        }
        let (head, body) = out.split_at_mut(start + HEAD_BYTES);
        // Writers keep far below 4 GiB: readers refuse more than `WireLimits::frame_bytes`.
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        head[start..start + 4].copy_from_slice(&length.to_le_bytes());
        head[start + 4..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    }

    /// The frame alone.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The frame that a body holds; `None` for what is none.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        // Kinds are below 128: a MessagePack number of one byte.
        let [PAIR, kind @ 0..=0x7f, rest @ ..] = body else { return None };
        Some(match kind {
            1 => Self::Hello(value(rest)?),
            2 => Self::Batch(value(rest)?),
            3 => Self::Goodbye(value(rest)?),
            4 => Self::Welcome(value(rest)?),
            5 => Self::Ack(value(rest)?),
            6 => Self::Refused(value(rest)?),
            7 => Self::Ask(value(rest)?),
            8 => Self::Watch(value(rest)?),
            9 => Self::Status(value(rest)?),
            10 => Self::Gap(value(rest)?),
            kind => Self::Unknown(*kind),
        })
    }
}

fn body<T: Serialize>(kind: u8, frame: &T, out: &mut Vec<u8>) {
    out.extend_from_slice(&[PAIR, kind]);
    // Writing to memory can't fail, and no frame has what MessagePack can't say.
    let _ = frame.serialize(&mut rmp_serde::Serializer::new(out).with_struct_map());
}

/// Values in values: frames are two deep, and what is deeper is stepped over or refused.
const DEPTH: usize = 16;

fn value<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(DEPTH);
    T::deserialize(&mut reader).ok()
}
