//! What is wrong, or worth knowing, with something that could still be read.

use serde::{Deserialize, Serialize};

/// What kind of finding it is. The code is stable: scripts may match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The file ends before its end: what came before is kept.
    Truncated,
    /// No device has a trace: history was not being recorded.
    NoHistory,
    /// Events in the middle of a recording that the recorder could not keep, or that a damaged part held.
    EventsLost,
    /// The history ring was full: the first events of the run are lost.
    RingOverflow,
    /// The trace holds the newest entry only (`_record_memory_history("state")`).
    StateOnly,
    /// Entries with an action that this build does not know; they are kept and counted.
    UnknownAction,
    /// Trace and segments disagree: entries are missing between the two, or kinds of entries were skipped.
    Inconsistent,
    /// A request failed for lack of memory.
    OutOfMemory,
    /// The file holds parts that this build does not show (keys or traces of another kind).
    NotShown,
    /// Values that could not be read as what they should be; they are left out and counted.
    Malformed,
}

impl FindingCode {
    /// The code as it is written in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NoHistory => "no_history",
            Self::EventsLost => "events_lost",
            Self::RingOverflow => "ring_overflow",
            Self::StateOnly => "state_only",
            Self::UnknownAction => "unknown_action",
            Self::Inconsistent => "inconsistent",
            Self::OutOfMemory => "out_of_memory",
            Self::NotShown => "not_shown",
            Self::Malformed => "malformed",
        }
    }
}

/// One finding: a stable code and a sentence for a person (what, where, what to do next).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind.
    pub code: FindingCode,
    /// One or two sentences, without a line break.
    pub message: String,
    /// The device it is about, if it is about one.
    #[serde(default)]
    pub device: Option<i64>,
    /// The position in that device's trace where it can be seen, if there is one.
    #[serde(default)]
    pub position: Option<u32>,
}

impl Finding {
    /// A finding about the whole file.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), device: None, position: None }
    }

    /// The same finding, about one device.
    #[must_use]
    pub fn on_device(mut self, device: i64) -> Self {
        self.device = Some(device);
        self
    }

    /// The same finding, at a position of its device's trace.
    #[must_use]
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
}
