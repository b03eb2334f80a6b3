//! All sessions of a server.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::format::Header;
use shared::limits::{ServerLimits, WireLimits};
use shared::wire::{Hello, PROTOCOL, is_session};
use tokio::sync::{Semaphore, watch};

use super::session::record;
use super::view::View;
use super::{Counters, IngestError, Retention, Session, now_us};
use crate::access::{Access, Caller, Role, Seat, audit};
use crate::bus::LiveBus;
use crate::store::{Record, StoreError, StoreResult, TraceStore};

/// Bytes written to check that the store accepts writes.
const PROBE_BYTES: usize = 4_096;

/// All sessions of a server, with the store, the bus and the limits that they share.
#[derive(Debug)]
pub struct Sessions {
    store: Arc<dyn TraceStore>,
    bus: Arc<dyn LiveBus>,
    limits: ServerLimits,
    retention: Retention,
    access: Arc<Access>,
    known: Mutex<HashMap<String, Arc<Session>>>,
    /// Free places for collectors.
    pub(crate) collectors: Arc<Semaphore>,
    /// Free places for viewers.
    pub(crate) viewers: Arc<Semaphore>,
    /// Counters for the metrics.
    pub counters: Counters,
    is_full: AtomicBool,
    stop: watch::Sender<bool>,
}

/// A collector that was admitted.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) session: Arc<Session>,
    /// Its number among the session's connections.
    pub(super) number: u64,
    /// The batch that is expected next.
    pub(super) next: u64,
    /// Who sends it; its grant is known.
    pub(super) caller: Caller,
    /// Its place among the live sessions of its token.
    pub(super) seat: Option<Seat>,
}

impl Sessions {
    /// Opens the sessions of a store. Damage to one of them becomes a note on it. Waits for the disk.
    pub fn open(
        store: Arc<dyn TraceStore>,
        bus: Arc<dyn LiveBus>,
        limits: ServerLimits,
        retention: Retention,
        access: Arc<Access>,
    ) -> StoreResult<Self> {
        let mut known = HashMap::new();
        for id in store.sessions()? {
            let read = store.record(&id).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
            // Without a record it was never begun: a crash came between the two steps.
            let Some(record) = read.filter(|record| record.id == id) else {
                tracing::warn!(session = id, "session skipped: its record is missing or damaged");
                continue;
            };
            let session = Session::new(View::of_record(record));
            if let Err(error) = session.load(&store, limits) {
                tracing::error!(session = id, "cannot resume session: {error}");
                session.note(format!("Cannot resume this session: {error}."));
            }
            known.insert(id, Arc::new(session));
        }
        Ok(Self {
            store,
            bus,
            limits,
            retention,
            access,
            known: Mutex::new(known),
            collectors: Arc::new(Semaphore::new(limits.live_sessions)),
            viewers: Arc::new(Semaphore::new(limits.viewers)),
            counters: Counters::default(),
            is_full: AtomicBool::new(false),
            stop: watch::Sender::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all sessions, in no particular order.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    /// Returns the session of a name.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Returns who may use the server.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

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
        let grant = self.access.identify(caller, &hello.token)?;
        grant.check(Role::Ingest)?;
        if !is_session(&hello.session) || !is_session(&hello.key) {
            return Err(IngestError::Session);
        }
        if *self.stop.borrow() {
            return Err(IngestError::Restart);
        }
        let seat = grant.seat(&hello.session, Duration::from_secs(self.limits.lost_seconds))?;
        let found = self.get(&hello.session);
        let (session, is_new) = match found {
            Some(session) => (session, false),
            None => {
                let record = described(hello, &self.limits)?;
                grant.begin_session()?;
                let mut known = self.lock();
                if known.len() >= self.limits.sessions {
                    return Err(IngestError::Busy("this server has reached its limit of sessions"));
                }
                match known.entry(hello.session.clone()) {
                    // Another connection was faster.
                    Entry::Occupied(found) => (Arc::clone(found.get()), false),
                    Entry::Vacant(place) => {
                        (Arc::clone(place.insert(Arc::new(Session::new(View::of_record(record))))), true)
                    }
                }
            }
        };
        match session.join(&self.store, self.limits, &hello.key) {
            Ok((number, next)) => {
                let caller = Caller::with(caller.peer, grant);
                let note = if is_new { audit::session_begun } else { audit::session_resumed };
                note(&caller, &hello.session);
                Ok(Joined { session, number, next, caller, seat: Some(seat) })
            }
            Err(error) => {
                if is_new && !matches!(error, IngestError::Key) {
                    self.forget(&hello.session);
                }
                Err(error)
            }
        }
    }

    /// Logs an error of the store, and remembers whether it refuses writes. Other errors are ignored.
    pub(super) fn note_store_error(&self, session: &str, error: &IngestError) {
        let IngestError::Store(cause) = error else { return };
        tracing::error!(session, "store error: {cause}");
        if let StoreError::Full | StoreError::Io(_) = cause {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Remembers that the store accepts writes.
    pub(super) fn note_store_success(&self) {
        if self.is_full.swap(false, Ordering::Relaxed) {
            tracing::info!(bytes = self.store.usage(), "the store accepts writes again");
        }
    }

    /// Checks that the store can be written now. Waits for the disk.
    pub fn check_store(&self) -> StoreResult {
        // A store that refused a batch has recovered when it has space for one.
        let bytes = if self.is_full() { WireLimits::default().batch_bytes } else { PROBE_BYTES };
        match self.store.probe(bytes) {
            Ok(()) => {
                self.note_store_success();
                Ok(())
            }
            Err(cause) => {
                // Health checks come every few seconds: one line for each change.
                if !self.is_full.swap(true, Ordering::Relaxed) {
                    tracing::error!(bytes = self.store.usage(), "store error: {cause}");
                }
                Err(cause)
            }
        }
    }

    /// Whether the store refused the last write.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Tells all collectors and viewers that the server stops.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Watches whether the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Returns the limits.
    pub fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// Returns the limits of what is kept.
    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn TraceStore> {
        &self.store
    }

    /// Returns the bus.
    pub fn bus(&self) -> &Arc<dyn LiveBus> {
        &self.bus
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
