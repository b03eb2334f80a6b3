//! How long stored sessions are kept, and how much of them.
//!
//! A session that is too old is announced first, and deleted after a time of grace. Age is counted by a clock that never
//! jumps ([`super::retention_clock`]). When space runs out, by the quota or on the disk, what is oldest of the producer with the
//! most bytes makes room, so nobody can drive out the sessions of others; pinned sessions stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use wire::SessionState;

use super::{IngestError, Session, Sessions, View};
use crate::access::audit;
use crate::store::StoreError;

/// The limits of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Microseconds that a session is kept after its last batch, and a segment after it was filled.
    pub micros: i64,
    /// Microseconds between the announcement that a session will be deleted for its age, and its deletion.
    pub grace_micros: i64,
    /// Bytes of all segments.
    pub bytes: u64,
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl Default for Retention {
    /// Returns thirty days, a day of grace, and 20 GiB.
    fn default() -> Self {
        Self { micros: 30 * DAY, grace_micros: DAY, bytes: 20 << 30 }
    }
}

impl Retention {
    /// Creates limits of so many days and bytes.
    pub fn new(days: u32, bytes: u64) -> Self {
        Self { micros: i64::from(days) * DAY, bytes, ..Self::default() }
    }

    /// Returns the bytes to which the store is reduced once it exceeds its limit, so that the next sweep is not due at
    /// once.
    fn target(&self) -> u64 {
        less(self.bytes)
    }
}

/// Returns bytes without the tenth of them that is freed at once.
fn less(bytes: u64) -> u64 {
    bytes - bytes / 10
}

/// Returns who recorded a session: the name of the token, and the host.
pub(super) fn producer(token: &str, host: &str) -> String {
    format!("{token}@{host}")
}

/// Returns the token of a producer; empty if it is not known.
fn token_of(producer: &str) -> &str {
    producer.split_once('@').map_or("", |(token, _)| token)
}

/// Microseconds after which a session without a batch is forgotten. Nothing is stored of it.
const EMPTY: i64 = 60_000_000;

impl Sessions {
    /// Closes what nobody writes to any more, deletes what is too old, and makes room if there is too much. Waits for the
    /// disk.
    pub fn sweep(&self) {
        // Before, the sessions that tell the time may not be known.
        if !self.is_loaded() {
            return;
        }
        let now = self.advance_retention_clock();
        for session in self.all() {
            let state = session.state(self.limits());
            let is_idle = state != SessionState::Live && !session.is_connected();
            if is_idle {
                session.close(self.store(), *self.limits());
            }
            let (retention_us, last, is_stored) =
                session.look(|view| (view.record.retention_us, view.last, !view.segments.is_empty()));
            let age = now.saturating_sub(retention_us);
            if is_idle && !is_stored && last == 0 {
                if age > EMPTY {
                    self.forget_empty(&session);
                }
                continue;
            }
            if is_idle && age > self.retention().micros {
                self.expire(&session, now);
            }
            while self.second_begun(&session).is_some_and(|begun| now.saturating_sub(begun) > self.retention().micros) {
                if session.is_pinned(self.store()) || !self.evict_oldest(&session, "age") {
                    break;
                }
            }
        }
        self.free_quotas();
        if self.store().usage() > self.retention().bytes || self.is_crowded() {
            self.make_room_for(&StoreError::Full);
        }
        if self.is_disk_full() {
            self.make_room_for(&StoreError::DiskFull);
        }
        if self.store().uploads().copies > 0 {
            self.outdate_catalogue();
        }
        self.save_catalogue();
    }

    /// Seals what nobody writes to any more and saves the catalogue: for a server that stops.
    pub fn close_all(&self) {
        for session in self.all() {
            session.close(self.store(), *self.limits());
        }
        self.save_catalogue_now();
    }

    /// Announces that a session is too old, or deletes it if that was announced long enough ago.
    fn expire(&self, session: &Arc<Session>, now: i64) {
        let announced = match session.announced(self.store(), now) {
            Ok(Some(announced)) => announced,
            Ok(None) => return,
            Err(error) => return self.note_store_error(session.id(), &error.into()),
        };
        if announced == now {
            audit::session_announced(session.id(), self.retention().micros / DAY);
        }
        if now.saturating_sub(announced) >= self.retention().grace_micros {
            self.evict(session, "age");
        } else {
            session.announce(announced.saturating_add(self.retention().grace_micros));
        }
    }

    /// Makes room after the store refused a write because of its quota or because its disk is full: old history gives way to
    /// new.
    pub(super) fn make_room_for(&self, refusal: &StoreError) {
        // Only those who need room wait for each other.
        let _alone = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(refusal, StoreError::DiskFull) {
            return self.free_space(self.retention().target(), "space");
        }
        if !self.store().is_local() {
            // What has ended is in the object store. Deleting it makes no room here, and what waits for its upload is nowhere
            // else.
            tracing::error!("the disk of the folder of data is full; free space on it, or let the object store answer");
            return;
        }
        let before = self.store().usage();
        self.free_space(less(before), "disk full");
        let bytes = before.saturating_sub(self.store().usage());
        if bytes > 0 {
            tracing::warn!(bytes, "the disk of the folder of data is full: old sessions made room");
        } else {
            tracing::error!(
                "the disk of the folder of data is full, and no session may be deleted: they are live or pinned; free space"
            );
        }
    }

