//! Checks, counts and writes a session's batches.
//!
//! A segment is a recording by itself: its head holds a label, the header, all symbols so far and the state of each device,
//! and ends with the mark of the batch before it. The batches follow as they were received, each closed by a mark. A segment
//! that is complete ends with a label, and is sealed. After an error, unless it only concerns the batch's number, the writer
//! may have counted what is not stored: its owner drops it and opens another one from the store.

mod batch;
mod describe;
mod inspect;
mod open;
mod recover;
mod roll;
mod survey;

use std::ops::Range;
use std::sync::Arc;

use format::{BatchEnd, ChunkReader};
use trace::limits::ServerLimits;
use tracker::Tracker;

use super::IngestError;
use super::gaps::DeviceGaps;
use super::memory::{Memory, Usage};
use crate::clock::now_us;
use crate::store::{Record, SegmentInfo, SegmentStore, SegmentWriter, SessionTotals};

pub(super) use describe::{describe, last_label};
pub use inspect::{SegmentHealth, SessionHealth, inspect, repair};

/// Outcome of appending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    /// It had been stored before.
    Duplicate,
    /// It was stored.
    Stored {
        /// Where it ends: the number of the segment, and the offset after it.
        end: (u32, u64),
    },
}

/// A segment that still grows, kept while its session's writer is opened again.
#[derive(Debug)]
pub(super) struct Growing {
    number: u32,
    log: SegmentWriter,
}

/// Writes one session to the store.
#[derive(Debug)]
pub(super) struct SessionWriter {
    store: Arc<SegmentStore>,
    limits: ServerLimits,
    record: Record,
    /// The totals at the position where the tracker began.
    base: SessionTotals,
    totals: SessionTotals,
    tracker: Tracker,
    /// What it uses of the memory of all sessions; `None` while it is only read back.
    usage: Option<Usage>,
    chunks: ChunkReader,
    /// The last segment, while it grows; `None` before the first batch, and after the last segment was sealed.
    log: Option<SegmentWriter>,
    /// The number of the last batch.
    last: u64,
    /// The number of the first batch of the segment that was read.
    first_batch: u64,
    /// The payload of the header that came with the collector's hello; empty if none came.
    hello_header: Vec<u8>,
    /// The range of the header in the last segment, and those of the symbols.
    header: Range<u64>,
    symbols: Vec<Range<u64>>,
    symbol_bytes: u64,
    /// Bytes that are not synced.
    unsynced_bytes: u64,
}

impl SessionWriter {
    /// Creates the writer of a session that has this record so far. Nothing is stored before its next batch.
    pub(in crate::ingest) fn new(store: &Arc<SegmentStore>, record: Record, limits: ServerLimits) -> Self {
        let import = limits.import();
        let mut tracker = Tracker::new(import);
        for device in &record.totals.devices {
            // Earlier totals stay in `base`; the series is continued.
            tracker.course(device.number).clone_from(&device.series);
        }
        Self {
            store: Arc::clone(store),
            limits,
            base: record.totals.clone(),
            totals: record.totals.clone(),
            last: record.last,
            first_batch: record.last + 1,
            record,
            tracker,
            usage: None,
            chunks: ChunkReader::at_chunk(&import, 0),
            log: None,
            hello_header: Vec::new(),
            header: 0..0,
            symbols: Vec::new(),
            symbol_bytes: 0,
            unsynced_bytes: 0,
        }
    }

    /// Counts it among the sessions that share the memory of the server.
    pub(in crate::ingest) fn count_in(&mut self, memory: &Arc<Memory>) -> Result<(), IngestError> {
        self.usage = Some(Usage::of(memory));
        self.check_limits()
    }

