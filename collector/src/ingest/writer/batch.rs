//! Checks the chunks of a batch and counts what they hold.

use format::{Chunk, Kind, StatisticsChunk};
use trace::units::Bytes;
use tracker::Tracker;

use super::SessionWriter;
use super::survey::push_range;
use crate::ingest::IngestError;
use crate::store::{DeviceTotals, SessionTotals};

impl SessionWriter {
    /// Reads a batch that will be written at the offset `from` of the last log segment.
    pub(super) fn add_batch(&mut self, chunks: &[u8], from: u64) -> Result<(), IngestError> {
        let is_first = self.last == 0;
        let start = self.chunks.byte();
        let (mut next, mut fault) = (start, None);
        let most = self.limits.devices;
        self.chunks.allow(self.limits.batch_plain_bytes);
        let Self { chunks: reader, tracker, base, totals, header, symbols, symbol_bytes, .. } = self;
        let pushed = reader.push(chunks, &mut |chunk| {
            let kind = chunk.known_kind();
            let begins = is_first && chunk.byte == start;
            if chunk.byte != next {
                fault.get_or_insert("the batch holds bytes that are not a chunk");
            } else if begins != (kind == Some(Kind::Header)) {
                fault.get_or_insert("only the first chunk of batch 1 may be a header, and it must be one");
            } else if matches!(kind, Some(Kind::Batch | Kind::Label)) {
                fault.get_or_insert("only the server may write batch marks and labels");
            }
            next = chunk.end();
            // Each device costs memory: no batch may add a thousand of them.
            if fault.is_some() || totals.devices.len() > most {
                return;
            }
            let place = from + (chunk.byte - start)..from + (next - start);
            match kind {
                Some(Kind::Header) => *header = place,
                Some(Kind::Symbols) => {
                    *symbol_bytes += chunk.bytes;
                    push_range(symbols, place);
                }
                _ => {}
            }
            tracker.add(chunk);
            count(chunk, tracker, base, totals);
        });
        if reader.is_exceeded() {
            let limit = Bytes(self.limits.batch_plain_bytes);
            return Err(IngestError::TooMuch(format!("the batch unpacks to more than {limit}")));
        }
        if pushed.is_err() || next != start + chunks.len() as u64 {
            fault.get_or_insert("the batch holds bytes that are not a chunk");
        }
        if tracker.malformed > 0 {
            fault.get_or_insert("the contents of a chunk can't be read");
        }
        if is_first && chunks.is_empty() {
            fault.get_or_insert("batch 1 must begin with the header chunk");
        }
        if let Some(fault) = fault {
            return Err(IngestError::Malformed(fault.to_owned()));
        }
        if self.totals.devices.len() > most {
            return Err(IngestError::TooMuch(format!("the session has more than {most} devices")));
        }
        if is_first && let Some(header) = &self.tracker.header {
            self.record.describe(header, &self.limits);
        }
        self.check_limits()
    }

    /// Checks what grows in memory, and not only on the disk.
    pub(super) fn check_limits(&mut self) -> Result<(), IngestError> {
        let limits = &self.limits;
        if self.symbol_bytes > limits.symbols_bytes {
            let bytes = limits.symbols_bytes >> 20;
            return Err(IngestError::TooMuch(format!("the session has more than {bytes} MiB of names")));
        }
        let what = match self.tracker.overflow() {
            Some(what) => format!("the session needs more memory than this server can give it: {what}"),
            None if self.tracker.bytes() > limits.state_bytes => {
                "the session's allocator holds more blocks than this server can keep in memory".to_owned()
            }
            None if self.usage.as_mut().is_some_and(|usage| !usage.set(self.tracker.bytes())) => {
                "all sessions together need more memory than this server has for them, and this one more than its share"
                    .to_owned()
            }
            None => return Ok(()),
        };
        Err(IngestError::TooMuch(what))
    }

    /// Reads a chunk that is in the store already. Beyond the limits nothing more is read, which
    /// [`Self::check_limits`] then tells.
    pub(super) fn add_stored(&mut self, chunk: Chunk<'_>) {
        if self.totals.devices.len() > self.limits.devices || self.tracker.overflow().is_some() {
            return;
        }
        let place = chunk.byte..chunk.end();
        match chunk.known_kind() {
            Some(Kind::Header) => self.header = place,
            Some(Kind::Symbols) => {
                self.symbol_bytes += chunk.bytes;
                push_range(&mut self.symbols, place);
            }
            _ => {}
        }
        self.tracker.add(chunk);
        count(chunk, &mut self.tracker, &self.base, &mut self.totals);
    }
}

/// Updates the totals after the tracker has read a chunk.
fn count(chunk: Chunk<'_>, tracker: &mut Tracker, base: &SessionTotals, totals: &mut SessionTotals) {
    if chunk.known_kind() == Some(Kind::Statistics) {
        return count_samples(chunk.payload, tracker, totals);
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

/// Updates the totals from sampled statistics, which stand in for events that were not recorded.
fn count_samples(payload: &[u8], tracker: &mut Tracker, totals: &mut SessionTotals) {
    let Ok(StatisticsChunk { device: number, samples }) = StatisticsChunk::decode(payload) else { return };
    let device = totals.device(number);
    let course = tracker.course(number);
    for sample in samples {
        // Later events are exact.
        if device.last_us.is_some_and(|last_us| last_us > sample.time_us) {
            continue;
        }
        let sums = sample.sums();
        // If the events lead to the same totals, none is missing.
        device.is_exact &= device.now == sums;
        device.now = sums;
        raise(&mut device.peak, sums);
        device.last_us = Some(sample.time_us);
        course.add(sample.time_us, sums);
    }
    device.series.clone_from(course);
}

/// Raises each peak to at least the given total.
fn raise(peak: &mut [u64; 3], sums: [u64; 3]) {
    for (peak, sum) in peak.iter_mut().zip(sums) {
        *peak = (*peak).max(sum);
    }
}
