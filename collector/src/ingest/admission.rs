//! How a collector gets its session.

use std::sync::Arc;
use std::time::Duration;

use format::Header;
use trace::limits::ServerLimits;
use wire::{Hello, PROTOCOL, is_session};

use super::presence::Connection;
use super::retention::producer;
use super::session::record;
use super::view::View;
use super::writer::describe;
use super::{IngestError, Session, Sessions};
use crate::access::{Caller, Grant, Role, Seat, audit};
use crate::clock::now_us;
use crate::store::{Found, Record};

/// A collector that was admitted.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) session: Arc<Session>,
    /// What counts it among the session's connections.
    pub(super) connection: Connection,
    /// Its number among the session's connections.
    pub(super) number: u64,
    /// The batch that is expected next.
    pub(super) next: u64,
    /// Who sends it; its grant is known.
    pub(super) caller: Caller,
    /// Its count among the live sessions of its token.
    pub(super) seat: Option<Seat>,
}

impl Sessions {
    /// Admits a collector by its hello. Waits for the disk.
    pub(super) fn join(&self, hello: &Hello, caller: &Caller) -> Result<Joined, IngestError> {
        let joined = self.admit(hello, caller);
        if let Err(error) = &joined {
            let session = if is_session(&hello.session) { hello.session.as_str() } else { "" };
            self.note_store_error(session, error);
            error.log_refusal(session);
        }
        joined
    }

    fn admit(&self, hello: &Hello, caller: &Caller) -> Result<Joined, IngestError> {
        if hello.protocol != PROTOCOL {
            return Err(IngestError::Protocol(hello.protocol));
        }
        let grant = self.access().identify(caller, &hello.token)?;
        grant.check(Role::Ingest)?;
        if !is_session(&hello.session) || !is_session(&hello.key) {
            return Err(IngestError::Session);
        }
        if *self.stopping().borrow() {
            return Err(IngestError::Restart);
        }
        let seat = grant.seat(&hello.session, Duration::from_secs(self.limits().lost_seconds))?;
        let (session, connection, is_new) = self.enter(hello, &grant)?;
        match session.join(self.store(), *self.limits(), hello, is_new) {
            Ok((number, next)) => {
                let caller = Caller::with(caller.peer, grant);
                let note = if is_new && next == 1 { audit::session_begun } else { audit::session_resumed };
                note(&caller, &hello.session);
                Ok(Joined { session, connection, number, next, caller, seat: Some(seat) })
            }
            Err(error) => {
                drop(connection);
                self.forget_empty(&session);
                Err(error)
            }
        }
    }

    /// Connects a collector to its session, begun if necessary. Returns whether nothing is stored of it. Nobody forgets the
    /// session between the moment it is found and the moment it counts the connection.
    fn enter(&self, hello: &Hello, grant: &Grant) -> Result<(Arc<Session>, Connection, bool), IngestError> {
        if let Some(session) = self.get(&hello.session) {
            session.adopt(|| described(hello, self.limits()))?;
            let known = self.known();
            // It may have been forgotten since.
            if known.get(&hello.session).is_some_and(|found| Arc::ptr_eq(found, &session)) {
                let connection = session.connect(&hello.key)?;
                return Ok((session, connection, false));
            }
        }
        let mut record = described(hello, self.limits())?;
        grant.begin_session()?;
        record.producer = producer(grant.name(), &record.host);
        record.retention_us = self.retention_now_us();
        let segments = self.stored(hello)?;
        if !segments.is_empty() {
            record = describe(self.store(), &hello.session, &segments)?.0;
        }
        let session = Arc::new(Session::new(View::of_record(record), self.memory()));
        if segments.is_empty() && !self.is_loaded() {
            session.note_unlooked();
        }
        session.adopt(|| described(hello, self.limits()))?;
        // Another connection may have been faster.
        let mut known = self.known();
        let entered = Arc::clone(known.entry(hello.session.clone()).or_insert_with(|| Arc::clone(&session)));
        let is_new = Arc::ptr_eq(&entered, &session) && segments.is_empty();
        let connection = entered.connect(&hello.key).inspect_err(|_| {
            // Another collector's, as its labels say. It stays unknown until the store was looked through.
            if Arc::ptr_eq(&entered, &session) {
                known.remove(&hello.session);
            }
        })?;
        Ok((entered, connection, is_new))
    }

    /// Returns what is stored of a session that isn't known. Once the store was looked through, that is nothing. Before that,
    /// a collector that still has its first batch begins anew: whatever was stored of it, it sends again.
    fn stored(&self, hello: &Hello) -> Result<Vec<Found>, IngestError> {
        if self.is_loaded() {
            return Ok(Vec::new());
        }
        if hello.first == 1 && self.store().local_segments(&hello.session)?.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.store().segments(&hello.session)?)
    }
}

/// Returns the record of a new session, described by its hello.
fn described(hello: &Hello, limits: &ServerLimits) -> Result<Record, IngestError> {
    let mode: String = hello.mode.chars().take(limits.text_chars).collect();
    let mut new = record(&hello.session, &hello.key, &mode, now_us());
    if !hello.header.is_empty() {
        let header = Header::decode(&hello.header)
            .map_err(|fault| IngestError::Malformed(format!("the header in the hello can't be read: {fault}")))?;
        new.describe(&header, limits);
    }
    Ok(new)
}
