//! Takes over sessions that earlier versions stored: a `session.json` beside segments without labels.
//!
//! Each segment is copied with its labels, checked chunk by chunk, and sealed. The old files are removed when the new ones
//! have been read back and have the hash that they are named by. A crash repeats the session from its start.

use std::sync::{Arc, Mutex, PoisonError};

use shared::format::{BatchEnd, ChunkScanner, PRELUDE_BYTES, Piece, prelude};
use shared::limits::ServerLimits;

use super::SessionWriter;
use super::describe::describe;
use super::survey::READ_BYTES;
use crate::clock::now_us;
use crate::ingest::IngestError;
use crate::store::{
    Found, Hasher, Label, OldFolder, Purpose, Record, SegmentInfo, SegmentWriter, StoreError, StoreResult, TraceStore,
};

/// One session is taken over at a time.
static UPGRADING: Mutex<()> = Mutex::new(());

/// Takes over one session of an earlier version, if there is one of this name.
pub(in crate::ingest) fn upgrade(
    store: &Arc<dyn TraceStore>,
    session: &str,
    limits: ServerLimits,
) -> Result<(), IngestError> {
    let _guard = UPGRADING.lock().unwrap_or_else(PoisonError::into_inner);
    let old = store.old();
    let segments = old.segments(session)?;
    let read: Option<Record> = old.record(session)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let read = read.filter(|record| record.id == session);
    if segments.is_empty() {
        let is_empty = read.as_ref().is_none_or(|record| record.segments.is_empty());
        // A session without a batch, or a folder that was just being created.
        return if is_empty { Ok(old.remove(session)?) } else { Err(StoreError::Missing.into()) };
    }
    // What an interrupted attempt left.
    store.remove(session)?;
    let known = read.as_ref().map(|record| record.segments.clone()).unwrap_or_default();
    let has_record = read.is_some();
    let mut record = Record { segments: Vec::new(), totals: Default::default(), last: 0, ..read.unwrap_or_default() };
    if !has_record {
        let note = "The description of this session was missing or damaged. It was rebuilt from the recording.";
        (record.id, record.last_us, record.created_us) = (session.to_owned(), now_us(), now_us());
        record.notes.push(note.to_owned());
    }
    record.kept_us = record.last_us;
    record.producer.clone_from(&record.host);
    for (number, bytes) in segments {
        let info = known.iter().find(|info| info.number == number).cloned();
        copy(store, &old, &record, (number, bytes), info)?;
        SessionWriter::recover(store, session, Found { number, bytes, hash: None }, limits)?;
        let (notes, ended_us) = (record.notes.len(), record.ended_us);
        record = describe(store, session, &store.segments(session)?)?.0;
        record.ended_us = ended_us;
        if record.notes.len() < notes {
            return Err(StoreError::Damaged(format!("segment {number} could not be read back")).into());
        }
    }
    for found in store.segments(session)? {
        prove(store, session, found)?;
    }
    old.remove(session)?;
    tracing::info!(session, seq = record.last, "session of an earlier version taken over");
    Ok(())
}

/// Writes a segment with its first label, as if it were growing.
fn copy(
    store: &Arc<dyn TraceStore>,
    old: &OldFolder,
    record: &Record,
    (number, bytes): (u32, u64),
    info: Option<SegmentInfo>,
) -> Result<(), IngestError> {
    let read = |at: u64, most: usize| old.read(&record.id, number, at, most);
    let prelude_bytes = PRELUDE_BYTES as u64;
    let info = match info {
        Some(info) => info,
        // Without a record, everything before the first mark counts as the first batch.
        None => SegmentInfo { number, first: first_batch(&read)?, head: prelude_bytes, ..SegmentInfo::default() },
    };
    let head = info.head.clamp(prelude_bytes, bytes.max(prelude_bytes));
    let segment = SegmentInfo { last: 0, hash: String::new(), ..info };
    let mut log = store.begin(&record.id, number, Purpose::Copy)?;
    log.append(&prelude())?;
    log.append(&Label { record: record.clone(), segment: segment.clone(), is_last: false }.to_chunk())?;
    copy_range(&mut *log, &read, prelude_bytes..head)?;
    log.append(&BatchEnd { seq: segment.first.saturating_sub(1), sent_us: 0 }.to_chunk())?;
    copy_range(&mut *log, &read, head..bytes)?;
    Ok(log.publish()?)
}

/// Reads the bytes at an offset.
type ReadAt<'a> = &'a dyn Fn(u64, usize) -> StoreResult<Vec<u8>>;

fn copy_range(to: &mut dyn SegmentWriter, read: ReadAt<'_>, range: std::ops::Range<u64>) -> StoreResult {
    let mut at = range.start;
    while at < range.end {
        let bytes = read(at, (range.end - at).min(READ_BYTES as u64) as usize)?;
        if bytes.is_empty() {
            return Ok(());
        }
        at += bytes.len() as u64;
        to.append(&bytes)?;
    }
    Ok(())
}

/// Returns the number of the first batch of a segment, by its first mark.
fn first_batch(read: ReadAt<'_>) -> StoreResult<u64> {
    let (mut scanner, mut at) = (ChunkScanner::at_start(), 0);
    loop {
        let bytes = read(at, READ_BYTES)?;
        if bytes.is_empty() {
            return Ok(1);
        }
        at += bytes.len() as u64;
        scanner.push(&bytes);
        while let Some(piece) = scanner.next_piece() {
            if let Piece::Chunk(_, chunk) = piece
                && let Some(batch) = chunk.batch_end()
            {
                return Ok(batch.seq);
            }
        }
    }
}

/// Reads a sealed segment back and compares its hash.
fn prove(store: &Arc<dyn TraceStore>, session: &str, found: Found) -> StoreResult {
    let (mut hasher, mut at) = (Hasher::default(), 0);
    loop {
        let bytes = store.read(session, found.number, at, READ_BYTES)?;
        if bytes.is_empty() {
            break;
        }
        at += bytes.len() as u64;
        hasher.update(&bytes);
    }
    if found.hash == Some(hasher.finish()) {
        Ok(())
    } else {
        Err(StoreError::Damaged(format!("segment {} differs from what was written", found.number)))
    }
}
