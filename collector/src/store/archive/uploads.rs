//! Uploads sealed segments, one after the other, whatever becomes of each of them.
//!
//! A segment that the object store refuses is tried again after a pause of its own, and the others go on meanwhile. The local
//! file stays until something else on this machine tells that the session exists: the catalogue, or a later segment that is
//! still growing. So a session whose object is gone is missed, whenever the server was killed.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use object_store::ObjectStoreExt;
use trace::limits::ObjectLimits;

use super::Sealed;
use super::line::within;
use super::objects::Objects;
use super::parts::Stop;
use crate::brief_lock::BriefLock;
use crate::store::layout::{LOG, parse_log, pending_path, sealed_path};
use crate::store::{Catalogue, StoreError, StoreResult, Uploads};

/// How often the thread looks whether it may upload, while it may not, and whether local files can go.
const LOOK: Duration = Duration::from_millis(500);

/// A sealed segment in the local folder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upload {
    pub(super) session: String,
    pub(super) sealed: Sealed,
}

impl Upload {
    /// Returns the path of its local file.
    pub(super) fn path(&self) -> StoreResult<String> {
        pending_path(&self.session, self.sealed.number, self.sealed.hash)
    }
}

/// An upload that waits for its turn.
#[derive(Debug)]
struct Waiting {
    upload: Upload,
    since: Instant,
    due: Instant,
    pause: Duration,
    /// Whether an earlier server may have uploaded it already.
    is_left_over: bool,
}

/// What waits to be uploaded, and what was uploaded and still has its local file.
#[derive(Debug)]
pub(super) struct UploadQueue {
    waiting: BriefLock<Vec<Waiting>>,
    /// What is being uploaded. If its local file is gone, it was removed meanwhile: its object doesn't count, and is deleted
    /// when the upload is over.
    current: BriefLock<Option<Upload>>,
    copies: BriefLock<Vec<Upload>>,
    /// Tells the thread, and what it sends, that the server ends.
    pub(super) stop: Stop,
    pauses: (Duration, Duration),
}

impl UploadQueue {
    pub(super) fn new(limits: &ObjectLimits) -> Self {
        Self {
            waiting: BriefLock::default(),
            current: BriefLock::default(),
            copies: BriefLock::default(),
            stop: Stop::default(),
            pauses: limits.upload_pauses,
        }
    }

    /// Adds a segment. The thread of [`Objects::run_uploads`] has to be woken then.
    pub(super) fn add(&self, upload: Upload, is_left_over: bool) {
        let now = Instant::now();
        self.waiting.lock().push(Waiting { upload, since: now, due: now, pause: self.pauses.0, is_left_over });
    }

    /// Returns what waits.
    pub(super) fn uploads(&self) -> Uploads {
        let copies = self.copies.lock().len() as u64;
        let waiting = self.waiting.lock();
        Uploads {
            count: waiting.len() as u64,
            bytes: waiting.iter().map(|waiting| waiting.upload.sealed.bytes).sum(),
            oldest: waiting.iter().map(|waiting| waiting.since.elapsed()).max().unwrap_or_default(),
            copies,
        }
    }

    /// Returns what is being uploaded.
    pub(super) fn current(&self) -> Option<Upload> {
        self.current.lock().clone()
    }

    /// Returns the upload that is due first, and whether an earlier server may have made it; or how long nothing is due.
    fn next(&self) -> Result<(Upload, bool), Duration> {
        let (waiting, now) = (self.waiting.lock(), Instant::now());
        match waiting.iter().min_by_key(|waiting| waiting.due) {
            Some(first) if first.due <= now => Ok((first.upload.clone(), first.is_left_over)),
            Some(first) => Err(first.due - now),
            None => Err(Duration::from_secs(3_600)),
        }
    }

    /// Notes the outcome of an upload.
    fn note(&self, upload: &Upload, is_done: bool) {
        let mut waiting = self.waiting.lock();
        let Some(at) = waiting.iter().position(|waiting| waiting.upload == *upload) else { return };
        if is_done {
            waiting.remove(at);
        } else if let Some(failed) = waiting.get_mut(at) {
            failed.due = Instant::now() + failed.pause;
            failed.pause = (failed.pause * 2).min(self.pauses.1);
        }
    }
}

