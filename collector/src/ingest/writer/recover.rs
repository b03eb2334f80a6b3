//! Seals segments that were still growing when their server ended, or when a write failed.
//!
//! What is whole is copied into a new file, made durable there, and sealed. Only then is the old file given up: removed if
//! the copy holds everything that was ever acknowledged, and set aside if not. So it doesn't matter what the system did to the
//! old file after a sync failed, and a crash at any point repeats the same steps.

use std::sync::Arc;

use format::{BatchEnd, prelude};
use trace::limits::ServerLimits;
use trace::units::Bytes;

use super::SessionWriter;
use super::describe::{damage_note, describe};
use super::survey::Survey;
use crate::access::audit;
use crate::ingest::IngestError;
use crate::store::{Found, Purpose, SegmentInfo, SegmentStore, StoreError};

impl SessionWriter {
    /// Seals the growing segment `found`. If a sealed segment has its number, a crash came between the two: it is removed.
    /// If `found` is sealed and damaged, puts what is whole of it in its place.
    pub(in crate::ingest) fn recover(
        store: &Arc<SegmentStore>,
        session: &str,
        found: Found,
        limits: ServerLimits,
    ) -> Result<(), IngestError> {
        let number = found.number;
        let segments = store.segments(session)?;
        let is_growing = found.hash.is_none();
        if is_growing && segments.iter().any(|other| other.number == number && other.hash.is_some()) {
            return Ok(store.remove_open(session, number)?);
        }
        let read = &mut |at, most| match is_growing {
            true => store.read_open(session, number, at, most),
            false => store.read(session, found, at, most),
        };
        let seen = Survey::of(session, number, read)?;
        if !is_growing && seen.is_whole() && seen.last_label.is_some() {
            return Ok(());
        }
        let earlier: Vec<Found> = segments.into_iter().filter(|other| other.number < number).collect();
        let (before, _) = describe(store, session, &earlier)?;
        let Some(last) = seen.last else {
            // Nothing of it can be read.
            audit::segment_damaged(session, (number, found.bytes), "set aside");
            return Ok(store.set_aside(session, found)?);
        };
        let mut writer = Self::new(store, seen.label.as_ref().map_or(before, |label| label.record.clone()), limits);
        let info = seen.label.as_ref().map(|label| label.segment.clone());
        writer.record.segments.retain(|segment| earlier.iter().any(|found| found.number == segment.number));
        writer.record.segments.push(info.unwrap_or(SegmentInfo { number, ..SegmentInfo::default() }));
        let begun = writer.totals.clone();
        writer.load(number, seen.kept.last().map_or(0, |range| range.end), read)?;
        writer.last = writer.last.max(last);
        let readable = writer.totals.clone();
        let first_batch = writer.first_batch;
        if let Some(segment) = writer.record.segments.last_mut().filter(|segment| segment.first == 0) {
            segment.first = first_batch;
        }
        if let Some(label) = &seen.last_label {
            // It was written when everything was there.
            writer.record.ended_us = label.record.ended_us;
            writer.record.notes.clone_from(&label.record.notes);
            writer.totals.clone_from(&label.record.totals);
            let missing = writer.totals.missing_in(&readable);
            writer.totals.lose(&missing);
            if let Some(segment) = writer.record.segments.last_mut() {
                segment.missing = missing;
            }
        }
        writer.note_damage(&seen, number, is_growing);

        let mut copy = store.begin(session, number, Purpose::Copy)?;
        // A damaged prelude or a damaged label is written anew.
        copy.append(&prelude())?;
        if seen.label.is_none() {
            let segment = writer.record.segments.last().cloned().unwrap_or_default();
            // As it was before the events that follow: whoever reads the segment adds them.
            let mut label = writer.label(segment, false);
            (label.record.totals, label.record.last) = (begun, writer.first_batch.saturating_sub(1));
            copy.append(&label.to_chunk())?;
            copy.append(&BatchEnd { seq: writer.first_batch.saturating_sub(1), sent_us: 0 }.to_chunk())?;
        }
        let head = copy.length() + seen.head;
        if let Some(segment) = writer.record.segments.last_mut() {
            segment.head = head;
        }
        for range in &seen.kept {
            let mut at = range.start;
            while at < range.end {
                let bytes = read(at, (range.end - at).min(super::roll::COPY_BYTES) as usize)?;
                if bytes.is_empty() {
                    return Err(StoreError::Damaged(format!("segment {number} became shorter")).into());
                }
                at += bytes.len() as u64;
                copy.append(&bytes)?;
            }
        }
        writer.finish(&mut copy)?;
        copy.seal()?;
        if is_growing && seen.is_whole() {
            store.remove_open(session, number)?;
        } else {
            store.set_aside(session, found)?;
        }
        tracing::debug!(session, number, seq = writer.last, "segment sealed after a stop");
        Ok(())
    }

    /// Says on the session what of a segment is missing.
    fn note_damage(&mut self, seen: &Survey, number: u32, is_growing: bool) {
        let session = &self.record.id;
        // Only a segment that was being written can be torn.
        let is_torn = seen.is_torn && is_growing;
        let note = if seen.damaged > 0 || (seen.tail > 0 && !is_torn) {
            let bytes = seen.damaged + if is_torn { 0 } else { seen.tail };
            self.record.damaged_bytes += bytes;
            if let Some(segment) = self.record.segments.last_mut() {
                segment.damaged_bytes = bytes;
            }
            audit::segment_damaged(session, (number, bytes), "set aside");
            damage_note(number, bytes)
        } else if seen.tail > 0 {
            audit::tail_removed(session, (number, seen.tail));
            format!("An incomplete batch was removed from the end after a crash ({}).", Bytes(seen.tail).exact())
        } else {
            return;
        };
        self.record.notes.push(note);
    }
}
