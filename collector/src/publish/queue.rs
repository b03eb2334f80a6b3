//! Batches that are not acknowledged yet: in memory, and in files when there are many.

use std::collections::VecDeque;
use std::sync::Arc;

use shared::format::chunk_bytes;
use shared::limits::PublishLimits;

use super::spool::Spool;

/// Batches in the order of their numbers. The number of a batch is its place: one that was never sent has not been
/// told to anybody, and may still grow, or be lost without leaving one out.
#[derive(Debug)]
pub(super) struct Queue {
    limits: PublishLimits,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// The slot that is sent next on this connection.
    cursor: usize,
    /// The last number that was ever sent.
    sent: u64,
    /// Bytes of the slots in memory.
    memory: u64,
    /// Slots in the spool.
    spooled: usize,
    spool: Spool,
    /// Why the spool took the last piece not, if it did not.
    pub(super) spool_failure: Option<String>,
    /// Events that came in.
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

/// What a server says that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Astray {
    /// It wants a batch that it has acknowledged.
    #[error("it wants batch {0} again, which it had acknowledged: it has lost what it had of this session")]
    Behind(u64),
    /// It wants a batch of which those before it were never sent.
    #[error("it wants batch {0}, and those before it were never sent: it takes this session for another")]
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
            events: 0,
            events_acked: 0,
        }
    }

    /// Whether events may come. What makes the rest readable may in any case.
    pub(super) fn has_room(&self) -> bool {
        let PublishLimits { memory_bytes, spool_bytes, .. } = self.limits;
        // Of both together: a batch that still grows, or that was sent, is in memory beyond that bound.
        match self.spool_failure {
            None => self.memory + self.spool.bytes() < memory_bytes + spool_bytes,
            Some(_) => self.memory < memory_bytes,
        }
    }

    /// Takes whole chunks with so many events in them. Without any room at all they are left out, and so are their
    /// events in [`Self::events_acked`] for good.
    pub(super) fn push(&mut self, mut chunks: &[u8], events: u64) {
        self.events += events;
        let PublishLimits { memory_bytes, spool_bytes, reserve_bytes, .. } = self.limits;
        let spool = if self.spool_failure.is_none() { spool_bytes } else { self.spool.bytes() };
        if self.memory + self.spool.bytes() + chunks.len() as u64 > memory_bytes + spool + reserve_bytes {
            return;
        }
        while !chunks.is_empty() {
            // What is no chunk is nothing that a recorder makes; it stays as it is.
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
        // The one before won't grow any more.
        if self.spooled > 0 || self.memory > self.limits.memory_bytes {
            self.put_away();
        }
        self.slots.push_back(Slot { body: Body::Memory(Arc::new(chunk.to_vec())), bytes: chunk.len(), events: 0 });
    }

    /// Moves the last slot to the spool, if it was not sent and there is room.
    fn put_away(&mut self) {
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
            // It stays in memory, beyond the bound by one batch: then there is no room for further events.
            Err(error) => self.spool_failure = Some(error.to_string()),
        }
    }

    /// The next batch of this connection, with its number. None while what is on its way takes all the memory.
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
                    self.spool_failure = Some(error.to_string());
                }
            }
        }
    }

    /// The server has all up to `number` safely. Whether that was news.
    pub(super) fn ack(&mut self, number: u64) -> bool {
        // More than was sent can't have come.
        let number = number.min(self.sent);
        let is_news = number >= self.first;
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
        is_news
    }

    /// A connection begins: the server wants `next`. Whether anything was acknowledged by that.
    pub(super) fn welcome(&mut self, next: u64) -> Result<bool, Astray> {
        if next > self.sent + 1 {
            return Err(Astray::Ahead(next));
        }
        if next < self.first {
            return Err(Astray::Behind(next));
        }
        let is_news = self.ack(next - 1);
        self.cursor = 0;
        Ok(is_news)
    }

    /// Sends again what is not acknowledged, from the first on.
    pub(super) fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// The number of the last batch; 0 for none.
    pub(super) fn last(&self) -> u64 {
        self.first + self.slots.len() as u64 - 1
    }

    /// Batches that are acknowledged.
    pub(super) fn acked(&self) -> u64 {
        self.first - 1
    }

    /// Whether nothing is left to be acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether all was sent on this connection.
    pub(super) fn is_sent(&self) -> bool {
        self.cursor == self.slots.len()
    }

    /// Whether something was sent on this connection and is not acknowledged.
    pub(super) fn is_waiting(&self) -> bool {
        self.cursor > 0
    }

    /// Bytes in memory, and in files.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.memory, self.spool.bytes())
    }

    /// Lets go of everything: nobody will want it.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        (self.cursor, self.memory, self.spooled) = (0, 0, 0);
        self.spool.clear();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
