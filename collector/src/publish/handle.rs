//! What the one who started a publisher keeps of it.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shared::wire::Ask;

use super::state::Shared;

/// How much longer than it was given a sender may take to notice that time is over.
const GRACE: Duration = Duration::from_millis(500);

/// What a publisher has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherStats {
    /// Batches that were made.
    pub batches: u64,
    /// Batches that the server has safely.
    pub batches_acked: u64,
    /// Events that came in.
    pub events: u64,
    /// Events that the server has safely. Those of a batch count when all of it was acknowledged.
    pub events_acked: u64,
    /// Bytes of frames that were sent, those that were sent again included.
    pub bytes: u64,
    /// Connections that came about, or requests where sockets can't pass.
    pub connections: u64,
    /// Bytes in memory that are not acknowledged.
    pub memory_bytes: u64,
    /// Bytes in the spool's files.
    pub spool_bytes: u64,
    /// Whether the server is there and has taken the hello.
    pub is_connected: bool,
    /// Whether requests are used, because sockets can't pass.
    pub is_post: bool,
    /// Whether the server has heard that the session ended as it should.
    pub is_ended: bool,
    /// Why nothing is sent any more: the server refused for good.
    pub failure: Option<String>,
    /// What went wrong last, while it is tried again.
    pub trouble: Option<String>,
    /// Why the spool takes nothing, if it doesn't.
    pub spool_failure: Option<String>,
}

impl PublisherStats {
    /// Events that came in and that the server does not have.
    pub fn undelivered(&self) -> u64 {
        self.events.saturating_sub(self.events_acked)
    }
}

/// Asks and ends a publisher. When it is dropped without [`PublisherHandle::finish`], the rest is delivered as far as a
/// short time allows. In the child of a fork it does nothing at all.
pub struct PublisherHandle {
    pub(super) shared: Arc<Shared>,
    pub(super) session: String,
    pub(super) asks: Mutex<Option<Receiver<Ask>>>,
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) drop_time: Duration,
}

impl PublisherHandle {
    /// The session's name.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// What the server asks on behalf of people; given out once.
    pub fn asks(&self) -> Option<Receiver<Ask>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How it stands.
    pub fn stats(&self) -> PublisherStats {
        if self.shared.is_elsewhere() { PublisherStats::default() } else { self.shared.lock().stats() }
    }

    /// Why nothing is sent any more, once the server has refused for good.
    pub fn failure(&self) -> Option<String> {
        if self.shared.is_elsewhere() { None } else { self.shared.lock().failure.clone() }
    }

    /// Waits until the first connection has come about or failed, at most so long. Whether it has come about.
    pub fn wait_connected(&self, time: Duration) -> bool {
        if self.shared.is_elsewhere() {
            return false;
        }
        self.shared.wait_until(Instant::now() + time, |state| {
            state.link.is_welcome || state.trouble.is_some() || state.failure.is_some()
        });
        self.shared.lock().link.is_welcome
    }

    /// Ends the session: delivers the rest, and says goodbye; at most so long. To be called when the recorder has
    /// ended. What could not be delivered is in the result.
    pub fn finish(mut self, time: Duration) -> PublisherStats {
        self.end(time)
    }

    fn end(&mut self, time: Duration) -> PublisherStats {
        let Some(thread) = self.thread.take() else { return PublisherStats::default() };
        if self.shared.is_elsewhere() {
            // There is no such thread here; to wait for it would be to wait for ever.
            return PublisherStats::default();
        }
        let end = Instant::now() + time;
        self.shared.lock().end = Some(end);
        self.shared.ring();
        if !self.shared.wait_until(end + GRACE, |state| state.is_done) {
            // It hangs in a call of the system: in writing, which this ends, or in looking up a name, which nothing does.
            self.shared.lock().cut();
            self.shared.wait_until(Instant::now() + GRACE, |state| state.is_done);
        }
        let is_done = self.shared.lock().is_done;
        if is_done {
            // It has nothing left to do but to return.
            let _ = thread.join();
        }
        let mut state = self.shared.lock();
        let stats = state.stats();
        state.queue.clear();
        stats
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

    use shared::limits::PublishLimits;

    use super::super::queue::Queue;
    use super::super::spool::Spool;
    use super::*;
    use crate::publish::PublisherOutput;
    use crate::recorder::Output;

    /// As it is in the child of a fork: another process, a lock that nobody will ever let go of, and no thread.
    #[test]
    fn in_the_child_of_a_fork_nothing_is_done_and_nothing_waits() {
        let limits = PublishLimits::default();
        let (asked, asks) = mpsc::sync_channel(1);
        let mut shared = Shared::new(Queue::new(limits, Spool::new("/dev/null".into(), "fork", 1)), asked);
        shared.process = std::process::id() + 1;
        let shared = Arc::new(shared);
        let held = shared.lock();
        let handle = || PublisherHandle {
            shared: Arc::clone(&shared),
            session: "a".repeat(26),
            asks: Mutex::new(None),
            // One that never ends by itself.
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
