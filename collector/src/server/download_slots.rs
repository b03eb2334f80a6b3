//! Slots for the threads or the memory of downloads.
//!
//! A download holds its share until everything was handed to its connection, so a client that doesn't read would keep it.
//! When no slot is free, a download whose client has read nothing for some seconds gives way, and the newcomer waits
//! for a moment. A client that reads is never interrupted, however slow it is: [a pace](super::pace) limits that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use trace::limits::ServerLimits;

use super::connection_slots::ConnectionSlot;

/// The time between two looks for a download that gives way.
const RETRY: Duration = Duration::from_millis(100);

/// The slots.
#[derive(Debug)]
pub(super) struct DownloadSlots {
    all: usize,
    free: Arc<Semaphore>,
    holders: Arc<Mutex<Holders>>,
    /// The silence after which a download gives way.
    stall: Duration,
    /// How long a newcomer waits.
    turn: Duration,
}

/// The downloads that hold a share.
#[derive(Debug, Default)]
struct Holders {
    next: u64,
    connections: BTreeMap<u64, Weak<ConnectionSlot>>,
}

/// Slots that a download holds, returned when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    holders: Arc<Mutex<Holders>>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl DownloadSlots {
    /// Creates slots.
    pub(super) fn new(all: usize, limits: &ServerLimits) -> Self {
        let all = all.clamp(1, u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Self {
            all,
            free: Arc::new(Semaphore::new(all)),
            holders: Arc::default(),
            stall: Duration::from_secs(limits.stall_seconds),
            turn: Duration::from_secs(limits.turn_seconds),
        }
    }

    /// Takes an amount for the download of a connection, at most all of them. Returns `None` if too little became free
    /// in time.
    pub(super) async fn take(&self, amount: usize, connection: Option<&Arc<ConnectionSlot>>) -> Option<Share> {
        // Clamped to all, which is one of these numbers.
        let amount = u32::try_from(amount.clamp(1, self.all)).unwrap_or(u32::MAX);
        let permit = match Arc::clone(&self.free).try_acquire_many_owned(amount) {
            Ok(permit) => permit,
            Err(_) => self.wait(amount).await?,
        };
        let mut holders = lock(&self.holders);
        let number = holders.next;
        holders.next += 1;
        holders.connections.insert(number, connection.map(Arc::downgrade).unwrap_or_default());
        drop(holders);
        Some(Share { holders: Arc::clone(&self.holders), number, _permit: permit })
    }

    async fn wait(&self, amount: u32) -> Option<OwnedSemaphorePermit> {
        let until = Instant::now() + self.turn;
        let mut free = std::pin::pin!(Arc::clone(&self.free).acquire_many_owned(amount));
        while Instant::now() < until {
            self.close_stalled();
            if let Ok(permit) = timeout(RETRY, &mut free).await {
                return permit.ok();
            }
        }
        None
    }

    /// Closes the connection whose client has read nothing for longest, and for too long.
    fn close_stalled(&self) {
        let mut connections: Vec<_> = lock(&self.holders).connections.values().filter_map(Weak::upgrade).collect();
        connections.retain(|connection| connection.waits_for().is_some_and(|waits| waits >= self.stall));
        if let Some(connection) = connections.iter().max_by_key(|connection| connection.waits_for()) {
            connection.close();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        lock(&self.holders).connections.remove(&self.number);
    }
}

fn lock(holders: &Mutex<Holders>) -> MutexGuard<'_, Holders> {
    holders.lock().unwrap_or_else(PoisonError::into_inner)
}