    /// Deletes the oldest session or segment of the producer with the most bytes, again and again, until the store has at most
    /// `target` bytes, as far as possible. Sessions that are over go before parts of live ones.
    fn free_space(&self, target: u64, reason: &'static str) {
        // The bytes of each producer, and its sessions that may be deleted.
        let mut producers: BTreeMap<String, (u64, Vec<Arc<Session>>)> = BTreeMap::new();
        for session in self.all() {
            if session.look(|view| !view.segments.is_empty()) && !session.is_pinned(self.store()) {
                let (bytes, producer) = session.look(|view| (view.bytes(), view.record.producer.clone()));
                let (sum, sessions) = producers.entry(producer).or_default();
                *sum += bytes;
                sessions.push(session);
            }
        }
        producers.values_mut().for_each(|(_, sessions)| oldest_last(sessions));
        while self.store().usage() > target || self.is_crowded() {
            let most = producers.iter().max_by_key(|(_, (bytes, _))| *bytes).map(|(producer, _)| producer.clone());
            let Some((bytes, sessions)) = most.as_ref().and_then(|producer| producers.get_mut(producer)) else {
                return;
            };
            match self.delete_oldest(sessions, reason) {
                0 => drop(most.and_then(|producer| producers.remove(&producer))),
                freed => *bytes = bytes.saturating_sub(freed),
            }
        }
    }

    /// Makes room for each token whose sessions have more bytes than its quota: deletes the oldest of them, as far as possible.
    fn free_quotas(&self) {
        for (name, most) in self.access().byte_quotas() {
            let is_of = |session: &Arc<Session>| session.look(|view| token_of(&view.record.producer) == name);
            let mut sessions: Vec<_> = self.all().into_iter().filter(is_of).collect();
            let mut bytes: u64 = sessions.iter().map(|session| session.look(View::bytes)).sum();
            sessions.retain(|session| !session.is_pinned(self.store()));
            oldest_last(&mut sessions);
            while bytes > most {
                match self.delete_oldest(&mut sessions, "quota") {
                    0 => break,
                    freed => bytes = bytes.saturating_sub(freed),
                }
            }
        }
    }

    /// Deletes the oldest of a producer's sessions that is over, or the oldest segment of a live one. Returns the bytes; 0 if
    /// nothing can be deleted.
    fn delete_oldest(&self, sessions: &mut Vec<Arc<Session>>, reason: &'static str) -> u64 {
        while let Some(at) = sessions.iter().rposition(|session| session.state(self.limits()) != SessionState::Live) {
            let session = sessions.remove(at);
            let bytes = session.look(View::bytes);
            if self.evict(&session, reason) {
                return bytes.max(1);
            }
        }
        // The session whose oldest segment was filled first.
        let begun = |session: &&Arc<Session>| self.second_begun(session);
        let oldest = sessions.iter().filter(|session| begun(session).is_some()).min_by_key(begun).cloned();
        let Some(session) = oldest else { return 0 };
        let bytes = session.look(|view| view.segments.first().map_or(0, |segment| segment.bytes));
        if self.evict_oldest(&session, reason) { bytes.max(1) } else { 0 }
    }

    /// Deletes a session and logs the reason. Returns whether it was deleted.
    fn evict(&self, session: &Arc<Session>, reason: &'static str) -> bool {
        let (seq, bytes, producer) = session.look(|view| (view.last, view.bytes(), view.record.producer.clone()));
        let removed = self.discard(session);
        if removed.is_ok() {
            audit::session_evicted(&producer, session.id(), (seq, bytes), reason);
        }
        removed.is_ok()
    }

    /// Deletes a session's oldest segment for a reason; whether there was one to delete.
    fn evict_oldest(&self, session: &Arc<Session>, reason: &'static str) -> bool {
        match session.drop_oldest(self.store()) {
            Ok(0) => false,
            Ok(bytes) => {
                let first = session.look(|view| view.segments.first().map_or(0, |segment| segment.first));
                let producer = session.look(|view| view.record.producer.clone());
                audit::session_truncated(&producer, session.id(), (first, bytes), reason);
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
        self.save_catalogue();
        tracing::info!(session = session.id(), seq, bytes, "session deleted");
        Ok(())
    }

    /// Pins a session, so that retention keeps it, or unpins it. Waits for the store.
    pub fn pin(&self, session: &Arc<Session>, is_pinned: bool) -> Result<(), IngestError> {
        Ok(session.pin(self.store(), is_pinned)?)
    }

    fn discard(&self, session: &Arc<Session>) -> Result<(), IngestError> {
        session.remove(self.store()).inspect_err(|error| self.note_store_error(session.id(), error))?;
        self.forget(session);
        // Otherwise it would seem to be missing if the server ended now.
        self.outdate_catalogue();
        Ok(())
    }

    /// Returns when the second segment of a session was begun, by the clock of retention: until then the first was written.
    fn second_begun(&self, session: &Session) -> Option<i64> {
        session.look(|view| view.segments.get(1).map(|segment| segment.begun_us))
    }
}

/// Sorts sessions so that the one whose last batch is the oldest stands last, where it is taken from.
fn oldest_last(sessions: &mut [Arc<Session>]) {
    sessions.sort_by_key(|session| Reverse(session.look(|view| (view.record.retention_us, view.record.last_us))));
}
