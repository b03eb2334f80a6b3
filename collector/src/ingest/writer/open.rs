//! Opens a stored session for writing: after a restart, and after an error.

use std::sync::Arc;

use shared::format::{BatchEnd, Chunk, ChunkReader, Kind, PRELUDE_BYTES};
use shared::limits::{ImportLimits, ServerLimits};
use shared::units::Bytes;

use super::SessionWriter;
use crate::ingest::IngestError;
use crate::store::{Record, StoreError, TraceStore};

/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;

impl SessionWriter {
    /// Opens a session. Bytes after its last whole batch belong to one that was never acknowledged, and are removed.
    pub(in crate::ingest) fn open(
        store: &Arc<dyn TraceStore>,
        session: &str,
        limits: ServerLimits,
    ) -> Result<Self, IngestError> {
        let damaged = |error: serde_json::Error| StoreError::Damaged(format!("session.json of {session}: {error}"));
        let record: Record = serde_json::from_slice(&store.record(session)?).map_err(damaged)?;
        if record.id != session {
            return Err(StoreError::Damaged(format!("session.json of {session} belongs to another session")).into());
        }
        for (number, _) in store.segments(session)? {
            // It was being begun or deleted when the server crashed.
            if !record.segments.iter().any(|segment| segment.number == number) {
                store.remove_segment(session, number)?;
            }
        }
        let mut writer = Self::new(store, record, limits);
        if writer.record.ended_us.is_none() {
            writer.resume()?;
        }
        Ok(writer)
    }

    fn resume(&mut self) -> Result<(), IngestError> {
        let Some(last) = self.record.segments.last().copied() else { return Ok(()) };
        let (end, seq) = self.last_whole(last.number, last.head, last.first.saturating_sub(1))?;
        let had = self.store.segments(&self.record.id)?.into_iter().find(|(number, _)| *number == last.number);
        let cut = had.map_or(0, |(_, bytes)| bytes).saturating_sub(end);
        let log = self.store.open_segment(&self.record.id, last.number, end)?;
        self.visit(last.number, end, &mut |writer, chunk| writer.add_stored(chunk))?;
        self.check_limits()?;
        (self.log, self.last) = (Some(log), seq);
        self.record.last_us = self.record.last_us.max(last.begun_us);
        if let Some(header) = self.tracker.header.clone() {
            self.record.describe(&header, &self.limits);
        }
        if cut > 0 {
            tracing::warn!(session = self.record.id, seq, bytes = cut, "session truncated after its last whole batch");
            self.record
                .notes
                .push(format!("An incomplete batch was removed from the end after a crash ({}).", Bytes(cut).exact()));
            self.save(self.record.clone())?;
        }
        Ok(())
    }

    /// Returns where the last whole batch of a log segment ends, and its number; without one, the end of the head and
    /// the number of the batch before.
    fn last_whole(&mut self, number: u32, head: u64, before: u64) -> Result<(u64, u64), IngestError> {
        let (mut end, mut seq) = (head, before);
        let mut next = PRELUDE_BYTES as u64;
        let mut is_whole = true;
        self.visit(number, u64::MAX, &mut |_, chunk| {
            is_whole &= chunk.byte == next;
            next = chunk.end();
            if is_whole
                && chunk.kind == Kind::Batch as u8
                && BatchEnd::decode(chunk.payload).is_ok_and(|batch| batch.seq == seq + 1)
            {
                (end, seq) = (next, seq + 1);
            }
        })?;
        Ok((end, seq))
    }

    /// Visits the chunks of a log segment up to an offset.
    fn visit(&mut self, number: u32, to: u64, visit: &mut dyn FnMut(&mut Self, Chunk<'_>)) -> Result<(), IngestError> {
        let store = Arc::clone(&self.store);
        let mut chunks = ChunkReader::at_start(&ImportLimits::default());
        let mut at = 0_u64;
        loop {
            let most = to.saturating_sub(at).min(READ_BYTES as u64) as usize;
            let bytes = store.read(&self.record.id, number, at, most)?;
            if bytes.is_empty() {
                return Ok(());
            }
            at += bytes.len() as u64;
            chunks
                .push(&bytes, &mut |chunk| visit(self, chunk))
                .map_err(|_| StoreError::Damaged(format!("log segment {number} does not begin as a recording")))?;
        }
    }
}
