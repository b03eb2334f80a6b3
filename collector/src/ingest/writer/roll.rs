//! Begins the next segment, and seals the one before it.

use std::ops::Range;

use format::{BatchEnd, Kind, Writer, prelude, seal};

use super::SessionWriter;
use crate::ingest::IngestError;
use crate::store::{Found, Label, Purpose, SegmentInfo, SegmentWriter, StoreError};

/// Bytes copied at once.
pub(super) const COPY_BYTES: u64 = 1 << 20;

impl SessionWriter {
    /// Begins a segment if there is none or the last is full.
    pub(super) fn make_segment(&mut self) -> Result<(), IngestError> {
        let Some(log) = &self.log else { return self.begin_next() };
        // The symbols that each segment repeats should stay a small part of it, and whatever follows the recording's end
        // belongs beside it.
        let least = 4 * self.symbol_bytes;
        let before = self.record.segments.last().map_or(0, |segment| segment.before);
        let has_enough = log.length() >= self.limits.segment_bytes.max(least)
            || log.length() >= least && self.totals.events().saturating_sub(before) >= self.limits.segment_events;
        if has_enough && !self.has_end() { self.begin_next() } else { Ok(()) }
    }

    /// Begins the next segment. The one before it is sealed once the new one is there.
    pub(super) fn begin_next(&mut self) -> Result<(), IngestError> {
        self.sync()?;
        let before = self.record.segments.last().map(SegmentInfo::found);
        let next = before.map_or(Some(1), |before| before.number.checked_add(1));
        // Only the name of a stray file can claim the last number.
        let number = next.ok_or_else(|| StoreError::Damaged("the last number of a segment is taken".to_owned()))?;
        let latest_us = self.latest_us();
        let last = self.last;
        if let Some(before) = self.record.segments.last_mut().filter(|before| before.hash.is_empty()) {
            (before.last, before.to_us) = (last, latest_us);
        }
        let mut segment = SegmentInfo {
            number,
            first: self.last + 1,
            from_us: if number == 1 { i64::MIN } else { latest_us },
            to_us: i64::MAX,
            begun_us: self.record.retention_us,
            before: self.totals.events(),
            ..SegmentInfo::default()
        };
        let mut log = self.store.begin(&self.record.id, number, Purpose::Grow)?;
        log.append(&prelude())?;
        log.append(&self.label(segment.clone(), false).to_chunk())?;
        let mut header = 0..0;
        let mut symbols = Vec::new();
        if let Some(before) = before {
            header = self.copy(before, std::slice::from_ref(&self.header), &mut log)?;
            let copied = self.copy(before, &self.symbols, &mut log)?;
            if !copied.is_empty() {
                symbols.push(copied);
            }
            log.append(&self.state())?;
        }
        if header.is_empty() && last > 0 && !self.hello_header.is_empty() {
            // The store lost the header. The collector sends it with each hello.
            let from = log.length();
            log.append(&seal(Kind::Header as u8, &self.hello_header))?;
            header = from..log.length();
        }
        log.append(&BatchEnd { seq: self.last, sent_us: 0 }.to_chunk())?;
        log.publish()?;
        (segment.head, segment.bytes) = (log.length(), log.length());
        if self.log.is_some()
            && let Err(error) = self.seal()
        {
            // It stays in the log, complete, and is sealed when the session is opened again.
            let number = before.map(|before| before.number);
            tracing::error!(session = self.record.id, number, "cannot seal a segment: {error}");
        }
        self.record.segments.push(segment);
        (self.log, self.header, self.symbols) = (Some(log), header, symbols);
        Ok(())
    }

    /// Seals the last segment if it still grows. From then on it never changes.
    pub(in crate::ingest) fn seal(&mut self) -> Result<(), IngestError> {
        self.sync()?;
        let Some(mut log) = self.log.take() else { return Ok(()) };
        let latest_us = self.latest_us();
        let sealed = self.finish(&mut log);
        // Whatever fails from here on, these bytes are there.
        if let Some(last) = self.record.segments.last_mut() {
            (last.bytes, last.to_us) = (log.length(), latest_us);
        }
        match sealed.and_then(|segment| Ok((segment, log.seal()?))) {
            Ok((segment, hash)) => {
                if let Some(last) = self.record.segments.last_mut() {
                    *last = SegmentInfo { hash: hash.to_string(), ..segment };
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Appends the last label to a segment. Returns what the segment is then.
    pub(super) fn finish(&self, log: &mut SegmentWriter) -> Result<SegmentInfo, IngestError> {
        let segment = self.record.segments.last().cloned().unwrap_or_default();
        let mut segment = SegmentInfo {
            last: if self.last >= segment.first { self.last } else { 0 },
            bytes: log.length(),
            to_us: self.latest_us(),
            ..segment
        };
        log.append(&self.label(segment.clone(), true).to_chunk())?;
        segment.bytes = log.length();
        Ok(segment)
    }

    /// Returns a label of the last segment.
    pub(super) fn label(&self, segment: SegmentInfo, is_last: bool) -> Label {
        let mut record = self.record.clone();
        record.segments.retain(|other| other.number < segment.number);
        record.totals.clone_from(&self.totals);
        record.last = self.last;
        Label { record, segment, is_last }
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

    /// Copies parts of a segment to the end of another. Returns their range there.
    pub(super) fn copy(
        &self,
        from: Found,
        parts: &[Range<u64>],
        to: &mut SegmentWriter,
    ) -> Result<Range<u64>, IngestError> {
        let start = to.length();
        for part in parts {
            let mut at = part.start;
            while at < part.end {
                let bytes = self.store.read(&self.record.id, from, at, (part.end - at).min(COPY_BYTES) as usize)?;
                if bytes.is_empty() {
                    return Err(StoreError::Damaged(format!("segment {} ends before its names do", from.number)).into());
                }
                to.append(&bytes)?;
                at += bytes.len() as u64;
            }
        }
        Ok(start..to.length())
    }
}
