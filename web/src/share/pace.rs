//! The pace of an upload: how large its parts are, how fast it is, and when a part is sent again.

use trace::order::Within;

/// The milliseconds that a part should take: short enough that progress moves, long enough that the requests don't count.
const PART_MS: f64 = 500.0;
/// The bytes of the first part.
const FIRST_BYTES: f64 = 256.0 * 1024.0;
/// The fewest bytes of a part.
const LEAST_BYTES: f64 = 32.0 * 1024.0;
/// The share of the newest part in the rate.
const NEWEST: f64 = 0.3;
/// Seconds before a part is sent again, after each attempt that failed. After the last one, the user is asked.
const WAITS: [u32; 10] = [1, 2, 4, 8, 15, 15, 15, 15, 15, 15];

/// The pace of an upload.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    most_bytes: f64,
    part_bytes: f64,
    bytes_per_second: f64,
    failures: usize,
}

impl Pace {
    /// Creates the pace of an upload whose parts have at most this number of bytes.
    pub fn new(most_bytes: u64) -> Self {
        let most_bytes = (most_bytes as f64).max(1.0);
        Self { most_bytes, part_bytes: FIRST_BYTES.min(most_bytes), bytes_per_second: 0.0, failures: 0 }
    }

    /// Returns the bytes of the next part.
    pub fn part(&self) -> u64 {
        self.part_bytes as u64
    }

    /// Returns the rate; 0 while it is unknown.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes_per_second
    }

    /// A part has arrived.
    pub fn arrived(&mut self, bytes: u64, ms: f64) {
        self.failures = 0;
        let rate = bytes as f64 / ms.max(1.0);
        let before = self.bytes_per_second / 1e3;
        let mean = if before == 0.0 { rate } else { before + (rate - before) * NEWEST };
        self.bytes_per_second = mean * 1e3;
        let wanted = (rate * PART_MS).min(self.part_bytes * 2.0);
        self.part_bytes = wanted.within(LEAST_BYTES.min(self.most_bytes), self.most_bytes).round();
    }

    /// A part has not arrived. Returns the seconds to wait before the next attempt; `None` if there were enough.
    pub fn failed(&mut self) -> Option<u32> {
        let wait = WAITS.get(self.failures).copied();
        self.failures += 1;
        // On a bad line, small parts arrive more often.
        self.part_bytes = (self.part_bytes / 4.0).round().max(LEAST_BYTES.min(self.most_bytes));
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_up_to_what_the_server_takes() {
        let mut pace = Pace::new(4 << 20);
        for _ in 0..10 {
            assert!(pace.part() <= 4 << 20);
            pace.arrived(pace.part(), 10.0);
        }
        assert_eq!(pace.part(), 4 << 20);
        assert_eq!(Pace::new(1_000).part(), 1_000);
    }

    #[test]
    fn parts_shrink_on_a_slow_line() {
        let mut pace = Pace::new(4 << 20);
        pace.arrived(256 << 10, 10_000.0);
        assert_eq!(pace.part(), 32 << 10);
        assert!((pace.bytes_per_second() - 26_214.4).abs() < 1.0);
    }

    #[test]
    fn attempts_end_unless_something_arrives() {
        let mut pace = Pace::new(4 << 20);
        let waits: Vec<u32> = std::iter::from_fn(|| pace.failed()).collect();
        assert_eq!(waits, WAITS);
        pace.arrived(1, 1.0);
        assert_eq!(pace.failed(), Some(1));
    }
}
