//! Sealed segments and the marks of sessions.
//!
//! In the store's folder a segment is sealed by a rename. With an object store, a sealed segment is durable in the local
//! folder before anything is uploaded, so recording never waits for a network; a thread uploads one after the other
//! ([`uploads`]).

mod cache;
mod sealed;
mod uploads;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use wire::is_session;

use self::cache::ObjectCache;
pub(super) use self::sealed::Sealed;
use self::uploads::{Upload, Uploader};
use super::blobs::{Blobs, FolderBlobs, ObjectBlobs, failure};
use super::files::Files;
use super::layout::{MARKS, SEGMENTS, marks_path, session_folder};
use super::{Catalogue, StoreError, StoreResult, Uploads};

/// Keeps sealed segments, and for each session a small file of marks. Sessions have valid names.
#[derive(Debug)]
pub(super) struct Archive {
    blobs: Arc<dyn Blobs>,
    /// `None` if the segments are in a folder.
    remote: Option<Remote>,
}

/// An object store, a cache of its contents, and the uploader.
#[derive(Debug)]
struct Remote {
    objects: Arc<ObjectBlobs>,
    cache: Arc<ObjectCache>,
    uploader: Arc<Uploader>,
    /// The thread that uploads; `None` if the store is only looked at.
    thread: Option<JoinHandle<()>>,
}

impl Remote {
    fn new(objects: ObjectBlobs, files: Arc<dyn Files>) -> Self {
        let (objects, cache) = (Arc::new(objects), Arc::new(ObjectCache::default()));
        let uploader = Arc::new(Uploader::new(Arc::clone(&objects), files, Arc::clone(&cache)));
        Self { objects, cache, uploader, thread: None }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // What is not uploaded stays in the folder for the next start.
        self.objects.stop();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
        self.objects.release();
    }
}

impl Archive {
    /// Creates the archive in a folder.
    pub(super) fn in_folder(files: Arc<dyn Files>) -> Self {
        Self { blobs: Arc::new(FolderBlobs::new(files)), remote: None }
    }

    /// Creates the archive in an object store, without waiting for it: see [`Self::wait_until_open`]. Begins to upload what an
    /// earlier server left in the folder. The error is a sentence for people.
    pub(super) fn open(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let mut remote = Remote::new(ObjectBlobs::open(url, variables, Arc::clone(&files))?, files);
        remote.uploader.find_left_over().map_err(|error| failure(url, &error))?;
        let uploader = Arc::clone(&remote.uploader);
        let builder = thread::Builder::new().name("vramscope-upload".to_owned());
        let thread = builder.spawn(move || uploader.run());
        remote.thread = Some(thread.map_err(|error| failure(url, &error))?);
        Ok(Self::of(remote))
    }

    /// Creates the archive in an object store that is only looked at: nothing is changed. Fails, with a sentence for people,
    /// unless it answers.
    pub(super) fn look(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        Ok(Self::of(Remote::new(ObjectBlobs::look(url, variables, Arc::clone(&files))?, files)))
    }

    fn of(remote: Remote) -> Self {
        Self { blobs: Arc::<ObjectBlobs>::clone(&remote.objects), remote: Some(remote) }
    }

    /// Returns where the segments are kept.
    pub(super) fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// Returns the segments of all sessions that have some.
    pub(super) fn list(&self) -> StoreResult<BTreeMap<String, Vec<Sealed>>> {
        let removed = self.removed_upload()?;
        let (mut all, mut marked) = (BTreeMap::<String, Vec<Sealed>>::new(), HashSet::new());
        self.blobs.list_below(SEGMENTS, &is_session, &mut |session, name, bytes| {
            if name == MARKS {
                marked.insert(session.to_owned());
            } else if let Some(sealed) = Sealed::of_file(name, bytes)
                && removed.as_ref().is_none_or(|removed| !removed.is_of(session, sealed))
            {
                match all.get_mut(session) {
                    Some(segments) => segments.push(sealed),
                    None => drop(all.insert(session.to_owned(), vec![sealed])),
                }
            }
        })?;
        if let Some(remote) = &self.remote {
            remote.cache.set_marked(marked);
        }
        Ok(all)
    }

    /// Returns the segments of one session; none if it has none.
    pub(super) fn segments(&self, session: &str) -> StoreResult<Vec<Sealed>> {
        let list = || {
            let removed = self.removed_upload()?;
            let listed = self.blobs.list(&session_folder(session)?)?.into_iter();
            let segments = listed.filter_map(|(name, bytes)| Sealed::of_file(&name, bytes));
            Ok(segments
                .filter(|found| removed.as_ref().is_none_or(|removed| !removed.is_of(session, *found)))
                .collect())
        };
        match &self.remote {
            Some(remote) => remote.cache.segments(session, list),
            None => list(),
        }
    }

