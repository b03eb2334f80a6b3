//! A session's batches as the store has them, for who comes late or fell behind.

use std::sync::Arc;

use shared::format::{BatchEnd, ChunkScanner};
use shared::limits::ServerLimits;
use shared::wire::Skipped;

use crate::ingest::{Session, View};
use crate::store::{SegmentInfo, StoreError, StoreResult, TraceStore};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of names and state that go with the first batch; more go before it.
const HEAD_BYTES: usize = 8 << 20;

/// Of the events that a viewer can hold, who comes late to more gets this part at least.
const FAIR_PART: u64 = 4;

/// A batch, or a part of what stands before the first one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Its number; 0 for what stands before the first.
    pub(super) seq: u64,
    /// When the collector sent it, by its clock; 0 where that is not known.
    pub(super) sent_us: i64,
    pub(super) chunks: Vec<u8>,
    /// Where it ends: the segment's number, and the byte behind it.
    pub(super) end: (u32, u64),
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    store: Arc<dyn TraceStore>,
    session: Arc<Session>,
    number: u32,
    /// The byte that is read next.
    at: u64,
    scanner: ChunkScanner,
    /// The byte behind the last chunk that was cut.
    byte: u64,
    /// What stands before the first batch ends here.
    head: u64,
    /// The head, where it is wanted, and the batch that is coming.
    before: Vec<u8>,
    chunks: Vec<u8>,
    /// Batches up to this one are left out.
    after: u64,
}

impl History {
    /// From behind a batch, or from as far back as is sent to who comes late and can hold so many `events` (0: all). With
    /// what has to be said before it. `None` while nothing is stored.
    pub(super) fn after(
        store: &Arc<dyn TraceStore>,
        session: &Arc<Session>,
        after: u64,
        events: u64,
        limits: &ServerLimits,
    ) -> Option<(Option<Skipped>, Self)> {
        session.look(|view| {
            let start = view.segments.iter().rev().find(|segment| segment.first <= after.saturating_add(1));
            let behind = start.map_or(u64::MAX, |segment| view.bytes_behind((segment.number, segment.head)));
            let most = if after == 0 { limits.history_bytes } else { limits.behind_bytes };
            let fits = after > 0 || events == 0 || view.totals.events() <= events;
            if let Some(start) = start.filter(|_| behind <= most && fits) {
                return Some((None, Self::new(store, session, start, after, after == 0)));
            }
            let (start, reason) = late(view, events, limits)?;
            let gap = Skipped { from: after.saturating_add(1), to: start.first, reason: reason.to_owned() };
            let gap = (gap.to > gap.from).then_some(gap);
            Some((gap, Self::new(store, session, start, start.first - 1, true)))
        })
    }

    fn new(
        store: &Arc<dyn TraceStore>,
        session: &Arc<Session>,
        start: &SegmentInfo,
        after: u64,
        with_head: bool,
    ) -> Self {
        let byte = if with_head { 0 } else { start.head };
        Self { after, head: start.head, ..Self::behind(store, session, (start.number, byte)) }
    }

    /// From behind a batch that ended at a place.
    pub(super) fn behind(store: &Arc<dyn TraceStore>, session: &Arc<Session>, (number, byte): (u32, u64)) -> Self {
        Self {
            store: Arc::clone(store),
            session: Arc::clone(session),
            number,
            at: byte,
            scanner: if byte == 0 { ChunkScanner::at_start() } else { ChunkScanner::at_chunk() },
            byte: if byte == 0 { shared::format::PRELUDE_BYTES as u64 } else { byte },
            head: 0,
            before: Vec::new(),
            chunks: Vec::new(),
            after: 0,
        }
    }

    /// The next batches: some, or none where all that is stored was read. Waits for the disk.
    /// [`StoreError::Missing`] where they are kept no longer.
    pub(super) fn read(&mut self) -> StoreResult<Vec<Stored>> {
        loop {
            let (here, next) = self.session.look(|view| {
                let at = view.segments.iter().position(|segment| segment.number == self.number);
                let segment = |at: usize| view.segments.get(at).copied();
                (at.and_then(segment), at.and_then(|at| segment(at + 1)))
            });
            let Some(here) = here else { return Err(StoreError::Missing) };
            // Not what is just being written, which may be taken back.
            let most = here.bytes.saturating_sub(self.at).min(READ_BYTES);
            if most == 0 {
                let Some(next) = next else { return Ok(Vec::new()) };
                // What its head says is known.
                (self.number, self.at, self.byte) = (next.number, next.head, next.head);
                self.scanner = ChunkScanner::at_chunk();
                continue;
            }
            let bytes = self.store.read(self.session.id(), self.number, self.at, most as usize)?;
            if bytes.is_empty() {
                return Err(StoreError::Damaged(format!("segment {} is shorter than it was", self.number)));
            }
            self.at += bytes.len() as u64;
            self.scanner.push(&bytes);
            let stored = self.cut_batches()?;
            if !stored.is_empty() {
                return Ok(stored);
            }
        }
    }

    fn cut_batches(&mut self) -> StoreResult<Vec<Stored>> {
        let mut stored = Vec::new();
        loop {
            let piece = self.scanner.next_chunk();
            let piece = piece.map_err(|_| StoreError::Damaged(format!("segment {} holds no chunks", self.number)))?;
            let Some(piece) = piece else { return Ok(stored) };
            self.byte += piece.bytes.len() as u64;
            let end = (self.number, self.byte);
            if let Some(BatchEnd { seq, sent_us }) = piece.batch_end() {
                let chunks = std::mem::take(&mut self.chunks);
                if seq > self.after {
                    stored.extend(self.with_head(Stored { seq, sent_us, chunks, end }));
                }
            } else if self.byte <= self.head {
                self.before.extend_from_slice(piece.bytes);
                if self.before.len() > HEAD_BYTES {
                    stored.push(Stored { seq: 0, sent_us: 0, chunks: std::mem::take(&mut self.before), end });
                }
            } else {
                self.chunks.extend_from_slice(piece.bytes);
            }
        }
    }

    /// A batch with what stands before it: in one, where that is not too much for a frame.
    fn with_head(&mut self, mut batch: Stored) -> Vec<Stored> {
        let mut before = std::mem::take(&mut self.before);
        if before.is_empty() {
            return vec![batch];
        }
        if before.len() + batch.chunks.len() > HEAD_BYTES {
            return vec![Stored { seq: 0, sent_us: 0, chunks: before, end: batch.end }, batch];
        }
        before.append(&mut batch.chunks);
        vec![Stored { chunks: before, ..batch }]
    }
}

/// Where who comes late begins: as far back as is sent, as it can hold, or as is kept.
fn late<'a>(view: &'a View, events: u64, limits: &ServerLimits) -> Option<(&'a SegmentInfo, &'static str)> {
    let reaches = |segment: &&SegmentInfo| view.bytes_behind((segment.number, 0)) >= limits.history_bytes;
    let sent = view.segments.iter().rposition(|segment| reaches(&segment)).unwrap_or(0);
    // Segments are large: from the last one that leaves a fair part of it.
    let is_enough = |segment: &SegmentInfo| view.totals.events().saturating_sub(segment.before) >= events / FAIR_PART;
    let held = if events > 0 { view.segments.iter().rposition(is_enough).unwrap_or(0) } else { 0 };
    let start = sent.max(held);
    let reason = if start == 0 { "kept no longer" } else { "older than what is sent" };
    view.segments.get(start).map(|segment| (segment, reason))
}
