//! How long to wait before the next connection.

use std::time::Duration;

use trace::limits::PublishLimits;

/// Exponential back-off with full jitter: a random time between 0 and a bound that doubles. The ranks of a job, which
/// all lose a server at the same moment, therefore do not all return at the same moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    base_millis: u64,
    cap_millis: u64,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(super) fn new(limits: &PublishLimits, seed: u64) -> Self {
        let PublishLimits { backoff_millis, backoff_cap_millis, .. } = *limits;
        // The generator below would never leave 0.
        Self { base_millis: backoff_millis, cap_millis: backoff_cap_millis, failures: 0, random: seed | 1 }
    }

    /// Starts again with the shortest bound, after the server has acknowledged something.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the time to wait after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let doubled = self.base_millis.saturating_mul(1 << self.failures.min(32));
        let bound = doubled.min(self.cap_millis);
        self.failures = self.failures.saturating_add(1);
        // Xorshift is good enough to spread clients.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        Duration::from_millis(self.random % (bound + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap_and_every_time_below_it_occurs() {
        let limits = PublishLimits::default();
        let bounds = [500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000, 4_000, 4_000];
        let mut largest = [0; 9];
        let mut smallest = [u64::MAX; 9];
        for seed in 0..2_000 {
            let mut backoff = Backoff::new(&limits, u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
            for _ in 0..40 {
                backoff.next();
            }
            backoff.reset();
            for (i, bound) in bounds.into_iter().enumerate() {
                let millis = backoff.next().as_millis() as u64;
                assert!(millis <= bound, "{millis} ms after {i} failures");
                largest[i] = largest[i].max(millis * 100 / bound);
                smallest[i] = smallest[i].min(millis * 100 / bound);
            }
        }
        assert!(largest.iter().all(|&percent| percent > 90), "{largest:?}");
        assert!(smallest.iter().all(|&percent| percent < 10), "{smallest:?}");
    }
}
