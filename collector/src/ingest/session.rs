//! One session, shared by collectors, viewers and routes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use tokio::sync::{Notify, watch};
use trace::limits::ServerLimits;
use trace::units::Bytes;
use wire::{Batch, Hello, Message};

use super::IngestError;
use super::counters::Counters;
use super::gaps::{DeviceGaps, Gaps};
use super::memory::Memory;
use super::presence::Presence;
use super::view::View;
use super::writer::{Appended, Growing, SessionWriter, last_label};
use crate::access::{Secret, audit};
use crate::brief_lock::BriefLock;
use crate::bus::{LiveBus, Published};
use crate::store::{Found, Record, SegmentStore, SessionTotals};

/// The most questions that wait for a collector. There are only two different ones.
const ASKS: usize = 4;

/// A recorded job: its writer, what is shown of it, and its connections.
#[derive(Debug)]
pub struct Session {
    id: String,
    /// Held while its segments are sealed, read back or written: by its own collector, and by whoever closes it.
    pub(super) writer: Mutex<Option<SessionWriter>>,
    /// Held while it is pinned, announced, shortened or deleted, which may take as long as the store needs: each of these
    /// reads what another one writes.
    pub(super) upkeep: Mutex<()>,
    /// The budget for what its writer keeps in memory.
    memory: Arc<Memory>,
    /// The last segment of a writer that was closed after an error.
    pub(super) growing: Mutex<Option<Growing>>,
    pub(super) view: BriefLock<View>,
    gaps: Mutex<Gaps>,
    /// The number of the connection that may append; each new one gets the next.
    holder: watch::Sender<u64>,
    pub(super) presence: BriefLock<Presence>,
    asks: BriefLock<Vec<String>>,
    /// Notified when there is something to ask the collector.
    pub asked: Notify,
    pub(super) viewers: AtomicUsize,
    /// Whether retention keeps it; unknown until somebody asks.
    pub(super) pinned: OnceLock<AtomicBool>,
    /// Whether it was begun before the store could be looked through.
    is_unlooked: AtomicBool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A writer whose thread panicked is dropped and opened again; the other values are consistent at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(super) fn new(view: View, memory: &Arc<Memory>) -> Self {
        Self {
            id: view.record.id.clone(),
            writer: Mutex::new(None),
            upkeep: Mutex::new(()),
            memory: Arc::clone(memory),
            growing: Mutex::new(None),
            view: BriefLock::new(view),
            gaps: Mutex::default(),
            holder: watch::Sender::new(0),
            presence: BriefLock::default(),
            asks: BriefLock::default(),
            asked: Notify::new(),
            viewers: AtomicUsize::new(0),
            pinned: OnceLock::new(),
            is_unlooked: AtomicBool::new(false),
        }
    }

    /// Returns its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns a copy of what is shown of it.
    pub fn view(&self) -> View {
        self.view.lock().clone()
    }

