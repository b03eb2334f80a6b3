//! Findings: problems and notable facts about a file that could be read.

use serde::{Deserialize, Serialize};

use crate::setting::{self, ALLOC_CONF};
use trace::Snapshot;
use trace::event::Action;
use trace::frames::StrId;
use trace::order;
use trace::units::{Address, Count, counted_as};

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
    /// Parts of the file are damaged, or values could not be read as the expected type; what was left out is counted.
    Malformed,
    /// A line holds more at every step: a leak.
    Leak,
    /// A line holds more and more for a reason that is known, such as a cache.
    Growth,
    /// Much of the cached memory is in gaps that the requests of the trace don't fit.
    Fragmentation,
    /// Small blocks keep large segments from being released.
    PinnedSegments,
    /// Rounding up of sizes wastes memory.
    Rounding,
    /// Freed blocks wait for other streams.
    Waiting,
    /// Requests were served only after cached memory had been released.
    Retries,
    /// The allocator calls the driver again and again after the program has set up.
    DriverCalls,
    /// Cached memory belongs to a stream or pool that does not use it, while another takes new memory.
    StuckCache,
    /// Memory rises for a moment, such as when a checkpoint is saved.
    Spike,
    /// Other processes, or CUDA itself, hold memory of the device.
    OtherProcess,
    /// A setting has no effect.
    IneffectiveSetting,
    /// Names of stacks were lost to damage of a recording; the events that have them were not.
    NamesLost,
    /// The file is damaged; what precedes the damage was read, and nothing behind it.
    Damaged,
}

impl FindingCode {
    /// Findings of what may be the cause of a failure: a verdict with remedies says what to try.
    pub const CAUSES: [Self; 5] = [Self::OutOfMemory, Self::Leak, Self::Fragmentation, Self::Retries, Self::Rounding];

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
            Self::Leak => "leak",
            Self::Growth => "growth",
            Self::Fragmentation => "fragmentation",
            Self::PinnedSegments => "pinned_segments",
            Self::Rounding => "rounding",
            Self::Waiting => "waiting",
            Self::Retries => "retries",
            Self::DriverCalls => "driver_calls",
            Self::StuckCache => "stuck_cache",
            Self::Spike => "spike",
            Self::OtherProcess => "other_process",
            Self::IneffectiveSetting => "ineffective_setting",
            Self::NamesLost => "names_lost",
            Self::Damaged => "damaged",
        }
    }

    /// Returns the severity of such a finding, unless the rule that finds it says otherwise.
    pub const fn severity(self) -> Severity {
        match self {
            Self::OutOfMemory | Self::Leak => Severity::Failure,
            Self::Truncated
            | Self::EventsLost
            | Self::RingOverflow
            | Self::Inconsistent
            | Self::Malformed
            | Self::NoHistory
            | Self::Fragmentation
            | Self::PinnedSegments
            | Self::Rounding
            | Self::Waiting
            | Self::Retries
            | Self::DriverCalls
            | Self::StuckCache
            | Self::Spike
            | Self::OtherProcess
            | Self::IneffectiveSetting
            | Self::NamesLost
            | Self::Damaged => Severity::Warning,
            Self::StateOnly | Self::UnknownAction | Self::NotShown | Self::Growth => Severity::Note,
        }
    }
}

/// What a file lacks, by its findings. A sentence about a trace says so where it would otherwise blame the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Its end is missing.
    pub is_cut: bool,
    /// Parts of it are damaged.
    pub is_damaged: bool,
}

impl Integrity {
    /// Returns what a file lacks that has these findings.
    pub fn of(findings: &[Finding]) -> Self {
        let has = |code| findings.iter().any(|finding| finding.code == code);
        let is_damaged = has(FindingCode::Malformed) || has(FindingCode::Damaged);
        Self { is_cut: has(FindingCode::Truncated), is_damaged }
    }
}

/// Returns whether the end of a file that has these findings was not read: it is missing, or lies behind damage. Then the trace
/// ends before the state that a snapshot tells.
pub fn lacks_end(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| matches!(finding.code, FindingCode::Truncated | FindingCode::Damaged))
}

/// How much a finding matters. It orders findings, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The run failed, or will.
    Failure,
    /// Memory or time is wasted, or data is missing.
    Warning,
    /// Worth knowing.
    Note,
}

/// What a person can try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// One sentence; a setting to copy stands in it as it is written.
    pub text: String,
    /// Whether it was checked on this trace. If not, it is advice.
    pub checked: bool,
    /// The part to copy, such as `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; empty if there is none.
    #[serde(default)]
    pub copy: String,
}

impl Remedy {
    /// Returns what stands before it in a list.
    pub const fn mark(&self) -> &'static str {
        if self.checked { "help (checked on this trace)" } else { "help" }
    }

    /// Returns whether it advises the same as another one, perhaps in other words.
    pub fn is_same(&self, other: &Self) -> bool {
        other.text == self.text || !self.copy.is_empty() && other.copy == self.copy
    }

    /// Creates advice that was not checked on the trace.
    pub fn advice(text: impl Into<String>) -> Self {
        Self { text: text.into(), checked: false, copy: String::new() }
    }

    /// Returns the allocator settings to copy; `None` if that is something else.
    pub fn setting(&self) -> Option<&str> {
        self.copy.strip_prefix(ALLOC_CONF).map(|conf| conf.trim_matches('\''))
    }

    /// Sets allocator settings to copy: those of a run with what it should change, as [`setting::merged`] returns them.
    #[must_use]
    pub fn with_setting(self, conf: &str) -> Self {
        self.with_copy(setting::line(conf))
    }

    /// Sets the part to copy.
    #[must_use]
    pub fn with_copy(mut self, copy: impl Into<String>) -> Self {
        self.copy = copy.into();
        self
    }
}

/// Where a finding shows, beside its position: what a click on it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A call site, by the number of a stack that its line represents.
    Site(u32),
    /// An allocation, by its number.
    Allocation(u32),
    /// The segment that holds this address at the finding's position.
    Segment(Address),
    /// The positions from the first to the second.
    Window(u32, u32),
}

/// One finding: a stable code and a sentence for a person (what, where, what to do next). All fields are always
/// written: the page's worker sends them without names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind.
    pub code: FindingCode,
    /// How much it matters.
    pub severity: Severity,
    /// One or two sentences, without a line break.
    pub message: String,
    /// The device that it concerns, if any.
    #[serde(default)]
    pub device: Option<i64>,
    /// The position in that device's trace where it shows, if any.
    #[serde(default)]
    pub position: Option<u32>,
    /// The bytes that it is about, if it is about bytes. Among findings of one severity, more bytes come first.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What a click on it opens beside its position.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// What to try, best first.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// Creates a finding about the whole file.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            device: None,
            position: None,
            bytes: None,
            evidence: None,
            remedies: Vec::new(),
        }
    }

    /// Sets the severity, where it is not that of the code.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Sets the bytes that the finding is about.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets what a click on the finding opens.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }

    /// Adds what to try.
    #[must_use]
    pub fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
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
pub fn unknown_actions(snapshot: &Snapshot) -> Option<Finding> {
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
            format!("{text} ({})", Count(count))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Shared recordings hold the number of a code, so a new one goes to the end.
    #[test]
    fn codes_keep_their_numbers() {
        let codes = [FindingCode::Truncated, FindingCode::OutOfMemory, FindingCode::Leak, FindingCode::Waiting];
        assert_eq!(codes.map(|code| code as u32), [0, 7, 10, 15]);
        assert_eq!([FindingCode::NamesLost, FindingCode::Damaged].map(|code| code as u32), [22, 23]);
    }
}
