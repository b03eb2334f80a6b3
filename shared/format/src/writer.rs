//! From events to the bytes of a recording. The caller supplies the times and writes the bytes.

use super::chunk::{self, ENVELOPE_BYTES, Kind};
use super::columns::EventColumns;
use super::header::Header;
use super::index::{self, Entry};
use super::reader::Chunk;
use super::records::{End, LostEvents, encode_marks, encode_samples};
use super::symbols::SymbolCursor;
use super::{events, outside, segments, symbols};
use trace::frames::Symbols;
use trace::limits::{CHUNK_EVENTS, CHUNK_OUTSIDE_SAMPLES, RECORDING_GRACE_BYTES, RECORDING_RATIO};
use trace::{Annotation, Loss, OutsideSample, Sample, Segment, Snapshot, Tags};

/// The most entries of an index. A longer file lists every second chunk, then every fourth, and so on: enough to seek.
const INDEX_ENTRIES: usize = 1 << 14;

/// Writes one recording. Each call appends whole chunks to `out`, which the caller writes in that order. A file that
/// ends after any of them can be read.
#[derive(Debug)]
pub struct Writer {
    written: SymbolCursor,
    /// Bytes written so far.
    byte: u64,
    /// Their unpacked size.
    plain: u64,
    entries: Vec<Entry>,
    /// The index lists one of this many chunks.
    stride: u64,
    chunks: u64,
}

impl Writer {
    /// Creates a writer and begins a file with its first bytes and the header.
    pub fn new(header: &Header, out: &mut Vec<u8>) -> Self {
        let mut new = Self::at_chunk();
        let prelude = chunk::prelude();
        out.extend_from_slice(&prelude);
        new.byte = prelude.len() as u64;
        new.chunk(Kind::Header, Entry::default(), &header.encode(), out);
        new
    }

    /// Creates a writer for chunks that follow others, without the first bytes and the header.
    pub fn at_chunk() -> Self {
        Self { written: SymbolCursor::default(), byte: 0, plain: 0, entries: Vec::new(), stride: 1, chunks: 0 }
    }

    /// Returns the bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.byte
    }

    /// Writes the names that are new. They must precede everything that refers to them.
    pub fn symbols(&mut self, symbols: &Symbols, tags: &Tags, out: &mut Vec<u8>) {
        while let Some(payload) = symbols::encode(symbols, tags, &mut self.written) {
            self.chunk(Kind::Symbols, Entry::default(), &payload, out);
        }
    }

    /// Writes a preview. The first one comes directly after the header, and the others after it.
    pub fn preview(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.chunk(Kind::Preview, Entry::default(), payload, out);
    }

    /// Writes events of a device; `first` is the sequence number of the first. Writes nothing for no events.
    pub fn events(&mut self, device: i64, first: u64, columns: &EventColumns, out: &mut Vec<u8>) {
        if columns.is_empty() {
            return;
        }
        let (from_us, to_us) = columns.span_us;
        let entry = Entry { device, first, count: columns.len() as u64, from_us, to_us, ..Entry::default() };
        self.chunk(Kind::Events, entry, &events::encode_events(device, first, columns), out);
    }

    /// Writes marks of a device.
    pub fn marks(&mut self, device: i64, marks: &[Annotation], out: &mut Vec<u8>) {
        let times = || marks.iter().map(|mark| mark.time_us);
        if let (Some(from_us), Some(to_us)) = (times().min(), times().max()) {
            let entry = Entry { device, from_us, to_us, ..Entry::default() };
            self.chunk(Kind::Marks, entry, &encode_marks(device, marks), out);
        }
    }

    /// Writes sampled totals of a device.
    pub fn statistics(&mut self, device: i64, samples: &[Sample], out: &mut Vec<u8>) {
        let times = || samples.iter().map(|sample| sample.time_us);
        if let (Some(from_us), Some(to_us)) = (times().min(), times().max()) {
            let entry = Entry { device, from_us, to_us, ..Entry::default() };
            self.chunk(Kind::Statistics, entry, &encode_samples(device, samples), out);
        }
    }

    /// Writes samples of the memory beside a device's allocator.
    pub fn outside(&mut self, device: i64, samples: &[OutsideSample], out: &mut Vec<u8>) {
        for samples in samples.chunks(CHUNK_OUTSIDE_SAMPLES) {
            let times = || samples.iter().map(|sample| sample.time_us);
            let (from_us, to_us) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
            let entry = Entry { device, from_us, to_us, ..Entry::default() };
            self.chunk(Kind::Outside, entry, &outside::encode_outside(device, samples), out);
        }
    }

    /// Writes that events were lost.
    pub fn lost_events(&mut self, lost: &LostEvents, out: &mut Vec<u8>) {
        let count = lost.to.saturating_sub(lost.from);
        let entry = Entry { device: lost.device, first: lost.from, count, ..Entry::default() };
        self.chunk(Kind::LostEvents, entry, &lost.encode(), out);
    }

    /// Writes all segments of a device, as they are before the event with sequence number `at`.
    pub fn segments(&mut self, device: i64, at: u64, segments: &[Segment], out: &mut Vec<u8>) {
        for payload in segments::encode_segments(device, at, segments) {
            self.chunk(Kind::Segments, Entry { device, first: at, ..Entry::default() }, &payload, out);
        }
    }

    /// Ends the file: writes the end, the index and the trailer.
    pub fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        let entry = Entry { from_us: end.time_us, to_us: end.time_us, ..Entry::default() };
        self.chunk(Kind::End, entry, &end.encode(), out);
        let byte = self.byte;
        let payload = index::encode(&self.entries);
        self.chunk(Kind::Index, Entry::default(), &payload, out);
        out.extend_from_slice(&chunk::seal_stored(Kind::Trailer as u8, &index::encode_trailer(byte)));
    }

    fn chunk(&mut self, kind: Kind, entry: Entry, payload: &[u8], out: &mut Vec<u8>) {
        let mut sealed = chunk::seal(kind as u8, payload);
        if self.is_too_dense(payload.len(), sealed.len()) {
            sealed = chunk::seal_stored(kind as u8, payload);
        }
        self.append(kind, entry, payload.len(), &sealed, out);
    }

    /// Whether the file would unpack to so much that readers take it for a bomb, with a chunk of these lengths.
    fn is_too_dense(&self, payload: usize, sealed: usize) -> bool {
        let plain = self.plain + payload as u64;
        plain > RECORDING_GRACE_BYTES && plain > (self.byte + sealed as u64).saturating_mul(RECORDING_RATIO)
    }

    /// Writes an events chunk in its own form as it is. Returns whether it could: not if it is packed too densely.
    pub(crate) fn keep(&mut self, entry: Entry, chunk: Chunk<'_>, out: &mut Vec<u8>) -> bool {
        let Chunk { payload, packed, .. } = chunk;
        let is_kept = packed.len() <= ENVELOPE_BYTES + payload.len() && !self.is_too_dense(payload.len(), packed.len());
        if is_kept {
            self.append(Kind::Events, entry, payload.len(), packed, out);
        }
        is_kept
    }

    fn append(&mut self, kind: Kind, entry: Entry, plain: usize, sealed: &[u8], out: &mut Vec<u8>) {
        if self.chunks.is_multiple_of(self.stride) {
            self.entries.push(Entry { byte: self.byte, kind: kind as u8, ..entry });
        }
        self.chunks += 1;
        if self.entries.len() > INDEX_ENTRIES {
            let mut n = 0;
            self.entries.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.stride *= 2;
        }
        self.plain += plain as u64;
        self.byte += sealed.len() as u64;
        out.extend_from_slice(sealed);
    }
}

