//! Batches that are not acknowledged yet: in memory, and in files once memory is full.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use format::chunk_bytes;
use trace::limits::{FULL_DISK_MILLIS, PublishLimits};

use super::spool::Spool;

/// Batches in the order of their numbers. A batch's number is its position in the session. A batch that was never sent
/// may still grow, or be dropped without leaving a hole: the server does not know its number yet.
#[derive(Debug)]
pub(super) struct Queue {
    limits: PublishLimits,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// The index of the slot to send next on this connection.
    cursor: usize,
    /// The highest number that was ever sent.
    sent: u64,
    /// Bytes of the slots in memory.
    memory: u64,
    /// The number of slots in the spool.
    spooled: usize,
    spool: Spool,
    /// Why the spool failed, if its latest use failed.
    pub(super) spool_failure: Option<String>,
    /// When it failed.
    spool_failed: Instant,
    /// Events that the recorder handed over.
    pub(super) events: u64,
    /// Events of acknowledged batches.
    pub(super) events_acked: u64,
}

#[derive(Debug)]
struct Slot {
    body: Body,
    bytes: usize,
    events: u64,
}

#[derive(Debug)]
enum Body {
    Memory(Arc<Vec<u8>>),
    Spooled,
}

/// The time after which a spool that failed is tried again.
const SPOOL_RETRY: Duration = Duration::from_millis(FULL_DISK_MILLIS);

/// Why a server and this queue do not agree on where to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResumeError {
    /// The server asks for a batch that it has acknowledged.
    #[error("it asks for batch {0}, which it had acknowledged, so it has lost data of this session")]
    Behind(u64),
    /// The server asks for a batch although earlier ones were never sent.
    #[error("it asks for batch {0}, but the batches before it were never sent, so it means another session")]
    Ahead(u64),
}

impl Queue {
    pub(super) fn new(limits: PublishLimits, spool: Spool) -> Self {
        Self {
            limits,
            slots: VecDeque::new(),
            first: 1,
            cursor: 0,
            sent: 0,
            memory: 0,
            spooled: 0,
            spool,
            spool_failure: None,
            spool_failed: Instant::now(),
            events: 0,
            events_acked: 0,
        }
    }

    /// Returns whether events may be added. Names, marks and losses may be added in any case, up to the reserve.
    pub(super) fn has_room(&mut self) -> bool {
        if self.spool_failure.is_some() && self.spool_failed.elapsed() >= SPOOL_RETRY {
            self.try_spool_again();
        }
        let PublishLimits { memory_bytes, spool_bytes, .. } = self.limits;
        // The sum counts: a batch that still grows, or was sent, may exceed the bound on memory.
        match self.spool_failure {
            None => self.memory + self.spool.bytes() < memory_bytes + spool_bytes,
            Some(_) => self.memory < memory_bytes,
        }
    }

    /// Tries whether the disk has room again, with the batch that it had no room for.
    fn try_spool_again(&mut self) {
        if self.memory > self.limits.memory_bytes && self.last() > self.sent {
            self.spool_last();
        } else {
            // The next batch finds out.
            self.spool_failure = None;
        }
    }

    fn note_failure(&mut self, error: &io::Error) {
        self.spool_failure = Some(self.spool.explain(error));
        self.spool_failed = Instant::now();
    }

    /// Adds whole chunks that hold `events` events. Beyond all bounds they are dropped, and their events are never
    /// counted in [`Self::events_acked`].
    pub(super) fn push(&mut self, mut chunks: &[u8], events: u64) {
        self.events += events;
        let PublishLimits { memory_bytes, spool_bytes, reserve_bytes, .. } = self.limits;
        let spool = if self.spool_failure.is_none() { spool_bytes } else { self.spool.bytes() };
        if self.memory + self.spool.bytes() + chunks.len() as u64 > memory_bytes + spool + reserve_bytes {
            return;
        }
        while !chunks.is_empty() {
            // A recorder only writes chunks. Anything else is kept as it is.
            let length = chunk_bytes(chunks).unwrap_or(chunks.len()).min(chunks.len());
            let (chunk, rest) = chunks.split_at(length);
            self.push_chunk(chunk);
            chunks = rest;
        }
        if let Some(last) = self.slots.back_mut() {
            last.events += events;
        }
    }

