//! The times of one device's events: readings of the recording's clock, and of its counter between them, if it has one.
//!
//! Reading the machine's clock is most of what an event costs, and reading the processor's counter takes half of that.
//! So the clock is read once a millisecond, and the counter shows how much time has passed since. Its speed is measured
//! continuously.

use std::sync::Arc;

use super::clock::Clock;

/// The nanoseconds for which a reading of the clock is used: the most that a time can be wrong.
const SPAN_NS: u64 = 1_000_000;
/// The nanoseconds over which the counter's speed is measured, after a first time over [`SPAN_NS`].
const MEASURED_NS: u64 = 100_000_000;
/// The counts in a millisecond that are believed: from a tenth of a gigahertz to ten.
const COUNTS: std::ops::Range<u64> = 100_000..10_000_000;

/// Returns the times of one device's events.
pub(super) struct EventClock {
    clock: Arc<dyn Clock>,
    has_counter: bool,
    meter: Meter,
}

impl EventClock {
    /// Creates a clock that follows the recording's clock.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let has_counter = clock.steady_ns().is_some() && clock.counter().is_some();
        Self { clock, has_counter, meter: Meter::default() }
    }

    /// Returns the time in microseconds since the epoch.
    #[inline]
    pub(super) fn now_us(&mut self) -> i64 {
        if self.has_counter {
            match self.meter.time_ns(self.count()) {
                Some(ns) => ns / 1_000,
                None => self.read(),
            }
        } else {
            self.clock.now_us()
        }
    }

    #[cold]
    fn read(&mut self) -> i64 {
        let before = self.count();
        let Some(ns) = self.clock.steady_ns() else { return self.clock.now_us() };
        self.meter.set(before, ns, self.count());
        ns / 1_000
    }

    #[inline]
    fn count(&self) -> u64 {
        self.clock.counter().unwrap_or_default()
    }
}

/// A counter's latest reading and its speed.
#[derive(Debug, Default)]
struct Meter {
    /// The counter and the time in nanoseconds when the clock was read.
    latest: (u64, i64),
    /// The counter and the time in nanoseconds when the speed began to be measured.
    first: Option<(u64, i64)>,
    /// Counts in [`SPAN_NS`]; 0 while the speed is unknown.
    span: u64,
    /// Counts for which the latest reading is used.
    valid: u64,
    /// Nanoseconds for each count, times 2³².
    scale: u64,
}

impl Meter {
    /// Returns the time when the counter is at `count`, in nanoseconds since the epoch; `None` if the clock must be read.
    #[inline]
    fn time_ns(&self, count: u64) -> Option<i64> {
        let (at, ns) = self.latest;
        // For a counter that went back, this is more than any span.
        let passed = count.wrapping_sub(at);
        (passed < self.valid).then(|| ns + (passed.wrapping_mul(self.scale) >> 32) as i64)
    }

    /// Takes a reading of the clock, in nanoseconds since the epoch, with the counter before and after it.
    fn set(&mut self, before: u64, ns: i64, after: u64) {
        // A thread that was interrupted between the two readings doesn't know when it read the clock.
        let is_exact = after.wrapping_sub(before) < self.span.max(COUNTS.start * 10) / 1_000;
        self.valid = if is_exact { self.span } else { 0 };
        if !is_exact {
            return;
        }
        self.latest = (after, ns);
        let Some((count, began_ns)) = self.first else {
            self.first = Some(self.latest);
            return;
        };
        let counts = u128::from(after.wrapping_sub(count));
        let Some(took_ns) = ns.checked_sub(began_ns).and_then(|ns| u64::try_from(ns).ok()) else {
            return self.forget();
        };
        if took_ns < if self.span == 0 { SPAN_NS } else { MEASURED_NS } {
            return;
        }
        let span = u64::try_from(counts * u128::from(SPAN_NS) / u128::from(took_ns)).unwrap_or(u64::MAX);
        if !COUNTS.contains(&span) {
            return self.forget();
        }
        (self.span, self.valid, self.first) = (span, span, Some(self.latest));
        self.scale = ((u128::from(took_ns) << 32) / counts) as u64;
    }

