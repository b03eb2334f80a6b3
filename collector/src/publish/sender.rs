//! The publisher's thread: one connection after the other, until all is delivered, time is over, or the server refuses
//! for good.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shared::limits::PublishLimits;
use shared::wire::{Batch, Code, Hello, Message, PROTOCOL, Refused};

use super::backoff::Backoff;
use super::destination::Destination;
use super::state::Shared;
use super::{post, socket};

/// The longest wait between two connections while somebody waits for the end.
const HURRY: Duration = Duration::from_secs(1);

/// What the thread works with.
pub(super) struct Sender {
    pub(super) shared: Arc<Shared>,
    pub(super) destination: Destination,
    pub(super) session: String,
    pub(super) key: String,
    pub(super) limits: PublishLimits,
    pub(super) backoff: Backoff,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing is left to do, or no time to do it.
    Ended,
    /// In a way that another may go better.
    Lost(String),
    /// The server said why.
    Refused(Refused),
    /// What answers doesn't let sockets pass.
    NoSocket(String),
    /// Requests went well; it is time to try a socket again.
    Again,
}

/// Says that the thread has ended, even if it panicked.
struct Done(Arc<Shared>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.ring();
    }
}

impl Sender {
    pub(super) fn run(mut self) {
        let _done = Done(Arc::clone(&self.shared));
        if !self.wait_for_header() {
            return;
        }
        // While requests are used: until when.
        let mut posts_until = Instant::now();
        loop {
            let is_post = self.shared.lock().is_post && Instant::now() < posts_until;
            let outcome = if is_post { post::speak(&self, posts_until) } else { socket::speak(&self) };
            let mut state = self.shared.lock();
            let is_goodbye = state.link.is_goodbye;
            if std::mem::take(&mut state.link.is_fruitful) {
                self.backoff.reset();
            }
            if !matches!(outcome, Outcome::Again) {
                state.link.is_welcome = false;
            }
            match outcome {
                Outcome::Ended => return,
                Outcome::Refused(Refused { code: Code::Ended, .. }) if is_goodbye => {
                    // The goodbye was heard, and its answer lost.
                    state.is_ended = true;
                    return;
                }
                Outcome::Refused(Refused { message, retry: false, .. }) => {
                    state.failure = Some(message);
                    state.queue.clear();
                    return;
                }
                Outcome::Refused(Refused { message, .. }) | Outcome::Lost(message) => state.trouble = Some(message),
                Outcome::NoSocket(why) => {
                    posts_until = Instant::now() + Duration::from_millis(self.limits.socket_millis);
                    if !std::mem::replace(&mut state.is_post, true) {
                        state.trouble = Some(why);
                    }
                    continue;
                }
                Outcome::Again => continue,
            }
            if state.is_over() {
                return;
            }
            drop(state);
            self.shared.ring();
            self.rest();
        }
    }

    /// Waits for the recording's header, which every hello holds. False when it never comes.
    fn wait_for_header(&self) -> bool {
        let mut state = self.shared.lock();
        while state.header.is_empty() {
            if state.end.is_some() {
                return false;
            }
            state = self.shared.wait(state, HURRY);
        }
        true
    }

    /// Waits until the next connection is due. When somebody waits for the end, that is soon.
    fn rest(&mut self) {
        let due = Instant::now() + self.backoff.next();
        let mut state = self.shared.lock();
        let due = match state.end {
            Some(end) => due.min(end).min(Instant::now() + HURRY),
            None => due,
        };
        let was_ending = state.end.is_some();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            // When the end begins, once at once: the server may have come back.
            if left.is_zero() || state.end.is_some() && !was_ending {
                return;
            }
            state = self.shared.wait(state, left);
        }
    }

    /// The first frame of every stream.
    pub(super) fn hello(&self) -> Vec<u8> {
        let header = self.shared.lock().header.clone();
        let hello = Hello {
            protocol: PROTOCOL,
            session: self.session.clone(),
            key: self.key.clone(),
            token: self.destination.token.clone().unwrap_or_default(),
            mode: self.destination.mode.clone(),
            header,
        };
        Message::Hello(hello).to_bytes()
    }

    /// The server, and what is wrong with it.
    pub(super) fn trouble(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.destination.address())
    }
}

/// A batch as a frame, sent now.
pub(super) fn batch(seq: u64, chunks: &[u8], out: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let sent_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    // The chunks, and some numbers around them.
    out.reserve(chunks.len() + 64);
    Message::Batch(Batch { seq, sent_us, chunks }).encode(out);
}