/// Bytes of the trailer, the last chunk of a file that ended normally.
pub const TRAILER_BYTES: usize = ENVELOPE_BYTES + 16;

/// Returns a whole recording that holds a snapshot.
pub fn write(header: &Header, snapshot: &Snapshot) -> Vec<u8> {
    write_with_previews(header, snapshot, &[])
}

/// Returns a whole recording that holds a snapshot, and begins with previews of these payloads.
pub fn write_with_previews(header: &Header, snapshot: &Snapshot, previews: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(header, &mut out);
    for payload in previews {
        writer.preview(payload, &mut out);
    }
    writer.symbols(&snapshot.symbols, &snapshot.tags, &mut out);
    let mut end = End { time_us: header.started_us, ..End::default() };
    for trace in &snapshot.devices {
        let mut device = DeviceWriter { device: trace.device, next: 0, columns: EventColumns::default() };
        let mut losses = trace.losses.iter().peekable();
        for (position, event) in (0..).zip(trace.events.iter()) {
            while let Some(loss) = losses.next_if(|loss| loss.position <= position) {
                end.lost += device.lose(loss, &mut writer, &mut out);
            }
            device.columns.push(event);
            end.time_us = end.time_us.max(event.time_us);
            if device.columns.len() == CHUNK_EVENTS {
                device.flush(&mut writer, &mut out);
            }
        }
        for loss in losses {
            end.lost += device.lose(loss, &mut writer, &mut out);
        }
        device.flush(&mut writer, &mut out);
        end.events += trace.events.len() as u64;
        writer.marks(trace.device, &trace.annotations, &mut out);
        writer.statistics(trace.device, &trace.samples, &mut out);
        writer.outside(trace.device, &trace.outside, &mut out);
        writer.segments(trace.device, device.next, &trace.segments, &mut out);
    }
    writer.end(&end, &mut out);
    out
}

/// The events of a device that are not written yet.
struct DeviceWriter {
    device: i64,
    /// The sequence number of the first of them.
    next: u64,
    columns: EventColumns,
}

impl DeviceWriter {
    /// Writes the events.
    fn flush(&mut self, writer: &mut Writer, out: &mut Vec<u8>) {
        writer.events(self.device, self.next, &self.columns, out);
        self.next += self.columns.len() as u64;
        self.columns.clear();
    }

    /// Writes the events, and that others are missing after them. Returns the number of those.
    fn lose(&mut self, loss: &Loss, writer: &mut Writer, out: &mut Vec<u8>) -> u64 {
        self.flush(writer, out);
        let to = self.next.saturating_add(loss.events);
        let lost = LostEvents { device: self.device, from: self.next, to, by_action: loss.by_action };
        writer.lost_events(&lost, out);
        self.next = to;
        loss.events
    }
}
