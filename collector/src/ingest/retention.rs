//! How long stored sessions are kept, and how much of them.

use std::sync::Arc;

use shared::wire::SessionState;

use super::{IngestError, Session, Sessions, now_us};

/// The limits of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Microseconds that a session is kept after its last batch, and a log segment after it was filled.
    pub micros: i64,
    /// Bytes of all log segments.
    pub bytes: u64,
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl Default for Retention {
    /// Returns thirty days and 20 GiB.
    fn default() -> Self {
        Self { micros: 30 * DAY, bytes: 20 << 30 }
    }
}

impl Retention {
    /// Creates limits of so many days and bytes.
    pub fn new(days: u32, bytes: u64) -> Self {
        Self { micros: i64::from(days) * DAY, bytes }
    }

    /// Returns the bytes to which the store is reduced once it exceeds its limit, so that the next sweep is not due at
    /// once.
    fn target(&self) -> u64 {
        self.bytes - self.bytes / 10
    }
}

/// Microseconds after which a session without a batch is deleted.
const EMPTY: i64 = 600_000_000;

impl Sessions {
    /// Deletes what is too old or too much: first whole sessions that are over, oldest first, then the oldest log
    /// segments of live ones. Waits for the disk.
    pub fn sweep(&self) {
        let now = now_us();
        for session in self.all() {
            let state = session.state(self.limits());
            if state != SessionState::Live && !session.is_connected() {
                session.close();
            }
            let (last_us, is_empty) = session.look(|view| (view.record.last_us, view.last == 0));
            let age = now.saturating_sub(last_us);
            if state != SessionState::Live && (age > self.retention().micros || is_empty && age > EMPTY) {
                // A session whose collector just reconnected stays.
                self.evict(&session, "age");
                continue;
            }
            while second_begun(&session).is_some_and(|begun| now.saturating_sub(begun) > self.retention().micros) {
                if !self.evict_oldest(&session, "age") {
                    break;
                }
            }
        }
        if self.store().usage() > self.retention().bytes {
            self.free_space();
        }
    }

    /// Deletes the oldest sessions and log segments until the store is below its target, as far as possible.
    pub fn free_space(&self) {
        let mut sessions = self.all();
        sessions.sort_by_key(|session| session.look(|view| view.record.last_us));
        let mut live = Vec::new();
        for session in sessions {
            if self.store().usage() <= self.retention().target() {
                return;
            }
            if session.state(self.limits()) == SessionState::Live || !self.evict(&session, "space") {
                live.push(session);
            }
        }
        while self.store().usage() > self.retention().target() {
            // The session whose oldest log segment was filled first.
            let oldest = live.iter().filter_map(|session| Some((second_begun(session)?, session))).min_by_key(|o| o.0);
            let Some((_, session)) = oldest else { return };
            if !self.evict_oldest(session, "space") {
                return;
            }
        }
    }

    /// Deletes a session and logs the reason. Returns whether it was deleted.
    fn evict(&self, session: &Arc<Session>, reason: &'static str) -> bool {
        let (seq, bytes) = session.look(|view| (view.last, view.bytes()));
        let removed = self.discard(session);
        if removed.is_ok() {
            tracing::info!(session = session.id(), seq, bytes, reason, "session evicted");
        }
        removed.is_ok()
    }

    /// Deletes a session's oldest log segment for a reason; whether there was one to delete.
    fn evict_oldest(&self, session: &Arc<Session>, reason: &'static str) -> bool {
        match session.drop_oldest(self.store(), *self.limits()) {
            Ok(0) => false,
            Ok(bytes) => {
                let seq = session.look(|view| view.segments.first().map_or(0, |segment| segment.first));
                tracing::info!(
                    session = session.id(),
                    seq,
                    bytes,
                    reason,
                    "oldest batches evicted; seq is the first kept"
                );
                true
            }
            Err(error) => {
                self.note_store_error(session.id(), &error);
                false
            }
        }
    }

    /// Deletes a session; fails while a collector is connected. Waits for the disk.
    pub fn remove(&self, session: &Arc<Session>) -> Result<(), IngestError> {
        let (seq, bytes) = session.look(|view| (view.last, view.bytes()));
        self.discard(session)?;
        tracing::info!(session = session.id(), seq, bytes, "session deleted");
        Ok(())
    }

    fn discard(&self, session: &Arc<Session>) -> Result<(), IngestError> {
        session.remove(&**self.store()).inspect_err(|error| self.note_store_error(session.id(), error))?;
        self.forget(session.id());
        Ok(())
    }
}

/// Returns when the second log segment was begun: until then the first was written.
fn second_begun(session: &Session) -> Option<i64> {
    session.look(|view| view.segments.get(1).map(|segment| segment.begun_us))
}
