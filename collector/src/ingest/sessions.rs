//! All sessions of a server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::{Notify, Semaphore, watch};
use trace::limits::{ServerLimits, WireLimits};

use super::memory::Memory;
use super::retention_clock::RetentionClock;
use super::session::lock;
use super::view::View;
use super::writer::describe;
use super::{Counters, IngestError, Retention, Session};
use crate::access::{Access, audit};
use crate::brief_lock::{BriefGuard, BriefLock};
use crate::bus::LiveBus;
use crate::clock::now_us;
use crate::store::{Catalogue, Found, Record, SegmentInfo, SegmentStore, StoreError, StoreResult};

/// Bytes written to check that the store accepts writes.
const PROBE_BYTES: usize = 4_096;
/// All sessions of a server, with the store, the bus and the limits that they share.
#[derive(Debug)]
pub struct Sessions {
    store: Arc<SegmentStore>,
    bus: Arc<dyn LiveBus>,
    limits: ServerLimits,
    retention: Retention,
    access: Arc<Access>,
    /// The memory of the sessions that are being recorded.
    memory: Arc<Memory>,
    known: BriefLock<HashMap<String, Arc<Session>>>,
    /// Free places for collectors.
    pub(crate) collectors: Arc<Semaphore>,
    /// Free places for viewers.
    pub(crate) viewers: Arc<Semaphore>,
    /// Counters for the metrics.
    pub counters: Counters,
    is_full: AtomicBool,
    /// Whether the disk was full when something was written last.
    is_disk_full: AtomicBool,
    /// Held by whoever makes room, so that others who need room don't delete as much again.
    pub(super) room: Mutex<()>,
    /// Notified when room is needed before the next sweep.
    pub(crate) wants_sweep: Notify,
    /// Whether everything that is stored was looked through.
    is_loaded: AtomicBool,
    clock: BriefLock<(RetentionClock, Instant)>,
    /// Held by whoever saves the catalogue, so that an earlier one never replaces a later one.
    saving: Mutex<()>,
    /// What was in the catalogue when it was saved last, in short, and when that was.
    saved: BriefLock<Option<(u64, Instant)>>,
    stop: watch::Sender<bool>,
}

impl Sessions {
    /// Opens the sessions of a store, as far as its catalogue knows them. [`Self::load`] looks through the store itself.
    pub fn open(
        store: Arc<SegmentStore>,
        bus: Arc<dyn LiveBus>,
        limits: ServerLimits,
        retention: Retention,
        access: Arc<Access>,
    ) -> StoreResult<Self> {
        let catalogue = store.catalogue();
        let session_us = catalogue.records.values().map(|record| record.retention_us).max();
        let clock = RetentionClock::start(store.retention_us(), session_us, now_us());
        let memory = Memory::new(limits.states_bytes);
        let session = |(id, record): (String, Record)| (id, Arc::new(Session::new(View::of_record(record), &memory)));
        let known = catalogue.records.into_iter().map(session).collect();
        Ok(Self {
            store,
            bus,
            limits,
            retention,
            access,
            memory,
            known: BriefLock::new(known),
            collectors: Arc::new(Semaphore::new(limits.live_sessions)),
            viewers: Arc::new(Semaphore::new(limits.viewers)),
            counters: Counters::default(),
            is_full: AtomicBool::new(false),
            is_disk_full: AtomicBool::new(false),
            room: Mutex::new(()),
            wants_sweep: Notify::new(),
            is_loaded: AtomicBool::new(false),
            clock: BriefLock::new((clock, Instant::now())),
            saving: Mutex::new(()),
            saved: BriefLock::new(None),
            stop: watch::Sender::new(false),
        })
    }

    /// Looks through the store: finds what the catalogue doesn't know, and seals what was growing when the server ended.
    /// Sessions can be recorded and watched meanwhile. Waits for the disk.
    pub fn load(&self) -> StoreResult {
        let begun = Instant::now();
        let found = self.store.list()?;
        for (id, segments) in found.iter().filter(|(_, segments)| !segments.is_empty()) {
            if *self.stop.borrow() {
                return Ok(());
            }
            self.look_at(id, segments);
        }
        let gone = |session: &Arc<Session>| {
            found.get(session.id()).is_none_or(Vec::is_empty)
                && !session.is_connected()
                && session.look(|view| !view.segments.is_empty())
        };
        for session in self.all().iter().filter(|session| gone(session)) {
            if self.store.segments(session.id()).is_ok_and(|segments| segments.is_empty()) {
                self.note_missing(session, &session.look(View::to_record), Record::default());
            }
        }
        for session in self.all() {
            session.is_pinned(&self.store);
        }
        self.restore_clock_from_sessions();
        self.is_loaded.store(true, Ordering::Relaxed);
        tracing::info!(sessions = found.len(), seconds = begun.elapsed().as_secs_f64(), "store looked through");
        Ok(())
    }

