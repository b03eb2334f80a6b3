//! Findings about a recording: damage, losses and truncation.

use super::contents::{Recording, Track};
use crate::{ChunkReader, Fault, LostNames};
use query::finding::{Finding, FindingCode, unknown_actions};
use trace::event::{Action, counts_in_words};
use trace::units::{Bytes, Count, counted};
use trace::{Loss, Snapshot};

/// Returns the findings about the file as a whole. `cut_at` is where its last whole chunk ends if other bytes follow.
pub(super) fn of_file(recording: &Recording, chunks: &ChunkReader, cut_at: Option<u64>, packed: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if recording.end.is_none() {
        let events = counted(recording.events as u64, "event");
        let were = if recording.events == 1 { "was" } else { "were" };
        let torn = match cut_at {
            Some(byte) => {
                format!("the last {} are an incomplete chunk and were left out", Bytes(packed.saturating_sub(byte)))
            }
            None => "its last chunk is complete".to_owned(),
        };
        findings.push(Finding::new(
            FindingCode::Truncated,
            format!(
                "The recording was not ended: the program was stopped or is still writing, or the file was truncated. {events} \
                 {were} read; {torn}. The final segments are derived from the events."
            ),
        ));
    }
    findings.extend(of_chunks(recording, chunks));
    if recording.header.is_none() {
        findings.push(Finding::new(
            FindingCode::Malformed,
            "The header is missing, so the program, the settings and the sizes of devices are not known. What depends on settings \
             assumes those of PyTorch. If the file that it was copied from is whole, copy it again.",
        ));
    }
    findings
}

impl Fault {
    /// Returns the finding about a recording that is a copy of a file with this fault.
    pub(crate) fn finding(&self) -> Finding {
        let code = if self.is_cut { FindingCode::Truncated } else { FindingCode::Malformed };
        Finding::new(code, format!("This is a copy of a damaged file. About that file: {}", self.message))
    }
}

/// Returns the findings about chunks that could not be read.
pub fn of_chunks(recording: &Recording, chunks: &ChunkReader) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (damages, further) = chunks.damages();
    let (count, bytes) = damages.iter().fold((further, 0_u64), |(n, sum), d| (n + 1, sum.saturating_add(d.bytes)));
    if let Some(first) = damages.first() {
        let more = if further > 0 { " or more" } else { "" };
        findings.push(Finding::new(
            FindingCode::Malformed,
            format!(
                "The file is damaged in {} (first at byte {}, {}{more} in all); the damaged parts were left out. If the file \
                 that it was copied from is whole, copy it again.",
                counted(count, "place"),
                Count(first.byte),
                Bytes(bytes),
            ),
        ));
    }
    if recording.malformed > 0 {
        findings.push(Finding::new(
            FindingCode::Malformed,
            format!(
                "{} could not be read completely; the rest of their contents was left out.",
                counted(recording.malformed, "chunk")
            ),
        ));
    }
    let is_damaged = !damages.is_empty() || recording.malformed > 0;
    findings.extend(of_names(recording, is_damaged));
    if is_damaged {
        findings.extend(recording.devices.iter().filter_map(|(_, track)| before_first(track)));
    }
    let later = recording.unknown.saturating_add(chunks.unsupported());
    if later > 0 {
        findings.push(Finding::new(
            FindingCode::NotShown,
            format!(
                "The file also contains {} of unknown kinds or codecs. A newer version of Vramscope may show more.",
                counted(later, "chunk")
            ),
        ));
    }
    findings
}

/// Returns the finding about names that were lost, if something refers to them. In a recording without damage, a stream that no
/// chunk describes is the default one.
fn of_names(recording: &Recording, is_damaged: bool) -> Option<Finding> {
    let LostNames { stacks, parts } = recording.lost_names();
    let (events, tags) = recording.lost;
    let tags = if is_damaged { tags } else { 0 };
    let mut said = Vec::new();
    if stacks + parts > 0 {
        let of = if events == 0 { "blocks".to_owned() } else { counted(events, "event") };
        said.push(format!(
            "The names of {} were in the damaged part, so where the memory of {of} comes from, and what it is used for, is \
             unknown.",
            counted((stacks + parts) as u64, "stack")
        ));
    }
    if tags > 0 {
        said.push(format!(
            "The streams and pools of {} were {}; they show as the default ones.",
            counted(tags, "event"),
            if said.is_empty() { "in the damaged part" } else { "there too" },
        ));
    }
    if said.is_empty() {
        return None;
    }
    said.push("If the file that it was copied from is whole, copy it again.".to_owned());
    Some(Finding::new(FindingCode::NamesLost, said.join(" ")))
}

/// Returns the finding about events that a damaged recording may have had before the first one that was read.
fn before_first(track: &Track) -> Option<Finding> {
    let before = track.first().filter(|before| *before > 0)?;
    let message = format!(
        "Device {}: the file is damaged, and the first event that was read is number {} of the run. Those before it may be lost.",
        track.trace.device,
        Count(before.saturating_add(1)),
    );
    Some(Finding::new(FindingCode::EventsLost, message).on_device(track.trace.device).at(0))
}

/// Returns the finding about a device's lost events.
pub(super) fn of_device(track: &Track, has_ended: bool) -> Option<Finding> {
    of_losses(track.trace.device, &track.losses(), track.lost.len(), has_ended)
}

/// Returns the finding about `losses` of a device. `places` is the number of separate runs, as losses at one position
/// are joined.
pub fn of_losses(device: i64, losses: &[Loss], places: usize, has_ended: bool) -> Option<Finding> {
    let first = losses.first()?;
    let lost = losses.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.events));
    let mut by_action = [0_u64; Action::ALL.len()];
    for loss in losses {
        for (sum, count) in by_action.iter_mut().zip(loss.by_action) {
            *sum = sum.saturating_add(count);
        }
    }
    let kinds = counts_in_words(&by_action);
    // Whoever drops events counts them; other losses show in the sequence numbers only.
    let kinds = if kinds.is_empty() {
        " (their kinds are not known)".to_owned()
    } else {
        format!(" while recording ({kinds})")
    };
    let after = if has_ended { "" } else { ", including the end" };
    let message = format!(
        "Device {device}: {} {} lost{kinds}, in {}; the first after event {}. Values that depend on \
         them are not exact{after}.",
        counted(lost, "event"),
        if lost == 1 { "was" } else { "were" },
        counted(places as u64, "place"),
        Count(first.position.into()),
    );
    Some(Finding::new(FindingCode::EventsLost, message).on_device(device).at(first.position))
}

/// Returns the findings about the events themselves. The recording may be longer if it `is_cut`.
pub(super) fn of_history(snapshot: &Snapshot, is_cut: bool) -> Vec<Finding> {
    let empty = if is_cut { None } else { empty_history(snapshot) };
    empty.into_iter().chain(unknown_actions(snapshot)).collect()
}

/// Returns the finding about a complete recording without events.
pub fn empty_history(snapshot: &Snapshot) -> Option<Finding> {
    let is_empty = snapshot.devices.iter().all(|device| device.events.is_empty());
    is_empty.then(|| Finding::new(FindingCode::NoHistory, "No events were recorded; at most the final state is known."))
}
