//! A rate limit that allows bursts (a token bucket).

use std::time::{Duration, Instant};

/// How much is allowed at once, and how much more each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    pub(super) burst: f64,
    pub(super) per_second: f64,
}

/// The rest of a rate. A new one is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// The amount that was used and not regained yet, at the time `at`.
    used: f64,
    at: Option<Instant>,
}

impl Allowance {
    /// Uses one unit, or returns the time until there is one.
    pub(super) fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.regain(rate, now);
        let missing = self.used + 1.0 - rate.burst;
        if missing > 0.0 {
            return Err(after(missing, rate));
        }
        self.used += 1.0;
        Ok(())
    }

    /// Uses any amount, even if not as much is left. Returns the time until the debt is regained, if there is one.
    pub(super) fn charge(&mut self, amount: f64, rate: Rate, now: Instant) -> Option<Duration> {
        self.regain(rate, now);
        self.used += amount;
        let missing = self.used - rate.burst;
        (missing > 0.0).then(|| after(missing, rate))
    }

    fn regain(&mut self, rate: Rate, now: Instant) {
        let seconds = self.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        self.used = (self.used - seconds * rate.per_second).max(0.0);
        self.at = Some(now);
    }
}

/// The longest wait that a client is asked for. It keeps the arithmetic finite, however low a rate is.
const LONGEST_SECONDS: f64 = 3_600.0;

/// Returns the time in which an amount is regained.
fn after(amount: f64, rate: Rate) -> Duration {
    Duration::from_secs_f64((amount / rate.per_second.max(f64::MIN_POSITIVE)).min(LONGEST_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate() {
        let rate = Rate { burst: 3.0, per_second: 2.0 };
        let mut allowance = Allowance::default();
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let half = Err(Duration::from_millis(500));
        let cases = [(0, Ok(())), (0, Ok(())), (0, Ok(())), (0, half), (500, Ok(())), (500, half), (100_000, Ok(()))];
        for (millis, want) in cases {
            assert_eq!(allowance.take(rate, at(millis)), want, "{millis}");
        }
    }

    #[test]
    fn a_debt_takes_time() {
        let rate = Rate { burst: 10.0, per_second: 10.0 };
        let mut allowance = Allowance::default();
        let start = Instant::now();
        assert_eq!(allowance.charge(10.0, rate, start), None);
        assert_eq!(allowance.charge(20.0, rate, start), Some(Duration::from_secs(2)));
        assert_eq!(allowance.charge(0.0, rate, start + Duration::from_secs(2)), None);
        assert_eq!(allowance.charge(1e30, rate, start), Some(Duration::from_secs(3_600)));
    }
}
