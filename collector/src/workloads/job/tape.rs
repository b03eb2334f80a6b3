//! What the allocator tells, as columns with times.

use shared::allocator::{TraceEntry, TraceSink};
use shared::frames::{StrId, Symbols};
use shared::limits;
use shared::trace::{Event, Events, Tag, TagId, Tags};
use shared::units::{Address, PoolId, Stream};

use super::recording::Recording;

/// The entries so far.
pub(in crate::workloads) struct Tape {
    /// The time that entries get.
    now_us: i64,
    events: Events,
    /// Entries that were not kept.
    left_out: usize,
    /// Where they go beside.
    pub(super) recording: Option<Recording>,
    tags: Tags,
    /// What PyTorch writes where nothing is compiled.
    compile_context: StrId,
    /// The tag of the last entry: neighbours mostly share it.
    last: Option<(Stream, PoolId, TagId)>,
}

impl Tape {
    pub(super) fn new(symbols: &mut Symbols, now_us: i64) -> Self {
        let compile_context = symbols.intern(b"N/A");
        Self {
            now_us,
            events: Events::default(),
            left_out: 0,
            recording: None,
            tags: Tags::default(),
            compile_context,
            last: None,
        }
    }

    /// Sets the clock.
    pub(super) fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
        if let Some(recording) = &self.recording {
            recording.set_now(now_us);
        }
    }

    /// The time that an entry would get now.
    pub(super) fn time_us(&self) -> i64 {
        self.recording.as_ref().map_or(self.now_us, Recording::now_us)
    }

    /// How many entries there were.
    pub(super) fn count(&self) -> usize {
        self.events.len() + self.left_out
    }

    /// Whether not all of them are kept.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// Whether no more may come. A run that is watched may go on: it keeps its first entries only.
    pub(super) fn is_too_long(&self) -> bool {
        !self.is_live() && self.events.len() >= limits::RUN_EVENTS
    }

    fn is_live(&self) -> bool {
        self.recording.as_ref().is_some_and(Recording::is_live)
    }

    /// The entries and their tags.
    pub(super) fn take(&mut self) -> (Events, Tags) {
        self.last = None;
        (std::mem::take(&mut self.events), std::mem::take(&mut self.tags))
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

impl TraceSink for Tape {
    fn record(&mut self, entry: TraceEntry) {
        // What is told of a run and what is recorded of it have one time.
        let time_us = match &mut self.recording {
            Some(recording) => recording.record(entry),
            None => self.now_us,
        };
        if self.left_out > 0 || self.events.len() >= limits::LIVE_RUN_EVENTS && self.is_live() {
            self.left_out += 1;
            return;
        }
        let TraceEntry { action, address, size, stream, pool, stack } = entry;
        let tag = self.tag(stream, pool);
        self.events.push(Event { action, address: Address(address), size, time_us, tag, stack });
    }
}
