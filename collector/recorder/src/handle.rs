//! The handle of a running recording: marks, samples, flushing, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use trace::event::Action;
use trace::{Annotation, OutsideSample, Sample, Segment, Stage};

use super::clock::Clock;
use super::sink::WhenFull;
use super::stacks::Stacks;

/// A device's segments at a moment, with stacks as numbered by the recorder's [`Stacks`].
#[derive(Clone, Debug, Default)]
pub struct DeviceSegments {
    /// The device.
    pub device: i64,
    /// Its segments.
    pub segments: Vec<Segment>,
}

/// A mark or a sample on its way to the writer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    Mark(Annotation),
    Sample(Sample),
    Outside(OutsideSample),
}

/// The result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderStats {
    /// Events written.
    pub events: u64,
    /// Events lost because the queue was full or the output had no room.
    pub lost: u64,
    /// Lost events by the code of their [`Action`].
    pub lost_by_action: [u64; Action::ALL.len()],
    /// Events that were not written after [`Self::failure`].
    pub unwritten: u64,
    /// Marks lost because their queue was full.
    pub marks_lost: u64,
    /// Samples lost because their queue was full.
    pub samples_lost: u64,
    /// Stacks and texts beyond the bounds: their events are recorded without them.
    pub names_refused: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Why writing stopped before the end, if it did: for example, the disk was full. The file is readable up to there.
    pub failure: Option<String>,
}

/// Adds marks and samples to a recording, and ends it. Dropping it without [`RecorderHandle::finish`] also ends the
/// recording, without a final list of segments.
pub struct RecorderHandle {
    pub(super) stacks: Arc<Stacks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) notes: SyncSender<(i64, Note)>,
    pub(super) when_full: WhenFull,
    pub(super) marks_lost: AtomicU64,
    pub(super) flushes: SyncSender<SyncSender<()>>,
    pub(super) samples_lost: AtomicU64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) end: SyncSender<Vec<DeviceSegments>>,
    pub(super) thread: Option<JoinHandle<RecorderStats>>,
    /// The process that records. The child of a fork has this handle but not the thread.
    pub(super) process: u32,
}

impl RecorderHandle {
    /// Returns the table that numbers stacks.
    pub fn stacks(&self) -> &Arc<Stacks> {
        &self.stacks
    }

    /// Marks this moment on a device's timeline: a start, an end, or an instant. If the queue is full, the mark is
    /// counted as lost or waits, as [`WhenFull`] says.
    pub fn mark(&self, device: i64, name: &str, stage: Stage) {
        self.mark_at(device, name, stage, self.clock.now_us());
    }

    /// Marks an earlier moment, in microseconds since the epoch, like [`Self::mark`]. It may lie before the recording.
    pub fn mark_at(&self, device: i64, name: &str, stage: Stage, time_us: i64) {
        let annotation = Annotation { name: self.stacks.text(name), stage, time_us };
        if !self.note(device, Note::Mark(annotation)) {
            self.marks_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes everything recorded before this call, and waits for that at most `timeout`. Returns whether it was written.
    pub fn flush(&self, timeout: Duration) -> bool {
        let (done, written) = mpsc::sync_channel(1);
        let Some(thread) = self.thread.as_ref().filter(|_| self.flushes.try_send(done).is_ok()) else { return false };
        thread.thread().unpark();
        written.recv_timeout(timeout).is_ok()
    }

    /// Records a sample of a device's memory totals, as its allocator counts them. If the queue is full, the sample is
    /// counted as lost or waits, as [`WhenFull`] says.
    pub fn statistics(&self, device: i64, sample: Sample) {
        if !self.note(device, Note::Sample(sample)) {
            self.samples_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a sample of the memory outside a device's allocator. If the queue is full, the sample is counted as lost
    /// or waits, as [`WhenFull`] says.
    pub fn outside(&self, device: i64, sample: OutsideSample) {
        if !self.note(device, Note::Outside(sample)) {
            self.samples_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn note(&self, device: i64, note: Note) -> bool {
        match self.when_full {
            WhenFull::Count => self.notes.try_send((device, note)).is_ok(),
            WhenFull::Wait => self.notes.send((device, note)).is_ok(),
        }
    }

    /// Ends the recording: writes what was recorded before this call, then the present segments, then the index. Events
    /// recorded during or after the call may be missing.
    pub fn finish(mut self, end: Vec<DeviceSegments>) -> RecorderStats {
        // It is the channel's only message, so it fits.
        let _ = self.end.try_send(end);
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> RecorderStats {
        let Some(thread) = self.thread.take() else { return RecorderStats::default() };
        if self.process != std::process::id() {
            // The thread does not exist in this process; waiting for it would never end.
            return RecorderStats::default();
        }
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let mut stats = thread.join().unwrap_or_else(|_| RecorderStats {
            failure: Some("the recorder's thread panicked, which is a bug".to_owned()),
            ..RecorderStats::default()
        });
        stats.marks_lost += self.marks_lost.load(Ordering::Relaxed);
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
