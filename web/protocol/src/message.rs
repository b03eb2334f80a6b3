//! The messages between the page and the worker behind a file or a session, sent as transferred `ArrayBuffer`s.
//!
//! Page and engine come from one build, so the bytes need not describe themselves: [`query::encoding`] writes the fields one
//! after the other.
//!
//! The first message to a worker is a JavaScript `File` (passed by reference, not copied), [`ToWorker::Watch`],
//! [`ToWorker::Fetch`] or [`ToWorker::FetchElsewhere`]. The string [`WARM_UP`] may come before it. Everything else is one of the types below.

use query::copy::{Moved, Named};
pub use query::encoding::{decode, encode};
use query::link::FileHash;
use query::own_rules::OwnRules;
use query::redaction::{Comparison, Redaction};
use query::sweep::SweepPicture;
use query::{Answer, Query, Summary};
use serde::{Deserialize, Serialize};
use wire::SessionState;

/// Tells a worker that it has no file yet and may use the time to warm up.
pub const WARM_UP: &str = "warm up";

/// A message from the page to a worker.
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
    /// Watches a session of a server, from the first event that the server still has. A first message.
    Watch {
        /// The URL of the session's WebSocket.
        url: String,
        /// The server's access token; empty where none is needed.
        token: String,
    },
    /// Downloads a file and reads it. A first message.
    Fetch {
        /// The file's URL.
        url: String,
        /// The server's access token; empty where none is needed.
        token: String,
    },
    /// Opens a shared trace: shows its previews, and downloads the rest meanwhile. A first message.
    OpenShared {
        /// The trace's URL.
        url: String,
        /// The server's access token; empty where none is needed.
        token: String,
        /// What the server gave for the link's password; empty where none is needed.
        key: String,
    },
    /// Goes on with the download of a shared trace: its first picture is on the screen, or a person wants another attempt.
    ResumeDownload,
    /// Downloads a file from another server, which gets neither cookies nor this page's address, and reads it. A first
    /// message.
    FetchElsewhere {
        /// The file's URL, with the scheme `http` or `https`.
        url: String,
    },
    /// The page has drawn the last [`FromWorker::Update`]: the worker may send the next one.
    Drawn {
        /// The selected allocation: its device's index, and its number.
        selected: Option<(u32, u32)>,
    },
    /// Sets the user's own rules. May come before the first message, and at any time after it.
    SetRules(OwnRules),
    /// Pauses the view (`true`) or resumes it. No event that a paused view shows is dropped.
    Pause(bool),
    /// Requests [`FromWorker::Hashed`]. Before the file, it is hashed while it is read; after it, between questions.
    Identify,
    /// Makes a copy of a file's trace to share. Answered by [`FromWorker::Contents`] and then, unless another copy was
    /// requested meanwhile, by [`FromWorker::Packed`].
    Copy {
        /// Chosen by the page.
        id: u32,
        /// The copy's name.
        name: String,
        /// What is left out.
        redaction: Redaction,
        /// What the view names.
        named: Named,
        /// Whether its job still runs, so that its end is not missing.
        is_running: bool,
    },
    /// No copy is wanted any more.
    ForgetCopy,
    /// Asks for what a device's program requested of the allocator, for a what-if worker. Answered by
    /// [`FromWorker::Requests`].
    Requests {
        /// Chosen by the page.
        id: u32,
        /// The device's index in the summary.
        device: u32,
    },
    /// Makes a recording of a what-if run. The message comes in an array, whose second element is an `ArrayBuffer` with the
    /// run. Answered by [`FromWorker::Packed`].
    Record {
        /// Chosen by the page.
        id: u32,
        /// The device's index in the summary.
        device: u32,
        /// The recording's name.
        name: String,
    },
}

/// The state of the connection to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Connection {
    /// Being established.
    #[default]
    Connecting,
    /// Established.
    Open,
    /// Lost; the next attempt follows.
    Retrying {
        /// Seconds until the next attempt.
        seconds: u32,
    },
    /// Closed: the whole session has arrived.
    Done,
    /// Refused by the server.
    Refused {
        /// The reason, as a sentence.
        message: String,
        /// Whether a token would help.
        wants_token: bool,
    },
}

