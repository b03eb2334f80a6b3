//! Findings: problems and notable facts of a file that could be read.

use serde::{Deserialize, Serialize};

/// The kind of a finding. The code is stable: scripts may match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The file is cut off; the part before is used.
    Truncated,
    /// No device has a trace: history was not recorded.
    NoHistory,
    /// Events within a recording are missing: the recorder dropped them, or their part of the file is damaged.
    EventsLost,
    /// The history ring was full: the first events of the run are lost.
    RingOverflow,
    /// The trace has only the newest entry (`_record_memory_history("state")`).
    StateOnly,
    /// Some entries have an action that this build does not know; they are kept and counted.
    UnknownAction,
    /// Trace and segments disagree: entries are missing between them, or some kinds of entries were not recorded.
    Inconsistent,
    /// A request failed for lack of memory.
    OutOfMemory,
    /// The file has parts that this build does not show (keys or traces of another kind).
    NotShown,
    /// Some values have an unexpected type or range; they are skipped and counted.
    Malformed,
}

impl FindingCode {
    /// Returns the code as it is written in a report.
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
    /// The device that it concerns, if it concerns one.
    #[serde(default)]
    pub device: Option<i64>,
    /// The position in that device's trace that shows it, if there is one.
    #[serde(default)]
    pub position: Option<u32>,
}

impl Finding {
    /// Creates a finding about the whole file.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), device: None, position: None }
    }

    /// Sets the device.
    #[must_use]
    pub fn on_device(mut self, device: i64) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets the position in the device's trace.
    #[must_use]
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
}
