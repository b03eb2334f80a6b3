//! Limits how many events a second a job produces, so that people can watch it.

use std::time::{Duration, Instant};

use super::stop_signal::StopSignal;

/// Shorter times are not slept: sleeping is less exact than that.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// A job that is further behind, because the machine is busy, does not catch up.
const MOST_BEHIND: Duration = Duration::from_millis(200);

/// Holds a job to a rate of events in wall time.
#[derive(Debug)]
pub struct Pacer {
    /// Time between two events; `None` for as fast as possible.
    interval: Option<Duration>,
    /// When the next event is due; `None` before the first.
    due: Option<Instant>,
    /// Events that `due` accounts for.
    events: u64,
}

impl Pacer {
    /// Creates a pacer of `rate` events a second; 0 means as fast as possible.
    pub fn new(rate: u64) -> Self {
        let interval = (rate > 0).then(|| Duration::from_secs_f64(1.0 / rate as f64));
        Self { interval, due: None, events: 0 }
    }

    /// Waits until an event is due after `events` events, or until the job should stop.
    pub(super) fn wait(&mut self, events: u64, stop: &StopSignal) {
        let Some(interval) = self.interval else { return };
        let new = u32::try_from(events.saturating_sub(self.events)).unwrap_or(u32::MAX);
        self.events = events;
        let now = Instant::now();
        let mut due = self.due.map_or(now, |due| due + interval.saturating_mul(new));
        if now > due + MOST_BEHIND {
            due = now;
        }
        self.due = Some(due);
        // In short sleeps, as the next event may be due much later than the job is asked to stop.
        while !stop.is_set()
            && let left = due.saturating_duration_since(Instant::now())
            && left >= SHORTEST_SLEEP
        {
            std::thread::sleep(left.min(MOST_BEHIND));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_the_rate_until_the_job_should_stop() {
        let stop = StopSignal::default();
        for (rate, events, least) in [(1_000, 50, 45), (50_000, 2_000, 35), (0, 1_000_000, 0)] {
            let mut pacer = Pacer::new(rate);
            let start = Instant::now();
            for event in 0..events {
                pacer.wait(event, &stop);
            }
            // A busy machine may take longer, but never less.
            assert!(start.elapsed() >= Duration::from_millis(least), "{rate}: {:?}", start.elapsed());
        }
        let mut slow = Pacer::new(1);
        slow.wait(0, &stop);
        let setter = stop.clone();
        let start = Instant::now();
        std::thread::spawn(move || setter.set());
        slow.wait(1, &stop);
        slow.wait(2, &stop);
        assert!(stop.is_set() && start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_late_job_does_not_catch_up() {
        let stop = StopSignal::default();
        let mut pacer = Pacer::new(1_000);
        pacer.wait(0, &stop);
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        pacer.wait(1, &stop);
        pacer.wait(100, &stop);
        assert!(start.elapsed() >= Duration::from_millis(90), "{:?}", start.elapsed());
    }
}