    fn push_chunk(&mut self, chunk: &[u8]) {
        self.memory += chunk.len() as u64;
        let is_open = self.last() > self.sent;
        if let Some(Slot { body: Body::Memory(body), bytes, .. }) = self.slots.back_mut().filter(|_| is_open)
            && *bytes + chunk.len() <= self.limits.batch_bytes
            && let Some(body) = Arc::get_mut(body)
        {
            body.extend_from_slice(chunk);
            *bytes += chunk.len();
            return;
        }
        // The batch before it no longer grows.
        if self.spooled > 0 || self.memory > self.limits.memory_bytes {
            self.spool_last();
        }
        self.slots.push_back(Slot { body: Body::Memory(Arc::new(chunk.to_vec())), bytes: chunk.len(), events: 0 });
    }

    /// Moves the last slot to the spool, if it was not sent and the spool has room.
    fn spool_last(&mut self) {
        let is_unsent = self.last() > self.sent;
        let Some(slot) = self.slots.back_mut().filter(|_| is_unsent) else { return };
        let Body::Memory(body) = &slot.body else { return };
        if self.spool.bytes() >= self.limits.spool_bytes {
            return;
        }
        match self.spool.push(body) {
            Ok(()) => {
                slot.body = Body::Spooled;
                self.memory -= slot.bytes as u64;
                self.spooled += 1;
                self.spool_failure = None;
            }
            // It stays in memory, one batch beyond the bound; `has_room` is false from then on.
            Err(error) => self.note_failure(&error),
        }
    }

    /// Returns the next batch to send on this connection, with its number; `None` if there is none, or if unacknowledged
    /// batches fill the memory.
    pub(super) fn next(&mut self) -> Option<(u64, Arc<Vec<u8>>)> {
        loop {
            let slot = self.slots.get_mut(self.cursor)?;
            if let Body::Memory(body) = &slot.body {
                let number = self.first + self.cursor as u64;
                self.cursor += 1;
                self.sent = self.sent.max(number);
                return Some((number, Arc::clone(body)));
            }
            if self.cursor > 0 && self.memory + slot.bytes as u64 > self.limits.memory_bytes {
                return None;
            }
            self.spooled -= 1;
            match self.spool.pop(slot.bytes) {
                Ok(body) => {
                    self.memory += slot.bytes as u64;
                    slot.body = Body::Memory(Arc::new(body));
                }
                Err(error) => {
                    self.slots.remove(self.cursor);
                    self.note_failure(&error);
                }
            }
        }
    }

    /// Removes all batches up to `number`, which the server has stored. Returns whether there were any.
    pub(super) fn ack(&mut self, number: u64) -> bool {
        // The server cannot have more than was sent.
        let number = number.min(self.sent);
        let is_new = number >= self.first;
        while self.first <= number
            && let Some(slot) = self.slots.pop_front()
        {
            if matches!(slot.body, Body::Memory(_)) {
                self.memory -= slot.bytes as u64;
            }
            self.events_acked += slot.events;
            self.first += 1;
            self.cursor = self.cursor.saturating_sub(1);
        }
        is_new
    }

    /// Starts a connection on which the server asks for batch `next`. Returns whether that acknowledges anything new.
    pub(super) fn welcome(&mut self, next: u64) -> Result<bool, ResumeError> {
        if next > self.sent + 1 {
            return Err(ResumeError::Ahead(next));
        }
        if next < self.first {
            return Err(ResumeError::Behind(next));
        }
        let is_new = self.ack(next - 1);
        self.cursor = 0;
        Ok(is_new)
    }

    /// Starts again with the first unacknowledged batch.
    pub(super) fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// Returns the number of the last batch; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.first + self.slots.len() as u64 - 1
    }

    /// Returns the number of acknowledged batches.
    pub(super) fn acked(&self) -> u64 {
        self.first - 1
    }

    /// Returns whether all batches are acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns whether all batches were sent on this connection.
    pub(super) fn is_sent(&self) -> bool {
        self.cursor == self.slots.len()
    }

    /// Returns whether a batch was sent on this connection and is not acknowledged.
    pub(super) fn is_waiting(&self) -> bool {
        self.cursor > 0
    }

    /// Returns the bytes in memory and in files.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.memory, self.spool.bytes())
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        (self.cursor, self.memory, self.spooled) = (0, 0, 0);
        self.spool.clear();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
