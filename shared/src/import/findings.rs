//! What is wrong with a file that could be read, or worth knowing of it, as far as the file itself tells. What takes a
//! replay to know (lost history, contradictions) is told in [`crate::analysis::findings`].

use super::words;
use crate::event::Action;
use crate::finding::{Finding, FindingCode};
use crate::frames::StrId;
use crate::order;
use crate::trace::Snapshot;
use crate::units::Count;

/// Names of unknown actions in one message.
const NAMES: usize = 5;
/// Characters of such a name.
const NAME_CHARS: usize = 32;

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
        Some(words::SEGMENTS) => "segments",
        Some(words::DEVICE_TRACES) => "trace",
        Some(words::EXTERNAL_ANNOTATIONS) => "annotations",
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
