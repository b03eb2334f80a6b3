//! How long the writer waits for an output that has no room.

use std::time::{Duration, Instant};

use super::output::Output;
use super::sink::WhenFull;

/// How long the writer sleeps between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Decides whether events may be written, after waiting for the output where [`WhenFull::Wait`] asks for that.
#[derive(Debug)]
pub(super) struct Backpressure {
    timeout: Duration,
    /// A wait has timed out. Until the output has room again, no further wait is made.
    has_given_up: bool,
}

impl Backpressure {
    pub(super) fn new(when_full: WhenFull, timeout: Duration) -> Self {
        let timeout = if when_full == WhenFull::Wait { timeout } else { Duration::ZERO };
        Self { timeout, has_given_up: false }
    }

    /// Returns whether the output accepts events, waiting for that at most the timeout.
    pub(super) fn wait_for_room(&mut self, output: &mut dyn Output) -> bool {
        let start = Instant::now();
        while !output.has_room() {
            if self.has_given_up || !output.is_draining() || start.elapsed() >= self.timeout {
                self.has_given_up = true;
                return false;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        self.has_given_up = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Has room after this many checks.
    struct RoomAfter(AtomicU32);

    impl Output for RoomAfter {
        fn append(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn has_room(&mut self) -> bool {
            self.0.fetch_sub(1, Ordering::Relaxed) == 0
        }
    }

    #[test]
    fn only_when_full_wait_waits_and_only_once() {
        let after = |checks| RoomAfter(AtomicU32::new(checks));
        let mut count = Backpressure::new(WhenFull::Count, Duration::from_secs(60));
        assert!(!count.wait_for_room(&mut after(1)) && count.wait_for_room(&mut after(0)));
        let mut wait = Backpressure::new(WhenFull::Wait, Duration::from_secs(60));
        assert!(wait.wait_for_room(&mut after(5)));
        let mut short = Backpressure::new(WhenFull::Wait, Duration::from_millis(20));
        assert!(!short.wait_for_room(&mut after(10_000)));
        // After a timeout it does not wait, however soon there would be room, until there was room once.
        assert!(
            !short.wait_for_room(&mut after(2))
                && short.wait_for_room(&mut after(0))
                && short.wait_for_room(&mut after(2))
        );
    }
}
