//! The thread that reads the queues and writes the recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use format::EventColumns;
use rtrb::Consumer;
use trace::event::Action;
use trace::frames::StrId;
use trace::limits::CHUNK_EVENTS;
use trace::units::{Address, PoolId, Stream};
use trace::{Annotation, Event, OutsideSample, Sample, Tag, TagId};

use super::backpressure::Backpressure;
use super::chunk_writer::{ChunkWriter, Counts};
use super::clock::Clock;
use super::handle::{DeviceSegments, Note, RecorderStats};
use super::side_channel::SideChannel;
use super::sink::Item;

/// How long the writer sleeps when the queues are empty. A queue holds far more than arrives in that time, and waking
/// up is most of what a recorder costs a job that is not busy.
const IDLE_SLEEP: Duration = Duration::from_millis(5);

/// The writer's end of one device's queue.
pub(super) struct DeviceQueue {
    device: i64,
    queue: Consumer<Item>,
    side: Arc<SideChannel>,
    columns: EventColumns,
    /// The sequence number of the next event to write.
    next: u64,
    /// Events that the sink lost and that are written as lost, by action.
    reported: Counts,
    /// Events that arrived while the output had no room, by action. They are written as one loss once it has room.
    refused: Counts,
    /// The tag of the latest event: most events have the tag of the one before.
    tag: Option<(Stream, PoolId, TagId)>,
    /// The text that the job attaches to events.
    metadata: StrId,
    /// Whether the recording has the device. A device that the process does not use is left out.
    is_open: bool,
    /// Marks that were made before the device was used.
    marks: Vec<Annotation>,
}

/// The most marks that are kept for a device until it is used; each has 16 bytes.
const WAITING_MARKS: usize = 1 << 16;

impl DeviceQueue {
    pub(super) fn new(device: i64, queue: Consumer<Item>, side: Arc<SideChannel>, is_open: bool) -> Self {
        let (columns, reported, refused) = (EventColumns::default(), Counts::default(), Counts::default());
        let (tag, metadata, marks) = (None, StrId::default(), Vec::new());
        Self { device, queue, side, columns, next: 0, reported, refused, tag, metadata, is_open, marks }
    }

    /// Adds the device to the recording, without segments, if it is not there yet.
    fn open(&mut self, writer: &mut ChunkWriter) {
        if std::mem::replace(&mut self.is_open, true) {
            return;
        }
        writer.write_segments(self.device, 0, &[]);
        let marks = std::mem::take(&mut self.marks);
        if !marks.is_empty() {
            writer.write_marks(self.device, &marks);
        }
    }

    /// Keeps marks until the device is used. Returns how many were too many.
    fn keep_marks(&mut self, marks: &[Annotation]) -> u64 {
        let room = WAITING_MARKS.saturating_sub(self.marks.len()).min(marks.len());
        self.marks.extend(marks.iter().take(room));
        (marks.len() - room) as u64
    }

    /// Reads items from the queue, at most as many as fit in a chunk, and returns their number.
    fn drain(&mut self, writer: &mut ChunkWriter, backpressure: &mut Backpressure) -> usize {
        // An item has up to two events.
        let count = self.queue.slots().min((CHUNK_EVENTS.saturating_sub(self.columns.len()) / 2).max(1));
        if count == 0 {
            return 0;
        }
        self.open(writer);
        let has_room = writer.wait_for_room(backpressure);
        if has_room {
            // Refused events came before those that are in the queue now.
            self.write_refused(writer);
        }
        let Self { device, queue, side, columns, next, reported, refused, tag, metadata, .. } = self;
        let Ok(chunk) = queue.read_chunk(count) else { return 0 };
        for item in chunk {
            match item {
                Item::Event { entry, .. } if !has_room => {
                    writer.write_events(*device, next, columns);
                    refuse(refused, entry.action);
                }
                Item::Freed { requested, .. } if !has_room => {
                    writer.write_events(*device, next, columns);
                    refuse(refused, requested.action);
                    refuse(refused, Action::FreeCompleted);
                }
                Item::Event { entry, time_us } | Item::Freed { requested: entry, time_us } => {
                    let tag = match *tag {
                        Some((stream, pool, known)) if (stream, pool) == (entry.stream, entry.pool) => known,
                        _ => {
                            let (stream, pool) = (entry.stream, entry.pool);
                            let new = writer.tags.intern(Tag {
                                stream,
                                pool: Some(pool),
                                user_metadata: *metadata,
                                ..Tag::default()
                            });
                            *tag = Some((stream, pool, new));
                            new
                        }
                    };
                    let (action, address) = (entry.action, Address(entry.address));
                    let event = Event { action, address, size: entry.size, time_us, tag, stack: entry.stack };
                    columns.push(event);
                    if matches!(item, Item::Freed { .. }) {
                        columns.push(Event { action: Action::FreeCompleted, ..event });
                    }
                }
                Item::Metadata(text) => (*metadata, *tag) = (text, None),
                // Earlier events are written first.
                Item::Lost(counts) => {
                    let counts = counts.map(u64::from);
                    writer.write_events(*device, next, columns);
                    add(reported, counts);
                    if has_room {
                        writer.write_lost(*device, next, counts);
                    } else {
                        add(refused, counts);
                    }
                }
                Item::Segments => {
                    let segments = side.pop_segments();
                    if let Some(segments) = segments.filter(|_| has_room) {
                        writer.write_events(*device, next, columns);
                        writer.write_segments(*device, *next, &segments);
                    }
                }
            }
        }
        if columns.len() + 1 >= CHUNK_EVENTS {
            writer.write_events(*device, next, columns);
            writer.flush();
        }
        count
    }

