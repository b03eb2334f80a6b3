//! How fast a run goes that somebody watches, and when it ends early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sleeping is not exact to less than this, so nothing shorter is slept.
const GRAIN: Duration = Duration::from_millis(1);
/// A run that is behind by more, because the machine is busy, does not hurry after it.
const BEHIND: Duration = Duration::from_millis(200);

/// So many events a second of wall time, until somebody has seen enough.
pub struct Pace {
    /// The time of one event; none is as fast as can be.
    each: Option<Duration>,
    /// When the next event is due.
    due: Option<Instant>,
    /// Set from outside to end the run.
    stop: Arc<AtomicBool>,
}

impl Pace {
    /// `rate` events a second, 0 for as many as there are; until `stop` is set.
    pub fn new(rate: u64, stop: Arc<AtomicBool>) -> Self {
        let each = (rate > 0).then(|| Duration::from_secs_f64(1.0 / rate as f64));
        Self { each, due: None, stop }
    }

    /// An event has come.
    pub(super) fn count(&mut self) {
        if let (Some(each), Some(due)) = (self.each, &mut self.due) {
            *due += each;
        }
    }

    /// Waits until the next event is due. False when there is to be none any more.
    pub(super) fn wait(&mut self) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        if self.each.is_none() {
            return true;
        }
        let now = Instant::now();
        let due = self.due.get_or_insert(now);
        if now > *due + BEHIND {
            *due = now;
        }
        // In pieces: the end may be asked for while an event is not due for long.
        while let left = due.saturating_duration_since(Instant::now())
            && left >= GRAIN
        {
            std::thread::sleep(left.min(BEHIND));
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_the_rate_and_end_when_they_should() {
        let stop = Arc::new(AtomicBool::new(false));
        for (rate, events, least) in [(1_000, 50, 45), (50_000, 2_000, 35), (0, 1_000_000, 0)] {
            let mut pace = Pace::new(rate, Arc::clone(&stop));
            let start = Instant::now();
            for _ in 0..events {
                assert!(pace.wait());
                pace.count();
            }
            // A busy machine may take longer, never less.
            assert!(start.elapsed() >= Duration::from_millis(least), "{rate}: {:?}", start.elapsed());
        }
        let mut slow = Pace::new(1, Arc::clone(&stop));
        assert!(slow.wait());
        slow.count();
        let setter = Arc::clone(&stop);
        let start = Instant::now();
        std::thread::spawn(move || setter.store(true, Ordering::Relaxed));
        assert!(!slow.wait() && !slow.wait() && start.elapsed() < Duration::from_secs(1));
    }
}
