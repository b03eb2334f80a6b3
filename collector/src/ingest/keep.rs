//! How long what is stored is kept, and how much of it.

use std::sync::Arc;

use shared::wire::SessionState;

use super::{IngestError, Session, Sessions, now_us};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Microseconds after its last batch that a session is kept, and a segment after it was filled.
    pub micros: i64,
    /// Bytes of all segments.
    pub bytes: u64,
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl Default for Keep {
    /// Thirty days, and 20 GiB.
    fn default() -> Self {
        Self { micros: 30 * DAY, bytes: 20 << 30 }
    }
}

impl Keep {
    /// So many days, and so many bytes.
    pub fn new(days: u32, bytes: u64) -> Self {
        Self { micros: i64::from(days) * DAY, bytes }
    }

    /// Bytes down to which is dropped once there are too many: room for a while.
    fn target(&self) -> u64 {
        self.bytes - self.bytes / 10
    }
}

/// Microseconds after which a session without a batch is forgotten.
const EMPTY: i64 = 600_000_000;

impl Sessions {
    /// Drops what is too old or too much: whole sessions that ended first, the oldest first, then the oldest segments of
    /// those that run. Waits for the disk.
    pub fn sweep(&self) {
        let now = now_us();
        for session in self.all() {
            let state = session.state(self.limits());
            if state != SessionState::Live && !session.is_connected() {
                session.rest();
            }
            let (last_us, is_empty) = session.look(|view| (view.record.last_us, view.last == 0));
            let age = now.saturating_sub(last_us);
            if state != SessionState::Live && (age > self.keep().micros || is_empty && age > EMPTY) {
                // A session that just came back stays.
                let _ = self.remove(&session);
                continue;
            }
            while second_begun(&session).is_some_and(|begun| now.saturating_sub(begun) > self.keep().micros) {
                if !self.drop_oldest(&session) {
                    break;
                }
            }
        }
        if self.store().usage() > self.keep().bytes {
            self.make_room();
        }
    }

    /// Drops what is oldest until there is room again, if that is to be had.
    pub fn make_room(&self) {
        let mut sessions = self.all();
        sessions.sort_by_key(|session| session.look(|view| view.record.last_us));
        let mut live = Vec::new();
        for session in sessions {
            if self.store().usage() <= self.keep().target() {
                return;
            }
            if session.state(self.limits()) == SessionState::Live || self.remove(&session).is_err() {
                live.push(session);
            }
        }
        while self.store().usage() > self.keep().target() {
            // The one whose oldest segment was filled first.
            let oldest = live.iter().filter_map(|session| Some((second_begun(session)?, session))).min_by_key(|o| o.0);
            let Some((_, session)) = oldest else { return };
            if !self.drop_oldest(session) {
                return;
            }
        }
    }

    fn drop_oldest(&self, session: &Arc<Session>) -> bool {
        matches!(session.drop_oldest(self.store(), *self.limits()), Ok(bytes) if bytes > 0)
    }

    /// Deletes a session; an error while a collector is connected. Waits for the disk.
    pub fn remove(&self, session: &Arc<Session>) -> Result<(), IngestError> {
        session.remove(&**self.store())?;
        self.forget(session.id());
        Ok(())
    }
}

/// When the second segment was begun: until then the first was written.
fn second_begun(session: &Session) -> Option<i64> {
    session.look(|view| view.segments.get(1).map(|segment| segment.begun_us))
}
