//! What the server counts, for its metrics.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shared::wire::Code;

/// Sums since the server began.
#[derive(Debug, Default)]
pub struct Counters {
    /// Batches that were stored.
    pub batches: Count,
    /// Batches that were there already.
    pub repeated: Count,
    /// Bytes of chunks that were stored.
    pub bytes: Count,
    /// Events that were stored.
    pub events: Count,
    /// Times that something was made durable.
    pub syncs: Count,
    /// Microseconds that this took.
    pub sync_micros: Count,
    /// Times that a viewer was too slow for the bus.
    pub lagged: Count,
    /// Times that a viewer was set forward.
    pub skipped: Count,
    /// Viewers that were dropped because they took nothing.
    pub stuck: Count,
    /// Bytes sent to viewers.
    pub sent_bytes: Count,
    refused: Mutex<Vec<(Code, u64)>>,
}

/// A sum that several threads add to.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// What it has come to.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// A collector or viewer was refused.
    pub fn refuse(&self, code: Code) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => refused.push((code, 1)),
        }
    }

    /// How many were refused, by code.
    pub fn refused(&self) -> Vec<(Code, u64)> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something was made durable.
    pub fn synced(&self, took: Duration) {
        self.syncs.add(1);
        self.sync_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}