impl Connection {
    /// Returns whether nothing more comes over it, and no other one follows by itself.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Refused { .. })
    }
}

/// The status of a session that is being watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// Live, ended or lost, according to the server's last report.
    pub state: SessionState,
    /// The connection to the server.
    pub connection: Connection,
    /// Whether everything has arrived that the server had when the connection was established.
    pub is_caught_up: bool,
    /// Age of the newest event here, in microseconds; `None` while there is no event.
    pub behind_us: Option<i64>,
    /// Microseconds since the last event arrived.
    pub quiet_us: i64,
    /// Total events of the session, by the server's count.
    pub events: u64,
    /// Whether the session has ended, and the last thing that its program asked of a device failed.
    pub ran_out: bool,
    /// Events that were lost between the job and the server.
    pub lost: u64,
    /// Events per second, over the last seconds.
    pub events_per_second: f64,
    /// Events that this page holds.
    pub held_events: u64,
    /// Bytes of memory that these events occupy.
    pub held_bytes: u64,
    /// The maximum number of events that this page holds.
    pub limit_events: u64,
    /// Events that were dropped again to stay within that limit.
    pub dropped_events: u64,
    /// Whether the events here begin after the session's start, because the server sends a limited number.
    pub is_late: bool,
    /// Batches that the server skipped, and why; usually none.
    pub missed: Option<(u64, String)>,
    /// Minimum number of events that wait on the server: a paused view reads a limited number.
    pub waiting_events: u64,
    /// The number of events that have arrived here while the view is paused.
    pub held_back_events: u64,
}

/// The events dropped at the beginning of a device's trace, because the page holds a limited number of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trim {
    /// Events dropped: positions are lower by this number.
    pub events: u32,
    /// Microseconds dropped: times from the start are lower by this much.
    pub us: f64,
}

/// The selected allocation after events were dropped, which changes the numbers of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedSelection {
    /// The device, as an index into the summary's devices.
    pub device: u32,
    /// The allocation's number before.
    pub was: u32,
    /// The allocation's number now; `None` if it was dropped too.
    pub is: Option<u32>,
}

/// The changes of a session since the last message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The summary of what the session holds now.
    pub summary: Summary,
    /// What was dropped per device; empty if nothing was.
    pub trims: Vec<Trim>,
    /// The selected allocation, if events of its device were dropped.
    pub kept: Option<MovedSelection>,
    /// The first out-of-memory event among the new events.
    pub oom: Option<Failed>,
}

/// A failed request for memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The device, as an index into the summary's devices.
    pub device: u32,
    /// The position right after the failure.
    pub position: u32,
    /// What was requested and why it failed, in one or two sentences.
    pub why: String,
}

/// How far the download of a shared trace is, whose previews are shown meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// Bytes that have arrived.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Counts when questions got better answers: they should be asked again.
    pub revision: u32,
    /// Whether the rest arrives, has arrived or does not.
    pub state: DetailState,
}

/// The state of such a download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DetailState {
    /// The rest is arriving. Questions that only the whole trace answers are refused for now.
    Loading,
    /// All is here: every answer is exact.
    Complete,
    /// The rest does not arrive: one or two plain sentences for the user. [`ToWorker::ResumeDownload`] tries again.
    Stopped(String),
}

/// The work of a worker before it can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Waiting for the first events of a session.
    Waiting,
    /// Reading and parsing; progress counts bytes of the file.
    Reading,
    /// Building the index; progress counts thousandths.
    Indexing,
}

