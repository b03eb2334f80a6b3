//! The one clock of a recording.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the times of events come from. Asked while a device's lock is held: it must be quick.
pub trait Clock: Send + Sync {
    /// Microseconds since the epoch.
    fn now_us(&self) -> i64;

    /// What the header says of it.
    fn name(&self) -> &'static str;
}

/// The machine's monotonic clock, anchored to the epoch once: setting the machine's time changes nothing, and all
/// devices of a recording share one line of time.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    start: Instant,
    start_us: i64,
}

impl MonotonicClock {
    /// Anchored now.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_us: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now_us(&self) -> i64 {
        let elapsed = self.start.elapsed();
        // In 64 bits: the general conversion divides in 128.
        let us = elapsed.as_secs().saturating_mul(1_000_000).saturating_add(elapsed.subsec_micros().into());
        self.start_us.saturating_add(us as i64)
    }

    fn name(&self) -> &'static str {
        "monotonic"
    }
}

/// A clock that stands until it is set: a simulation's.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Standing at `now_us` microseconds since the epoch.
    pub fn new(now_us: i64) -> Self {
        Self(AtomicI64::new(now_us))
    }

    /// Sets it, forward or back.
    pub fn set(&self, now_us: i64) {
        self.0.store(now_us, Ordering::Relaxed);
    }

    /// Sets it forward by so many microseconds.
    pub fn advance(&self, by_us: i64) {
        self.0.fetch_add(by_us, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn name(&self) -> &'static str {
        "simulated"
    }
}
