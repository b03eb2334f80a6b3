//! What is wrong with a file that could be read, or worth knowing of it, as far as the file itself tells. What takes a
//! replay to know (lost history, contradictions) is told in [`crate::analysis::findings`].

use crate::finding::{Finding, FindingCode, unknown_actions};
use crate::frames::StrId;
use crate::trace::Snapshot;
use crate::units::Count;
use crate::values::keywords;

/// What was noticed while reading.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Where the (decompressed) file ends, if before its end.
    pub(super) cut_at: Option<u64>,
    pub(super) is_packed: bool,
    /// The last key at the top.
    pub(super) last_key: Option<StrId>,
    pub(super) malformed: u64,
    pub(super) host_segments: u64,
    pub(super) host_entries: u64,
    /// Annotations of devices that have neither segments nor entries.
    pub(super) homeless_annotations: u64,
}

/// Everything to be said, the gravest first.
pub(super) fn findings(snapshot: &Snapshot, notes: &Notes) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(truncated(snapshot, notes));
    if notes.cut_at.is_none() {
        findings.extend(history(snapshot));
    }
    findings.extend(unknown_actions(snapshot));
    findings.extend(not_shown(notes));
    if notes.malformed > 0 {
        let text = match notes.malformed {
            1 => "1 value is not what its place asks for; it was left out.".to_owned(),
            n => format!("{} values are not what their places ask for; they were left out.", Count(n)),
        };
        findings.push(Finding::new(FindingCode::Malformed, text));
    }
    findings
}

fn truncated(snapshot: &Snapshot, notes: &Notes) -> Option<Finding> {
    let end = notes.cut_at?;
    let part = match notes.last_key {
        Some(keywords::SEGMENTS) => "segments",
        Some(keywords::DEVICE_TRACES) => "trace",
        Some(keywords::EXTERNAL_ANNOTATIONS) => "annotations",
        _ => "settings",
    };
    let entries: usize = snapshot.devices.iter().map(|d| d.events.len()).sum();
    let segments: usize = snapshot.devices.iter().map(|d| d.segments.len()).sum();
    Some(Finding::new(
        FindingCode::Truncated,
        format!(
            "The file is cut off at byte {}{}, in or after its {part}: {} and {} before that are kept. Copy it again for \
             the rest.",
            Count(end),
            if notes.is_packed { " of what it unpacks to" } else { "" },
            counted(entries, "trace entry", "trace entries"),
            counted(segments, "segment", "segments"),
        ),
    ))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", Count(count as u64), if count == 1 { one } else { many })
}

/// Whether there is any history, and more than its last entry.
fn history(snapshot: &Snapshot) -> Option<Finding> {
    let longest = snapshot.devices.iter().map(|d| d.events.len()).max().unwrap_or(0);
    match longest {
        0 => Some(Finding::new(
            FindingCode::NoHistory,
            "No history was recorded: only the state at the end is known. Call \
             torch.cuda.memory._record_memory_history() before what you want to see.",
        )),
        1 => Some(Finding::new(
            FindingCode::StateOnly,
            "The history holds its newest entry only, so only the state at the end is known: it was recorded with \
             _record_memory_history(\"state\"). Use \"all\" to record every entry.",
        )),
        _ => None,
    }
}

fn not_shown(notes: &Notes) -> Option<Finding> {
    let mut parts = Vec::new();
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            parts.push(format!("{} {}", Count(count), what.replace("(s)", s)));
        }
    };
    part(notes.host_segments, "segment(s) of pinned host memory");
    part(notes.host_entries, "event(s) of pinned host memory");
    part(notes.homeless_annotations, "annotation(s) of devices without memory");
    if parts.is_empty() {
        return None;
    }
    Some(Finding::new(FindingCode::NotShown, format!("The file also holds {}; they are not shown.", parts.join(", "))))
}
