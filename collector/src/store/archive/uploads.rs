//! Uploads sealed segments one after the other.
//!
//! A failed upload is tried again after a pause, which doesn't hold up the others. The local file stays until the catalogue or
//! a later, growing segment on this machine proves that the session exists. So the loss of an object is noticed even if the
//! server was killed right after the upload.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::cache::ObjectCache;
use super::sealed::Sealed;
use crate::brief_lock::BriefLock;
use crate::store::blobs::{Blobs, ObjectBlobs};
use crate::store::files::Files;
use crate::store::layout::{LOG, parse_log, pending_path};
use crate::store::{Catalogue, StoreError, StoreResult, Uploads};

/// The interval at which the thread checks whether it may upload, and whether local files can be removed.
const LOOK: Duration = Duration::from_millis(500);

/// A sealed segment in the local folder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upload {
    session: String,
    sealed: Sealed,
}

impl Upload {
    /// Returns the path of its local file.
    fn path(&self) -> StoreResult<String> {
        pending_path(&self.session, self.sealed.number, self.sealed.hash)
    }

    /// Whether it uploads this segment.
    pub(super) fn is_of(&self, session: &str, sealed: Sealed) -> bool {
        self.session == session && self.sealed == sealed
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

/// Uploads sealed segments to an object store.
#[derive(Debug)]
pub(super) struct Uploader {
    objects: Arc<ObjectBlobs>,
    files: Arc<dyn Files>,
    cache: Arc<ObjectCache>,
    waiting: BriefLock<Vec<Waiting>>,
    /// The current upload. If its local file is gone, the segment was removed meanwhile: its object doesn't count, and is
    /// deleted when the upload is over.
    current: BriefLock<Option<Upload>>,
    /// Uploaded segments that still have their local files.
    copies: BriefLock<Vec<Upload>>,
}

impl Uploader {
    /// Creates an uploader with nothing to upload.
    pub(super) fn new(objects: Arc<ObjectBlobs>, files: Arc<dyn Files>, cache: Arc<ObjectCache>) -> Self {
        Self {
            objects,
            files,
            cache,
            waiting: BriefLock::default(),
            current: BriefLock::default(),
            copies: BriefLock::default(),
        }
    }

    /// Queues the sealed segments that an earlier server had not uploaded, or whose local files it had kept.
    pub(super) fn find_left_over(&self) -> StoreResult {
        for entry in self.files.list(LOG)? {
            if let Some((session, number, Some(hash))) = parse_log(&entry.name) {
                let sealed = Sealed { number, hash, bytes: entry.bytes };
                self.add(Upload { session: session.to_owned(), sealed }, true);
            }
        }
        Ok(())
    }

    /// Moves a sealed segment from a path of the local folder to where it waits for its upload. The thread of [`Self::run`]
    /// has to be woken then.
    pub(super) fn take(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        let upload = Upload { session: session.to_owned(), sealed };
        self.files.rename(path, &upload.path()?)?;
        self.add(upload, false);
        Ok(())
    }

    fn add(&self, upload: Upload, is_left_over: bool) {
        let (now, pause) = (Instant::now(), self.objects.limits().upload_pauses.0);
        self.waiting.lock().push(Waiting { upload, since: now, due: now, pause, is_left_over });
    }

    /// Returns how much waits.
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

    /// Returns the current upload, if its segment was removed meanwhile.
    pub(super) fn removed(&self) -> StoreResult<Option<Upload>> {
        let Some(upload) = self.current.lock().clone() else { return Ok(None) };
        let read = self.files.read(&upload.path()?, 0, 0).map_err(StoreError::from);
        Ok(matches!(read, Err(StoreError::Missing)).then_some(upload))
    }

    /// Returns the upload that is due, and whether an earlier server may have made it; or the time until one is due.
    fn next(&self) -> Result<(Upload, bool), Duration> {
        let (waiting, now) = (self.waiting.lock(), Instant::now());
        match waiting.iter().min_by_key(|waiting| waiting.due) {
            Some(first) if first.due <= now => Ok((first.upload.clone(), first.is_left_over)),
            Some(first) => Err(first.due - now),
            None => Err(Duration::from_secs(3_600)),
        }
    }

    /// Removes a finished upload from the queue, or schedules a failed one again.
    fn note(&self, upload: &Upload, is_done: bool) {
        let mut waiting = self.waiting.lock();
        let Some(at) = waiting.iter().position(|waiting| waiting.upload == *upload) else { return };
        if is_done {
            waiting.remove(at);
        } else if let Some(failed) = waiting.get_mut(at) {
            failed.due = Instant::now() + failed.pause;
            failed.pause = (failed.pause * 2).min(self.objects.limits().upload_pauses.1);
        }
    }

    /// Uploads what waits until requests to the object store are cancelled.
    pub(super) fn run(&self) {
        let mut settled = Instant::now();
        while !self.objects.is_stopped() {
            if self.objects.check().is_err() {
                thread::park_timeout(LOOK);
                continue;
            }
            let next = self.next();
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
            *self.current.lock() = Some(upload.clone());
            let done = self.upload(&upload, is_left_over);
            *self.current.lock() = None;
            self.note(&upload, done.is_ok());
            if let Err(error) = done
                && !self.objects.is_stopped()
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
        let (local, path) = (upload.path()?, sealed.path(session)?);
        let is_there = is_left_over && self.objects.length(&path)? == Some(sealed.bytes);
        if !is_there {
            match self.objects.send(&local, sealed.bytes, &path) {
                // Deleted while it waited.
                Err(StoreError::Missing) => return Ok(()),
                sent => sent?,
            }
        }
        if let Err(StoreError::Missing) = self.files.read(&local, 0, 0).map_err(StoreError::from) {
            // Deleted while it was uploaded.
            return self.objects.remove(&[path]);
        }
        self.cache.add(session, *sealed);
        // From here on its local file may be gone, and it still counts.
        *self.current.lock() = None;
        self.copies.lock().push(upload.clone());
        Ok(())
    }

    /// Removes the local files of uploaded segments whose sessions the catalogue or a later, growing segment proves to exist.
    pub(super) fn settle(&self, catalogue: &Catalogue) {
        let copies = std::mem::take(&mut *self.copies.lock());
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
        self.copies.lock().extend(kept);
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

#[cfg(test)]
mod tests {
    use super::super::Archive;
    use super::*;
    use crate::store::Hash;
    use crate::store::files::MemoryFiles;

    #[test]
    fn a_segment_that_is_removed_while_it_is_uploaded_is_not_read() {
        let session = "abcdefghijklmnopqrstuvwxyz";
        let sealed = Sealed { number: 1, hash: Hash::of(b"hello"), bytes: 5 };
        let archive = Archive::look("memory:///", std::iter::empty(), Arc::new(MemoryFiles::default())).unwrap();
        let uploader = &archive.remote.as_ref().unwrap().uploader;
        archive.blobs.put(&sealed.path(session).unwrap(), b"hello").unwrap();
        let read = || archive.read(session, sealed, 0, 9);
        assert_eq!(read().unwrap(), b"hello");
        // Its object is complete, and its local file was removed before that.
        *uploader.current.lock() = Some(Upload { session: session.to_owned(), sealed });
        assert!(matches!(read(), Err(StoreError::Missing)));
        assert!(archive.list().unwrap().is_empty() && archive.segments(session).unwrap().is_empty());
    }
}
