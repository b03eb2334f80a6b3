//! Finds out what is stored of a session, from its segments alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use format::{ChunkScanner, Piece};
use trace::units::Bytes;

use super::survey::label;
use crate::store::{Found, Label, Record, SegmentInfo, SegmentStore, StoreResult};

/// Bytes in which a label is searched first, and bytes in which it is searched if it isn't there: a label of many devices is
/// long.
const WINDOWS: [u64; 2] = [64 << 10, 16 << 20];

/// Returns the record of a session with these segments. Also returns whether it is complete: if the last label of the newest
/// segment can't be read, only reading that segment tells the totals.
pub(in crate::ingest) fn describe(
    store: &Arc<SegmentStore>,
    session: &str,
    found: &[Found],
) -> StoreResult<(Record, bool)> {
    let newest = found.iter().rev().find_map(|segment| {
        last_label(store, session, *segment)
            .or_else(|| first_label(store, session, *segment))
            .map(|label| (segment, label))
    });
    let is_complete = newest.as_ref().is_some_and(|(segment, label)| {
        label.is_last && found.last().is_some_and(|last| last.number == segment.number)
    });
    let mut record = match newest {
        Some((_, Label { mut record, segment, .. })) => {
            record.segments.push(segment);
            record
        }
        None => Record { id: session.to_owned(), ..Record::default() },
    };
    let marks = store.marks(session).unwrap_or_default();
    record.is_shortened |= marks.first_segment > 1;
    let known: BTreeMap<u32, SegmentInfo> =
        std::mem::take(&mut record.segments).into_iter().map(|info| (info.number, info)).collect();
    let (mut unreadable, mut next) = (Vec::new(), marks.first_segment.max(1));
    for segment in found {
        if record.segments.last().is_some_and(|last| last.number == segment.number) {
            continue;
        }
        let hash = segment.hash.map(|hash| hash.to_string()).unwrap_or_default();
        // The newest label knows all segments before it, but not the hash of its own.
        let known_here = known.get(&segment.number);
        let said = known_here.filter(|info| info.hash.is_empty() || info.hash == hash);
        let read = || last_label(store, session, *segment).or_else(|| first_label(store, session, *segment));
        let info = said.cloned().or_else(|| read().map(|label| label.segment)).unwrap_or_else(|| {
            unreadable.push(segment.number);
            record.damaged_bytes += segment.bytes;
            SegmentInfo { number: segment.number, from_us: i64::MIN, to_us: i64::MAX, ..SegmentInfo::default() }
        });
        if known_here.is_some_and(|known| !known.hash.is_empty() && known.hash != hash) {
            // It was repaired, which the labels of later segments don't know.
            record.totals.lose(&info.missing);
            if info.damaged_bytes > 0 {
                record.damaged_bytes += info.damaged_bytes;
                record.notes.push(damage_note(segment.number, info.damaged_bytes));
            }
        }
        if segment.number > next {
            note_missing(&mut record, next..segment.number, &known);
        }
        next = segment.number.saturating_add(1);
        record.segments.push(SegmentInfo { bytes: segment.bytes, hash, ..info });
    }
    if !unreadable.is_empty() {
        record.notes.push(format!("{} can't be read. Run vramscope store check to learn more.", named(&unreadable)));
    }
    Ok((record, is_complete))
}

/// Notes that the segments of a range are missing: a range, since the name of a file may claim any number.
fn note_missing(record: &mut Record, numbers: Range<u32>, known: &BTreeMap<u32, SegmentInfo>) {
    let lost = known.range(numbers.clone()).map(|(_, info)| info.bytes).sum::<u64>();
    record.damaged_bytes += lost;
    let bytes = if lost > 0 { format!(" ({})", Bytes(lost).exact()) } else { String::new() };
    let (first, last) = (numbers.start, numbers.end.saturating_sub(1));
    record.notes.push(match first == last {
        true => format!("Part {first} of this recording{bytes} is missing from the store. Its events can't be shown."),
        false => format!(
            "Parts {first} to {last} of this recording{bytes} are missing from the store. Their events can't be shown."
        ),
    });
}

/// Returns how unreadable segments are called in a note.
fn named(numbers: &[u32]) -> String {
    match numbers {
        [one] => format!("Part {one} of this recording"),
        [first, .., last] => format!("Something of parts {first} to {last} of this recording"),
        [] => String::new(),
    }
}

/// Returns the label at the end of a sealed segment.
pub(in crate::ingest) fn last_label(store: &Arc<SegmentStore>, session: &str, segment: Found) -> Option<Label> {
    segment.hash?;
    WINDOWS.into_iter().find_map(|window| {
        let from = segment.bytes.saturating_sub(window);
        search(store, session, segment, from..segment.bytes).filter(|label| label.is_last)
    })
}

/// Returns the label at the start of a segment.
fn first_label(store: &Arc<SegmentStore>, session: &str, segment: Found) -> Option<Label> {
    WINDOWS
        .into_iter()
        .find_map(|window| search(store, session, segment, 0..window.min(segment.bytes)).filter(|label| !label.is_last))
}

/// Returns the last label in a range of bytes.
fn search(store: &Arc<SegmentStore>, session: &str, segment: Found, range: Range<u64>) -> Option<Label> {
    let bytes = store.read(session, segment, range.start, (range.end - range.start) as usize).ok()?;
    let mut scanner = ChunkScanner::at_chunk(range.start);
    scanner.push(&bytes);
    let mut found = None;
    while let Some(piece) = scanner.next_piece() {
        if let Piece::Chunk(_, chunk) = piece {
            found = label(chunk, session, segment.number).or(found);
        }
    }
    found
}

/// Says that a segment was damaged and repaired.
pub(super) fn damage_note(number: u32, bytes: u64) -> String {
    format!(
        "{} of part {number} of this recording were damaged on the server's disk. The file was set aside, and everything readable \
         in it was kept. Events that were lost with it are counted as lost.",
        Bytes(bytes).exact()
    )
}
