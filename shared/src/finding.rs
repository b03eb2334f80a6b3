//! What is wrong, or worth knowing, with something that could still be read.

use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::frames::StrId;
use crate::order;
use crate::trace::Snapshot;
use crate::units::Count;

/// The number of unknown actions that one message names.
const NAMES: usize = 5;
/// Characters of such a name.
const NAME_CHARS: usize = 32;

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

/// Returns the finding about trace entries with actions that this build does not know, if there are any.
pub(crate) fn unknown_actions(snapshot: &Snapshot) -> Option<Finding> {
    let others: Vec<StrId> = snapshot.tags.iter().map(|tag| tag.other_action).collect();
    if others.iter().all(|&name| name == StrId(0)) {
        return None;
    }
    // The last stands for tags that the file does not have.
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
            "{} trace entries have actions that this version does not know; they are listed, and change nothing: {}",
            Count(total),
            names.join(", ")
        ),
    ))
}