    /// Reads from what is shown of it, without copying everything.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.view.lock())
    }

    /// Returns the gaps of its devices' memory as of its newest batch, or of one shortly before: see
    /// [`ServerLimits::gap_pause`]. While the session waits for the disk, those of an earlier batch.
    pub fn gaps(&self, limits: &ServerLimits) -> Vec<DeviceGaps> {
        let mut gaps = lock(&self.gaps);
        if gaps.is_due(self.look(|view| view.last))
            && let Some(held) = self.try_writer()
            && let Some(writer) = held.as_ref()
        {
            gaps.take(limits.gap_pause, || (writer.last(), writer.gaps()));
        }
        gaps.devices()
    }

    /// Returns the writer unless somebody has it.
    fn try_writer(&self) -> Option<MutexGuard<'_, Option<SessionWriter>>> {
        match self.writer.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the description of a collector for a session whose own can't be read any more, its key included: otherwise
    /// nobody could go on with it. A session's name is as hard to guess as its key.
    pub(super) fn adopt(&self, described: impl FnOnce() -> Result<Record, IngestError>) -> Result<(), IngestError> {
        if self.look(|view| view.record.key_hash.is_empty()) {
            let new = described()?;
            let mut view = self.view.lock();
            let Record { notes, damaged_bytes, retention_us, .. } = std::mem::take(&mut view.record);
            view.record = Record { notes, damaged_bytes, retention_us: retention_us.max(new.retention_us), ..new };
        }
        Ok(())
    }

    /// Admits a collector that is connected, in place of any earlier one. Returns its number and the batch that is expected
    /// next. Of a new session, nothing is looked for in the store. Waits for the disk.
    pub(super) fn join(
        &self,
        store: &Arc<SegmentStore>,
        limits: ServerLimits,
        hello: &Hello,
        is_new: bool,
    ) -> Result<(u64, u64), IngestError> {
        // At once, so that the earlier connection releases the writer.
        self.holder.send_modify(|holder| *holder += 1);
        let number = *self.holder.borrow();
        let mut writer = lock(&self.writer);
        let was_open = writer.is_some();
        if is_new && !was_open {
            *writer = Some(self.begun(store, limits)?);
        }
        // Batches that are not requested again count as acknowledged, so they must be durable: the earlier connection
        // may have ended without a sync.
        let opened = self.opened(&mut writer, store, limits)?;
        opened.welcome(hello.first, &hello.header);
        // What is recorded again is not too old.
        self.view.lock().delete_us = None;
        let synced = opened.sync();
        self.view.lock().update(opened);
        if synced.is_err() {
            *writer = None;
        }
        let next = synced? + 1;
        let (seq, bytes) = self.look(|view| (view.last, view.bytes()));
        if was_open {
            tracing::debug!(session = self.id, seq, bytes, "collector reconnected");
        } else if seq > 0 {
            tracing::info!(session = self.id, seq, bytes, "session resumed");
        } else {
            tracing::info!(session = self.id, seq, bytes, "session begun");
        }
        Ok((number, next))
    }

    /// Returns the writer of a session of which nothing is stored.
    fn begun(&self, store: &Arc<SegmentStore>, limits: ServerLimits) -> Result<SessionWriter, IngestError> {
        let mut writer = SessionWriter::new(store, self.look(|view| view.record.clone()), limits);
        writer.count_in(&self.memory)?;
        Ok(writer)
    }

    /// Returns the writer, opened or created if necessary.
    fn opened<'a>(
        &self,
        writer: &'a mut Option<SessionWriter>,
        store: &Arc<SegmentStore>,
        limits: ServerLimits,
    ) -> Result<&'a mut SessionWriter, IngestError> {
        if writer.is_none() {
            let growing = lock(&self.growing).take();
            let mut opened = match SessionWriter::open(store, &self.id, limits, growing)? {
                Some(mut opened) => {
                    opened.count_in(&self.memory)?;
                    opened
                }
                None => self.begun(store, limits)?,
            };
            opened.adopt(&self.look(|view| view.record.clone()));
            self.view.lock().update(&opened);
            *writer = Some(opened);
        }
        writer.as_mut().ok_or(IngestError::Restart)
    }

    /// Watches the number of the connection that may append.
    pub(super) fn holder(&self) -> watch::Receiver<u64> {
        self.holder.subscribe()
    }

    /// Runs an action of the current collector on the writer. After an error, unless it only concerns the batch's
    /// number, the writer is closed and must be opened again.
    fn with<T>(
        &self,
        number: u64,
        act: impl FnOnce(&mut SessionWriter) -> Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        let mut held = lock(&self.writer);
        if *self.holder.borrow() != number {
            return Err(IngestError::Replaced);
        }
        let writer = held.as_mut().ok_or(IngestError::Busy("the session must be opened again"))?;
        let done = act(writer);
        if !matches!(done, Ok(_) | Err(IngestError::Order { .. } | IngestError::Ended)) {
            // A segment that can still be written on is continued. After a failed sync it can't: what the disk has of it is
            // unknown, so its batches are copied into a new one.
            *lock(&self.growing) = held.take().and_then(SessionWriter::into_growing);
        }
        done
    }

    /// Appends a batch and publishes it to the viewers. Returns the bytes that are not synced yet. Waits for the disk.
    pub(super) fn append(
        &self,
        number: u64,
        (seq, sent_us): (u64, i64),
        chunks: &mut Vec<u8>,
        (bus, counters, retention_us): (&dyn LiveBus, &Counters, i64),
    ) -> Result<u64, IngestError> {
        self.with(number, |writer| {
            let before = (writer.totals().events(), writer.totals().ooms());
            match writer.append((seq, sent_us), chunks, retention_us)? {
                Appended::Duplicate => counters.repeated.add(1),
                Appended::Stored { end } => {
                    counters.batches.add(1);
                    counters.bytes.add(chunks.len() as u64);
                    counters.events.add(writer.totals().events().saturating_sub(before.0));
                    counters.ooms.add(writer.totals().ooms().saturating_sub(before.1));
                    let mut view = self.view.lock();
                    view.sample_rate();
                    view.update(writer);
                    drop(view);
                    if bus.has_subscribers(&self.id) {
                        let message = Message::Batch(Batch { seq, sent_us, chunks }).to_bytes();
                        bus.publish(&self.id, &Arc::new(Published { seq, message, end }));
                    }
                }
            }
            Ok(writer.unsynced_bytes())
        })
    }

    /// Makes all received batches durable. Returns the last one's number. Waits for the disk.
    pub(super) fn sync(&self, number: u64) -> Result<u64, IngestError> {
        self.with(number, SessionWriter::sync)
    }

    /// Ends the session with the batch `seq`. Returns the last batch's number. Waits for the disk.
    pub(super) fn end(&self, number: u64, seq: u64) -> Result<u64, IngestError> {
        self.with(number, |writer| {
            self.end_with(writer, seq)?;
            Ok(writer.last())
        })
    }

    fn end_with(&self, writer: &mut SessionWriter, seq: u64) -> Result<(), IngestError> {
        let was_ended = writer.record().ended_us.is_some();
        writer.end(seq)?;
        let mut view = self.view.lock();
        view.update(writer);
        if !was_ended {
            tracing::info!(session = self.id, seq = view.last, bytes = view.bytes(), "session ended");
        }
        Ok(())
    }

    /// Opens the writer again after an error, for the same collector.
    pub(super) fn reopen(
        &self,
        number: u64,
        store: &Arc<SegmentStore>,
        limits: ServerLimits,
    ) -> Result<(), IngestError> {
        let mut writer = lock(&self.writer);
        if *self.holder.borrow() != number {
            return Err(IngestError::Replaced);
        }
        self.opened(&mut writer, store, limits).map(drop)
    }

    /// Reads what the store holds of it into the view and seals what was growing: for a session that is older than this
    /// server process. Does nothing while its writer is open.
    pub(super) fn load(&self, store: &Arc<SegmentStore>, limits: ServerLimits) -> Result<(), IngestError> {
        let held = lock(&self.writer);
        if held.is_none()
            && let Some(writer) = SessionWriter::open(store, &self.id, limits, None)?
        {
            let mut view = self.view.lock();
            view.update(&writer);
            view.lighten();
        }
        Ok(())
    }

    /// Notes that it was begun before the store could be looked through, which may have segments of the same name.
    pub(super) fn note_unlooked(&self) {
        self.is_unlooked.store(true, Ordering::Relaxed);
    }

    /// Returns which of these stored segments are not its own. Waits for the disk.
    pub(super) fn strangers(&self, found: &[Found]) -> Vec<Found> {
        if !self.is_unlooked.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        // What is sealed at this moment is shown once the writer is free.
        let _held = lock(&self.writer);
        let own = self.look(|view| view.segments.clone());
        let is_own = |found: &Found| {
            own.iter().enumerate().any(|(at, segment)| {
                // A segment that could not be sealed, or not be seen to be, has no hash; only the last one grows.
                let may_be_sealed = segment.hash.is_empty() && at + 1 < own.len();
                segment.number == found.number && (may_be_sealed || segment.found().hash == found.hash)
            })
        };
        found.iter().filter(|found| found.hash.is_some() && !is_own(found)).copied().collect()
    }

    /// Replaces what is shown of it, unless its writer is open.
    pub(super) fn show(&self, record: Record) {
        let held = lock(&self.writer);
        if held.is_none() {
            *self.view.lock() = View::of_record(record);
        }
    }

    /// Adds a note that is shown with the session.
    pub(super) fn note(&self, sentence: String) {
        self.view.lock().record.notes.push(sentence);
    }

    /// Returns its totals with their series over time. Reads them from the store if the session is not open.
    pub fn totals(&self, store: &Arc<SegmentStore>) -> SessionTotals {
        if self.try_writer().is_some_and(|held| held.is_none()) {
            let segments = self.look(|view| view.segments.clone());
            let label = segments.iter().rev().find_map(|segment| last_label(store, &self.id, segment.found()));
            if let Some(label) = label {
                return label.record.totals;
            }
        }
        self.look(|view| view.totals.clone())
    }

    /// Says on it that a stored segment was found damaged when it was read.
    pub fn note_damage(&self, number: u32, bytes: u64) {
        let note = format!(
            "{} of part {number} of this recording are damaged on the server's disk. Their events are counted as lost.",
            Bytes(bytes).exact()
        );
        let mut view = self.view.lock();
        if !view.record.notes.contains(&note) {
            audit::segment_damaged(&self.id, (number, bytes), "kept");
            view.record.damaged_bytes += bytes;
            view.record.notes.push(note);
        }
    }

    /// Closes the writer of a session whose collector disconnected, and seals its last segment. A session whose recording
    /// has ended, but whose collector said no goodbye, is ended.
    pub(super) fn close(&self, store: &Arc<SegmentStore>, limits: ServerLimits) {
        let mut held = lock(&self.writer);
        if self.is_connected() {
            return;
        }
        let growing = lock(&self.growing).take();
        if held.is_none() && growing.is_some() {
            // It was closed after an error, and nobody came back.
            *held = SessionWriter::open(store, &self.id, limits, growing).unwrap_or_else(|error| {
                tracing::error!(session = self.id, "the session could not be opened again: {error}");
                None
            });
        }
        let Some(mut writer) = held.take() else { return };
        let is_empty = writer.is_empty();
        let closed = if is_empty {
            // Nothing but the head of its only segment.
            writer
                .segments()
                .iter()
                .try_for_each(|segment| store.remove_open(&self.id, segment.number))
                .map_err(IngestError::from)
        } else if writer.has_end() {
            let last = writer.last();
            self.end_with(&mut writer, last)
        } else {
            writer.seal()
        };
        if let Err(error) = closed {
            // The segment stays in the log, and is sealed when the session is opened again.
            tracing::error!(session = self.id, seq = writer.last(), "the session could not be sealed: {error}");
        }
        let mut view = self.view.lock();
        view.update(&writer);
        view.lighten();
        if is_empty {
            view.segments.clear();
        }
    }

    /// Asks the collector for something, as soon as it is connected.
    pub fn ask(&self, what: &str) {
        let mut asks = self.asks.lock();
        if asks.len() < ASKS && !asks.iter().any(|ask| ask == what) {
            asks.push(what.to_owned());
        }
        drop(asks);
        self.asked.notify_one();
    }

    /// Removes and returns the waiting questions.
    pub(super) fn drain_asks(&self) -> Vec<String> {
        std::mem::take(&mut *self.asks.lock())
    }
}

/// Returns the record of a new session.
pub(super) fn record(id: &str, key: &str, mode: &str, now_us: i64) -> Record {
    Record {
        id: id.to_owned(),
        key_hash: Secret::of(key).as_str().to_owned(),
        mode: mode.to_owned(),
        created_us: now_us,
        started_us: now_us,
        last_us: now_us,
        ..Record::default()
    }
}
