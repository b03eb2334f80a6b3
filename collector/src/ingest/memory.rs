//! The memory that all sessions take together while they are recorded: a budget of which each has a fair share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    used: AtomicUsize,
    users: AtomicUsize,
}

impl Memory {
    /// Creates a budget of so many bytes.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0), users: AtomicUsize::new(0) })
    }
}

/// What one session uses of the budget; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Usage {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Usage {
    /// Counts one more session, which uses nothing yet.
    pub(super) fn of(memory: &Arc<Memory>) -> Self {
        memory.users.fetch_add(1, Ordering::Relaxed);
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Sets the bytes that the session uses. Returns whether it may go on.
    ///
    /// It may unless the budget is exceeded and the session uses more than an equal share. If all are at most at their
    /// share, the budget is not exceeded, so over budget, only sessions above their equal share are refused.
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let Memory { most, used, users } = &*self.memory;
        // Adding the difference may wrap on the way, which cancels out.
        let change = bytes.wrapping_sub(self.bytes);
        let used = used.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        self.bytes = bytes;
        used <= *most || bytes <= most / users.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        self.set(0);
        self.memory.users.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_to_stop_when_the_budget_is_exceeded() {
        let memory = Memory::new(100);
        let mut usages: Vec<_> = (0..4).map(|_| Usage::of(&memory)).collect();
        // Which session uses how much, and whether it may go on.
        for (step, (i, bytes, want)) in [
            (0, 70, true),
            (1, 25, true),
            (2, 25, true),
            (0, 71, false),
            (3, 26, false),
            (3, 25, true),
            (0, 20, true),
            (1, 30, true),
            (2, 31, false),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(usages[i].set(bytes), want, "step {step}");
        }
        drop(usages);
        assert_eq!((memory.used.load(Ordering::Relaxed), memory.users.load(Ordering::Relaxed)), (0, 0));
        // One alone may use all of it.
        assert!(Usage::of(&memory).set(100) && !Usage::of(&memory).set(101));
    }
}
