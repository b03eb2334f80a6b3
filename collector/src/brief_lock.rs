//! A mutex that is held for moments only.
//!
//! Every route and every acknowledgement takes such locks, also on the threads that serve sockets. If one were held while a
//! disk or an object store is asked, the whole server would wait as long. So whatever asks one calls [`assert_none_held`].

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex whose guard must be dropped before a file or an object is read or written. A thread that panics while it holds
/// the lock leaves a value that is used on: every change of it is complete at every moment.
#[derive(Debug, Default)]
pub(crate) struct BriefLock<T>(Mutex<T>);

impl<T> BriefLock<T> {
    /// Creates the lock of a value.
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held::add();
        BriefGuard(guard)
    }
}

/// Access to the value of a [`BriefLock`].
#[derive(Debug)]
pub(crate) struct BriefGuard<'a, T>(MutexGuard<'a, T>);

impl<T> Deref for BriefGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for BriefGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for BriefGuard<'_, T> {
    fn drop(&mut self) {
        held::remove();
    }
}

/// Panics in a debug build if this thread holds a [`BriefLock`]: it is about to wait for a disk or a network.
#[track_caller]
pub(crate) fn assert_none_held() {
    held::assert_none();
}

#[cfg(debug_assertions)]
mod held {
    use std::cell::Cell;

    thread_local! {
        /// How many locks this thread holds.
        static HELD: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn add() {
        HELD.set(HELD.get() + 1);
    }

    pub(super) fn remove() {
        HELD.set(HELD.get().saturating_sub(1));
    }

    #[track_caller]
    pub(super) fn assert_none() {
        assert_eq!(HELD.get(), 0, "a lock that routes take is held while a disk or a network is asked");
    }
}

#[cfg(not(debug_assertions))]
mod held {
    pub(super) const fn add() {}

    pub(super) const fn remove() {}

    pub(super) const fn assert_none() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::files::{Files, MemoryFiles};

    #[test]
    fn a_disk_is_asked_only_while_no_brief_lock_is_held() {
        let (lock, other, files) = (BriefLock::new(1), BriefLock::new(2), MemoryFiles::default());
        {
            let (mut one, two) = (lock.lock(), other.lock());
            *one += *two;
        }
        assert!(files.list("wal").unwrap().is_empty());
        let asked = std::panic::catch_unwind(|| {
            let _held = lock.lock();
            let _ = files.list("wal");
        });
        assert_eq!(asked.is_err(), cfg!(debug_assertions));
        // The guard was dropped by the panic.
        assert!(files.list("wal").unwrap().is_empty());
        assert_eq!(*lock.lock(), 3);
    }
}
