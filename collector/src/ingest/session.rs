//! One session, as collectors, viewers and routes share it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shared::limits::ServerLimits;
use shared::wire::{Batch, Message, SessionState};
use tokio::sync::{Notify, watch};

use super::counters::Counters;
use super::desk::{Desk, Taken};
use super::view::View;
use super::{IngestError, Secret};
use crate::bus::{LiveBus, Published};
use crate::store::{Record, StoreError, TraceStore};

/// What is asked of a collector waits for it; more is not needed, for there are two things to ask.
const ASKS: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct Session {
    id: String,
    desk: Mutex<Option<Desk>>,
    view: Mutex<View>,
    /// The number of the connection that may add; each new one takes the next.
    holder: watch::Sender<u64>,
    presence: Mutex<Presence>,
    asks: Mutex<Vec<String>>,
    /// There is something to ask.
    pub asked: Notify,
    /// How many watch.
    pub viewers: AtomicUsize,
}

#[derive(Debug, Default)]
struct Presence {
    connections: usize,
    last: Option<Instant>,
    is_removed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A desk whose thread panicked is dropped and opened again; everything else is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(super) fn new(view: View) -> Self {
        Self {
            id: view.record.id.clone(),
            desk: Mutex::new(None),
            view: Mutex::new(view),
            holder: watch::Sender::new(0),
            presence: Mutex::default(),
            asks: Mutex::default(),
            asked: Notify::new(),
            viewers: AtomicUsize::new(0),
        }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is shown of it.
    pub fn view(&self) -> View {
        lock(&self.view).clone()
    }

    /// Looks at what is shown of it, without copying all.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&lock(&self.view))
    }

    /// Live, ended or lost.
    pub fn state(&self, limits: &ServerLimits) -> SessionState {
        if self.look(|view| view.record.ended_us.is_some() || view.has_end) {
            return SessionState::Ended;
        }
        let presence = lock(&self.presence);
        let is_near = presence.last.is_some_and(|last| last.elapsed() < Duration::from_secs(limits.lost_seconds));
        if presence.connections > 0 || is_near { SessionState::Live } else { SessionState::Lost }
    }

    /// Whether a collector is connected.
    pub fn is_connected(&self) -> bool {
        lock(&self.presence).connections > 0
    }

    /// A collector speaks for the session from now on: its number, and the batch that is wanted. Waits for the disk.
    pub(super) fn join(
        &self,
        store: &Arc<dyn TraceStore>,
        limits: ServerLimits,
        key: &str,
    ) -> Result<(u64, u64), IngestError> {
        if !Secret::from_hash(&self.look(|view| view.record.key_hash.clone())).is(key) {
            return Err(IngestError::Key);
        }
        // At once, so that the old one lets go of the desk.
        self.holder.send_modify(|holder| *holder += 1);
        let number = *self.holder.borrow();
        let mut desk = lock(&self.desk);
        if lock(&self.presence).is_removed {
            return Err(IngestError::Busy("the session is being deleted"));
        }
        // What is not wanted again counts as acknowledged; the connection before this one may have gone without a sync.
        let synced = self.opened(&mut desk, store, limits)?.sync();
        if synced.is_err() {
            *desk = None;
        }
        let next = synced? + 1;
        let mut presence = lock(&self.presence);
        presence.connections += 1;
        presence.last = Some(Instant::now());
        Ok((number, next))
    }