/// A message from a worker to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// Progress; sent about ten times a second.
    Progress {
        /// The current stage.
        stage: Stage,
        /// How much is done, in the stage's unit.
        done: u64,
        /// How much there is to do; 0 while unknown.
        total: u64,
        /// The mean rate so far; 0 while unknown.
        bytes_per_second: f64,
    },
    /// The file has been read; the worker answers questions from now on.
    Loaded(Box<Summary>),
    /// The summary of a file after [`ToWorker::Fold`]: its findings may name other lines.
    Refolded(Box<Summary>),
    /// New events of a watched session; the worker answers questions from the first of these messages on, and sends the
    /// next one only after [`ToWorker::Drawn`].
    Update(Box<Update>),
    /// The session's status; sent a few times a second, and after each [`FromWorker::Update`].
    Live(Box<LiveStatus>),
    /// The download of a shared trace went on, or a better answer can be given. Follows a [`FromWorker::Loaded`] of a trace
    /// of which only a part is here.
    Detail(Detail),
    /// The file can't be read, or the worker failed; nothing follows.
    Failed {
        /// One or two plain sentences for the user.
        message: String,
    },
    /// The answer to a [`ToWorker::Ask`].
    Answer {
        /// The question's id.
        id: u32,
        /// The answer.
        answer: Box<Answer>,
    },
    /// The identity of the file: after [`ToWorker::Identify`], and of a download in any case. It comes before
    /// [`FromWorker::Loaded`] if it was requested before the file, or can't be found later.
    Hashed {
        /// The identity.
        hash: FileHash,
    },
    /// The contents of a copy.
    Contents {
        /// The request's id.
        id: u32,
        /// The trace compared with its copy.
        contents: Box<Comparison>,
        /// Where the view is in the copy; `None` if the copy doesn't have its device.
        moved: Option<Moved>,
    },
    /// A copy is ready. The message comes in an array, whose second element is the copy: a `Blob`, passed by reference.
    Packed {
        /// The request's id.
        id: u32,
    },
    /// A device's requests. The message comes in an array, whose second element is an `ArrayBuffer` with them: the first
    /// message to a what-if worker.
    Requests {
        /// The request's id.
        id: u32,
    },
    /// The file is a sweep, and this is all of it; nothing follows.
    Sweep(Box<SweepPicture>),
    /// The worker's memory has grown. Sent after another message.
    Memory {
        /// The size of its WebAssembly memory in bytes.
        bytes: u64,
    },
}

impl FromWorker {
    /// Returns whether the same questions may have other answers after this message.
    pub fn outdates_answers(&self) -> bool {
        matches!(self, Self::Loaded(_) | Self::Refolded(_) | Self::Update(_) | Self::Detail(_))
    }
}

#[cfg(test)]
mod tests {
    use query::finding::{Finding, FindingCode};
    use query::{Axis, DeviceSummary, Overview, PositionAtQuery};
    use trace::units::Stream;

    use super::*;

    fn device(events: u32) -> DeviceSummary {
        DeviceSummary { events, streams: vec![Stream(7)], ..DeviceSummary::default() }
    }

    #[test]
    fn messages_cross_unchanged() {
        let ask =
            ToWorker::Ask { id: 7, device: 1, query: Query::PositionAt(PositionAtQuery { axis: Axis::Event, x: 0.5 }) };
        assert_eq!(decode::<ToWorker>(&encode(&ask)).unwrap(), ask);
        let overview = Overview { reserved: vec![u64::MAX, 0, 3].into(), ..Overview::default() };
        let answer = FromWorker::Answer { id: 7, answer: Box::new(Answer::Overview(overview)) };
        assert_eq!(decode::<FromWorker>(&encode(&answer)).unwrap(), answer);
        let hashed = FromWorker::Hashed { hash: FileHash::of_digest(&[0xfe; 32]) };
        assert_eq!(decode::<FromWorker>(&encode(&hashed)).unwrap(), hashed);
    }

    #[test]
    fn a_summary_crosses_without_its_absent_fields() {
        let mut summary = Summary {
            format: "pickle (protocol 4)".to_owned(),
            findings: Vec::new(),
            devices: vec![device(7), device(0)],
            settings: Vec::new(),
            origin: None,
            host_memory: None,
        };
        summary.findings.push(Finding::new(FindingCode::NoHistory, "none"));
        summary.findings.push(Finding::new(FindingCode::OutOfMemory, "here").at(3));
        let loaded = FromWorker::Loaded(Box::new(summary));
        assert_eq!(decode::<FromWorker>(&encode(&loaded)).unwrap(), loaded);
    }

    #[test]
    fn cut_off_bytes_are_an_error() {
        let bytes = encode(&FromWorker::Failed { message: "no".to_owned() });
        assert_eq!(decode::<FromWorker>(&bytes[..bytes.len() - 1]), None);
    }
}
