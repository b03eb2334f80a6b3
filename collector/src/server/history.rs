//! Reads a session's stored batches, for viewers that connect late or have fallen behind.

use std::sync::Arc;

use format::{BatchEnd, ChunkScanner, Kind, Piece};
use trace::limits::ServerLimits;
use wire::Skipped;

use crate::ingest::{Session, View};
use crate::store::{SegmentInfo, SegmentStore, StoreError, StoreResult};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;
/// The most bytes of names and state that are sent with the first batch; more are sent before it.
const HEAD_BYTES: usize = 8 << 20;

/// A viewer that can't hold all events of a session gets at least what it can hold, divided by this.
const FAIR_PART: u64 = 4;

/// A stored batch, or a part of what precedes the first one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Its number; 0 for what precedes the first batch.
    pub(super) seq: u64,
    /// When the collector sent it, by the collector's clock; 0 if unknown.
    pub(super) sent_us: i64,
    pub(super) chunks: Vec<u8>,
    /// Where it ends: the number of the log segment, and the byte after it.
    pub(super) end: (u32, u64),
}

/// Reads a session's batches from the store.
#[derive(Debug)]
pub(super) struct History {
    store: Arc<SegmentStore>,
    session: Arc<Session>,
    number: u32,
    /// The byte that is read next.
    at: u64,
    scanner: ChunkScanner,
    /// The byte at which what precedes the first batch ends.
    head: u64,
    /// What precedes the first batch, if it is needed; then the chunks of the next batch.
    before: Vec<u8>,
    chunks: Vec<u8>,
    /// The last batch that is left out.
    after: u64,
}

impl History {
    /// Reads on after batch `after`, or from as far back as the limits allow for a viewer that can hold so many `events`
    /// (0: any number). Also returns which batches are skipped. Returns `None` while nothing is stored.
    pub(super) fn after(
        store: &Arc<SegmentStore>,
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
        store: &Arc<SegmentStore>,
        session: &Arc<Session>,
        start: &SegmentInfo,
        after: u64,
        with_head: bool,
    ) -> Self {
        let byte = if with_head { 0 } else { start.head };
        Self { after, head: start.head, ..Self::behind(store, session, (start.number, byte)) }
    }

    /// Reads on at the end of a batch.
    pub(super) fn behind(store: &Arc<SegmentStore>, session: &Arc<Session>, (number, byte): (u32, u64)) -> Self {
        Self {
            store: Arc::clone(store),
            session: Arc::clone(session),
            number,
            at: byte,
            scanner: if byte == 0 { ChunkScanner::at_start() } else { ChunkScanner::at_chunk(byte) },
            head: 0,
            before: Vec::new(),
            chunks: Vec::new(),
            after: 0,
        }
    }

    /// Returns the next batches, or none if everything stored was read. Waits for the disk.
    ///
    /// Returns [`StoreError::Missing`] if they are no longer kept.
    pub(super) fn read(&mut self) -> StoreResult<Vec<Stored>> {
        loop {
            let (here, next) = self.session.look(|view| {
                let at = view.segments.iter().position(|segment| segment.number == self.number);
                let segment = |at: usize| view.segments.get(at).cloned();
                (at.and_then(segment), at.and_then(|at| segment(at + 1)))
            });
            let Some(here) = here else { return Err(StoreError::Missing) };
            // Only complete writes: one in progress may be undone.
            let most = here.bytes.saturating_sub(self.at).min(READ_BYTES);
            if most == 0 {
                let Some(next) = next else { return Ok(Vec::new()) };
                // Its head repeats what is known by now.
                (self.number, self.at) = (next.number, next.head);
                self.scanner = ChunkScanner::at_chunk(next.head);
                continue;
            }
            let bytes = self.store.read(self.session.id(), here.found(), self.at, most as usize)?;
            if bytes.is_empty() {
                return Err(StoreError::Damaged(format!("segment {} is shorter than it was", self.number)));
            }
            self.at += bytes.len() as u64;
            self.scanner.push(&bytes);
            let stored = self.cut_batches();
            if !stored.is_empty() {
                return Ok(stored);
            }
        }
    }

    fn cut_batches(&mut self) -> Vec<Stored> {
        let mut stored = Vec::new();
        while let Some(piece) = self.scanner.next_piece() {
            let (byte, chunk) = match piece {
                Piece::Chunk(byte, chunk) => (byte, chunk),
                // The jump in the sequence numbers behind it shows what is lost.
                Piece::Damage(damage) => {
                    self.session.note_damage(self.number, damage.bytes);
                    continue;
                }
            };
            let byte = byte + chunk.bytes.len() as u64;
            let end = (self.number, byte);
            if chunk.is(Kind::Label) {
                continue;
            }
            if let Some(BatchEnd { seq, sent_us }) = chunk.batch_end() {
                if byte <= self.head {
                    continue;
                }
                let chunks = std::mem::take(&mut self.chunks);
                if seq > self.after {
                    stored.extend(with_head(&mut self.before, Stored { seq, sent_us, chunks, end }));
                }
            } else if byte <= self.head {
                self.before.extend_from_slice(chunk.bytes);
                if self.before.len() > HEAD_BYTES {
                    stored.push(Stored { seq: 0, sent_us: 0, chunks: std::mem::take(&mut self.before), end });
                }
            } else {
                self.chunks.extend_from_slice(chunk.bytes);
            }
        }
        stored
    }
}

/// Joins a batch and what precedes it, unless that is too long for one message.
fn with_head(before: &mut Vec<u8>, mut batch: Stored) -> Vec<Stored> {
    let mut before = std::mem::take(before);
    if before.is_empty() {
        return vec![batch];
    }
    if before.len() + batch.chunks.len() > HEAD_BYTES {
        return vec![Stored { seq: 0, sent_us: 0, chunks: before, end: batch.end }, batch];
    }
    before.append(&mut batch.chunks);
    vec![Stored { chunks: before, ..batch }]
}

/// Returns the segment at which a late viewer begins, and why: limited by what is sent, by what it can hold, or by what is
/// kept.
fn late<'a>(view: &'a View, events: u64, limits: &ServerLimits) -> Option<(&'a SegmentInfo, &'static str)> {
    let reaches = |segment: &&SegmentInfo| view.bytes_behind((segment.number, 0)) >= limits.history_bytes;
    let sent = view.segments.iter().rposition(|segment| reaches(&segment)).unwrap_or(0);
    // Segments are large: begin at the last one that still leaves a fair part.
    let is_enough = |segment: &SegmentInfo| view.totals.events().saturating_sub(segment.before) >= events / FAIR_PART;
    let held = if events > 0 { view.segments.iter().rposition(is_enough).unwrap_or(0) } else { 0 };
    let start = sent.max(held);
    let reason = if start == 0 { "kept no longer" } else { "older than what is sent" };
    view.segments.get(start).map(|segment| (segment, reason))
}
