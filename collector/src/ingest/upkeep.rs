//! What retention and people do with a session: pin it, announce its deletion, shorten it, delete it.
//!
//! Each of these reads what another one writes, so one waits for the other, for as long as the store needs. Nobody else waits:
//! neither the session's collector nor any route.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::session::lock;
use super::{IngestError, Session};
use crate::store::{Marks, SegmentStore, StoreError};

impl Session {
    /// Whether retention keeps it. Waits for the disk.
    pub fn is_pinned(&self, store: &Arc<SegmentStore>) -> bool {
        // What can't be read is kept.
        let read = || store.marks(self.id()).map_or(true, |marks| marks.is_pinned);
        self.pinned.get_or_init(|| AtomicBool::new(read())).load(Ordering::Relaxed)
    }

    /// Whether retention keeps it, as far as that was read from the disk already.
    pub fn is_known_pinned(&self) -> bool {
        self.pinned.get().is_some_and(|pinned| pinned.load(Ordering::Relaxed))
    }

    fn set_pinned(&self, is_pinned: bool) {
        self.pinned.get_or_init(AtomicBool::default).store(is_pinned, Ordering::Relaxed);
        self.view.lock().delete_us = None;
    }

    /// Notes when it will be deleted, by the clock of retention.
    pub(super) fn announce(&self, delete_us: i64) {
        self.view.lock().delete_us = Some(delete_us);
    }

    /// Returns the marks of the session to change them, for as long as nobody else does. Waits for whoever has them, and for
    /// the store.
    fn change_marks<T>(
        &self,
        store: &Arc<SegmentStore>,
        change: impl FnOnce(&mut Marks) -> T,
    ) -> Result<T, StoreError> {
        let _upkeep = lock(&self.upkeep);
        let mut marks = store.marks(self.id())?;
        let before = marks.clone();
        let changed = change(&mut marks);
        if marks != before {
            store.set_marks(self.id(), &marks)?;
        }
        Ok(changed)
    }

    /// Pins the session, or unpins it. Waits for the store.
    pub(super) fn pin(&self, store: &Arc<SegmentStore>, is_pinned: bool) -> Result<(), StoreError> {
        self.change_marks(store, |marks| (marks.is_pinned, marks.announced_us) = (is_pinned, None))?;
        self.set_pinned(is_pinned);
        Ok(())
    }

    /// Notes that retention announces its deletion at a time, unless it is pinned or was announced since its latest batch.
    /// Returns when it was announced; `None` if it is pinned. Waits for the store.
    pub(super) fn announced(&self, store: &Arc<SegmentStore>, now_us: i64) -> Result<Option<i64>, StoreError> {
        let retention_us = self.look(|view| view.record.retention_us);
        self.change_marks(store, |marks| {
            let announced = marks.announced_us.filter(|announced| *announced > retention_us).unwrap_or(now_us);
            if !marks.is_pinned {
                marks.announced_us = Some(announced);
            }
            (!marks.is_pinned).then_some(announced)
        })
    }

    /// Deletes the oldest segment. Returns its bytes; 0 if only one is left. Its collector goes on meanwhile.
    pub(super) fn drop_oldest(&self, store: &Arc<SegmentStore>) -> Result<u64, IngestError> {
        let _upkeep = lock(&self.upkeep);
        let oldest = self.look(|view| match &view.segments[..] {
            [oldest, next, ..] => Some((oldest.found(), next.number)),
            _ => None,
        });
        let Some((oldest, next)) = oldest else { return Ok(0) };
        if self.presence.lock().is_removed {
            return Ok(0);
        }
        // The marks first: they tell a segment that was deleted from one that was lost.
        let mut marks = store.marks(self.id())?;
        marks.first_segment = next;
        match store.set_marks(self.id(), &marks) {
            // The segment makes the room that the marks need.
            Err(StoreError::DiskFull) => {
                store.remove_segment(self.id(), oldest)?;
                store.set_marks(self.id(), &marks)?;
            }
            marked => {
                marked?;
                store.remove_segment(self.id(), oldest)?;
            }
        }
        let mut held = lock(&self.writer);
        if let Some(writer) = held.as_mut() {
            writer.forget_segment(oldest.number);
        }
        let mut view = self.view.lock();
        view.segments.retain(|segment| segment.number != oldest.number);
        view.record.is_shortened = true;
        Ok(oldest.bytes)
    }

    /// Makes it a session that nobody can join, unless somebody is connected or something of it is stored.
    pub(super) fn retire(&self) -> bool {
        let mut presence = self.presence.lock();
        let is_empty = self.look(|view| view.segments.is_empty() && view.last == 0);
        let is_retired = is_empty && presence.connections == 0;
        presence.is_removed |= is_retired;
        is_retired
    }

    /// Deletes it from the store; fails while a collector is connected that may append to it. Only requests for this session
    /// wait meanwhile.
    pub(super) fn remove(&self, store: &SegmentStore) -> Result<(), IngestError> {
        let _upkeep = lock(&self.upkeep);
        let has_ended = self.look(|view| view.record.ended_us.is_some());
        {
            let mut presence = self.presence.lock();
            if presence.connections > 0 && !has_ended {
                return Err(IngestError::Busy("the session is live"));
            }
            // From here on nobody joins it.
            presence.is_removed = true;
        }
        let closed = (lock(&self.writer).take(), lock(&self.growing).take());
        drop(closed);
        match store.remove(self.id()) {
            Ok(()) | Err(StoreError::Missing) => Ok(()),
            Err(error) => {
                self.presence.lock().is_removed = false;
                Err(error.into())
            }
        }
    }
}