    /// Whether everything that is stored was looked through.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// Compares what is known of a session with its segments, and reads them if they differ.
    fn look_at(&self, id: &str, segments: &[Found]) {
        let known = self.get(id);
        if let Some(session) = known.as_ref().filter(|session| session.is_connected()) {
            return self.set_strangers_aside(session, segments);
        }
        if known.as_ref().is_some_and(|session| session.look(|view| is_same(&view.segments, segments))) {
            return;
        }
        let described = describe(&self.store, id, segments);
        let record = match &described {
            Ok((record, _)) => record.clone(),
            Err(error) => {
                tracing::error!(session = id, "cannot read session: {error}");
                let notes = vec![format!("This session can't be read: {error}.")];
                Record { id: id.to_owned(), notes, ..Record::default() }
            }
        };
        let before = known.as_ref().map(|session| session.look(View::to_record));
        let session = known.unwrap_or_else(|| {
            let session = Arc::new(Session::new(View::of_record(record.clone()), &self.memory));
            Arc::clone(self.known().entry(id.to_owned()).or_insert(session))
        });
        session.show(record);
        let is_growing = segments.iter().any(|segment| segment.hash.is_none());
        if (is_growing || described.is_ok_and(|(_, is_complete)| !is_complete))
            && let Err(error) = session.load(&self.store, self.limits)
        {
            tracing::error!(session = id, "cannot resume session: {error}");
            session.note(format!("Cannot resume this session: {error}."));
        }
        if let Some(before) = before
            && !session.is_connected()
        {
            self.note_missing(&session, &before, session.look(View::to_record));
        }
        if is_growing && self.store.segments(id).is_ok_and(|segments| segments.is_empty()) {
            // Nothing of it could be read, and it was set aside.
            session.show(Record { id: id.to_owned(), ..Record::default() });
            self.forget_empty(&session);
        }
    }

    /// Sets stored segments of a session aside that its writer doesn't know: it was begun anew before the store could be
    /// looked through. Its collector has sent everything again that is in them.
    fn set_strangers_aside(&self, session: &Arc<Session>, segments: &[Found]) {
        for found in session.strangers(segments) {
            tracing::error!(
                session = session.id(),
                number = found.number,
                "a segment of an earlier attempt is set aside"
            );
            if let Err(error) = self.store.set_aside(session.id(), found) {
                tracing::error!(session = session.id(), number = found.number, "it can't be set aside: {error}");
            }
        }
    }

    /// Notes what of a session is missing, given what was known of it before.
    fn note_missing(&self, session: &Session, before: &Record, mut record: Record) {
        let found = record.clone();
        record.miss(before, self.store.marks(session.id()).unwrap_or_default().first_segment);
        if record != found {
            audit::segments_missing(session.id(), record.damaged_bytes);
            session.show(record);
        }
    }

    /// Sets the clock of retention by the latest time that any stored session knows of, if its own file is gone.
    fn restore_clock_from_sessions(&self) {
        if self.store.retention_us().is_some() {
            return;
        }
        let session_us = self.all().iter().map(|session| session.look(|view| view.record.retention_us)).max();
        let clock = RetentionClock::start(None, session_us, now_us());
        *self.clock.lock() = (clock, Instant::now());
    }

    /// Lets the clock of retention go on, and stores how far it came. Returns its time.
    pub(super) fn advance_retention_clock(&self) -> i64 {
        let mut clock = self.clock.lock();
        let passed = i64::try_from(clock.1.elapsed().as_micros()).unwrap_or(i64::MAX);
        clock.1 = Instant::now();
        if clock.0.advance(now_us(), passed) {
            tracing::warn!("the computer's clock has jumped; ages are counted without the jump");
        }
        let now = clock.0.now_us();
        drop(clock);
        if let Err(error) = self.store.set_retention_us(now) {
            tracing::error!("cannot store the clock of retention: {error}");
        }
        now
    }

    /// Returns the time of the clock of retention, as of the last sweep.
    pub(crate) fn retention_now_us(&self) -> i64 {
        self.clock.lock().0.now_us()
    }

    /// Saves the catalogue if it has changed and the last time is long ago.
    pub(super) fn save_catalogue(&self) {
        let pause = self.limits.catalogue_seconds;
        if self.saved.lock().as_ref().is_none_or(|(_, when)| when.elapsed().as_secs() >= pause) {
            self.save_catalogue_now();
        }
    }

    /// Makes the next [`Self::save_catalogue`] save it, however short ago the last time was.
    pub(super) fn outdate_catalogue(&self) {
        *self.saved.lock() = None;
    }

