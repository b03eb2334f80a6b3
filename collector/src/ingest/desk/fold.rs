//! What a batch holds: checked, and counted.

use std::ops::Range;

use shared::format::{Chunk, Decoder, Kind, Tracker, prelude};
use shared::limits::ImportLimits;

use super::Desk;
use crate::ingest::IngestError;
use crate::store::{DeviceTotals, Totals};

/// Events between two looks at how much memory the state takes.
const LOOK_EVENTS: u64 = 1 << 20;

impl Desk {
    /// Takes in a batch that will stand at the byte `from` of the last segment.
    pub(super) fn fold_batch(&mut self, chunks: &[u8], from: u64) -> Result<(), IngestError> {
        let is_first = self.last == 0;
        let start = self.frames.byte();
        let (mut next, mut fault) = (start, None);
        let most = self.limits.devices;
        let Self { frames, tracker, base, totals, header, symbols, symbol_bytes, .. } = self;
        let pushed = frames.push(chunks, &mut |chunk| {
            let kind = Kind::from_code(chunk.kind);
            let begins = is_first && chunk.byte == start;
            if chunk.byte != next {
                fault.get_or_insert("a batch holds bytes that are no chunk");
            } else if begins != (kind == Some(Kind::Header)) {
                fault.get_or_insert("the header is the first chunk of batch 1, and of no other");
            } else if kind == Some(Kind::Batch) {
                fault.get_or_insert("batches are marked by the server alone");
            }
            next = chunk.byte + chunk.bytes;
            // Each costs memory: no batch may bring a thousand of them.
            if fault.is_some() || totals.devices.len() > most {
                return;
            }
            let place = from + (chunk.byte - start)..from + (next - start);
            match kind {
                Some(Kind::Header) => *header = place,
                Some(Kind::Symbols) => {
                    *symbol_bytes += chunk.bytes;
                    add(symbols, place);
                }
                _ => {}
            }
            tracker.fold_chunk(chunk);
            let raw = chunks.get((chunk.byte - start) as usize..(next - start) as usize);
            count(chunk, raw.unwrap_or(&[]), tracker, base, totals);
        });
        if pushed.is_err() || next != start + chunks.len() as u64 {
            fault.get_or_insert("a batch holds bytes that are no chunk");
        }
        if tracker.malformed > 0 {
            fault.get_or_insert("what a chunk holds can't be read");
        }
        if is_first && chunks.is_empty() {
            fault.get_or_insert("the first chunk of batch 1 is the header");
        }
        if let Some(fault) = fault {
            return Err(IngestError::Malformed(fault.to_owned()));
        }
        if self.totals.devices.len() > most {
            return Err(IngestError::TooMuch(format!("the session tells of more than {most} devices")));
        }
        if is_first && let Some(header) = &self.tracker.header {
            self.record.describe(header, &self.limits);
        }
        self.check_bounds()
    }

    /// What grows with a session and not only on the disk.
    fn check_bounds(&mut self) -> Result<(), IngestError> {
        let limits = &self.limits;
        if self.symbol_bytes > limits.symbols_bytes {
            let bytes = limits.symbols_bytes >> 20;
            return Err(IngestError::TooMuch(format!("the session has more than {bytes} MiB of names")));
        }
        let events = self.totals.events();
        if events >= self.look_at {
            self.look_at = events.saturating_add(LOOK_EVENTS);
            if self.tracker.bytes() > limits.state_bytes {
                let what = "the session's allocator holds more blocks than this server keeps in memory";
                return Err(IngestError::TooMuch(what.to_owned()));
            }
        }
        Ok(())
    }

    /// Takes in a chunk that stands in the store already.
    pub(super) fn fold_stored(&mut self, chunk: Chunk<'_>, raw: &[u8]) {
        let place = chunk.byte..chunk.byte + chunk.bytes;
        match Kind::from_code(chunk.kind) {
            Some(Kind::Header) => self.header = place,
            Some(Kind::Symbols) => {
                self.symbol_bytes += chunk.bytes;
                add(&mut self.symbols, place);
            }
            _ => {}
        }
        self.tracker.fold_chunk(chunk);
        count(chunk, raw, &mut self.tracker, &self.base, &mut self.totals);
    }
}

/// Adds a range at the end, as part of the last one where it continues it.
fn add(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Brings the sums up to a chunk that the tracker has taken in.
fn count(chunk: Chunk<'_>, raw: &[u8], tracker: &mut Tracker, base: &Totals, totals: &mut Totals) {
    if Kind::from_code(chunk.kind) == Some(Kind::Statistics) {
        return count_samples(raw, tracker, totals);
    }
    let Some(number) = tracker.device else { return };
    let Some(tracked) = tracker.devices.get(number) else { return };
    let none = DeviceTotals::default();
    let before = base.devices.iter().find(|device| device.number == number).unwrap_or(&none);
    let device = totals.device(number);
    device.events = before.events.saturating_add(tracked.events);
    device.lost = before.lost.saturating_add(tracked.lost);
    device.ooms = before.ooms.saturating_add(tracked.ooms);
    for ((sum, before), now) in device.lost_by_action.iter_mut().zip(before.lost_by_action).zip(tracked.lost_by_action)
    {
        *sum = before.saturating_add(now);
    }
    let (sums, peak) = (tracked.now.sums(), &tracked.peak);
    device.now = [sums.allocated, sums.active, sums.reserved];
    raise(&mut device.peak, [peak.allocated, peak.active, peak.reserved]);
    device.peak_requested = device.peak_requested.max(peak.requested);
    device.is_exact &= device.lost == 0 && tracked.now.mismatches().total() == 0;
    device.last_us = device.last_us.max(tracked.span_us.map(|(_, latest)| latest));
    device.series.clone_from(&tracked.course);
}

/// Statistics stand for what events don't tell.
fn count_samples(raw: &[u8], tracker: &mut Tracker, totals: &mut Totals) {
    // The one reader of samples is that of whole recordings; this is one, of a single chunk.
    let mut decoder = Decoder::new(ImportLimits::default());
    if decoder.push(&prelude()).and_then(|()| decoder.push(raw)).is_err() {
        return;
    }
    for (number, track) in decoder.recording().devices.iter() {
        let device = totals.device(number);
        let course = tracker.course(number);
        for sample in &track.trace.samples {
            // Events that are newer are exact.
            if device.last_us.is_some_and(|last_us| last_us > sample.time_us) {
                continue;
            }
            let sums = sample.sums();
            // Where the events say the same, all was seen.
            device.is_exact &= device.now == sums;
            device.now = sums;
            raise(&mut device.peak, sums);
            device.last_us = Some(sample.time_us);
            course.add(sample.time_us, sums);
        }
        device.series.clone_from(course);
    }
}

/// Takes over what is more.
fn raise(peak: &mut [u64; 3], sums: [u64; 3]) {
    for (peak, sum) in peak.iter_mut().zip(sums) {
        *peak = (*peak).max(sum);
    }
}