    /// Starts measuring the speed again: the counter or the clock has jumped.
    fn forget(&mut self) {
        *self = Self { first: Some(self.latest), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::clock::{ManualClock, MonotonicClock};
    use super::*;

    const START_NS: i64 = 1_700_000_000_000_000_000;

    /// A counter at three gigahertz, and a clock, both read after `ns` nanoseconds.
    fn set(meter: &mut Meter, ns: u64) {
        meter.set(7 + ns * 3 - 60, START_NS + ns as i64, 7 + ns * 3);
    }

    #[test]
    fn between_two_readings_the_counter_tells_the_time() {
        let mut meter = Meter::default();
        set(&mut meter, 1_000);
        assert_eq!(meter.time_ns(7 + 3_300), None, "its speed is unknown");
        set(&mut meter, 900_000);
        assert_eq!(meter.time_ns(7 + 3 * 900_300), None, "its speed is measured for a millisecond");
        set(&mut meter, 1_200_000);
        assert!(meter.time_ns(7 + 3 * 1_200_300).is_some());
        set(&mut meter, 200_000_000);
        for passed in [0, 300, 999_000] {
            let measured = meter.time_ns(7 + 3 * (200_000_000 + passed)).map(|ns| ns - START_NS - 200_000_000);
            assert!(
                measured.is_some_and(|ns| (passed as i64 - 2..=passed as i64).contains(&ns)),
                "{passed}: {measured:?}"
            );
        }
        assert_eq!(meter.time_ns(7 + 3 * 201_000_001), None, "the reading is too old");
        assert_eq!(meter.time_ns(7 + 3 * 199_999_999), None, "the counter went back");
    }

    #[test]
    fn a_reading_that_took_long_is_not_used() {
        let mut meter = Meter::default();
        set(&mut meter, 1_000);
        set(&mut meter, 200_000_000);
        let now = 7 + 3 * 202_000_000;
        meter.set(now - 3 * 50_000, START_NS + 201_950_000, now);
        assert_eq!(meter.time_ns(now + 30), None);
        set(&mut meter, 203_000_000);
        assert!(meter.time_ns(7 + 3 * 203_000_500).is_some());
    }

    #[test]
    fn after_a_jump_the_speed_is_measured_anew() {
        // The counter starts again, stops, or the clock goes back.
        for (count, ns) in [(60, 400_000_000), (7 + 3 * 200_000_000, 400_000_000), (7 + 3 * 400_000_000, 100_000_000)] {
            let mut meter = Meter::default();
            set(&mut meter, 1_000);
            set(&mut meter, 200_000_000);
            meter.set(count - 60, START_NS + ns, count);
            assert_eq!(meter.time_ns(count + 300), None, "{count} {ns}");
            // It counts as before from here on.
            let later = |passed: u64| count + 3 * passed;
            meter.set(later(150_000_000) - 60, START_NS + ns + 150_000_000, later(150_000_000));
            let measured = meter.time_ns(later(150_000_400)).map(|measured| measured - START_NS - ns - 150_000_000);
            assert!(measured.is_some_and(|ns| (398..=400).contains(&ns)), "{count} {ns}: {measured:?}");
        }
    }

    /// The machine's clock, whose counter is the clock itself, three times as fast.
    struct Counting(MonotonicClock);

    impl Clock for Counting {
        fn now_us(&self) -> i64 {
            self.0.now_us()
        }

        fn steady_ns(&self) -> Option<i64> {
            self.0.steady_ns()
        }

        fn counter(&self) -> Option<u64> {
            self.0.steady_ns().map(|ns| ns as u64 * 3)
        }

        fn name(&self) -> &'static str {
            self.0.name()
        }
    }

    #[test]
    fn a_real_clock_is_followed() {
        let clock = Arc::new(Counting(MonotonicClock::new()));
        let mut events = EventClock::new(Arc::<Counting>::clone(&clock));
        let (began, mut previous, mut counted) = (Instant::now(), i64::MIN, 0_u64);
        while began.elapsed() < Duration::from_millis(300) {
            let (before, time, after) = (clock.now_us(), events.now_us(), clock.now_us());
            // The time lies between the readings before and after it, within two microseconds of rounding.
            assert!(time >= before - 2 && time <= after + 2, "{before} {time} {after}");
            assert!(time >= previous, "{time} after {previous}");
            previous = time;
            counted += u64::from(events.meter.valid > 0);
        }
        assert!(counted > 0, "the counter was never used");
    }

    #[test]
    fn a_clock_that_is_set_is_always_read() {
        let clock = Arc::new(ManualClock::new(5));
        let mut events = EventClock::new(Arc::<ManualClock>::clone(&clock));
        assert_eq!(events.now_us(), 5);
        clock.set(3);
        assert_eq!((events.now_us(), events.has_counter), (3, false));
    }
}
