//! Whether the output takes more events, and how long a writer that would rather wait waits for that.

use std::time::{Duration, Instant};

use super::output::Output;
use super::sink::WhenFull;

/// How long the writer rests between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// The writer's patience.
#[derive(Debug)]
pub(super) struct Room {
    patience: Duration,
    /// It was waited for once, and did not come: until it has come, nothing waits again.
    is_given_up: bool,
}

impl Room {
    pub(super) fn new(when_full: WhenFull, patience: Duration) -> Self {
        let patience = if when_full == WhenFull::Wait { patience } else { Duration::ZERO };
        Self { patience, is_given_up: false }
    }

    /// Whether events may come now; after some waiting, where that is wanted.
    pub(super) fn is_there(&mut self, output: &dyn Output) -> bool {
        let start = Instant::now();
        while !output.has_room() {
            if self.is_given_up || start.elapsed() >= self.patience {
                self.is_given_up = true;
                return false;
            }
            std::thread::sleep(LOOK);
        }
        self.is_given_up = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Has room after so many questions.
    struct After(AtomicU32);

    impl Output for After {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn has_room(&self) -> bool {
            self.0.fetch_sub(1, Ordering::Relaxed) == 0
        }
    }

    #[test]
    fn only_who_would_rather_wait_waits_and_only_once() {
        let after = |count| After(AtomicU32::new(count));
        let mut count = Room::new(WhenFull::Count, Duration::from_secs(60));
        assert!(!count.is_there(&after(1)) && count.is_there(&after(0)));
        let mut wait = Room::new(WhenFull::Wait, Duration::from_secs(60));
        assert!(wait.is_there(&after(5)));
        let mut short = Room::new(WhenFull::Wait, Duration::from_millis(20));
        assert!(!short.is_there(&after(10_000)));
        // It would come soon, but it is not waited for again until it has come.
        assert!(!short.is_there(&after(2)) && short.is_there(&after(0)) && short.is_there(&after(2)));
    }
}