    fn opened<'a>(
        &self,
        desk: &'a mut Option<Desk>,
        store: &Arc<dyn TraceStore>,
        limits: ServerLimits,
    ) -> Result<&'a mut Desk, IngestError> {
        if desk.is_none() {
            let opened = match Desk::open(store, &self.id, limits) {
                Err(IngestError::Store(StoreError::Missing)) => {
                    Desk::create(store, self.look(|view| view.record.clone()), limits)?
                }
                other => other?,
            };
            lock(&self.view).update(&opened);
            *desk = Some(opened);
        }
        desk.as_mut().ok_or(IngestError::Restart)
    }

    /// The collector has gone.
    pub(super) fn leave(&self) {
        let mut presence = lock(&self.presence);
        presence.connections = presence.connections.saturating_sub(1);
        presence.last = Some(Instant::now());
    }

    /// Who may add now.
    pub(super) fn holder(&self) -> watch::Receiver<u64> {
        self.holder.subscribe()
    }

    /// Lets a collector do something with the desk. After an error other than of order the desk is opened anew.
    fn with<T>(&self, number: u64, act: impl FnOnce(&mut Desk) -> Result<T, IngestError>) -> Result<T, IngestError> {
        let mut held = lock(&self.desk);
        if *self.holder.borrow() != number {
            return Err(IngestError::Replaced);
        }
        let desk = held.as_mut().ok_or(IngestError::Busy("the session has to be opened again"))?;
        let done = act(desk);
        if !matches!(done, Ok(_) | Err(IngestError::Order { .. } | IngestError::Ended)) {
            *held = None;
        }
        done
    }

    /// Adds a batch and hands it to who watches. Waits for the disk.
    pub(super) fn append(
        &self,
        number: u64,
        (seq, sent_us): (u64, i64),
        chunks: &mut Vec<u8>,
        bus: &dyn LiveBus,
        counters: &Counters,
    ) -> Result<u64, IngestError> {
        self.with(number, |desk| {
            let before = desk.totals().events();
            match desk.append((seq, sent_us), chunks)? {
                Taken::Known => counters.repeated.add(1),
                Taken::Added { end } => {
                    counters.batches.add(1);
                    counters.bytes.add(chunks.len() as u64);
                    counters.events.add(desk.totals().events().saturating_sub(before));
                    let mut view = lock(&self.view);
                    view.tick();
                    view.update(desk);
                    drop(view);
                    if bus.is_heard(&self.id) {
                        let frame = Message::Batch(Batch { seq, sent_us, chunks }).to_bytes();
                        bus.publish(&self.id, &Arc::new(Published { seq, frame, end }));
                    }
                }
            }
            Ok(desk.unsafe_bytes())
        })
    }

    /// Makes all that came safe; gives the last batch. Waits for the disk.
    pub(super) fn sync(&self, number: u64) -> Result<u64, IngestError> {
        self.with(number, Desk::sync)
    }

    /// The session ends. Waits for the disk.
    pub(super) fn end(&self, number: u64, seq: u64) -> Result<u64, IngestError> {
        self.with(number, |desk| {
            desk.end(seq)?;
            lock(&self.view).update(desk);
            Ok(desk.last())
        })
    }

    /// Opens the desk again after an error, for the same collector.
    pub(super) fn reopen(
        &self,
        number: u64,
        store: &Arc<dyn TraceStore>,
        limits: ServerLimits,
    ) -> Result<(), IngestError> {
        let mut desk = lock(&self.desk);
        if *self.holder.borrow() != number {
            return Err(IngestError::Replaced);
        }
        self.opened(&mut desk, store, limits).map(drop)
    }

    /// Reads what the store has of it into the view, and keeps nothing open: for a session that was there before the
    /// server.
    pub(super) fn load(&self, store: &Arc<dyn TraceStore>, limits: ServerLimits) -> Result<(), IngestError> {
        let desk = Desk::open(store, &self.id, limits)?;
        lock(&self.view).update(&desk);
        Ok(())
    }

    /// Says something about the session where it is shown.
    pub(super) fn note(&self, sentence: String) {
        lock(&self.view).record.notes.push(sentence);
    }

    /// Closes the desk of a session whose collector has gone. One that ended without a goodbye is closed for good.
    pub(super) fn rest(&self) {
        let mut held = lock(&self.desk);
        if self.is_connected() {
            return;
        }
        if let Some(desk) = held.as_mut()
            && desk.has_end()
        {
            // What can't be written now is known again after the next start.
            let _ = desk.end(desk.last());
            lock(&self.view).update(desk);
        }
        *held = None;
    }

    /// Drops the oldest segment; gives its bytes, 0 where only the last is left.
    pub(super) fn drop_oldest(&self, store: &Arc<dyn TraceStore>, limits: ServerLimits) -> Result<u64, IngestError> {
        let mut held = lock(&self.desk);
        let desk = self.opened(&mut held, store, limits)?;
        let bytes = desk.drop_oldest()?;
        lock(&self.view).update(desk);
        Ok(bytes)
    }

    /// Removes it from the store; refused while a collector is connected that may add to it.
    pub(super) fn remove(&self, store: &dyn TraceStore) -> Result<(), IngestError> {
        let mut held = lock(&self.desk);
        let has_ended = self.look(|view| view.record.ended_us.is_some());
        let mut presence = lock(&self.presence);
        if presence.connections > 0 && !has_ended {
            return Err(IngestError::Busy("the session is live"));
        }
        match store.remove(&self.id) {
            Ok(()) | Err(StoreError::Missing) => {}
            Err(error) => return Err(error.into()),
        }
        presence.is_removed = true;
        *held = None;
        Ok(())
    }

    /// Asks the collector for something, once it listens.
    pub fn ask(&self, what: &str) {
        let mut asks = lock(&self.asks);
        if asks.len() < ASKS && !asks.iter().any(|ask| ask == what) {
            asks.push(what.to_owned());
        }
        drop(asks);
        self.asked.notify_one();
    }

    /// What there is to ask, once.
    pub(super) fn take_asks(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.asks))
    }

    /// How many watch it.
    pub fn viewer_count(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }
}

/// A record for a session that is new here.
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
