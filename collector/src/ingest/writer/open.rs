//! Opens a stored session for writing: after a restart, and after an error.

use std::sync::Arc;

use format::{BatchEnd, Chunk, ChunkReader, Kind};
use trace::limits::{ImportLimits, ServerLimits};
use tracker::Tracker;

use super::describe::describe;
use super::survey::{READ_BYTES, Read};
use super::{Growing, SessionWriter};
use crate::clock::now_us;
use crate::ingest::IngestError;
use crate::store::{Found, Label, SegmentStore, SessionTotals, StoreError};

impl SessionWriter {
    /// Opens a session; `None` if nothing is stored of it. Segments that were growing are sealed, except for `growing`, which
    /// is continued.
    pub(in crate::ingest) fn open(
        store: &Arc<SegmentStore>,
        session: &str,
        limits: ServerLimits,
        growing: Option<Growing>,
    ) -> Result<Option<Self>, IngestError> {
        let found = store.segments(session)?;
        // The next segment may have been begun before the error.
        let growing = growing.filter(|growing| found.last().is_some_and(|last| last.number == growing.number));
        let number = growing.as_ref().map(|growing| growing.number);
        let is_left = |found: &&Found| found.hash.is_none() && Some(found.number) != number;
        for found in found.iter().filter(is_left) {
            Self::recover(store, session, *found, limits)?;
        }
        let segments = store.segments(session)?;
        let Some(last) = segments.last() else { return Ok(None) };
        let (record, _) = describe(store, session, &segments)?;
        let mut writer = Self::new(store, record, limits);
        if writer.record.ended_us.is_some() {
            return Ok(Some(writer));
        }
        let to = growing.as_ref().map_or(last.bytes, |growing| growing.log.length());
        let (said, ended) = (writer.totals.clone(), writer.last);
        let has_label = writer.load(last.number, to, &mut |at, most| store.read(session, *last, at, most))?;
        writer.check_limits()?;
        if !has_label || ended > writer.last {
            // What the last label says of the end holds, whatever can be read of the segment.
            writer.last = writer.last.max(ended);
            writer.end_at(said);
        }
        writer.log = growing.map(|growing| growing.log);
        if let Some(header) = writer.tracker.header.clone() {
            writer.record.describe(&header, &writer.limits);
        }
        Ok(Some(writer))
    }

    /// Reads the segment `number` up to the byte `to`: its head sets the state, and its batches lead on from there.
    /// Returns whether the label that tells the totals before it could be read.
    pub(super) fn load(&mut self, number: u32, to: u64, read: Read<'_>) -> Result<bool, IngestError> {
        let session = self.record.id.clone();
        let (mut has_label, mut has_mark) = (false, false);
        visit(number, to, read, &mut |chunk| match chunk.known_kind() {
            Some(Kind::Label) => {
                if let Some(label) = Label::decode(chunk.payload, &session, number).filter(|label| !label.is_last) {
                    has_label = true;
                    self.begin_at(&label);
                }
            }
            Some(Kind::Batch) => {
                if let Ok(BatchEnd { seq, sent_us }) = BatchEnd::decode(chunk.payload) {
                    self.last = if has_mark { self.last.max(seq) } else { seq };
                    if !has_mark {
                        self.first_batch = seq.saturating_add(1);
                        self.set_head(number, seq, chunk.end());
                    }
                    has_mark = true;
                    self.note_time(sent_us);
                }
            }
            _ => self.add_stored(chunk),
        })?;
        Ok(has_label)
    }

    /// Notes where the head of a segment ends, which the label before it can't tell. `seq` is the number of its first mark.
    fn set_head(&mut self, number: u32, seq: u64, end: u64) {
        let segment = self.record.segments.last_mut().filter(|segment| segment.number == number);
        if let Some(segment) = segment.filter(|segment| segment.head == 0 && seq < segment.first) {
            segment.head = end;
        }
    }

    /// Notes when a batch was received: not before its collector sent it, as far as the two clocks agree.
    fn note_time(&mut self, sent_us: i64) {
        let last_us = self.record.last_us.max(sent_us.min(now_us()));
        // The clock of retention goes on as fast as the other.
        let retention_us = self.record.retention_us.saturating_add(last_us.saturating_sub(self.record.last_us));
        (self.record.last_us, self.record.retention_us) = (last_us, retention_us);
    }

    /// Sets the totals at the end of what was read.
    fn end_at(&mut self, totals: SessionTotals) {
        self.base.clone_from(&totals);
        for device in &mut self.base.devices {
            // What follows is added to the base, and so is what was read.
            if let Some(tracked) = self.tracker.devices.get(device.number) {
                device.events = device.events.saturating_sub(tracked.events);
                device.lost = device.lost.saturating_sub(tracked.lost);
                device.ooms = device.ooms.saturating_sub(tracked.ooms);
                for (sum, count) in device.lost_by_action.iter_mut().zip(tracked.lost_by_action) {
                    *sum = sum.saturating_sub(count);
                }
            }
        }
        self.totals = totals;
    }

    /// Takes the totals from the label at the start of a segment.
    fn begin_at(&mut self, label: &Label) {
        self.base.clone_from(&label.record.totals);
        self.totals.clone_from(&label.record.totals);
        self.tracker = Tracker::new(self.limits.import());
        for device in &self.base.devices {
            // Earlier totals stay in `base`; the series is continued.
            self.tracker.course(device.number).clone_from(&device.series);
        }
    }
}

/// Visits the chunks of a segment up to an offset.
fn visit(number: u32, to: u64, read: Read<'_>, visit: &mut dyn FnMut(Chunk<'_>)) -> Result<(), IngestError> {
    let limits = ImportLimits::default();
    // The prelude is skipped and not checked: damage to it costs nothing.
    let mut chunks = ChunkReader::at_chunk(&limits, format::PRELUDE_BYTES as u64);
    let mut at = format::PRELUDE_BYTES as u64;
    loop {
        let most = to.saturating_sub(at).min(READ_BYTES as u64) as usize;
        let bytes = read(at, most)?;
        if bytes.is_empty() {
            return Ok(());
        }
        at += bytes.len() as u64;
        chunks.push(&bytes, visit).map_err(|error| StoreError::Damaged(format!("segment {number}: {error}")))?;
    }
}
