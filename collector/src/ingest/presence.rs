//! Who is connected to a session, and whether that makes it live.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trace::limits::ServerLimits;
use wire::SessionState;

use super::{IngestError, Session};
use crate::access::Secret;

/// The collectors of a session.
#[derive(Debug, Default)]
pub(super) struct Presence {
    pub(super) connections: usize,
    last: Option<Instant>,
    /// Its collector sends single requests, so that a closed connection says nothing.
    uses_requests: bool,
    /// It is being deleted, or was: nobody may join it.
    pub(super) is_removed: bool,
}

/// A collector that is connected to a session, or about to be: the session counts it until this is dropped.
#[derive(Debug)]
pub(super) struct Connection(Arc<Session>);

impl Drop for Connection {
    fn drop(&mut self) {
        let mut presence = self.0.presence.lock();
        presence.connections = presence.connections.saturating_sub(1);
        presence.last = Some(Instant::now());
    }
}

/// A viewer of a session, which counts it until this is dropped.
#[derive(Debug)]
pub struct Viewing(Arc<Session>);

impl Viewing {
    /// Counts a viewer.
    pub fn begin(session: &Arc<Session>) -> Self {
        session.viewers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(session))
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        self.0.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// Counts a collector that shows its key; fails if it is another collector's, or if the session is being deleted.
    pub(super) fn connect(self: &Arc<Self>, key: &str) -> Result<Connection, IngestError> {
        if !Secret::from_hash(&self.look(|view| view.record.key_hash.clone())).is(key) {
            return Err(IngestError::Key);
        }
        let mut presence = self.presence.lock();
        if presence.is_removed {
            return Err(IngestError::Removed);
        }
        presence.connections += 1;
        Ok(Connection(Arc::clone(self)))
    }

    /// Returns whether it is live, ended or lost.
    pub fn state(&self, limits: &ServerLimits) -> SessionState {
        if self.look(|view| view.record.ended_us.is_some() || view.has_end) {
            return SessionState::Ended;
        }
        let presence = self.presence.lock();
        let seconds = if presence.uses_requests { limits.lost_seconds } else { limits.resume_seconds };
        let is_near = presence.last.is_some_and(|last| last.elapsed() < Duration::from_secs(seconds));
        if presence.connections > 0 || is_near { SessionState::Live } else { SessionState::Lost }
    }

    /// Whether a collector is connected.
    pub fn is_connected(&self) -> bool {
        self.presence.lock().connections > 0
    }

    /// Notes whether its collector sends single requests, or uses a socket.
    pub(super) fn note_transport(&self, uses_requests: bool) {
        self.presence.lock().uses_requests = uses_requests;
    }

    /// Returns the number of viewers.
    pub fn viewer_count(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }
}
