//! What becomes of events once they are out of the queue: chunks, in an order that can be read.

use std::sync::mpsc::Receiver;

use shared::event::Action;
use shared::format::{End, EventColumns, LostEvents, Writer};
use shared::frames::Symbols;
use shared::trace::{Annotation, Sample, Segment, Tags};

use super::handle::RecorderStats;
use super::output::Output;
use super::room::Room;
use super::stacks::Name;

/// Counts by [`Action`].
pub(super) type Counts = [u64; Action::ALL.len()];

/// Makes chunks and hands them to the output.
pub(super) struct Pen {
    writer: Writer,
    output: Box<dyn Output>,
    /// Chunks that are made and not yet handed out.
    bytes: Vec<u8>,
    /// Events in `bytes`.
    pending: u64,
    names: Receiver<Name>,
    symbols: Symbols,
    /// Streams and pools, numbered here and nowhere else.
    pub(super) tags: Tags,
    pub(super) stats: RecorderStats,
}

impl Pen {
    pub(super) fn new(writer: Writer, output: Box<dyn Output>, names: Receiver<Name>) -> Self {
        let (symbols, tags, stats) = (Symbols::default(), Tags::default(), RecorderStats::default());
        Self { writer, output, bytes: Vec::new(), pending: 0, names, symbols, tags, stats }
    }

    /// Writes the names that are new. Called after what uses them was taken from its queue: callers number a stack
    /// before they use it, so every name that is needed has come by then.
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

    /// Writes events of a device and moves its next sequence number on; `columns` are empty then.
    pub(super) fn events(&mut self, device: i64, next: &mut u64, columns: &mut EventColumns) {
        if columns.is_empty() {
            return;
        }
        self.write_names();
        self.writer.events(device, *next, columns, &mut self.bytes);
        *next += columns.len() as u64;
        self.pending += columns.len() as u64;
        columns.clear();
    }

    /// Writes that events were lost, and moves the next sequence number on.
    pub(super) fn gap(&mut self, device: i64, next: &mut u64, by_action: Counts) {
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
    pub(super) fn marks(&mut self, device: i64, marks: &[Annotation]) {
        self.write_names();
        self.writer.marks(device, marks, &mut self.bytes);
    }

    /// Writes samples of a device.
    pub(super) fn statistics(&mut self, device: i64, samples: &[Sample]) {
        self.writer.statistics(device, samples, &mut self.bytes);
    }

    /// Whether the output takes events now.
    pub(super) fn has_room(&self, room: &mut Room) -> bool {
        // After a failure they are counted, not written.
        self.stats.failure.is_some() || room.is_there(&*self.output)
    }

    /// Writes what is reserved before event `at` of a device.
    pub(super) fn segments(&mut self, device: i64, at: u64, segments: &[Segment]) {
        self.write_names();
        self.writer.segments(device, at, segments, &mut self.bytes);
    }

    /// Hands what was made to the output. After a failure nothing more is handed out: the file can be read up to there,
    /// and what comes later is counted.
    pub(super) fn hand_out(&mut self) {
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

    /// Ends the file.
    pub(super) fn end(&mut self, time_us: i64) {
        self.hand_out();
        let end = End { time_us, events: self.stats.events, lost: self.stats.lost };
        self.writer.end(&end, &mut self.bytes);
        self.hand_out();
    }
}