    /// Saves the catalogue if it has changed.
    pub(super) fn save_catalogue_now(&self) {
        if !self.is_loaded() {
            return;
        }
        let _saving = lock(&self.saving);
        let sessions = self.all();
        let closed = sessions.iter().filter(|session| !session.is_connected());
        let records = closed
            .map(|session| session.look(View::to_record))
            .filter(|record| !record.segments.is_empty() || record.last > 0);
        let catalogue = Catalogue { records: records.map(|record| (record.id.clone(), record)).collect() };
        let short = catalogue.short();
        if self.saved.lock().as_ref().is_some_and(|(saved, _)| *saved == short) {
            return;
        }
        match self.store.save_catalogue(&catalogue) {
            Ok(()) => *self.saved.lock() = Some((short, Instant::now())),
            Err(error) => tracing::error!("cannot save the catalogue: {error}"),
        }
    }

    /// Whether there are more sessions than the limit, so that old ones make room.
    pub(super) fn is_crowded(&self) -> bool {
        self.known().len() > self.limits.sessions
    }

    pub(super) fn known(&self) -> BriefGuard<'_, HashMap<String, Arc<Session>>> {
        self.known.lock()
    }

    /// Returns all sessions, in no particular order.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.known().values().cloned().collect()
    }

    /// Returns the session of a name.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.known().get(id).cloned()
    }

    /// Forgets a session that nobody can join any more.
    pub(super) fn forget(&self, session: &Arc<Session>) {
        self.forget_if(session, |_| true);
    }

    /// Forgets a session of which nothing is stored, unless a collector is about to join it.
    pub fn forget_empty(&self, session: &Arc<Session>) {
        // Under the lock, so that a collector who finds it retired finds no session the next time, and begins another one.
        self.forget_if(session, Session::retire);
    }

    fn forget_if(&self, session: &Arc<Session>, is_over: impl FnOnce(&Session) -> bool) {
        let mut known = self.known();
        // A new one may have its name.
        if known.get(session.id()).is_some_and(|found| Arc::ptr_eq(found, session) && is_over(found)) {
            known.remove(session.id());
        }
    }

    /// Returns who may use the server.
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Logs an error of the store, and remembers whether it refuses writes. Other errors are ignored.
    pub(super) fn note_store_error(&self, session: &str, error: &IngestError) {
        let IngestError::Store(cause) = error else { return };
        tracing::error!(session, "store error: {cause}");
        self.note_refusal(cause);
    }

    fn note_refusal(&self, cause: &StoreError) {
        if let StoreError::Full | StoreError::DiskFull | StoreError::Io(_) = cause {
            self.is_full.store(true, Ordering::Relaxed);
        }
        if let StoreError::DiskFull = cause
            && !self.is_disk_full.swap(true, Ordering::Relaxed)
        {
            self.wants_sweep.notify_one();
        }
    }

    /// Remembers that the store accepts writes.
    pub(super) fn note_store_success(&self) {
        self.is_disk_full.store(false, Ordering::Relaxed);
        if self.is_full.swap(false, Ordering::Relaxed) {
            tracing::info!(bytes = self.store.usage(), "the store accepts writes again");
        }
    }

    /// Whether the disk was full when something was written last.
    pub(super) fn is_disk_full(&self) -> bool {
        self.is_disk_full.load(Ordering::Relaxed)
    }

    /// Checks that what is recorded can be written now, and that the store can be reached. Waits for the disk.
    pub fn check_store(&self) -> StoreResult {
        // A store that refused a batch has recovered when it has space for one.
        let bytes = if self.is_full() { WireLimits::default().batch_bytes } else { PROBE_BYTES };
        match self.store.probe(bytes) {
            Ok(()) => self.note_store_success(),
            Err(cause) => {
                // Health checks come every few seconds: one line for each change.
                if !self.is_full.load(Ordering::Relaxed) {
                    tracing::error!(bytes = self.store.usage(), "store error: {cause}");
                }
                self.note_refusal(&cause);
                return Err(cause);
            }
        }
        self.store.check_reachable()
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
    pub fn store(&self) -> &Arc<SegmentStore> {
        &self.store
    }

    /// Returns the memory of the sessions that are being recorded.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the bus.
    pub fn bus(&self) -> &Arc<dyn LiveBus> {
        &self.bus
    }
}

/// Whether these are the segments that were found, and none of them grows.
fn is_same(known: &[SegmentInfo], found: &[Found]) -> bool {
    let is_equal = |(known, found): (&SegmentInfo, &Found)| {
        known.number == found.number
            && known.bytes == found.bytes
            && found.hash.is_some_and(|hash| hash.to_string() == known.hash)
    };
    known.len() == found.len() && known.iter().zip(found).all(is_equal)
}