    /// Moves a segment here from `path` in the local folder. Returns when it is durable; then it is no longer at `path`, or
    /// waits in the folder of the log until it was uploaded.
    pub(super) fn take(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        match &self.remote {
            None => self.blobs.take(path, sealed.bytes, &sealed.path(session)?),
            Some(remote) => {
                remote.uploader.take(session, sealed, path)?;
                remote.thread.iter().for_each(|thread| thread.thread().unpark());
                Ok(())
            }
        }
    }

    /// Reads up to `most` bytes of a segment from the offset `from`; fewer only at its end.
    pub(super) fn read(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let path = sealed.path(session)?;
        if self.remote.is_none() {
            return self.blobs.read(&path, from, most);
        }
        if self.removed_upload()?.is_some_and(|removed| removed.is_of(session, sealed)) {
            return Err(StoreError::Missing);
        }
        // Object stores refuse a range that begins at the end.
        let left = usize::try_from(sealed.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        if left == 0 { Ok(Vec::new()) } else { self.blobs.read(&path, from, most.min(left)) }
    }

    /// Deletes segments of a session; those that are not there count as deleted.
    pub(super) fn remove(&self, session: &str, sealed: &[Sealed]) -> StoreResult {
        let paths: Vec<_> = sealed.iter().map(|sealed| sealed.path(session)).collect::<StoreResult<_>>()?;
        let removed = self.blobs.remove(&paths);
        self.forget(session);
        removed?;
        self.blobs.remove_folder(&session_folder(session)?)
    }

    /// Moves a segment into the local folder, to `path`.
    pub(super) fn give_back(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        let given = self.blobs.give_back(&sealed.path(session)?, sealed.bytes, path);
        self.forget(session);
        given
    }

    /// Returns the marks of a session; `None` if it has none.
    pub(super) fn marks(&self, session: &str) -> StoreResult<Option<Vec<u8>>> {
        let path = marks_path(session)?;
        if self.has_no_marks(session) {
            return Ok(None);
        }
        match self.blobs.get(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the marks of a session; `None` deletes them.
    pub(super) fn set_marks(&self, session: &str, marks: Option<&[u8]>) -> StoreResult {
        let path = marks_path(session)?;
        match marks {
            Some(marks) => {
                self.check_reachable()?;
                if let Some(remote) = &self.remote {
                    // Before the request, so that a reader never misses marks that were just written.
                    remote.cache.add_marked(session);
                }
                self.blobs.put(&path, marks)
            }
            // Most sessions never had any.
            None if self.has_no_marks(session) => Ok(()),
            None => {
                self.blobs.remove(&[path])?;
                self.blobs.remove_folder(&session_folder(session)?)
            }
        }
    }

    /// Whether it is on the local disk.
    pub(super) fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    /// Fails with the reason if it can't be reached at all.
    pub(super) fn check_reachable(&self) -> StoreResult {
        self.remote.as_ref().map_or(Ok(()), |remote| remote.objects.check())
    }

    /// Returns how much waits to be uploaded.
    pub(super) fn uploads(&self) -> Uploads {
        self.remote.as_ref().map(|remote| remote.uploader.uploads()).unwrap_or_default()
    }

    /// Removes local copies of uploaded segments that this catalogue knows.
    pub(super) fn settle(&self, catalogue: &Catalogue) {
        self.remote.iter().for_each(|remote| remote.uploader.settle(catalogue));
    }

    /// Cancels every request, and each later one.
    pub(super) fn stop(&self) {
        self.remote.iter().for_each(|remote| remote.objects.stop());
    }

    /// Returns a future that resolves to a sentence for people when this server can't use the archive, or can't any more.
    pub(super) fn refused(&self) -> impl Future<Output = String> + Send + use<> {
        let refused = self.remote.as_ref().map(|remote| remote.objects.refused());
        async move {
            match refused {
                Some(refused) => refused.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the archive can be used. Fails with a sentence for people if it can't be, or does not answer.
    pub(super) fn wait_until_open(&self) -> Result<(), String> {
        self.remote.as_ref().map_or(Ok(()), |remote| remote.objects.wait_until_open())
    }

    /// Returns the segment that is being uploaded, if it was removed meanwhile.
    fn removed_upload(&self) -> StoreResult<Option<Upload>> {
        self.remote.as_ref().map_or(Ok(None), |remote| remote.uploader.removed())
    }

    /// Whether the cache knows that a session has no marks.
    fn has_no_marks(&self, session: &str) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.cache.has_no_marks(session))
    }

    /// Removes the segments of a session from the cache.
    fn forget(&self, session: &str) {
        self.remote.iter().for_each(|remote| remote.cache.forget(session));
    }
}
