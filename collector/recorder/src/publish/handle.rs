//! The handle of a running publisher: its statistics and its end.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wire::Ask;

use super::state::SharedState;
use super::stats::PublisherStats;

/// How long after the deadline the sender may take to notice it.
const GRACE: Duration = Duration::from_millis(500);
/// The longest time to deliver to a server that was never reached.
const NEVER_REACHED: Duration = Duration::from_secs(2);

/// Observes and ends a publisher. Dropping it without [`PublisherHandle::finish`] delivers what the short
/// [`PublishLimits::drop_millis`](trace::limits::PublishLimits::drop_millis) allow. In the child of a fork it does
/// nothing.
pub struct PublisherHandle {
    pub(super) shared: Arc<SharedState>,
    pub(super) session: String,
    pub(super) asks: Mutex<Option<Receiver<Ask>>>,
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) drop_time: Duration,
}

impl PublisherHandle {
    /// Returns the session's name.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the receiver of what viewers ask for through the server, on the first call only.
    pub fn asks(&self) -> Option<Receiver<Ask>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the present statistics.
    pub fn stats(&self) -> PublisherStats {
        if self.shared.is_forked_child() { PublisherStats::default() } else { self.shared.lock().stats() }
    }

    /// Returns why nothing is sent any more, once the server has refused the session for good.
    pub fn failure(&self) -> Option<String> {
        if self.shared.is_forked_child() { None } else { self.shared.lock().failure.clone() }
    }

    /// Returns a receipt for everything that was queued so far.
    pub fn receipt(&self) -> Receipt {
        let is_child = self.shared.is_forked_child();
        Receipt { last: if is_child { 0 } else { self.shared.lock().queue.last() }, shared: Arc::clone(&self.shared) }
    }

    /// Waits until the first connection is accepted or has failed, at most `timeout`. Returns whether it is accepted.
    pub fn wait_connected(&self, timeout: Duration) -> bool {
        if self.shared.is_forked_child() {
            return false;
        }
        self.shared.wait_until(Instant::now() + timeout, |state| {
            state.connection.is_welcome || state.trouble.is_some() || state.failure.is_some()
        });
        self.shared.lock().connection.is_welcome
    }

    /// Ends the session: delivers the rest and the goodbye, at most for `timeout`, and at most for two seconds where nothing has
    /// answered since the start. Call it after the recorder has ended. The result says what could not be delivered.
    pub fn finish(mut self, timeout: Duration) -> PublisherStats {
        self.end(timeout)
    }

    fn end(&mut self, timeout: Duration) -> PublisherStats {
        let Some(thread) = self.thread.take() else { return PublisherStats::default() };
        if self.shared.is_forked_child() {
            // The thread does not exist in this process; waiting for it would never end.
            return PublisherStats::default();
        }
        let mut state = self.shared.lock();
        // A server that was there may come back.
        let was_there = state.connections > 0 || state.failures == 0;
        let end = Instant::now() + if was_there { timeout } else { timeout.min(NEVER_REACHED) };
        state.end = Some(end);
        drop(state);
        self.shared.notify();
        if !self.shared.wait_until(end + GRACE, |state| state.is_done) {
            // It is blocked in a system call: in I/O, which this ends, or in a name lookup, which nothing can end.
            self.shared.lock().shut_down();
            self.shared.wait_until(Instant::now() + GRACE, |state| state.is_done);
        }
        let is_done = self.shared.lock().is_done;
        if is_done {
            // The thread only has to return.
            let _ = thread.join();
        }
        let mut state = self.shared.lock();
        let stats = state.stats();
        state.queue.clear();
        stats
    }
}

/// Represents the batches that were queued at one moment.
pub struct Receipt {
    shared: Arc<SharedState>,
    /// The last of them.
    last: u64,
}

impl Receipt {
    /// Waits until the server has stored the batches, at most `timeout`. Returns whether it has.
    ///
    /// It waits for a connection that is being made. If the server is away, one attempt is made at once, and the wait ends
    /// when that has failed.
    pub fn wait(&self, timeout: Duration) -> bool {
        if self.shared.is_forked_child() {
            return false;
        }
        let mut state = self.shared.lock();
        let failures = state.failures;
        state.is_urgent = state.queue.acked() < self.last && !state.connection.is_welcome;
        drop(state);
        self.shared.notify();
        self.shared.wait_until(Instant::now() + timeout, |state| {
            state.queue.acked() >= self.last || state.failure.is_some() || state.is_done || state.failures > failures
        });
        self.shared.lock().queue.acked() >= self.last
    }
}

impl Drop for PublisherHandle {
    fn drop(&mut self) {
        self.end(self.drop_time);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use trace::limits::PublishLimits;

    use super::super::queue::Queue;
    use super::super::spool::Spool;
    use super::*;
    use crate::Output;
    use crate::publish::PublisherOutput;

    /// Simulates the child of a fork: another process number, a lock that is never released, and no thread.
    #[test]
    fn in_the_child_of_a_fork_nothing_is_done_and_nothing_waits() {
        let limits = PublishLimits::default();
        let (asked, asks) = mpsc::sync_channel(1);
        let mut shared = SharedState::new(Queue::new(limits, Spool::new("/dev/null".into(), "fork", 1)), asked);
        shared.process = std::process::id() + 1;
        let shared = Arc::new(shared);
        let held = shared.lock();
        let handle = || PublisherHandle {
            shared: Arc::clone(&shared),
            session: "a".repeat(26),
            asks: Mutex::new(None),
            // A thread that never ends by itself.
            thread: Some(std::thread::spawn(std::thread::park)),
            drop_time: Duration::from_secs(60),
        };
        let start = Instant::now();
        let one = handle();
        assert_eq!((one.stats(), one.failure(), one.asks().is_none()), (PublisherStats::default(), None, true));
        assert!(!one.wait_connected(Duration::from_secs(60)));
        assert_eq!(one.finish(Duration::from_secs(60)), PublisherStats::default());
        drop(handle());
        let mut output = PublisherOutput { shared: Arc::clone(&shared), is_first: true, events: 0 };
        assert!(output.append(b"anything").is_ok() && output.has_room());
        assert!(start.elapsed() < Duration::from_secs(5));
        drop((held, asks));
    }
}
