//! The allocator's events as columns, with times.

use std::sync::Arc;

use allocator::{TraceEntry, TraceSink};
use trace::frames::{StrId, Symbols};
use trace::limits;
use trace::units::{Address, PoolId, Stream};
use trace::{Event, Events, Tag, TagId, Tags};

use super::clock::JobClock;
use super::recording_output::RecordingOutput;
use recorder::Clock;

/// The events of a job so far.
pub(in crate::workloads) struct EventLog {
    /// Gives events their times.
    clock: Arc<dyn Clock>,
    /// Whether the job may continue after the log is full, which then keeps only the first events.
    is_endless: bool,
    events: Events,
    /// Events that were not kept.
    left_out: usize,
    /// Receives every event too.
    recording: Option<RecordingOutput>,
    tags: Tags,
    /// What PyTorch writes where nothing is compiled.
    compile_context: StrId,
    /// The tag of the last event, as consecutive events mostly share it.
    last: Option<(Stream, PoolId, TagId)>,
}

impl EventLog {
    /// Creates a log with the times of a clock. The log of a job on the machine's time never ends the job.
    pub(super) fn new(symbols: &mut Symbols, clock: &JobClock, recording: Option<RecordingOutput>) -> Self {
        let compile_context = symbols.intern(b"N/A");
        Self {
            clock: clock.event_clock(),
            is_endless: clock.is_machine(),
            events: Events::default(),
            left_out: 0,
            recording,
            tags: Tags::default(),
            compile_context,
            last: None,
        }
    }

    /// Returns the number of events so far.
    pub(super) fn count(&self) -> usize {
        self.events.len() + self.left_out
    }

    /// Returns whether events were left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// Returns whether the log is full and the job has to end.
    pub(super) fn is_full(&self) -> bool {
        !self.is_endless && self.events.len() >= limits::RUN_EVENTS
    }

    /// Returns the recording, if there is one.
    pub(super) fn recording(&mut self) -> Option<&mut RecordingOutput> {
        self.recording.as_mut()
    }

    /// Removes and returns the events, their tags and the recording.
    pub(super) fn take(&mut self) -> (Events, Tags, Option<RecordingOutput>) {
        self.last = None;
        (std::mem::take(&mut self.events), std::mem::take(&mut self.tags), self.recording.take())
    }

    fn tag(&mut self, stream: Stream, pool: PoolId) -> TagId {
        match self.last {
            Some((last_stream, last_pool, tag)) if (last_stream, last_pool) == (stream, pool) => tag,
            _ => {
                let compile_context = self.compile_context;
                let tag = Tag { stream, pool: Some(pool), compile_context, ..Tag::default() };
                let tag = self.tags.intern(tag);
                self.last = Some((stream, pool, tag));
                tag
            }
        }
    }
}

impl TraceSink for EventLog {
    fn record(&mut self, entry: TraceEntry) {
        // Read once, so that the trace and the recording have the same time.
        let time_us = self.clock.now_us();
        if let Some(recording) = &mut self.recording {
            recording.record(entry, time_us);
        }
        if self.left_out > 0 || self.is_endless && self.events.len() >= limits::LIVE_RUN_EVENTS {
            self.left_out += 1;
            return;
        }
        let TraceEntry { action, address, size, stream, pool, stack } = entry;
        let tag = self.tag(stream, pool);
        self.events.push(Event { action, address: Address(address), size, time_us, tag, stack });
    }
}
