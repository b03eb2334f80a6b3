//! The publisher's thread: opens one connection after another until everything is delivered, time is over, or the
//! server refuses for good.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wire::{Code, Refused};

use super::backoff::Backoff;
use super::client::{Client, Outcome};
use super::state::SharedState;
use super::stats::Cause;
use super::{post, socket};

/// The longest wait between two connections once the session is ending.
const ENDING_WAIT: Duration = Duration::from_secs(1);

/// The state of the sender's thread.
pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) backoff: Backoff,
}

/// Reports the thread's end, even if it panicked.
struct Done(Arc<SharedState>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.notify();
    }
}

impl Sender {
    pub(super) fn run(mut self) {
        let _done = Done(Arc::clone(&self.client.shared));
        if !self.wait_for_header() {
            return;
        }
        // Until when requests are used instead of WebSockets.
        let mut posts_until = Instant::now();
        loop {
            let is_post = self.client.shared.lock().is_post && Instant::now() < posts_until;
            let outcome = if is_post { post::run(&self.client, posts_until) } else { socket::run(&self.client) };
            let mut state = self.client.shared.lock();
            let is_goodbye = state.connection.is_goodbye;
            if std::mem::take(&mut state.connection.has_progress) {
                self.backoff.reset();
            }
            if !matches!(outcome, Outcome::TrySocket) {
                state.connection.is_welcome = false;
            }
            match outcome {
                Outcome::Ended => return,
                Outcome::Refused(Refused { code: Code::Ended, .. }) if is_goodbye => {
                    // The server received the goodbye; only its answer was lost.
                    state.is_ended = true;
                    return;
                }
                Outcome::Refused(Refused { message, code, retry: false }) => {
                    (state.failure, state.cause) = (Some(message), Cause::Refusal(code));
                    state.queue.clear();
                    return;
                }
                Outcome::Refused(Refused { message, code, .. }) => {
                    (state.trouble, state.cause) = (Some(message), Cause::Refusal(code));
                }
                Outcome::Untrusted(why) => (state.trouble, state.cause) = (Some(why), Cause::Certificate),
                Outcome::Lost(why) => (state.trouble, state.cause) = (Some(why), Cause::Connection),
                Outcome::NoSocket(why) => {
                    let retry_time = Duration::from_millis(self.client.limits.socket_millis);
                    posts_until = Instant::now() + retry_time;
                    if !std::mem::replace(&mut state.is_post, true) {
                        (state.trouble, state.cause) = (Some(why), Cause::Connection);
                    }
                    continue;
                }
                Outcome::TrySocket => continue,
            }
            state.failures += 1;
            if state.is_over() {
                return;
            }
            drop(state);
            self.client.shared.notify();
            self.wait_to_retry();
        }
    }

    /// Waits for the recording's header, which every hello contains. Returns false if the session ends before it.
    fn wait_for_header(&self) -> bool {
        let mut state = self.client.shared.lock();
        while state.header.is_empty() {
            if state.end.is_some() {
                return false;
            }
            state = self.client.shared.wait(state, ENDING_WAIT);
        }
        true
    }

    /// Waits until the next connection is due: the back-off, shortened once the session is ending.
    fn wait_to_retry(&mut self) {
        let due = Instant::now() + self.backoff.next();
        let mut state = self.client.shared.lock();
        let due = match state.end {
            Some(end) => due.min(end).min(Instant::now() + ENDING_WAIT),
            None => due,
        };
        let was_ending = state.end.is_some();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            // When the session starts to end, try at once: the server may be back.
            let is_urgent = std::mem::take(&mut state.is_urgent);
            if left.is_zero() || is_urgent || state.end.is_some() && !was_ending {
                return;
            }
            state = self.client.shared.wait(state, left);
        }
    }
}
