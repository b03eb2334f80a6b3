//! Where a session's batches are checked, counted and written.
//!
//! A segment is a recording by itself: its head has the header, all symbols so far and the state of each device, and
//! behind it stand the batches as they came, each closed by its mark. An error that is not about the batch's number leaves
//! a desk that has counted what is not stored: its owner drops it, and opens another from the store.

mod fold;
mod open;
mod roll;

use std::ops::Range;
use std::sync::Arc;

use shared::format::{BatchEnd, Frames, Tracker};
use shared::limits::{ImportLimits, ServerLimits};

use super::IngestError;
use crate::ingest::now_us;
use crate::store::{Record, SegmentInfo, SegmentWriter, Totals, TraceStore};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was there already.
    Known,
    /// It was added, and ends there: the segment's number, and the byte behind it.
    Added {
        /// Where it ends.
        end: (u32, u64),
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Desk {
    store: Arc<dyn TraceStore>,
    limits: ServerLimits,
    record: Record,
    /// Sums up to where the tracker began.
    base: Totals,
    totals: Totals,
    tracker: Tracker,
    frames: Frames,
    /// The last segment, once there is one.
    log: Option<Box<dyn SegmentWriter>>,
    /// The last batch.
    last: u64,
    /// Where the header stands in the last segment, and the symbols.
    header: Range<u64>,
    symbols: Vec<Range<u64>>,
    symbol_bytes: u64,
    /// Bytes that a crash may lose.
    unsafe_bytes: u64,
    /// Events at which the state's size is looked at again.
    look_at: u64,
}

impl Desk {
    /// Begins a session in the store.
    pub(in crate::ingest) fn create(
        store: &Arc<dyn TraceStore>,
        record: Record,
        limits: ServerLimits,
    ) -> Result<Self, IngestError> {
        store.create(&record.id, &bytes_of(&record))?;
        Ok(Self::new(store, record, limits))
    }

    fn new(store: &Arc<dyn TraceStore>, record: Record, limits: ServerLimits) -> Self {
        let import = ImportLimits::default();
        let mut tracker = Tracker::new(import);
        for device in &record.totals.devices {
            // What was sums stays in `base`; a course is carried on.
            tracker.course(device.number).clone_from(&device.series);
        }
        Self {
            store: Arc::clone(store),
            limits,
            base: record.totals.clone(),
            totals: record.totals.clone(),
            last: record.last,
            record,
            tracker,
            frames: started(&import),
            log: None,
            header: 0..0,
            symbols: Vec::new(),
            symbol_bytes: 0,
            unsafe_bytes: 0,
            look_at: 0,
        }
    }

    /// Adds a batch, unless it is there; with when it was sent, by the collector's clock.
    pub(in crate::ingest) fn append(
        &mut self,
        (seq, sent_us): (u64, i64),
        chunks: &mut Vec<u8>,
    ) -> Result<Taken, IngestError> {
        if seq <= self.last {
            return Ok(Taken::Known);
        }
        if self.record.ended_us.is_some() {
            return Err(IngestError::Ended);
        }
        if seq != self.last + 1 {
            return Err(IngestError::Order { wanted: self.last + 1, found: seq });
        }
        self.make_segment()?;
        let from = self.log.as_ref().map_or(0, |log| log.length());
        self.fold_batch(chunks, from)?;
        // With its mark in one go: what is between two marks is whole.
        let length = chunks.len();
        chunks.extend_from_slice(&BatchEnd { seq, sent_us }.to_chunk());
        let written = self.write(chunks);
        chunks.truncate(length);
        written?;
        self.last = seq;
        self.record.last_us = now_us();
        Ok(Taken::Added { end: self.place() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if let Some(log) = &mut self.log {
            log.append(bytes)?;
            self.unsafe_bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes everything safe from a crash; gives the last batch.
    pub(in crate::ingest) fn sync(&mut self) -> Result<u64, IngestError> {
        if self.unsafe_bytes > 0
            && let Some(log) = &mut self.log
        {
            log.sync()?;
            self.unsafe_bytes = 0;
        }
        Ok(self.last)
    }

    /// The session ends with the batch `seq`.
    pub(in crate::ingest) fn end(&mut self, seq: u64) -> Result<(), IngestError> {
        if self.record.ended_us.is_some() {
            return Ok(());
        }
        if seq > self.last {
            return Err(IngestError::Order { wanted: self.last + 1, found: seq });
        }
        self.sync()?;
        let mut record = self.record.clone();
        (record.ended_us, record.last) = (Some(now_us()), self.last);
        record.totals = self.totals.clone();
        let to_us = self.latest_us();
        if let Some(segment) = record.segments.last_mut() {
            segment.to_us = to_us;
            segment.bytes = self.log.as_ref().map_or(segment.bytes, |log| log.length());
        }
        self.save(record)
    }

    /// Drops the oldest segment, where it is not the last. Gives its bytes.
    pub(in crate::ingest) fn drop_oldest(&mut self) -> Result<u64, IngestError> {
        if self.record.segments.len() < 2 {
            return Ok(0);
        }
        let mut record = self.record.clone();
        let oldest = record.segments.remove(0);
        record.is_shortened = true;
        // The record first: a segment that no record names is removed at the next start.
        self.save(record)?;
        self.store.remove_segment(&self.record.id, oldest.number)?;
        Ok(oldest.bytes)
    }

    fn save(&mut self, record: Record) -> Result<(), IngestError> {
        self.store.set_record(&record.id, &bytes_of(&record))?;
        self.record = record;
        Ok(())
    }

    /// Where the last batch ends.
    fn place(&self) -> (u32, u64) {
        let number = self.record.segments.last().map_or(0, |segment| segment.number);
        (number, self.log.as_ref().map_or(0, |log| log.length()))
    }

    /// The latest time of an event; before there is one, that of the start.
    fn latest_us(&self) -> i64 {
        self.totals.last_us().unwrap_or(self.record.started_us)
    }

    /// The last batch.
    pub(in crate::ingest) fn last(&self) -> u64 {
        self.last
    }

    /// Bytes that a crash may lose.
    pub(in crate::ingest) fn unsafe_bytes(&self) -> u64 {
        self.unsafe_bytes
    }

    /// What is known of the session.
    pub(in crate::ingest) fn record(&self) -> &Record {
        &self.record
    }

    /// Sums up to now.
    pub(in crate::ingest) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Its segments, the last one's length included.
    pub(in crate::ingest) fn segments(&self) -> Vec<SegmentInfo> {
        let mut segments = self.record.segments.clone();
        if let (Some(last), Some(log)) = (segments.last_mut(), &self.log) {
            (last.bytes, last.to_us) = (log.length(), self.latest_us());
        }
        segments
    }

    /// Whether the recording itself says that it ended.
    pub(in crate::ingest) fn has_end(&self) -> bool {
        self.tracker.end.is_some()
    }
}

/// Cuts bytes that begin with a chunk.
fn started(limits: &ImportLimits) -> Frames {
    let mut frames = Frames::new(limits);
    // A build takes the first bytes that it writes itself.
    let _ = frames.push(&shared::format::prelude(), &mut |_| {});
    frames
}

fn bytes_of(record: &Record) -> Vec<u8> {
    // A record has nothing that JSON can't say.
    serde_json::to_vec_pretty(record).unwrap_or_default()
}
