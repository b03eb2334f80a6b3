//! Encodes what leaves the queues as chunks, in an order that can be decoded.

use std::sync::mpsc::Receiver;

use format::{End, EventColumns, LostEvents, Writer};
use trace::event::Action;
use trace::frames::Symbols;
use trace::{Annotation, OutsideSample, Sample, Segment, Tags};

use super::backpressure::Backpressure;
use super::handle::RecorderStats;
use super::output::{Output, Unwritten};
use super::stacks::Name;

/// Counts by [`Action`].
pub(super) type Counts = [u64; Action::ALL.len()];

/// Encodes chunks and appends them to the output.
pub(super) struct ChunkWriter {
    writer: Writer,
    output: Box<dyn Output>,
    /// Chunks that are encoded and not yet appended.
    bytes: Vec<u8>,
    /// Events in `bytes`.
    pending: u64,
    names: Receiver<Name>,
    symbols: Symbols,
    /// Streams and pools, numbered here only.
    pub(super) tags: Tags,
    pub(super) stats: RecorderStats,
}

impl ChunkWriter {
    pub(super) fn new(writer: Writer, output: Box<dyn Output>, names: Receiver<Name>) -> Self {
        let (symbols, tags, stats) = (Symbols::default(), Tags::default(), RecorderStats::default());
        Self { writer, output, bytes: Vec::new(), pending: 0, names, symbols, tags, stats }
    }

    /// Writes new names. Call it after reading what uses them from its queue: a stack is numbered before it is used, so
    /// every name that is needed has arrived by then.
    fn write_names(&mut self) {
        for name in self.names.try_iter() {
            match name {
                Name::Text(text) => drop(self.symbols.intern(&text)),
                Name::Frame(frame) => drop(self.symbols.intern_frame(frame)),
                Name::Stack(frames) => drop(self.symbols.intern_stack(&frames)),
            }
        }
        self.writer.symbols(&self.symbols, &self.tags, &mut self.bytes);
    }

    /// Writes events of a device, empties `columns`, and advances the device's next sequence number.
    pub(super) fn write_events(&mut self, device: i64, next: &mut u64, columns: &mut EventColumns) {
        if columns.is_empty() {
            return;
        }
        self.write_names();
        self.writer.events(device, *next, columns, &mut self.bytes);
        *next += columns.len() as u64;
        self.pending += columns.len() as u64;
        columns.clear();
    }

    /// Writes that events were lost, and advances the device's next sequence number past them.
    pub(super) fn write_lost(&mut self, device: i64, next: &mut u64, by_action: Counts) {
        let lost: u64 = by_action.iter().sum();
        if lost == 0 {
            return;
        }
        let run = LostEvents { device, from: *next, to: *next + lost, by_action };
        self.writer.lost_events(&run, &mut self.bytes);
        *next = run.to;
        self.stats.lost += lost;
        for (sum, count) in self.stats.lost_by_action.iter_mut().zip(by_action) {
            *sum += count;
        }
    }

    /// Writes marks of a device.
    pub(super) fn write_marks(&mut self, device: i64, marks: &[Annotation]) {
        self.write_names();
        self.writer.marks(device, marks, &mut self.bytes);
    }

    /// Writes samples of a device.
    pub(super) fn write_samples(&mut self, device: i64, samples: &[Sample]) {
        self.writer.statistics(device, samples, &mut self.bytes);
    }

    /// Writes samples of the memory outside a device's allocator.
    pub(super) fn write_outside(&mut self, device: i64, samples: &[OutsideSample]) {
        self.writer.outside(device, samples, &mut self.bytes);
    }

    /// Writes a device's segments as they are before event `next`.
    pub(super) fn write_segments(&mut self, device: i64, next: u64, segments: &[Segment]) {
        self.write_names();
        self.writer.segments(device, next, segments, &mut self.bytes);
    }

    /// Returns whether events may be written now.
    pub(super) fn wait_for_room(&mut self, backpressure: &mut Backpressure) -> bool {
        // After a failure events are counted, not written.
        self.stats.failure.is_some() || backpressure.wait_for_room(&mut *self.output)
    }

    /// Appends the encoded chunks to the output. After a failure nothing more is appended: the recording stays readable
    /// up to there, and later events are counted.
    pub(super) fn flush(&mut self) {
        if self.stats.failure.is_none() && !self.bytes.is_empty() {
            self.output.announce(self.pending);
            if let Err(error) = self.output.append(&self.bytes) {
                self.stats.failure = Some(error.to_string());
            }
        }
        if self.stats.failure.is_none() {
            self.stats.bytes += self.bytes.len() as u64;
            self.stats.events += self.pending;
        } else {
            self.stats.unwritten += self.pending;
        }
        self.pending = 0;
        self.bytes.clear();
    }

    /// Writes the recording's end.
    pub(super) fn finish(&mut self, time_us: i64) {
        self.flush();
        let end = End { time_us, events: self.stats.events, lost: self.stats.lost };
        self.writer.end(&end, &mut self.bytes);
        self.flush();
        if let Err(Unwritten { error, events, bytes }) = self.output.finish() {
            self.stats.failure.get_or_insert_with(|| error.to_string());
            self.stats.events -= events.min(self.stats.events);
            self.stats.unwritten += events;
            self.stats.bytes -= bytes.min(self.stats.bytes);
        }
    }
}
