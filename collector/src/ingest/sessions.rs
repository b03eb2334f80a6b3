//! All sessions of a server.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::format::{Decoder, Kind, prelude, seal};
use shared::limits::{ImportLimits, ServerLimits, WireLimits};
use shared::wire::{Hello, PROTOCOL, is_session};
use tokio::sync::{Semaphore, watch};

use super::session::record;
use super::view::View;
use super::{Counters, IngestError, Keep, Secret, Session, now_us};
use crate::bus::LiveBus;
use crate::store::{Record, StoreError, StoreResult, TraceStore};

/// Bytes that are written to see whether any can be.
const PROBE_BYTES: usize = 4_096;

/// See the module.
#[derive(Debug)]
pub struct Sessions {
    store: Arc<dyn TraceStore>,
    bus: Arc<dyn LiveBus>,
    limits: ServerLimits,
    keep: Keep,
    token: Option<Secret>,
    known: Mutex<HashMap<String, Arc<Session>>>,
    /// Places for collectors.
    pub(crate) collectors: Arc<Semaphore>,
    /// Places for viewers.
    pub(crate) viewers: Arc<Semaphore>,
    /// What is counted.
    pub counters: Counters,
    is_full: AtomicBool,
    stop: watch::Sender<bool>,
}

/// A collector that was let in.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) session: Arc<Session>,
    /// Its number among those of the session.
    pub(super) number: u64,
    /// The batch that is wanted.
    pub(super) next: u64,
}

impl Sessions {
    /// Those that a store has. What can't be read of one is said in its notes. Waits for the disk.
    pub fn open(
        store: Arc<dyn TraceStore>,
        bus: Arc<dyn LiveBus>,
        limits: ServerLimits,
        keep: Keep,
        token: Option<&str>,
    ) -> StoreResult<Self> {
        let mut known = HashMap::new();
        for id in store.sessions()? {
            let read = store.record(&id).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
            // Without a record it was never begun: a crash came between the two.
            let Some(record) = read.filter(|record| record.id == id) else { continue };
            let session = Session::new(View::of_record(record));
            if let Err(error) = session.load(&store, limits) {
                session.note(format!("It can't be gone on with: {error}."));
            }
            known.insert(id, Arc::new(session));
        }
        Ok(Self {
            store,
            bus,
            limits,
            keep,
            token: token.map(Secret::of),
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

    /// Every session, in no order.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    /// The session of a name.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Whether a text is the token, or none is wanted.
    pub fn accepts(&self, token: &str) -> bool {
        self.token.as_ref().is_none_or(|wanted| wanted.is(token))
    }

    /// Whether a token is wanted.
    pub fn wants_token(&self) -> bool {
        self.token.is_some()
    }

    /// A collector says hello. `is_known` where its request had the token. Waits for the disk.
    pub(super) fn join(&self, hello: &Hello, is_known: bool) -> Result<Joined, IngestError> {
        if hello.protocol != PROTOCOL {
            return Err(IngestError::Protocol(hello.protocol));
        }
        if !is_known && !self.accepts(&hello.token) {
            return Err(IngestError::Token);
        }
        if !is_session(&hello.session) || !is_session(&hello.key) {
            return Err(IngestError::Session);
        }
        if *self.stop.borrow() {
            return Err(IngestError::Restart);
        }
        let found = self.get(&hello.session);
        let (session, is_new) = match found {
            Some(session) => (session, false),
            None => {
                let record = described(hello, &self.limits)?;
                let mut known = self.lock();
                if known.len() >= self.limits.sessions {
                    return Err(IngestError::Busy("this server keeps as many sessions as it can"));
                }
                match known.entry(hello.session.clone()) {
                    // Another connection was quicker.
                    Entry::Occupied(found) => (Arc::clone(found.get()), false),
                    Entry::Vacant(place) => {
                        (Arc::clone(place.insert(Arc::new(Session::new(View::of_record(record))))), true)
                    }
                }
            }
        };
        match session.join(&self.store, self.limits, &hello.key) {
            Ok((number, next)) => Ok(Joined { session, number, next }),
            Err(error) => {
                if is_new && !matches!(error, IngestError::Key) {
                    self.forget(&hello.session);
                }
                self.heed(&error);
                Err(error)
            }
        }
    }

    /// Remembers whether the store took what it was given.
    pub(super) fn heed(&self, error: &IngestError) {
        if let IngestError::Store(StoreError::Full | StoreError::Io(_)) = error {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_well(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// Whether the store can be written, now. Waits for the disk.
    pub fn check_store(&self) -> StoreResult {
        // One that refused a batch is well again when a batch has room.
        let bytes = if self.is_full() { WireLimits::default().batch_bytes } else { PROBE_BYTES };
        let probed = self.store.probe(bytes);
        self.is_full.store(probed.is_err(), Ordering::Relaxed);
        probed
    }

    /// Whether the store took what came last.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Tells every collector and viewer that the server stops.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the server stops, and word of it.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// The bounds.
    pub fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// What is kept.
    pub fn keep(&self) -> &Keep {
        &self.keep
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn TraceStore> {
        &self.store
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<dyn LiveBus> {
        &self.bus
    }
}

/// A record by what a hello says.
fn described(hello: &Hello, limits: &ServerLimits) -> Result<Record, IngestError> {
    let mode: String = hello.mode.chars().take(limits.text_chars).collect();
    let mut new = record(&hello.session, &hello.key, &mode, now_us());
    if !hello.header.is_empty() {
        // The one reader of headers is that of recordings; this is the beginning of one.
        let mut decoder = Decoder::new(ImportLimits::default());
        let chunk = seal(Kind::Header as u8, &hello.header);
        let read = decoder.push(&prelude()).and_then(|()| decoder.push(&chunk));
        match (read, &decoder.recording().header) {
            (Ok(()), Some(header)) => new.describe(header, limits),
            _ => return Err(IngestError::Malformed("the header in the hello can't be read".to_owned())),
        }
    }
    Ok(new)
}