    /// Writes the refused events as one loss.
    fn write_refused(&mut self, writer: &mut ChunkWriter) {
        let counts = std::mem::take(&mut self.refused);
        writer.write_lost(self.device, &mut self.next, counts);
    }

    /// Writes the events that were lost after the last item of the queue: no later item reports them.
    fn write_last_lost(&mut self, writer: &mut ChunkWriter) {
        let mut rest = self.side.lost();
        for (count, reported) in rest.iter_mut().zip(self.reported) {
            *count = count.saturating_sub(reported);
        }
        // Together with the refused events: no event lies between the two.
        add(&mut rest, std::mem::take(&mut self.refused));
        if rest.iter().any(|&count| count > 0) {
            self.open(writer);
        }
        writer.write_lost(self.device, &mut self.next, rest);
    }
}

/// Counts an event that arrived while the output had no room.
fn refuse(refused: &mut Counts, action: Action) {
    if let Some(count) = refused.get_mut(action as usize) {
        *count += 1;
    }
}

fn add(sums: &mut Counts, counts: Counts) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// The state of the recorder's thread.
pub(super) struct RecorderThread {
    pub(super) devices: Vec<DeviceQueue>,
    pub(super) notes: Receiver<(i64, Note)>,
    pub(super) flushes: Receiver<SyncSender<()>>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) interval: Duration,
    pub(super) backpressure: Backpressure,
    pub(super) writer: ChunkWriter,
}

/// Marks and samples of one device.
struct Notes {
    device: i64,
    marks: Vec<Annotation>,
    samples: Vec<Sample>,
    outside: Vec<OutsideSample>,
}

impl RecorderThread {
    /// Runs until it is stopped and the queues are empty, then ends the recording with the segments that `end` holds.
    pub(super) fn run(mut self, end: &Receiver<Vec<DeviceSegments>>) -> RecorderStats {
        let mut flushed = Instant::now();
        loop {
            // Read before the queues are drained, so that they hold everything recorded before the stop.
            let is_last = self.stop.load(Ordering::Acquire);
            let drained = self.drain();
            if is_last && drained == 0 {
                break;
            }
            if flushed.elapsed() >= self.interval {
                self.flush();
                flushed = Instant::now();
            }
            self.answer_flushes();
            if drained == 0 {
                std::thread::park_timeout(IDLE_SLEEP.min(self.interval));
            }
        }
        self.flush();
        let segments = end.try_recv().unwrap_or_default();
        for device in &mut self.devices {
            device.write_last_lost(&mut self.writer);
            if segments.iter().any(|found| found.device == device.device && !found.segments.is_empty()) {
                device.open(&mut self.writer);
            }
        }
        if self.devices.iter().all(|device| !device.is_open)
            && let Some(first) = self.devices.first_mut()
        {
            // A recording has a device, although the process has used none.
            first.open(&mut self.writer);
        }
        for device in self.devices.iter().filter(|device| device.is_open) {
            if let Some(found) = segments.iter().find(|found| found.device == device.device) {
                self.writer.write_segments(device.device, device.next, &found.segments);
            }
        }
        self.writer.finish(self.clock.now_us());
        self.writer.stats
    }

    /// Reads from every queue and returns the number of items.
    fn drain(&mut self) -> usize {
        self.devices.iter_mut().map(|device| device.drain(&mut self.writer, &mut self.backpressure)).sum()
    }

    /// Writes everything recorded before each request to flush, and answers the requests.
    fn answer_flushes(&mut self) {
        while let Ok(done) = self.flushes.try_recv() {
            // Later items are not waited for: what was there before is at most what the queues hold now.
            let mut before: usize = self.devices.iter().map(|device| device.queue.slots()).sum();
            while before > 0 {
                let drained = self.drain();
                before = if drained == 0 { 0 } else { before.saturating_sub(drained) };
            }
            self.flush();
            // The caller may have timed out.
            let _ = done.try_send(());
        }
    }

    /// Writes all events, marks and samples that were read.
    fn flush(&mut self) {
        for device in &mut self.devices {
            self.writer.write_events(device.device, &mut device.next, &mut device.columns);
        }
        let mut notes: Vec<Notes> = Vec::new();
        for (device, note) in self.notes.try_iter() {
            let i = notes.iter().position(|notes| notes.device == device).unwrap_or_else(|| {
                notes.push(Notes { device, marks: Vec::new(), samples: Vec::new(), outside: Vec::new() });
                notes.len() - 1
            });
            match note {
                Note::Mark(mark) => notes[i].marks.push(mark),
                Note::Sample(sample) => notes[i].samples.push(sample),
                Note::Outside(sample) => notes[i].outside.push(sample),
            }
        }
        for Notes { device, marks, samples, outside } in &notes {
            if let Some(of) = self.devices.iter_mut().find(|of| of.device == *device && !of.is_open) {
                // Of an allocator without a history, samples are all there is.
                if !samples.iter().any(|sample| sample.allocated.max(sample.reserved) > 0) {
                    self.writer.stats.marks_lost += of.keep_marks(marks);
                    continue;
                }
                of.open(&mut self.writer);
            }
            self.writer.write_marks(*device, marks);
            self.writer.write_samples(*device, samples);
            self.writer.write_outside(*device, outside);
        }
        self.writer.flush();
    }
}
