//! What the page and a file's worker say to each other, in transferred `ArrayBuffer`s.
//!
//! Both ends are the same build, so the bytes need not describe themselves: Postcard writes values one after the other,
//! and its code is a third of what MessagePack's would be, which counts in a page.
//!
//! The first message to a worker is the JavaScript `File` itself (passed by reference, not copied), or where it is to be
//! had; everything else is one of these. A worker holds one file or one session, so that Cancel and Close end it at once
//! and a file that brings it down takes nothing else along.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shared::query::{Answer, Query, Summary};
use shared::wire::SessionState;

/// From the page to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// A question; the answer carries the same id. Questions are answered in order.
    Ask {
        /// Chosen by the page.
        id: u32,
        /// The device's index in the summary.
        device: u32,
        /// The question.
        query: Query,
    },
    /// Watch a session of a server, from its first event that is kept. The first message.
    Watch {
        /// The address of the socket.
        url: String,
        /// What the server's owner gave out; empty where none is needed.
        token: String,
    },
    /// Fetch a file and read it. The first message.
    Fetch {
        /// Its address.
        url: String,
        /// As in [`ToWorker::Watch`].
        token: String,
    },
    /// The last [`FromWorker::Update`] was taken in: the next may be made.
    Taken {
        /// The allocation that is selected now: the device's index, and its number.
        selected: Option<(u32, u32)>,
    },
    /// The picture stands still, or no longer: nothing that it shows is let go meanwhile.
    Hold(bool),
}

/// How the connection to the server is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Connection {
    /// It is being made.
    #[default]
    Connecting,
    /// It stands.
    Open,
    /// It was lost and is made again in a while.
    Retrying {
        /// In so many seconds.
        seconds: u32,
    },
    /// There is none, and none is wanted: all has come.
    Done,
    /// The server doesn't want it.
    Refused {
        /// Why: a sentence.
        message: String,
        /// Whether a token would help.
        wants_token: bool,
    },
}

/// How a session is that is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// Live, ended or lost, as the server last said.
    pub state: SessionState,
    /// The connection.
    pub connection: Connection,
    /// Whether all has come that the server had when it was asked.
    pub is_caught_up: bool,
    /// How far the newest event here lies behind now, in microseconds; `None` while there is none.
    pub behind_us: Option<i64>,
    /// Microseconds since an event came.
    pub quiet_us: i64,
    /// Events of the session in all, by the server's count.
    pub events: u64,
    /// Events that were lost on the way out of the job.
    pub lost: u64,
    /// Events that came here in the last seconds, per second.
    pub events_per_second: f64,
    /// Events that this page holds.
    pub held_events: u64,
    /// Bytes of memory that it takes for them.
    pub held_bytes: u64,
    /// The most events that it may hold.
    pub limit_events: u64,
    /// Events that came and were let go since, to stay below that.
    pub dropped_events: u64,
    /// Whether what is here begins later than the session did, because only so much is sent.
    pub is_late: bool,
    /// Batches in between that the server did not send, and why; none usually.
    pub missed: Option<(u64, String)>,
    /// Events that wait on the server, at least: while the picture stands still, only so many are taken in.
    pub waiting_events: u64,
}

/// What a session's device lost at its beginning, because only so much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trim {
    /// Positions are so much lower now.
    pub events: u32,
    /// Times from the start are so much lower now, in microseconds.
    pub us: f64,
}

/// What became of the selected allocation when events were let go: numbers of allocations change with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The device: an index into the summary's devices.
    pub device: u32,
    /// Its number before.
    pub was: u32,
    /// Its number now; none where it went as well.
    pub is: Option<u32>,
}

/// What became of a session since it was last told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// What it holds now.
    pub summary: Summary,
    /// What each device lost at its beginning; empty where none did.
    pub trims: Vec<Trim>,
    /// The selected allocation, where its device lost something.
    pub kept: Option<Kept>,
    /// The first out-of-memory event among what came.
    pub oom: Option<Failed>,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The device: an index into the summary's devices.
    pub device: u32,
    /// The position right after it.
    pub position: u32,
    /// What was asked for, and why it could not be had: one or two sentences.
    pub why: String,
}

/// What a worker is busy with before it can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Waits for the first events of a session.
    Waiting,
    /// Reads and parses; counted in bytes of the file.
    Reading,
    /// Builds the index that questions are answered from; counted in thousandths.
    Indexing,
}

/// From a worker to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// How far it is; sent about twenty times a second.
    Progress {
        /// With what.
        stage: Stage,
        /// How much is done, in the stage's unit.
        done: u64,
        /// How much there is.
        total: u64,
        /// The mean rate so far; 0 while there is none.
        bytes_per_second: f64,
    },
    /// The file has been read; from here on questions are answered.
    Loaded(Box<Summary>),
    /// A session that is watched has grown; questions are answered from the first of these on. No other follows before
    /// [`ToWorker::Taken`].
    Update(Box<Update>),
    /// How the session is; sent some times a second, and after what it tells of has grown.
    Live(Box<LiveStatus>),
    /// It can't be read, or the worker broke down; nothing follows.
    Failed {
        /// One or two plain sentences.
        message: String,
    },
    /// To an [`ToWorker::Ask`].
    Answer {
        /// The question's id.
        id: u32,
        /// The answer.
        answer: Box<Answer>,
    },
}

/// A message as bytes.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(message)
}

/// The message that bytes hold.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, postcard::Error> {
    postcard::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use shared::finding::{Finding, FindingCode};
    use shared::query::{Axis, Overview};

    use super::*;

    #[test]
    fn messages_cross_unchanged() {
        let ask = ToWorker::Ask { id: 7, device: 1, query: Query::PositionAt { axis: Axis::Event, x: 0.5 } };
        assert_eq!(decode::<ToWorker>(&encode(&ask).unwrap()).unwrap(), ask);
        let overview = Overview { reserved: vec![u64::MAX, 0, 3].into(), ..Overview::default() };
        let answer = FromWorker::Answer { id: 7, answer: Box::new(Answer::Overview(overview)) };
        assert_eq!(decode::<FromWorker>(&encode(&answer).unwrap()).unwrap(), answer);
    }

    #[test]
    fn a_summary_crosses_with_what_it_leaves_out() {
        let mut summary = (*crate::model::testing::summary(&[7, 0])).clone();
        summary.findings.push(Finding::new(FindingCode::NoHistory, "none"));
        summary.findings.push(Finding::new(FindingCode::OutOfMemory, "here").at(3));
        let loaded = FromWorker::Loaded(Box::new(summary));
        assert_eq!(decode::<FromWorker>(&encode(&loaded).unwrap()).unwrap(), loaded);
    }

    #[test]
    fn cut_off_bytes_are_an_error() {
        let bytes = encode(&FromWorker::Failed { message: "no".to_owned() }).unwrap();
        assert!(decode::<FromWorker>(&bytes[..bytes.len() - 1]).is_err());
    }
}
