//! The destinations of a device's events: a recording, and the history for snapshots.

use std::collections::VecDeque;
use std::sync::Arc;

use allocator::{TraceEntry, TraceSink};
use trace::frames::StackId;

use crate::{Clock, RecorderSink};

/// The newest entries of a device, as `torch.cuda.memory._record_memory_history` keeps them.
pub struct History {
    entries: VecDeque<(TraceEntry, i64)>,
    /// The most entries; older ones are dropped.
    max_entries: usize,
    keeps_stacks: bool,
    clock: Arc<dyn Clock>,
}

impl History {
    /// Creates a history of at most `max_entries`, 56 bytes each, whose memory grows with the entries.
    pub fn new(max_entries: usize, keeps_stacks: bool, clock: Arc<dyn Clock>) -> Self {
        Self { entries: VecDeque::new(), max_entries, keeps_stacks, clock }
    }

    /// Returns the entries, oldest first, each with its time in microseconds since the epoch.
    pub fn entries(&self) -> impl Iterator<Item = &(TraceEntry, i64)> {
        self.entries.iter()
    }

    fn push(&mut self, mut entry: TraceEntry, now_us: i64) {
        if !self.keeps_stacks {
            entry.stack = StackId(0);
        }
        while self.entries.len() >= self.max_entries.max(1) {
            self.entries.pop_front();
        }
        self.entries.push_back((entry, now_us));
    }
}

/// The sink of a device's allocator. Without a recording and a history, an event costs two tests.
#[derive(Default)]
pub struct EventSink {
    /// The recording, if there is one.
    pub recorder: Option<RecorderSink>,
    /// The history, if it is kept.
    pub history: Option<History>,
}

impl TraceSink for EventSink {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(entry);
        }
        if let Some(history) = &mut self.history {
            let now_us = history.clock.now_us();
            history.push(entry, now_us);
        }
    }

    #[inline]
    fn record_freed(&mut self, requested: TraceEntry) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record_freed(requested);
        }
        if let Some(history) = &mut self.history {
            let now_us = history.clock.now_us();
            history.push(requested, now_us);
            history.push(requested.completed(), now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::event::Action;
    use trace::units::{PoolId, Stream};

    use super::*;
    use crate::ManualClock;

    #[test]
    fn a_history_keeps_the_newest_entries() {
        let mut sink = EventSink::default();
        let entry = |size| TraceEntry {
            action: Action::Alloc,
            address: 512,
            size,
            stream: Stream(0),
            pool: PoolId::default(),
            stack: StackId(7),
        };
        sink.record(entry(1));
        sink.history = Some(History::new(2, false, Arc::new(ManualClock::new(5))));
        (2..=4).for_each(|size| sink.record(entry(size)));
        let history = sink.history.unwrap();
        let kept: Vec<_> = history.entries().map(|(entry, time)| (entry.size, entry.stack.0, *time)).collect();
        assert_eq!(kept, [(3, 0, 5), (4, 0, 5)]);
    }
}
