//! Findings about a file that was read, as far as the file itself shows them. Findings that take a replay (lost
//! history, contradictions) are in `crate::analysis::findings`.

use crate::finding::{Finding, FindingCode, unknown_actions};
use crate::frames::StrId;
use crate::trace::Snapshot;
use crate::units::{Count, counted, counted_as};
use crate::values::keywords;

/// Observations made while reading.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Where the (decompressed) file is truncated, if it is.
    pub(super) cut_at: Option<u64>,
    pub(super) is_packed: bool,
    /// The last top-level key.
    pub(super) last_key: Option<StrId>,
    pub(super) malformed: u64,
    /// The number of annotations of devices that have neither segments nor entries.
    pub(super) homeless_annotations: u64,
}

/// Returns all findings, the most serious first.
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
            1 => "1 value has an unexpected type and was left out.".to_owned(),
            n => format!("{} values have unexpected types and were left out.", Count(n)),
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
            "The file is truncated at byte {}{}, in or after its {part}; {} and {} were read. Copy the file again to get the \
             rest.",
            Count(end),
            if notes.is_packed { " of the unpacked data" } else { "" },
            counted_as(entries as u64, "trace entry", "trace entries"),
            counted(segments as u64, "segment"),
        ),
    ))
}

/// Returns the finding about a history that is empty or holds only its last entry.
fn history(snapshot: &Snapshot) -> Option<Finding> {
    let longest = snapshot.devices.iter().map(|d| d.events.len()).max().unwrap_or(0);
    match longest {
        0 => Some(Finding::new(
            FindingCode::NoHistory,
            "No history was recorded, so only the final state is known. Call \
             torch.cuda.memory._record_memory_history() before the code that you want to see.",
        )),
        // The only request failed: nothing else has happened.
        1 if snapshot.devices.iter().all(|d| d.segments.is_empty()) => None,
        1 => Some(Finding::new(
            FindingCode::StateOnly,
            "The history holds only its newest entry, so only the final state is known. Record every entry with \
             torch.cuda.memory._record_memory_history(max_entries=1_000_000); before PyTorch 2.1, with \
             _record_memory_history(True, trace_alloc_max_entries=1_000_000, trace_alloc_record_context=True).",
        )),
        _ => None,
    }
}

fn not_shown(notes: &Notes) -> Option<Finding> {
    let homeless = Some(notes.homeless_annotations).filter(|count| *count > 0)?;
    let parts = counted(homeless, "annotation");
    let text = format!("The file also holds {parts} of devices without memory; they are not shown.");
    Some(Finding::new(FindingCode::NotShown, text))
}
