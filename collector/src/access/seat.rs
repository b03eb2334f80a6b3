//! A connection that counts for the quota of sessions of its token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::token::Token;

/// A connection of a live session, which counts for the quota of its token until it is dropped.
#[derive(Debug)]
pub struct Seat {
    token: Arc<Token>,
    session: String,
    linger: Duration,
    has_ended: bool,
}

impl Seat {
    /// Creates a seat that [`Usage::enter`](super::usage::Usage::enter) counted.
    pub(super) fn new(token: Arc<Token>, session: &str, linger: Duration) -> Self {
        Self { token, session: session.to_owned(), linger, has_ended: false }
    }

    /// Notes that the session has ended: it no longer counts as soon as this connection is closed.
    pub fn end(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let until = (!self.has_ended).then(|| Instant::now() + self.linger);
        self.token.usage.leave(&self.session, until);
    }
}
