//! A session as the store has it, ready to be gone on with: after a restart, and after anything that went wrong.

use std::sync::Arc;

use shared::format::{BatchEnd, Frames, Kind};
use shared::limits::{ImportLimits, ServerLimits};

use super::Desk;
use crate::ingest::IngestError;
use crate::store::{Record, StoreError, TraceStore};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

impl Desk {
    /// Opens a session. What stands behind its last whole batch came of one that was never acknowledged, and is cut off.
    pub(in crate::ingest) fn open(
        store: &Arc<dyn TraceStore>,
        session: &str,
        limits: ServerLimits,
    ) -> Result<Self, IngestError> {
        let damaged = |error: serde_json::Error| StoreError::Damaged(format!("session.json of {session}: {error}"));
        let record: Record = serde_json::from_slice(&store.record(session)?).map_err(damaged)?;
        if record.id != session {
            return Err(StoreError::Damaged(format!("session.json of {session} is that of another session")).into());
        }
        for (number, _) in store.segments(session)? {
            // Begun, or dropped, when a crash came.
            if !record.segments.iter().any(|segment| segment.number == number) {
                store.remove_segment(session, number)?;
            }
        }
        let mut desk = Self::new(store, record, limits);
        if desk.record.ended_us.is_none() {
            desk.resume()?;
        }
        Ok(desk)
    }

    fn resume(&mut self) -> Result<(), IngestError> {
        let Some(last) = self.record.segments.last().copied() else { return Ok(()) };
        let (end, seq) = self.last_whole(last.number, last.head, last.first.saturating_sub(1))?;
        let had = self.store.segments(&self.record.id)?.into_iter().find(|(number, _)| *number == last.number);
        let cut = had.map_or(0, |(_, bytes)| bytes).saturating_sub(end);
        let log = self.store.open_segment(&self.record.id, last.number, end)?;
        self.visit(last.number, end, &mut |desk, chunk, raw| desk.fold_stored(chunk, raw))?;
        (self.log, self.last) = (Some(log), seq);
        self.record.last_us = self.record.last_us.max(last.begun_us);
        if let Some(header) = self.tracker.header.clone() {
            self.record.describe(&header, &self.limits);
        }
        if cut > 0 {
            self.record.notes.push(format!("The last {cut} bytes were cut off after a crash: no whole batch."));
            self.save(self.record.clone())?;
        }
        Ok(())
    }

    /// Where the last whole batch of a segment ends, and its number: at least its head, and the batch before it.
    fn last_whole(&mut self, number: u32, head: u64, before: u64) -> Result<(u64, u64), IngestError> {
        let (mut end, mut seq) = (head, before);
        let mut next = shared::format::PRELUDE_BYTES as u64;
        let mut is_whole = true;
        self.visit(number, u64::MAX, &mut |_, chunk, _| {
            is_whole &= chunk.byte == next;
            next = chunk.byte + chunk.bytes;
            if is_whole
                && chunk.kind == Kind::Batch as u8
                && BatchEnd::decode(chunk.payload).is_some_and(|batch| batch.seq == seq + 1)
            {
                (end, seq) = (next, seq + 1);
            }
        })?;
        Ok((end, seq))
    }

    /// Visits the chunks of a segment up to a byte, each also as it stands.
    fn visit(
        &mut self,
        number: u32,
        to: u64,
        visit: &mut dyn FnMut(&mut Self, shared::format::Chunk<'_>, &[u8]),
    ) -> Result<(), IngestError> {
        let store = Arc::clone(&self.store);
        let mut frames = Frames::new(&ImportLimits::default());
        // The bytes from `held_at` on: of the chunks that become whole by the next piece.
        let (mut held, mut held_at, mut at) = (Vec::new(), 0_u64, 0_u64);
        loop {
            let most = to.saturating_sub(at).min(READ_BYTES as u64) as usize;
            let bytes = store.read(&self.record.id, number, at, most)?;
            if bytes.is_empty() {
                return Ok(());
            }
            at += bytes.len() as u64;
            held.extend_from_slice(&bytes);
            let pushed = frames.push(&bytes, &mut |chunk| {
                let from = chunk.byte.saturating_sub(held_at) as usize;
                visit(self, chunk, held.get(from..from + chunk.bytes as usize).unwrap_or(&[]));
            });
            if pushed.is_err() {
                return Err(StoreError::Damaged(format!("segment {number} begins as no recording does")).into());
            }
            let done = frames.byte().saturating_sub(held_at).min(held.len() as u64) as usize;
            held.drain(..done);
            held_at += done as u64;
        }
    }
}
