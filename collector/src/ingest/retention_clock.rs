//! The clock of retention.
//!
//! A computer's clock can jump: a battery is empty, a date is mistyped, a virtual machine wakes up. A server that compared
//! the age of its sessions with such a clock would delete them all. This clock follows the computer's, but takes only small
//! steps and never goes back. How far it has come is stored, so it doesn't jump when the server starts either.

/// The longest step between two looks while the server runs, as a multiple of the time that really passed: clocks that drift
/// are followed, clocks that jump are not.
const SLACK: i64 = 2;
/// The longest step at a start, in microseconds: a day. A server that was off for a month ages its sessions by one day.
const START: i64 = 86_400_000_000;

/// A clock that never jumps, in microseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetentionClock {
    now_us: i64,
    /// The computer's clock at the last look.
    seen_us: i64,
}

impl RetentionClock {
    /// Starts the clock. `stored_us` is the time that it showed last, if that is known, and `session_us` the latest time in the
    /// records of the stored sessions; `computer_us` is the computer's clock.
    pub(super) fn start(stored_us: Option<i64>, session_us: Option<i64>, computer_us: i64) -> Self {
        // Neither is known: nothing is stored, and nothing can be deleted.
        let Some(known) = stored_us.max(session_us) else { return Self { now_us: computer_us, seen_us: computer_us } };
        let step = computer_us.saturating_sub(known).clamp(0, START);
        Self { now_us: known.saturating_add(step), seen_us: computer_us }
    }

    /// Goes on to the computer's clock, after `passed_us` of a clock that can't be set. Returns whether the computer's clock
    /// has jumped.
    pub(super) fn advance(&mut self, computer_us: i64, passed_us: i64) -> bool {
        let step = computer_us.saturating_sub(self.seen_us);
        let most = passed_us.max(0).saturating_mul(SLACK).saturating_add(1_000_000);
        let has_jumped = !(-most..=most).contains(&step);
        self.seen_us = computer_us;
        // After a jump the other clock tells how much time passed.
        let step = if has_jumped { passed_us } else { step };
        self.now_us = self.now_us.saturating_add(step.max(0));
        has_jumped
    }

    /// Returns the time.
    pub(super) fn now_us(&self) -> i64 {
        self.now_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const DAY: i64 = START;

    #[test]
    fn a_start_moves_the_clock_by_a_day_at_most() {
        for (stored, session, computer, want) in [
            (None, None, 100 * DAY, 100 * DAY),
            (Some(100 * DAY), None, 100 * DAY + SECOND, 100 * DAY + SECOND),
            (Some(100 * DAY), None, 131 * DAY, 101 * DAY),
            (Some(100 * DAY), Some(100 * DAY + SECOND), 131 * DAY, 101 * DAY + SECOND),
            (None, Some(100 * DAY), 131 * DAY, 101 * DAY),
            // Set back: the clock stands still.
            (Some(100 * DAY), None, 3 * DAY, 100 * DAY),
        ] {
            assert_eq!(
                RetentionClock::start(stored, session, computer).now_us(),
                want,
                "{stored:?} {session:?} {computer}"
            );
        }
    }

    #[test]
    fn a_jump_while_it_runs_moves_nothing() {
        let mut clock = RetentionClock::start(Some(100 * DAY), None, 100 * DAY);
        // The computer's clock, the time that passed, and what the clock shows.
        for (computer, passed, want, jumps) in [
            (100 * DAY + 30 * SECOND, 30 * SECOND, 100 * DAY + 30 * SECOND, false),
            (131 * DAY, 30 * SECOND, 100 * DAY + 60 * SECOND, true),
            (131 * DAY + 30 * SECOND, 30 * SECOND, 100 * DAY + 90 * SECOND, false),
            (5 * DAY, 30 * SECOND, 100 * DAY + 120 * SECOND, true),
            (5 * DAY + 31 * SECOND, 30 * SECOND, 100 * DAY + 151 * SECOND, false),
        ] {
            assert_eq!((clock.advance(computer, passed), clock.now_us()), (jumps, want));
        }
    }
}