    /// Appends a batch, unless it is stored already. `sent_us` is the collector's time of sending, and `retention_us` the time by
    /// the clock of retention.
    pub(in crate::ingest) fn append(
        &mut self,
        (seq, sent_us): (u64, i64),
        chunks: &mut Vec<u8>,
        retention_us: i64,
    ) -> Result<Appended, IngestError> {
        if seq <= self.last {
            return Ok(Appended::Duplicate);
        }
        if self.record.ended_us.is_some() {
            return Err(IngestError::Ended);
        }
        if seq != self.last + 1 {
            return Err(IngestError::Order { wanted: self.last + 1, found: seq });
        }
        self.make_segment()?;
        let from = self.log.as_ref().map_or(0, SegmentWriter::length);
        self.add_batch(chunks, from)?;
        // Together with its mark in one write: what stands between two marks is a whole batch.
        let length = chunks.len();
        chunks.extend_from_slice(&BatchEnd { seq, sent_us }.to_chunk());
        let written = self.write(chunks);
        chunks.truncate(length);
        written?;
        self.last = seq;
        (self.record.last_us, self.record.retention_us) = (now_us(), retention_us);
        Ok(Appended::Stored { end: self.place() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if let Some(log) = &mut self.log {
            log.append(bytes)?;
            self.unsynced_bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes all batches durable. Returns the last one's number.
    pub(in crate::ingest) fn sync(&mut self) -> Result<u64, IngestError> {
        if self.unsynced_bytes > 0
            && let Some(log) = &mut self.log
        {
            log.sync()?;
            self.unsynced_bytes = 0;
        }
        Ok(self.last)
    }

    /// Ends the session with the batch `seq`.
    pub(in crate::ingest) fn end(&mut self, seq: u64) -> Result<(), IngestError> {
        if self.record.ended_us.is_some() {
            return Ok(());
        }
        if seq > self.last {
            return Err(IngestError::Order { wanted: self.last + 1, found: seq });
        }
        if self.log.is_none() && !self.record.segments.is_empty() {
            // A label holds the end of the session, and a sealed segment takes no other label.
            self.begin_next()?;
        }
        self.record.ended_us = Some(now_us());
        self.seal().inspect_err(|_| self.record.ended_us = None)
    }

    /// Takes the description of the session if its own can't be read.
    pub(in crate::ingest) fn adopt(&mut self, record: &Record) {
        if self.record.key_hash.is_empty() {
            let own = std::mem::take(&mut self.record);
            let Record { last, segments, totals, notes, damaged_bytes, is_shortened, .. } = own;
            self.record = Record { last, segments, totals, notes, damaged_bytes, is_shortened, ..record.clone() };
        }
    }

    /// Prepares for a collector whose oldest batch is `first`; 0 if it didn't tell. If the store lost batches before that one,
    /// the session goes on without them. `header` is the payload of its header chunk.
    pub(in crate::ingest) fn welcome(&mut self, first: u64, header: &[u8]) {
        self.hello_header = header.to_vec();
        if first <= self.last.saturating_add(1) || self.record.ended_us.is_some() {
            return;
        }
        let from = self.last + 1;
        tracing::error!(
            session = self.record.id,
            from,
            to = first - 1,
            "acknowledged batches are missing from the store"
        );
        self.record.notes.push(format!(
            "Batches {from} to {} were stored and are missing now: the store lost them. Their events are counted as lost.",
            first - 1
        ));
        self.last = first - 1;
    }

    /// Forgets a segment that was deleted from the store.
    pub(in crate::ingest) fn forget_segment(&mut self, number: u32) {
        self.record.segments.retain(|segment| segment.number != number);
        self.record.is_shortened = true;
    }

    /// Returns the last segment if it still grows and can be written on.
    pub(in crate::ingest) fn into_growing(self) -> Option<Growing> {
        let number = self.record.segments.last()?.number;
        self.log.filter(SegmentWriter::is_usable).map(|log| Growing { number, log })
    }

    /// Returns where the last batch ends.
    fn place(&self) -> (u32, u64) {
        let number = self.record.segments.last().map_or(0, |segment| segment.number);
        (number, self.log.as_ref().map_or(0, SegmentWriter::length))
    }

    /// Returns the latest time of an event; without events, the time of the start.
    fn latest_us(&self) -> i64 {
        self.totals.last_us().unwrap_or(self.record.started_us)
    }

    /// Whether nothing was stored but the head of a first segment: its only batch was refused.
    pub(in crate::ingest) fn is_empty(&self) -> bool {
        let is_first = self.log.is_some() && self.record.segments.len() <= 1;
        is_first && self.last == 0 && self.record.damaged_bytes == 0 && self.record.ended_us.is_none()
    }

    /// Returns the number of the last batch.
    pub(in crate::ingest) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the bytes that are not synced.
    pub(in crate::ingest) fn unsynced_bytes(&self) -> u64 {
        self.unsynced_bytes
    }

    /// Returns the session's record.
    pub(in crate::ingest) fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the current totals.
    pub(in crate::ingest) fn totals(&self) -> &SessionTotals {
        &self.totals
    }

    /// Returns the gaps of each device whose state is known from its events. A device that is known from statistics alone
    /// has none.
    pub(in crate::ingest) fn gaps(&self) -> Vec<DeviceGaps> {
        let known = self.totals.devices.iter().filter_map(|totals| {
            let now = &self.tracker.devices.get(totals.number)?.now;
            let sums = now.sums();
            let is_known = [sums.allocated, sums.active, sums.reserved] == totals.now;
            is_known.then(|| DeviceGaps { device: totals.number, sums: now.free_sums() })
        });
        known.collect()
    }

    /// Returns the segments, with the current length of the last one.
    pub(in crate::ingest) fn segments(&self) -> Vec<SegmentInfo> {
        let mut segments = self.record.segments.clone();
        if let (Some(last), Some(log)) = (segments.last_mut(), &self.log) {
            (last.bytes, last.to_us) = (log.length(), self.latest_us());
        }
        segments
    }

    /// Whether the recording contains an end.
    pub(in crate::ingest) fn has_end(&self) -> bool {
        self.tracker.end.is_some()
    }
}
