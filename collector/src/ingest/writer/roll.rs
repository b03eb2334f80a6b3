//! Begins the next log segment.

use std::ops::Range;

use shared::format::{PRELUDE_BYTES, Writer, prelude};

use super::SessionWriter;
use crate::ingest::IngestError;
use crate::ingest::now_us;
use crate::store::{SegmentInfo, SegmentWriter};

/// Bytes copied at once.
const COPY_BYTES: u64 = 1 << 20;

impl SessionWriter {
    /// Begins a log segment if there is none or the last is full.
    pub(super) fn make_segment(&mut self) -> Result<(), IngestError> {
        let Some(log) = &self.log else { return self.begin(1, 1, &[]) };
        // The symbols that each log segment repeats should stay a small part of it, and whatever follows the
        // recording's end belongs beside it.
        let least = 4 * self.symbol_bytes;
        let before = self.record.segments.last().map_or(0, |segment| segment.before);
        let has_enough = log.length() >= self.limits.segment_bytes.max(least)
            || log.length() >= least && self.totals.events().saturating_sub(before) >= self.limits.segment_events;
        if !has_enough || self.has_end() {
            return Ok(());
        }
        self.sync()?;
        let state = self.state();
        let number = self.record.segments.last().map_or(1, |segment| segment.number.saturating_add(1));
        self.begin(number, self.last + 1, &state)
    }

    /// Returns the chunks with the state of each device.
    fn state(&self) -> Vec<u8> {
        let mut state = Vec::new();
        let mut writer = Writer::at_chunk();
        for (number, tracked) in self.tracker.devices.iter() {
            if let Some(next) = tracked.next() {
                writer.segments(number, next, &tracked.now.segments(), &mut state);
            }
        }
        state
    }

    fn begin(&mut self, number: u32, first: u64, state: &[u8]) -> Result<(), IngestError> {
        let mut log = self.store.begin_segment(&self.record.id, number)?;
        log.append(&prelude())?;
        let mut header = 0..0;
        let mut symbols = Vec::new();
        if let Some(before) = self.record.segments.last().map(|segment| segment.number) {
            header = self.copy(before, std::slice::from_ref(&self.header), &mut *log)?;
            let copied = self.copy(before, &self.symbols, &mut *log)?;
            if !copied.is_empty() {
                symbols.push(copied);
            }
            log.append(state)?;
        }
        log.sync()?;
        let latest_us = self.latest_us();
        let mut record = self.record.clone();
        if let (Some(last), Some(log)) = (record.segments.last_mut(), &self.log) {
            (last.bytes, last.to_us) = (log.length(), latest_us);
        }
        let from_us = if number == 1 { i64::MIN } else { latest_us };
        let (head, begun_us) = (log.length(), now_us());
        let bytes = if number == 1 { PRELUDE_BYTES as u64 } else { head };
        let before = self.totals.events();
        record.segments.push(SegmentInfo { number, first, head, bytes, from_us, to_us: i64::MAX, begun_us, before });
        record.totals = self.totals.clone();
        // From here on the new log segment is the last one.
        self.save(record)?;
        (self.log, self.header, self.symbols) = (Some(log), header, symbols);
        Ok(())
    }

    /// Copies parts of a log segment to the end of another. Returns their range there.
    fn copy(&self, from: u32, parts: &[Range<u64>], to: &mut dyn SegmentWriter) -> Result<Range<u64>, IngestError> {
        let start = to.length();
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let bytes = self.store.read(&self.record.id, from, at, (part.end - at).min(COPY_BYTES) as usize)?;
                if bytes.is_empty() {
                    let what = format!("log segment {from} ends before its names do");
                    return Err(crate::store::StoreError::Damaged(what).into());
                }
                to.append(&bytes)?;
                at += bytes.len() as u64;
            }
        }
        Ok(start..to.length())
    }
}
