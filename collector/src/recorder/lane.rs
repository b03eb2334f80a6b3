//! What the allocator's end and the writer's end of a device's queue both see.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

use shared::event::Action;

/// A device's side channel. Only the cold paths touch it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// All that was ever lost, by action.
    lost: [AtomicU64; Action::ALL.len()],
    writer: OnceLock<Thread>,
}

impl Lane {
    pub(super) fn count_lost(&self, action: Action) {
        if let Some(count) = self.lost.get(action as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
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
