//! The clock of a recording.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of event times. It is read while a device's lock is held, so it must be fast.
pub trait Clock: Send + Sync {
    /// Returns the time in microseconds since the epoch.
    fn now_us(&self) -> i64;

    /// Returns the time in nanoseconds since the epoch, if the clock runs by itself and evenly, so that slightly later
    /// times can be computed from it.
    fn steady_ns(&self) -> Option<i64> {
        None
    }

    /// Returns a counter that is read more quickly than the time, and runs evenly at any constant speed. A clock that
    /// returns `None` once always does.
    fn counter(&self) -> Option<u64> {
        None
    }

    /// Returns the clock's name for the recording's header.
    fn name(&self) -> &'static str;
}

/// The machine's monotonic clock, anchored to the epoch once. Later changes of the system's time do not affect it, so all
/// devices of a recording share one timeline.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    start: Instant,
    start_us: i64,
}

impl MonotonicClock {
    /// Creates a clock that is anchored to the system's present time.
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
        // In 64 bits: `Duration::as_micros` computes in 128.
        let us = elapsed.as_secs().saturating_mul(1_000_000).saturating_add(elapsed.subsec_micros().into());
        self.start_us.saturating_add(us as i64)
    }

    fn steady_ns(&self) -> Option<i64> {
        let elapsed = i64::try_from(self.start.elapsed().as_nanos()).ok()?;
        self.start_us.checked_mul(1_000)?.checked_add(elapsed)
    }

    fn name(&self) -> &'static str {
        "monotonic"
    }
}

/// A clock that only moves when it is set, for simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock at `now_us` microseconds since the epoch.
    pub fn new(now_us: i64) -> Self {
        Self(AtomicI64::new(now_us))
    }

    /// Sets the time, forward or back.
    pub fn set(&self, now_us: i64) {
        self.0.store(now_us, Ordering::Relaxed);
    }

    /// Advances the time by this many microseconds.
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
