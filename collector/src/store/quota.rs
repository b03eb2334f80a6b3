//! The quota of the store: bytes in use, and their limit.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{StoreError, StoreResult};

/// Bytes that are in use, and their limit.
#[derive(Debug)]
pub(super) struct Quota {
    used: AtomicU64,
    limit: u64,
}

impl Quota {
    pub(super) fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    /// Adds bytes that will be written; fails if they would exceed the limit.
    pub(super) fn reserve(&self, bytes: u64) -> StoreResult {
        let reserve = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let reserved = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        reserved.map(drop).map_err(|_| StoreError::Full)
    }

    /// Adds bytes that exist already, whatever the limit.
    pub(super) fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        let release = |used: u64| Some(used.saturating_sub(bytes));
        // Never fails: the closure always returns a value.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, release);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Checks that so many bytes would fit.
    pub(super) fn check(&self, bytes: u64) -> StoreResult {
        if self.used().saturating_add(bytes) > self.limit { Err(StoreError::Full) } else { Ok(()) }
    }
}
