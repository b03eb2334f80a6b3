//! The time of a job.

use std::sync::Arc;

use recorder::{Clock, ManualClock, MonotonicClock};

/// When a job's own time begins: 3 March 2026, 09:12:04 UTC. Every run makes the same trace, byte for byte.
const BEGINNING_US: i64 = 1_772_529_124_000_000;

/// The clock of a job, in microseconds since the epoch.
///
/// The program's own time passes as its work does. Events carry that time, or the machine's time if the job is
/// watched.
#[derive(Debug)]
pub struct JobClock {
    program_us: i64,
    began_us: i64,
    source: Source,
}

/// Where the times of events come from.
#[derive(Debug)]
enum Source {
    /// The program's own time.
    Program(Arc<ManualClock>),
    /// The machine's time.
    Machine(Arc<MonotonicClock>),
}

impl Default for JobClock {
    /// Creates a clock of the program's own time.
    fn default() -> Self {
        let source = Source::Program(Arc::new(ManualClock::new(BEGINNING_US)));
        Self { program_us: BEGINNING_US, began_us: BEGINNING_US, source }
    }
}

impl JobClock {
    /// Creates a clock of the machine's time, for a job that is watched while it runs.
    pub fn machine() -> Self {
        let clock = MonotonicClock::new();
        Self { program_us: BEGINNING_US, began_us: clock.now_us(), source: Source::Machine(Arc::new(clock)) }
    }

    /// Returns whether events carry the machine's time.
    pub(super) fn is_machine(&self) -> bool {
        matches!(self.source, Source::Machine(_))
    }

    /// Returns the clock that gives events their times.
    pub(super) fn event_clock(&self) -> Arc<dyn Clock> {
        match &self.source {
            Source::Program(clock) => Arc::<ManualClock>::clone(clock),
            Source::Machine(clock) => Arc::<MonotonicClock>::clone(clock),
        }
    }

    /// Returns the time that an event would have now.
    pub(super) fn now_us(&self) -> i64 {
        match &self.source {
            Source::Program(clock) => clock.now_us(),
            Source::Machine(clock) => clock.now_us(),
        }
    }

    /// Returns the time since the job began, on the clock of its events.
    pub(super) fn elapsed_us(&self) -> i64 {
        self.now_us().saturating_sub(self.began_us)
    }

    /// Returns the program's own time.
    pub(super) fn program_us(&self) -> i64 {
        self.program_us
    }

    /// Lets the program's own time pass; returns what it is then.
    pub(super) fn advance(&mut self, by_us: i64) -> i64 {
        self.program_us += by_us;
        if let Source::Program(clock) = &self.source {
            clock.set(self.program_us);
        }
        self.program_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_programs_time_or_the_machines() {
        let mut own = JobClock::default();
        assert_eq!(own.advance(30), BEGINNING_US + 30);
        assert_eq!((own.event_clock().now_us(), own.elapsed_us()), (BEGINNING_US + 30, 30));
        let mut machine = JobClock::machine();
        let before = machine.now_us();
        assert_eq!(machine.advance(3_600_000_000), BEGINNING_US + 3_600_000_000);
        assert!(machine.now_us() - before < 3_600_000_000);
    }
}
