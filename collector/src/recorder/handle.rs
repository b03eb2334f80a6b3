//! What the one who started a recording keeps of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use shared::event::Action;
use shared::trace::{Annotation, Sample, Segment, Stage};

use super::clock::Clock;
use super::sink::WhenFull;
use super::stacks::Stacks;

/// A device's segments at a moment. Stacks are numbers of the recorder's [`Stacks`].
#[derive(Clone, Debug, Default)]
pub struct DeviceSegments {
    /// The device.
    pub device: i64,
    /// Its segments.
    pub segments: Vec<Segment>,
}

/// What a device's line of time has beside events, on its way to the writer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    Mark(Annotation),
    Sample(Sample),
}

/// What a recording came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderStats {
    /// Events that were written.
    pub events: u64,
    /// Events that found the queue full, or the output without room.
    pub lost: u64,
    /// The same by [`Action`], by its code.
    pub lost_by_action: [u64; Action::ALL.len()],
    /// Events that could not be written any more after [`Self::failure`].
    pub unwritten: u64,
    /// Marks that found their queue full.
    pub marks_lost: u64,
    /// Samples of statistics that found it full.
    pub samples_lost: u64,
    /// Stacks and texts that passed the bounds: their events are there, without them.
    pub names_refused: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Why writing stopped before the end, if it did: the disk was full, say. The file can be read up to there.
    pub failure: Option<String>,
}

/// Ends a recording, and makes marks in it. When it is dropped without [`RecorderHandle::finish`], the file is ended all
/// the same, without the segments of its end.
pub struct RecorderHandle {
    pub(super) stacks: Arc<Stacks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) notes: SyncSender<(i64, Note)>,
    pub(super) when_full: WhenFull,
    pub(super) marks_lost: AtomicU64,
    pub(super) samples_lost: AtomicU64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) end: SyncSender<Vec<DeviceSegments>>,
    pub(super) thread: Option<JoinHandle<RecorderStats>>,
    /// The process that records: the child of a fork has this handle, and not the thread.
    pub(super) process: u32,
}

impl RecorderHandle {
    /// Where stacks get their numbers.
    pub fn stacks(&self) -> &Arc<Stacks> {
        &self.stacks
    }

    /// Marks this moment on a device's line of time: the start or the end of something, or an instant. A mark
    /// that finds no room is counted, or waits, as events do ([`WhenFull`]).
    pub fn mark(&self, device: i64, name: &str, stage: Stage) {
        let annotation = Annotation { name: self.stacks.text(name), stage, time_us: self.clock.now_us() };
        if !self.note(device, Note::Mark(annotation)) {
            self.marks_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes down what a device's memory came to at a moment, as its allocator counts. A sample that finds no room is
    /// counted, or waits, as events do ([`WhenFull`]).
    pub fn statistics(&self, device: i64, sample: Sample) {
        if !self.note(device, Note::Sample(sample)) {
            self.samples_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note(&self, device: i64, note: Note) -> bool {
        match self.when_full {
            WhenFull::Count => self.notes.try_send((device, note)).is_ok(),
            WhenFull::Wait => self.notes.send((device, note)).is_ok(),
        }
    }

    /// Ends the recording: writes what was recorded before this call, the segments that are there now, and the index.
    /// The caller sees to it that no event comes any more, or that later ones may be missing.
    pub fn finish(mut self, end: Vec<DeviceSegments>) -> RecorderStats {
        // Its only message, so there is room.
        let _ = self.end.try_send(end);
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> RecorderStats {
        let Some(thread) = self.thread.take() else { return RecorderStats::default() };
        if self.process != std::process::id() {
            // There is no such thread here; to wait for it would be to wait for ever.
            return RecorderStats::default();
        }
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let mut stats = thread.join().unwrap_or_else(|_| RecorderStats {
            failure: Some("the writer's thread panicked; this is a fault of the recorder".to_owned()),
            ..RecorderStats::default()
        });
        stats.marks_lost = self.marks_lost.load(Ordering::Relaxed);
        stats.samples_lost = self.samples_lost.load(Ordering::Relaxed);
        stats.names_refused = self.stacks.refused();
        stats
    }
}

impl Drop for RecorderHandle {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}