impl Objects {
    /// Uploads what waits until the queue is stopped.
    pub(super) fn run_uploads(&self) {
        let mut settled = Instant::now();
        while !self.queue.stop.is_set() {
            if self.check().is_err() {
                thread::park_timeout(LOOK);
                continue;
            }
            let next = self.queue.next();
            if settled.elapsed() >= LOOK || next.is_err() {
                self.settle(&Catalogue::default());
                settled = Instant::now();
            }
            let (upload, is_left_over) = match next {
                Ok(next) => next,
                Err(pause) => {
                    thread::park_timeout(pause);
                    continue;
                }
            };
            *self.queue.current.lock() = Some(upload.clone());
            let done = self.upload(&upload, is_left_over);
            *self.queue.current.lock() = None;
            self.queue.note(&upload, done.is_ok());
            if let Err(error) = done
                && !self.queue.stop.is_set()
            {
                let Upload { session, sealed } = &upload;
                tracing::error!(
                    session,
                    number = sealed.number,
                    "cannot upload a segment, trying again later: {error}"
                );
            }
        }
    }

    fn upload(&self, upload: &Upload, is_left_over: bool) -> StoreResult {
        let Upload { session, sealed } = upload;
        let (path, place) = (upload.path()?, self.place(&sealed_path(session, sealed.number, sealed.hash)?));
        let is_there = is_left_over && self.length(place.clone())? == Some(sealed.bytes);
        if !is_there {
            let stored = match self.send(&path, sealed.bytes, place.clone()) {
                // Deleted while it waited.
                Err(StoreError::Missing) => return Ok(()),
                stored => stored?,
            };
            if stored != sealed.bytes {
                return Err(StoreError::Damaged(format!("{stored} of {} bytes arrived", sealed.bytes)));
            }
        }
        if let Err(StoreError::Missing) = self.files.read(&path, 0, 0).map_err(StoreError::from) {
            // Deleted while it was uploaded.
            return self.delete(&[place], self.limits.request_seconds);
        }
        self.note_uploaded(session, *sealed);
        // From here on its local file may be gone, and it still counts.
        *self.queue.current.lock() = None;
        self.queue.copies.lock().push(upload.clone());
        Ok(())
    }

    /// Returns the length of an object in bytes; `None` if there is none.
    fn length(&self, place: object_store::path::Path) -> StoreResult<Option<u64>> {
        let store = self.store();
        let asked =
            within(self.limits.request_seconds, async move { store.head(&place).await.map(|found| found.size) });
        match self.wait(asked) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes the local files of what was uploaded, where the catalogue or a later segment that grows tells of the session.
    pub(super) fn settle(&self, catalogue: &Catalogue) {
        let copies = std::mem::take(&mut *self.queue.copies.lock());
        if copies.is_empty() {
            return;
        }
        let growing = self.growing();
        let is_known = |upload: &Upload| {
            let hash = upload.sealed.hash.to_string();
            let record = catalogue.records.get(&upload.session);
            record.is_some_and(|record| record.segments.iter().rev().any(|segment| segment.hash == hash))
                || growing.get(&upload.session).is_some_and(|number| *number > upload.sealed.number)
        };
        let mut kept = Vec::new();
        for upload in copies {
            let remove = || -> StoreResult { Ok(self.files.remove(&upload.path()?)?) };
            // What can't be removed now is tried again.
            if !is_known(&upload) || remove().is_err() {
                kept.push(upload);
            }
        }
        self.queue.copies.lock().extend(kept);
    }

    /// Returns the number of the segment that grows, for each session that has one.
    fn growing(&self) -> HashMap<String, u32> {
        let entries = self.files.list(LOG).unwrap_or_default();
        let open = entries.iter().filter_map(|entry| match parse_log(&entry.name)? {
            (session, number, None) => Some((session.to_owned(), number)),
            _ => None,
        });
        open.collect()
    }
}
