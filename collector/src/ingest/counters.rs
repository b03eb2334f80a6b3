//! Counters for the server's metrics.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wire::Code;

/// Counts since the server started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Batches stored.
    pub batches: Count,
    /// Batches that had been stored before.
    pub repeated: Count,
    /// Bytes of chunks stored.
    pub bytes: Count,
    /// Events stored.
    pub events: Count,
    /// Requests that failed because memory ran out.
    pub ooms: Count,
    /// Syncs to the disk.
    pub syncs: Count,
    /// Microseconds spent in syncs.
    pub sync_micros: Count,
    /// Times that a viewer's queue on the bus overflowed.
    pub lagged: Count,
    /// Times that batches were skipped for a viewer.
    pub skipped: Count,
    /// Viewers disconnected because they read nothing.
    pub stuck: Count,
    /// Bytes sent to viewers.
    pub sent_bytes: Count,
    refused: Mutex<Vec<(Code, u64)>>,
}

/// A counter that several threads add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the count.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Counts a refused collector or viewer.
    pub fn refuse(&self, code: Code) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => refused.push((code, 1)),
        }
    }

    /// Returns the number of refusals by code.
    pub fn refused(&self) -> Vec<(Code, u64)> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a sync.
    pub fn synced(&self, took: Duration) {
        self.syncs.add(1);
        self.sync_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}
