//! When what came is put together, and when a lost connection is tried again.

use shared::order::Within;
/// Milliseconds between two states that are shown, at the least: some fifteen a second look like movement.
const LEAST_MS: f64 = 66.0;
/// And at the most, however long one takes.
const MOST_MS: f64 = 2_000.0;
/// Share of the worker's time that may go into taking in what comes; the rest is for questions.
const SHARE: f64 = 0.4;

/// Seconds before the first try to connect again, and at the most.
const FIRST_TRY: f64 = 1.0;
const LAST_TRY: f64 = 30.0;

/// How long to wait after so many milliseconds went into reading and putting together.
pub fn rest_ms(spent_ms: f64) -> f64 {
    (spent_ms / SHARE - spent_ms).within(LEAST_MS, MOST_MS)
}

/// Seconds to wait before try number `tries` (from 0), drawn by `chance` (0 to 1) from the upper half of a bound that
/// doubles: pages that lost the same server don't all come back at once.
pub fn retry_seconds(tries: u32, chance: f64) -> u32 {
    let bound = (FIRST_TRY * f64::from(tries.min(10)).exp2()).min(LAST_TRY);
    (bound * (0.5 + chance.within(0.0, 1.0) / 2.0)).ceil() as u32
}

/// How far the clocks of the collector and of this browser may be apart and still be believed, in microseconds: clocks
/// that are kept by the network are within some milliseconds.
const BELIEVED_US: i64 = 2_000_000;

/// What has to be taken off this browser's clock to get the collector's, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockOffset {
    least: Option<i64>,
}

impl ClockOffset {
    /// A batch came: when it was sent by the collector's clock, and when it came by this one.
    pub fn see(&mut self, sent_us: i64, now_us: i64) {
        let apart = now_us.saturating_sub(sent_us);
        self.least = Some(self.least.map_or(apart, |least| least.min(apart)));
    }

    /// The offset: none where the clocks agree, else the smallest difference that was seen.
    pub fn us(self) -> i64 {
        self.least.filter(|least| least.saturating_abs() > BELIEVED_US).unwrap_or(0)
    }
}

/// How far what is shown lies behind now, by the collector's clock: since its newest event, in microseconds. Where the
/// job's time is not that of clocks (a simulated device has its own), since what is shown was sent.
pub fn lag_us(now_us: i64, newest_us: Option<i64>, sent_us: Option<i64>) -> Option<i64> {
    let (newest, sent) = (newest_us?, sent_us?);
    let is_simulated = sent.saturating_sub(newest).saturating_abs() > SIMULATED_US;
    Some(now_us.saturating_sub(if is_simulated { sent } else { newest }).max(0))
}

/// No event waits for so long before it is sent.
const SIMULATED_US: i64 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_tenths_of_the_time_at_most() {
        for (spent, rest) in [(0.0, 66.0), (30.0, 66.0), (60.0, 90.0), (400.0, 600.0), (1e9, 2_000.0)] {
            assert!((rest_ms(spent) - rest).abs() < 1e-6, "{spent}");
        }
    }

    #[test]
    fn tries_come_ever_more_seldom() {
        let bounds: Vec<u32> = (0..8).map(|tries| retry_seconds(tries, 1.0)).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 30, 30, 30]);
        let least: Vec<u32> = (0..8).map(|tries| retry_seconds(tries, 0.0)).collect();
        assert_eq!(least, [1, 1, 2, 4, 8, 15, 15, 15]);
        assert_eq!(retry_seconds(u32::MAX, 7.0), 30);
    }

    #[test]
    fn the_lag_is_that_of_the_newest_event() {
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
    fn clocks_are_believed_unless_they_are_far_apart() {
        let offset = |seen: &[(i64, i64)]| {
            let mut offset = ClockOffset::default();
            seen.iter().for_each(|(sent, now)| offset.see(*sent, *now));
            offset.us()
        };
        assert_eq!(offset(&[]), 0);
        assert_eq!(offset(&[(0, 300_000), (1_000_000, 1_040_000)]), 0);
        assert_eq!(offset(&[(0, 3_600_300_000), (1_000_000, 3_601_040_000)]), 3_600_040_000);
        assert_eq!(offset(&[(3_600_000_000, 0), (3_601_000_000, 1_500_000)]), -3_600_000_000);
    }
}
