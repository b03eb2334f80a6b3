//! The state that the two ends of a device's queue share besides the queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use trace::Segment;
use trace::event::Action;

/// Lost events, segment lists and the writer's thread of one device. Only cold paths touch it.
#[derive(Debug, Default)]
pub(super) struct SideChannel {
    /// Events lost since the recording began, by action.
    lost: [AtomicU64; Action::ALL.len()],
    /// Segment lists in the order of their places in the queue.
    segments: Mutex<VecDeque<Vec<Segment>>>,
    writer: OnceLock<Thread>,
}

impl SideChannel {
    /// Counts lost events.
    pub(super) fn add_lost(&self, action: Action, count: u64) {
        if let Some(sum) = self.lost.get(action as usize) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Keeps a segment list until the writer reaches its place in the queue.
    pub(super) fn push_segments(&self, segments: Vec<Segment>) {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).push_back(segments);
    }

    /// Removes and returns the oldest segment list.
    pub(super) fn pop_segments(&self) -> Option<Vec<Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Returns the events lost so far, by action.
    pub(super) fn lost(&self) -> [u64; Action::ALL.len()] {
        let mut counts = [0; Action::ALL.len()];
        for (to, count) in counts.iter_mut().zip(&self.lost) {
            *to = count.load(Ordering::Relaxed);
        }
        counts
    }

    /// Sets the thread that [`Self::wake`] wakes. Called once, when the thread is started.
    pub(super) fn set_writer(&self, writer: Thread) {
        let _ = self.writer.set(writer);
    }

    /// Wakes the writer's thread.
    pub(super) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }
}
