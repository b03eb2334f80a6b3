//! When the page gets a new state, and when a lost connection is tried again.

use trace::order::Within;

/// Minimum milliseconds between two states: fifteen a second look like movement.
const LEAST_MS: f64 = 66.0;
/// Maximum milliseconds between two states, however long one takes.
const MOST_MS: f64 = 2_000.0;
/// The share of the worker's time for reading; the rest is for answering.
const SHARE: f64 = 0.4;

/// Seconds before the first attempt to reconnect.
const FIRST_TRY: f64 = 1.0;
/// Maximum seconds between two attempts.
const LAST_TRY: f64 = 30.0;

/// Returns the milliseconds to wait after `spent_ms` milliseconds of reading.
pub fn rest_ms(spent_ms: f64) -> f64 {
    (spent_ms / SHARE - spent_ms).within(LEAST_MS, MOST_MS)
}

/// Returns the seconds to wait before attempt number `tries` (from 0). `chance` (0 to 1) picks from the upper half of a
/// bound that doubles with each attempt, so that pages that lost the same server don't reconnect all at once.
pub fn retry_seconds(tries: u32, chance: f64) -> u32 {
    let bound = (FIRST_TRY * f64::from(tries.min(10)).exp2()).min(LAST_TRY);
    (bound * (0.5 + chance.within(0.0, 1.0) / 2.0)).ceil() as u32
}

/// The difference between the clocks of collector and browser that is not corrected, in microseconds: clocks that are
/// synchronized over the network differ by a few milliseconds.
const TOLERATED_US: i64 = 2_000_000;

/// The difference between this browser's clock and the collector's, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockOffset {
    least: Option<i64>,
}

impl ClockOffset {
    /// Learns from a batch that was sent at `sent_us` by the collector's clock and arrived at `now_us` by this one.
    pub fn observe(&mut self, sent_us: i64, now_us: i64) {
        let apart = now_us.saturating_sub(sent_us);
        self.least = Some(self.least.map_or(apart, |least| least.min(apart)));
    }

    /// Returns 0 if the clocks agree, else the smallest difference that was observed.
    pub fn us(self) -> i64 {
        self.least.filter(|least| least.saturating_abs() > TOLERATED_US).unwrap_or(0)
    }
}

/// Returns the age of what is shown, in microseconds by the collector's clock: the time since its newest event. For a job
/// whose time is not that of clocks (a simulated device has its own), the time since it was sent.
pub fn lag_us(now_us: i64, newest_us: Option<i64>, sent_us: Option<i64>) -> Option<i64> {
    let (newest, sent) = (newest_us?, sent_us?);
    let is_simulated = sent.saturating_sub(newest).saturating_abs() > SIMULATED_US;
    Some(now_us.saturating_sub(if is_simulated { sent } else { newest }).max(0))
}

/// Events that are older than this when they are sent have simulated times: no event waits for so long.
const SIMULATED_US: i64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_takes_four_tenths_of_the_time_at_most() {
        for (spent, rest) in [(0.0, 66.0), (30.0, 66.0), (60.0, 90.0), (400.0, 600.0), (1e9, 2_000.0)] {
            assert!((rest_ms(spent) - rest).abs() < 1e-6, "{spent}");
        }
    }

    #[test]
    fn attempts_become_rarer() {
        let bounds: Vec<u32> = (0..8).map(|tries| retry_seconds(tries, 1.0)).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 30, 30, 30]);
        let least: Vec<u32> = (0..8).map(|tries| retry_seconds(tries, 0.0)).collect();
        assert_eq!(least, [1, 1, 2, 4, 8, 15, 15, 15]);
        assert_eq!(retry_seconds(u32::MAX, 7.0), 30);
    }

    #[test]
    fn the_age_is_that_of_the_newest_event() {
        let (now, hour) = (10_000_000_000, 3_600_000_000);
        for (newest, sent, want) in [
            (None, None, None),
            (Some(now - 400), Some(now - 300), Some(400)),
            (Some(now + 5), Some(now), Some(0)),
            (Some(now - hour), Some(now - 300), Some(300)),
            (Some(now + hour), Some(now - 300), Some(300)),
        ] {
            assert_eq!(lag_us(now, newest, sent), want, "{newest:?} {sent:?}");
        }
    }

    #[test]
    fn clocks_are_corrected_only_if_they_are_far_apart() {
        let offset = |seen: &[(i64, i64)]| {
            let mut offset = ClockOffset::default();
            seen.iter().for_each(|(sent, now)| offset.observe(*sent, *now));
            offset.us()
        };
        assert_eq!(offset(&[]), 0);
        assert_eq!(offset(&[(0, 300_000), (1_000_000, 1_040_000)]), 0);
        assert_eq!(offset(&[(0, 3_600_300_000), (1_000_000, 3_601_040_000)]), 3_600_040_000);
        assert_eq!(offset(&[(3_600_000_000, 0), (3_601_000_000, 1_500_000)]), -3_600_000_000);
    }
}
