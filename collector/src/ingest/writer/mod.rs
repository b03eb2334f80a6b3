//! Checks, counts and writes a session's batches.
//!
//! A log segment is a recording by itself: its head holds the header, all symbols so far and the state of each device.
//! The batches follow as they were received, each closed by a mark. After an error, unless it only concerns the batch's
//! number, the writer may have counted what is not stored: its owner drops it and opens another one from the store.

mod batch;
mod open;
mod roll;

use std::ops::Range;
use std::sync::Arc;

use shared::format::{BatchEnd, ChunkReader};
use shared::limits::ServerLimits;
use shared::tracker::Tracker;

use super::IngestError;
use super::gaps::DeviceGaps;
use crate::ingest::now_us;
use crate::store::{Record, SegmentInfo, SegmentWriter, SessionTotals, TraceStore};

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    /// It had been stored before.
    Duplicate,
    /// It was stored.
    Stored {
        /// Where it ends: the number of the log segment, and the offset after it.
        end: (u32, u64),
    },
}

/// Writes one session to the store.
#[derive(Debug)]
pub(super) struct SessionWriter {
    store: Arc<dyn TraceStore>,
    limits: ServerLimits,
    record: Record,
    /// The totals at the position where the tracker began.
    base: SessionTotals,
    totals: SessionTotals,
    tracker: Tracker,
    chunks: ChunkReader,
    /// The last log segment; `None` before the first batch.
    log: Option<Box<dyn SegmentWriter>>,
    /// The number of the last batch.
    last: u64,
    /// The range of the header in the last log segment, and those of the symbols.
    header: Range<u64>,
    symbols: Vec<Range<u64>>,
    symbol_bytes: u64,
    /// Bytes that are not synced.
    unsynced_bytes: u64,
}

impl SessionWriter {
    /// Creates a session in the store.
    pub(in crate::ingest) fn create(
        store: &Arc<dyn TraceStore>,
        record: Record,
        limits: ServerLimits,
    ) -> Result<Self, IngestError> {
        store.create(&record.id, &bytes_of(&record))?;
        Ok(Self::new(store, record, limits))
    }

    fn new(store: &Arc<dyn TraceStore>, record: Record, limits: ServerLimits) -> Self {
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
            record,
            tracker,
            chunks: ChunkReader::at_chunk(&import, 0),
            log: None,
            header: 0..0,
            symbols: Vec::new(),
            symbol_bytes: 0,
            unsynced_bytes: 0,
        }
    }

    /// Appends a batch, unless it is stored already. `sent_us` is the collector's time of sending.
    pub(in crate::ingest) fn append(
        &mut self,
        (seq, sent_us): (u64, i64),
        chunks: &mut Vec<u8>,
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
        let from = self.log.as_ref().map_or(0, |log| log.length());
        self.add_batch(chunks, from)?;
        // Together with its mark in one write: what stands between two marks is a whole batch.
        let length = chunks.len();
        chunks.extend_from_slice(&BatchEnd { seq, sent_us }.to_chunk());
        let written = self.write(chunks);
        chunks.truncate(length);
        written?;
        self.last = seq;
        self.record.last_us = now_us();
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

    /// Deletes the oldest log segment, unless it is the only one. Returns its bytes.
    pub(in crate::ingest) fn drop_oldest(&mut self) -> Result<u64, IngestError> {
        if self.record.segments.len() < 2 {
            return Ok(0);
        }
        let mut record = self.record.clone();
        let oldest = record.segments.remove(0);
        record.is_shortened = true;
        // The record first: a log segment that no record names is deleted at the next start.
        self.save(record)?;
        self.store.remove_segment(&self.record.id, oldest.number)?;
        Ok(oldest.bytes)
    }

    fn save(&mut self, record: Record) -> Result<(), IngestError> {
        self.store.set_record(&record.id, &bytes_of(&record))?;
        self.record = record;
        Ok(())
    }

    /// Returns where the last batch ends.
    fn place(&self) -> (u32, u64) {
        let number = self.record.segments.last().map_or(0, |segment| segment.number);
        (number, self.log.as_ref().map_or(0, |log| log.length()))
    }

    /// Returns the latest time of an event; without events, the time of the start.
    fn latest_us(&self) -> i64 {
        self.totals.last_us().unwrap_or(self.record.started_us)
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

    /// Returns the log segments, with the current length of the last one.
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

fn bytes_of(record: &Record) -> Vec<u8> {
    // A record holds nothing that JSON can't represent.
    serde_json::to_vec_pretty(record).unwrap_or_default()
}
