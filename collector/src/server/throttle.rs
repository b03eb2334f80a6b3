//! A limit on how often the same warning is logged, for conditions that a client can cause at will.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Lets one line pass in each [`PAUSE`], and counts the others.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<Passed>);

#[derive(Debug, Default)]
struct Passed {
    last: Option<Instant>,
    suppressed: u64,
}

impl Throttle {
    /// Returns the number of lines that were suppressed since the last one if a line may be written now.
    pub(super) fn pass(&self) -> Option<u64> {
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if passed.last.is_some_and(|last| last.elapsed() < PAUSE) {
            passed.suppressed += 1;
            return None;
        }
        passed.last = Some(Instant::now());
        Some(std::mem::take(&mut passed.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_are_counted_instead_of_written() {
        let throttle = Throttle::default();
        assert_eq!([throttle.pass(), throttle.pass(), throttle.pass()], [Some(0), None, None]);
        throttle.0.lock().unwrap().last = None;
        assert_eq!(throttle.pass(), Some(2));
    }
}
