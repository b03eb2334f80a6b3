//! The thread at the other end of the queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use rtrb::Consumer;
use shared::format::EventColumns;
use shared::limits::CHUNK_EVENTS;
use shared::trace::{Annotation, Event, Sample, Tag, TagId};
use shared::units::{Address, PoolId, Stream};

use super::clock::Clock;
use super::handle::{DeviceSegments, Note, RecorderStats};
use super::lane::Lane;
use super::pen::{Counts, Pen};
use super::room::Room;
use super::sink::Item;

/// How long the writer rests when nothing came: the queue holds far more than comes in that time, and waking up is most
/// of what a recorder costs a job that is not busy.
const REST: Duration = Duration::from_millis(5);

/// A device, as the writer sees it.
pub(super) struct Source {
    device: i64,
    queue: Consumer<Item>,
    lane: Arc<Lane>,
    columns: EventColumns,
    /// The sequence number of the next event that is written.
    next: u64,
    /// What the queue's end lost and gaps were written of, by action.
    told: Counts,
    /// Events that came while the output had no room, by action: told of by one gap, once there is room again.
    refused: Counts,
    /// The tag of the latest event: most have that of the one before.
    tag: Option<(Stream, PoolId, TagId)>,
}

impl Source {
    pub(super) fn new(device: i64, queue: Consumer<Item>, lane: Arc<Lane>) -> Self {
        let columns = EventColumns::default();
        Self { device, queue, lane, columns, next: 0, told: Counts::default(), refused: Counts::default(), tag: None }
    }

    /// Takes what is in the queue, at most as much as a chunk has room for. How much that was.
    fn drain(&mut self, pen: &mut Pen, room: &mut Room) -> usize {
        let count = self.queue.slots().min(CHUNK_EVENTS.saturating_sub(self.columns.len()).max(1));
        if count == 0 {
            return 0;
        }
        let has_room = pen.has_room(room);
        if has_room {
            // What was refused comes before what is in the queue now.
            self.tell_refused(pen);
        }
        let Self { device, queue, lane, columns, next, told, refused, tag } = self;
        let Ok(chunk) = queue.read_chunk(count) else { return 0 };
        for item in chunk {
            match item {
                Item::Event { entry, .. } if !has_room => {
                    pen.events(*device, next, columns);
                    if let Some(count) = refused.get_mut(entry.action as usize) {
                        *count += 1;
                    }
                }
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
                    add(told, counts);
                    if has_room {
                        pen.gap(*device, next, counts);
                    } else {
                        add(refused, counts);
                    }
                }
                Item::State => {
                    let segments = lane.take_state();
                    if let Some(segments) = segments.filter(|_| has_room) {
                        pen.events(*device, next, columns);
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

    /// Writes what was refused, as one gap.
    fn tell_refused(&mut self, pen: &mut Pen) {
        let counts = std::mem::take(&mut self.refused);
        pen.gap(self.device, &mut self.next, counts);
    }

    /// Writes what was lost since the last event that found room: no later one told of it.
    fn last_gap(&mut self, pen: &mut Pen) {
        let mut rest = self.lane.lost();
        for (count, told) in rest.iter_mut().zip(self.told) {
            *count = count.saturating_sub(told);
        }
        // One gap with what the output had no room for: nothing lies between the two.
        add(&mut rest, std::mem::take(&mut self.refused));
        pen.gap(self.device, &mut self.next, rest);
    }
}

fn add(sums: &mut Counts, counts: Counts) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// What the thread works with.
pub(super) struct Thread {
    pub(super) sources: Vec<Source>,
    pub(super) notes: Receiver<(i64, Note)>,
    pub(super) flushes: Receiver<SyncSender<()>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) interval: Duration,
    pub(super) room: Room,
    pub(super) pen: Pen,
}

/// What came of one device beside events.
struct Notes {
    device: i64,
    marks: Vec<Annotation>,
    samples: Vec<Sample>,
}

impl Thread {
    /// Works until it is told to stop and nothing is left; then ends the file with the segments that `end` holds.
    pub(super) fn run(mut self, end: &Receiver<Vec<DeviceSegments>>) -> RecorderStats {
        let mut flushed = Instant::now();
        loop {
            // Asked before the queues are emptied, so that all that was recorded before is in them.
            let is_last = self.stop.load(Ordering::Acquire);
            let taken: usize = self.sources.iter_mut().map(|source| source.drain(&mut self.pen, &mut self.room)).sum();
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
            // What comes meanwhile is not waited for: at most what the queues hold now was there before.
            let mut before: usize = self.sources.iter().map(|source| source.queue.slots()).sum();
            while before > 0 {
                let drain = |source: &mut Source| source.drain(&mut self.pen, &mut self.room);
                let taken: usize = self.sources.iter_mut().map(drain).sum();
                before = if taken == 0 { 0 } else { before.saturating_sub(taken) };
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
        let mut notes: Vec<Notes> = Vec::new();
        for (device, note) in self.notes.try_iter() {
            let i = notes.iter().position(|notes| notes.device == device).unwrap_or_else(|| {
                notes.push(Notes { device, marks: Vec::new(), samples: Vec::new() });
                notes.len() - 1
            });
            match note {
                Note::Mark(mark) => notes[i].marks.push(mark),
                Note::Sample(sample) => notes[i].samples.push(sample),
            }
        }
        for Notes { device, marks, samples } in &notes {
            self.pen.marks(*device, marks);
            self.pen.statistics(*device, samples);
        }
        self.pen.hand_out();
    }
}
