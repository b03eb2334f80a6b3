//! Pauses in reading from a collector that exceeds its quota of events.

use std::time::{Duration, Instant};

/// The pauses of one collector. After each of them one batch is read, however long the debt of its token takes: a collector
/// that gets no answer would connect again and again.
#[derive(Debug, Default)]
pub struct Pauses {
    until: Option<Instant>,
    /// Whether a pause has passed and no batch arrived since.
    is_due: bool,
}

impl Pauses {
    /// Returns the rest of the pause; `None` if the collector is to be read. `wait` counts what was used and returns how long
    /// the next pause is.
    pub fn rest(&mut self, now: Instant, wait: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
        if let Some(until) = self.until {
            if now < until {
                return Some(until - now);
            }
            (self.until, self.is_due) = (None, true);
        }
        if self.is_due {
            return None;
        }
        let wait = wait()?;
        self.until = Some(now + wait);
        Some(wait)
    }

    /// Notes that a batch arrived.
    pub fn note_batch(&mut self) {
        self.is_due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_batch_is_read_after_each_pause() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let ten = || Some(Duration::from_secs(10));
        assert_eq!(pauses.rest(at(0), || None), None);
        assert_eq!(pauses.rest(at(0), ten), ten());
        // Something else happened meanwhile.
        assert_eq!(pauses.rest(at(4), || panic!("a pause was begun already")), Some(Duration::from_secs(6)));
        // A batch may come in several parts.
        for seconds in [10, 11, 12] {
            assert_eq!(pauses.rest(at(seconds), ten), None);
        }
        pauses.note_batch();
        assert_eq!(pauses.rest(at(12), ten), ten());
    }
}
