//! The thread at the other end of the queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use rtrb::Consumer;
use shared::format::EventColumns;
use shared::limits::CHUNK_EVENTS;
use shared::trace::{Annotation, Event, Tag, TagId};
use shared::units::{Address, PoolId, Stream};

use super::clock::Clock;
use super::handle::{DeviceSegments, Mark, RecorderStats};
use super::lane::Lane;
use super::pen::{Counts, Pen};
use super::sink::Item;

/// How long the writer rests when nothing came: the queue holds far more than comes in that time.
const REST: Duration = Duration::from_millis(2);

/// A device, as the writer sees it.
pub(super) struct Source {
    device: i64,
    queue: Consumer<Item>,
    lane: Arc<Lane>,
    columns: EventColumns,
    /// The sequence number of the next event that is written.
    next: u64,
    /// What gaps were written of, by action.
    told: Counts,
    /// The tag of the latest event: most have that of the one before.
    tag: Option<(Stream, PoolId, TagId)>,
}

impl Source {
    pub(super) fn new(device: i64, queue: Consumer<Item>, lane: Arc<Lane>) -> Self {
        let columns = EventColumns::default();
        Self { device, queue, lane, columns, next: 0, told: Counts::default(), tag: None }
    }

    /// Takes what is in the queue, at most as much as a chunk has room for. How much that was.
    fn drain(&mut self, pen: &mut Pen) -> usize {
        let Self { device, queue, lane, columns, next, told, tag } = self;
        let count = queue.slots().min(CHUNK_EVENTS.saturating_sub(columns.len()).max(1));
        let Ok(chunk) = queue.read_chunk(count) else { return 0 };
        for item in chunk {
            match item {
                Item::Event { entry, time_us } => {
                    let tag = match *tag {
                        Some((stream, pool, known)) if (stream, pool) == (entry.stream, entry.pool) => known,
                        _ => {
                            let (stream, pool) = (entry.stream, entry.pool);
                            let new = pen.tags.intern(Tag { stream, pool: Some(pool), ..Tag::default() });
                            *tag = Some((stream, pool, new));
                            new
                        }
                    };
                    let (action, address) = (entry.action, Address(entry.address));
                    columns.push(Event { action, address, size: entry.size, time_us, tag, stack: entry.stack });
                }
                // What came before it is written before it.
                Item::Lost(counts) => {
                    let counts = counts.map(u64::from);
                    pen.events(*device, next, columns);
                    pen.gap(*device, next, counts);
                    for (sum, count) in told.iter_mut().zip(counts) {
                        *sum += count;
                    }
                }
                Item::State => {
                    pen.events(*device, next, columns);
                    if let Some(segments) = lane.take_state() {
                        pen.segments(*device, *next, &segments);
                    }
                }
            }
        }
        if columns.len() >= CHUNK_EVENTS {
            pen.events(*device, next, columns);
            pen.hand_out();
        }
        count
    }

    /// Writes what was lost since the last event that found room: no later one told of it.
    fn last_gap(&mut self, pen: &mut Pen) {
        let mut rest = self.lane.lost();
        for (count, told) in rest.iter_mut().zip(self.told) {
            *count = count.saturating_sub(told);
        }
        pen.gap(self.device, &mut self.next, rest);
    }
}

/// What the thread works with.
pub(super) struct Thread {
    pub(super) sources: Vec<Source>,
    pub(super) marks: Receiver<Mark>,
    pub(super) flushes: Receiver<SyncSender<()>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) interval: Duration,
    pub(super) pen: Pen,
}

impl Thread {
    /// Works until it is told to stop and nothing is left; then ends the file with the segments that `end` holds.
    pub(super) fn run(mut self, end: &Receiver<Vec<DeviceSegments>>) -> RecorderStats {
        let mut flushed = Instant::now();
        loop {
            // Asked before the queues are emptied, so that all that was recorded before is in them.
            let is_last = self.stop.load(Ordering::Acquire);
            let taken: usize = self.sources.iter_mut().map(|source| source.drain(&mut self.pen)).sum();
            if is_last && taken == 0 {
                break;
            }
            if flushed.elapsed() >= self.interval {
                self.flush();
                flushed = Instant::now();
            }
            self.answer_flushes();
            if taken == 0 {
                std::thread::park_timeout(REST.min(self.interval));
            }
        }
        self.flush();
        let segments = end.try_recv().unwrap_or_default();
        for source in &mut self.sources {
            source.last_gap(&mut self.pen);
            if let Some(found) = segments.iter().find(|found| found.device == source.device) {
                self.pen.segments(source.device, source.next, &found.segments);
            }
        }
        self.pen.end(self.clock.now_us());
        self.pen.stats
    }

    /// Writes all that came before each one that wants it written, and tells them.
    fn answer_flushes(&mut self) {
        while let Ok(done) = self.flushes.try_recv() {
            // What comes meanwhile is not waited for: at most what fits the queues was there before.
            let mut room: usize = self.sources.iter().map(|source| source.queue.slots()).sum();
            while room > 0 {
                let taken: usize = self.sources.iter_mut().map(|source| source.drain(&mut self.pen)).sum();
                room = if taken == 0 { 0 } else { room.saturating_sub(taken) };
            }
            self.flush();
            // Who waited too long is gone.
            let _ = done.try_send(());
        }
    }

    /// Writes all that has come.
    fn flush(&mut self) {
        for source in &mut self.sources {
            self.pen.events(source.device, &mut source.next, &mut source.columns);
        }
        let mut marks: Vec<(i64, Vec<Annotation>)> = Vec::new();
        for Mark { device, annotation } in self.marks.try_iter() {
            match marks.iter_mut().find(|(number, _)| *number == device) {
                Some((_, list)) => list.push(annotation),
                None => marks.push((device, vec![annotation])),
            }
        }
        for (device, list) in &marks {
            self.pen.marks(*device, list);
        }
        self.pen.hand_out();
    }
}
