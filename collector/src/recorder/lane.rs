//! What the allocator's end and the writer's end of a device's queue both see.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use shared::event::Action;
use shared::trace::Segment;

/// A device's side channel. Only the cold paths touch it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// All that was ever lost, by action.
    lost: [AtomicU64; Action::ALL.len()],
    /// States on their way, in order.
    states: Mutex<VecDeque<Vec<Segment>>>,
    writer: OnceLock<Thread>,
}

impl Lane {
    pub(super) fn count_lost(&self, action: Action) {
        self.add_lost(action, 1);
    }

    pub(super) fn add_lost(&self, action: Action, count: u64) {
        if let Some(sum) = self.lost.get(action as usize) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Keeps a state until the writer comes to its place.
    pub(super) fn put_state(&self, segments: Vec<Segment>) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).push_back(segments);
    }

    pub(super) fn take_state(&self) -> Option<Vec<Segment>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// All that was lost so far, by action.
    pub(super) fn lost(&self) -> [u64; Action::ALL.len()] {
        let mut counts = [0; Action::ALL.len()];
        for (to, count) in counts.iter_mut().zip(&self.lost) {
            *to = count.load(Ordering::Relaxed);
        }
        counts
    }

    pub(super) fn set_writer(&self, writer: Thread) {
        // It is set once, by who starts the thread.
        let _ = self.writer.set(writer);
    }

    /// Rouses the writer from its rest.
    pub(super) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }
}
