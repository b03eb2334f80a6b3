//! Findings: problems and notable facts about a file that could be read.

use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::frames::StrId;
use crate::order;
use crate::trace::Snapshot;
use crate::units::{Count, counted_as};

/// The number of unknown actions that one message names.
const NAMES: usize = 5;
/// Characters of such a name.
const NAME_CHARS: usize = 32;

/// The kind of a finding. The codes are stable: scripts may match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The file is truncated; what precedes the cut was read.
    Truncated,
    /// No device has a trace: the history was not recorded.
    NoHistory,
    /// Events in the middle of a recording were dropped by the recorder or lost to damage.
    EventsLost,
    /// The history ring overflowed: the first events of the run are lost.
    RingOverflow,
    /// The trace holds only the newest entry (`_record_memory_history("state")`).
    StateOnly,
    /// Entries have actions that this build does not know; they are kept and counted.
    UnknownAction,
    /// Trace and segments disagree: entries are missing between them, or kinds of entries were skipped.
    Inconsistent,
    /// A request failed because memory ran out.
    OutOfMemory,
    /// The file contains parts that this build does not show (unknown keys, or traces of another kind).
    NotShown,
    /// Values could not be read as the expected type; they are left out and counted.
    Malformed,
}

impl FindingCode {
    /// Returns the code as it appears in reports.
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
    /// The device that it concerns, if any.
    #[serde(default)]
    pub device: Option<i64>,
    /// The position in that device's trace where it shows, if any.
    #[serde(default)]
    pub position: Option<u32>,
}

impl Finding {
    /// Creates a finding about the whole file.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), device: None, position: None }
    }

    /// Sets the device that the finding concerns.
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

/// Returns the finding about trace entries with actions that this build does not know, if there are any.
pub(crate) fn unknown_actions(snapshot: &Snapshot) -> Option<Finding> {
    let others: Vec<StrId> = snapshot.tags.iter().map(|tag| tag.other_action).collect();
    if others.iter().all(|&name| name == StrId(0)) {
        return None;
    }
    // The last counter is for tags that the file does not define.
    let mut by_tag = vec![0_u64; others.len() + 1];
    for device in &snapshot.devices {
        for (action, tag) in device.events.action.iter().zip(device.events.tag.iter()) {
            if action == Action::Other as u8
                && let Some(count) = by_tag.get_mut((tag as usize).min(others.len()))
            {
                *count += 1;
            }
        }
    }
    // Several tags can have the same name.
    let mut counts: Vec<(StrId, u64)> =
        others.into_iter().chain([StrId(0)]).zip(by_tag).filter(|(_, count)| *count > 0).collect();
    order::merge(&mut counts, |sum, count| *sum += count);
    if counts.is_empty() {
        return None;
    }
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut names: Vec<String> = counts
        .iter()
        .take(NAMES)
        .map(|&(name, count)| {
            let text: String = snapshot.symbols.text(name).chars().take(NAME_CHARS).collect();
            format!("{} ({})", text.escape_default(), Count(count))
        })
        .collect();
    if counts.len() > NAMES {
        names.push("…".to_owned());
    }
    Some(Finding::new(
        FindingCode::UnknownAction,
        format!(
            "Unknown actions ({}), listed but without effect: {}",
            counted_as(total, "trace entry", "trace entries"),
            names.join(", ")
        ),
    ))
}
