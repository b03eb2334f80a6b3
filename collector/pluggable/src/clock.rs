//! The machine's clock and the processor's counter, which takes half the time to read.

use recorder::{Clock, MonotonicClock};

/// A monotonic clock that has the processor's counter, where that can be trusted.
#[derive(Debug)]
pub struct CountingClock {
    clock: MonotonicClock,
    has_counter: bool,
}

impl CountingClock {
    /// Creates a clock that is anchored to the epoch now.
    pub fn new() -> Self {
        Self { clock: MonotonicClock::new(), has_counter: is_counter_trusted() }
    }
}

impl Default for CountingClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for CountingClock {
    fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    fn steady_ns(&self) -> Option<i64> {
        self.clock.steady_ns()
    }

    #[inline]
    fn counter(&self) -> Option<u64> {
        self.has_counter.then(counter)
    }

    fn name(&self) -> &'static str {
        self.clock.name()
    }
}

/// Returns the processor's counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux allows it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns 0: the counters of other processors are not used.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    0
}

/// Returns whether the counter runs evenly and is the same on all cores. Linux watches that, and uses no other clock then.
fn is_counter_trusted() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64") && std::fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_never_goes_back() {
        let clock = CountingClock::new();
        let counts: Vec<_> = (0..1_000).map(|_| clock.counter()).collect();
        assert!(counts.is_sorted() && counts.iter().all(|count| count.is_some() == clock.has_counter));
    }
}
