//! Findings about a file that was read, as far as the file itself shows them. Findings that take a replay (lost
//! history, contradictions) are in `analysis::findings`.

use super::format::Compression;
use super::gzip::GZIP;
use super::rest::Rest;
use super::snapshot::Stop;
use super::zstd::ZSTD;
use crate::values::keywords;
use query::finding::{Finding, FindingCode, unknown_actions};
use trace::Snapshot;
use trace::error::ImportError;
use trace::frames::StrId;
use trace::units::{Count, counted, counted_as};

/// Observations made while reading.
#[derive(Debug, Default)]
pub(super) struct Notes<'a> {
    /// Why the end of the snapshot was not read, if it was not.
    pub(super) stop: Option<Stop<'a>>,
    pub(super) is_packed: bool,
    /// The last top-level key.
    pub(super) last_key: Option<StrId>,
    pub(super) malformed: u64,
    /// The number of those among them that stand for segments and traces.
    pub(super) misfits: u64,
    /// The number of annotations of devices that have neither segments nor entries.
    pub(super) homeless_annotations: u64,
}

/// How a file ended, behind what was read of it.
#[derive(Debug)]
pub(super) struct Ended {
    /// How its compressed stream ended.
    pub(super) rest: Rest,
    /// Whether a whole snapshot was read. A recording has an end of its own.
    pub(super) is_whole: bool,
    pub(super) packed_bytes: u64,
    /// Bytes after the end of the snapshot.
    pub(super) other_bytes: u64,
    pub(super) compression: Option<Compression>,
}

impl Ended {
    /// Returns the findings, the most serious first. `broken` is why the file was not decompressed to its end.
    pub(super) fn findings(&self, broken: Option<&ImportError>) -> Vec<Finding> {
        let damage = |text: String| Finding::new(FindingCode::Malformed, text);
        let mut findings: Vec<Finding> = broken.map(|error| damage(self.broken(error))).into_iter().collect();
        let format = match self.compression {
            Some(Compression::Zstd) => "zstd",
            _ => "gzip",
        };
        let bytes = |count| counted(count, "byte");
        match self.rest {
            // A snapshot that is not whole is reported as truncated.
            Rest::Cut if self.is_whole => findings.push(damage(format!(
                "The file is truncated at byte {} of the compressed data. All of the snapshot was read, but its checksum is \
                 missing: values in it may be wrong. Copy the file again.",
                Count(self.packed_bytes),
            ))),
            Rest::Other(count) => findings.push(damage(format!(
                "{} after the end of the {format} data were not read. If the file should hold more, copy it again.",
                bytes(count),
            ))),
            Rest::Cut | Rest::Whole => {}
        }
        // What is broken behind a whole snapshot is no second one.
        if self.other_bytes > 0 && broken.is_none() {
            findings.push(Finding::new(
                FindingCode::NotShown,
                format!(
                    "{} after the end of the snapshot were not read. If several files were joined, open each by itself.",
                    bytes(self.other_bytes),
                ),
            ));
        }
        findings
    }

    /// Returns what is wrong with a file that was not decompressed to its end.
    fn broken(&self, error: &ImportError) -> String {
        match (error, self.is_whole) {
            (ImportError::Damaged { format, byte, what }, true) => format!(
                "The file is damaged: at byte {} of the {format} data, {what}. All of the snapshot was read, but values in it \
                 may be wrong. Copy the file again, or record a new one.",
                Count(*byte),
            ),
            (ImportError::Damaged { format, byte, what }, false) => format!(
                "The file is damaged: at byte {} of the {format} data, {what}. What came before was read. Copy the file again.",
                Count(*byte),
            ),
            (error, _) => format!(
                "All of the snapshot was read, but not what follows it, so that no checksum was compared. {error}"
            ),
        }
    }
}

/// Returns all findings, the most serious first.
pub(super) fn findings(snapshot: &Snapshot, notes: &Notes<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(notes.stop.map(|stop| stopped(stop, snapshot, notes)));
    if notes.stop.is_none() {
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

/// Returns the finding about a snapshot whose end was not read.
fn stopped(stop: Stop<'_>, snapshot: &Snapshot, notes: &Notes<'_>) -> Finding {
    let part = match notes.last_key {
        Some(keywords::SEGMENTS) => "segments",
        Some(keywords::DEVICE_TRACES) => "trace",
        Some(keywords::EXTERNAL_ANNOTATIONS) => "annotations",
        _ => "settings",
    };
    let entries: usize = snapshot.devices.iter().map(|d| d.events.len()).sum();
    let segments: usize = snapshot.devices.iter().map(|d| d.segments.len()).sum();
    let entries = counted_as(entries as u64, "trace entry", "trace entries");
    let read = format!("{entries} and {}", counted(segments as u64, "segment"));
    let unpacked = if notes.is_packed { " of the unpacked data" } else { "" };
    let error = match stop {
        Stop::Cut(end) => {
            let text = format!(
                "The file is truncated at byte {}{unpacked}, in or after its {part}; {read} were read. Copy the file again to get \
                 the rest.",
                Count(end),
            );
            return Finding::new(FindingCode::Truncated, text);
        }
        Stop::Damage(error) => error,
    };
    let (place, what) = match error {
        ImportError::Damaged { format: packing @ (GZIP | ZSTD), byte, what } => {
            (format!("byte {} of the {packing} data", Count(*byte)), what.clone())
        }
        ImportError::Damaged { byte, what, .. } => (format!("byte {}{unpacked}", Count(*byte)), what.clone()),
        ImportError::TooMuch { byte, what } => {
            (format!("byte {}{unpacked}", Count(*byte)), format!("{what}, which no memory snapshot needs"))
        }
        error => ("an unknown byte".to_owned(), error.to_string()),
    };
    let text = format!(
        "The file is damaged at {place}, in or after its {part}: {what}. {read} were read, of which the last may be wrong. Copy the \
         file again to get the rest, or record a new one.",
    );
    Finding::new(FindingCode::Damaged, text)
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

fn not_shown(notes: &Notes<'_>) -> Option<Finding> {
    let homeless = Some(notes.homeless_annotations).filter(|count| *count > 0)?;
    let parts = counted(homeless, "annotation");
    let text = format!("The file also holds {parts} of devices without memory; they are not shown.");
    Some(Finding::new(FindingCode::NotShown, text))
}
