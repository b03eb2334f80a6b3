//! Sealed segments in an object store: S3, Google Cloud Storage or Azure.
//!
//! A sealed segment is durable in the local folder before anything is uploaded, so recording never waits for a network. A
//! thread uploads one after the other ([`super::uploads`]). Objects are never changed: an upload that is repeated writes the
//! same bytes under the same name. One server uses a prefix of a bucket at a time ([`super::lease`]). No request is waited
//! for without end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle as JoinTask;
use trace::limits::ObjectLimits;
use url::Url;
use wire::{SESSION_CHARS, session_id};

use super::lease::{Holder, Lease};
use super::line::{self, within};
use super::parts::Parts;
use super::uploads::{Upload, UploadQueue};
use super::{Archive, Sealed};
use crate::brief_lock::{BriefLock, assert_none_held};
use crate::host_name::host_name;
use crate::store::files::{Files, replace};
use crate::store::layout::{
    LEASE, LOG, MARKS, OWNER, SEGMENTS, marks_path, parse_log, parse_sealed, pending_path, sealed_path, session_folder,
};
use crate::store::shelf::ObjectShelf;
use crate::store::{Catalogue, StoreError, StoreResult, Uploads};

/// Bytes of a segment that are read at once: also a slow line carries them within the time of a request.
const READ_BYTES: usize = 1 << 20;
/// How often a thread that waits looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);
/// Objects that are deleted at once: as many as S3 deletes by one request, and other stores in some seconds.
const DELETED_AT_ONCE: usize = 1_000;
/// Sessions whose segments are remembered, so that reading one needn't list them each time.
const REMEMBERED: usize = 1_000;

/// Keeps sealed segments in an object store.
pub struct ObjectArchive {
    objects: Arc<Objects>,
    /// The thread that uploads; `None` if the store is only looked at.
    uploader: Option<JoinHandle<()>>,
}

/// The object store, and what is known of it.
pub(in crate::store) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    pub(super) files: Arc<dyn Files>,
    pub(super) limits: ObjectLimits,
    /// What sends files there.
    parts: Parts,
    /// Where requests run, so that any thread can wait for them, also one of another runtime. Taken when this is dropped.
    runtime: Option<Runtime>,
    /// What permits changes; `None` if the store is only looked at.
    lease: Option<Arc<Lease>>,
    known: BriefLock<Known>,
    marked: BriefLock<Marked>,
    pub(super) queue: UploadQueue,
}

/// The segments of the sessions that were asked for last.
#[derive(Debug, Default)]
struct Known {
    segments: HashMap<String, Vec<Sealed>>,
    /// How often a segment was uploaded or removed. A list from before the last time may lack it, and is not kept.
    changes: u64,
}

/// Segments by session, and the sessions that have marks.
type Listed = (BTreeMap<String, Vec<Sealed>>, HashSet<String>);

/// The sessions that may have marks. Asking the object store for the marks of each session would take long.
#[derive(Debug, Default)]
struct Marked {
    /// Those that had some when all objects were listed; `None` before that.
    listed: Option<HashSet<String>>,
    /// Those that were given some by this process, perhaps while objects were listed.
    given: HashSet<String>,
}

impl Marked {
    fn has_none(&self, session: &str) -> bool {
        self.listed.as_ref().is_some_and(|listed| !listed.contains(session)) && !self.given.contains(session)
    }
}

impl ObjectArchive {
    /// Opens a prefix of a bucket, such as `s3://bucket/prefix`, `gs://…` or `az://…`, without waiting for it: see
    /// [`Self::opened`]. `variables` are those that the vendors' own tools read, with credentials and endpoints. The error is a
    /// sentence for people.
    pub fn open(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn fmt::Display| failure(url, error);
        let own = Holder {
            folder: owner_of(&*files).map_err(|error| failed(&error))?,
            run: random_id().map_err(|error| failed(&error))?,
            host: host_name(),
            pid: std::process::id(),
            renewals: 0,
        };
        let mut objects = Objects::new(url, variables, files)?;
        let lease = Lease::new(objects.store(), objects.place(LEASE), url, own, objects.limits);
        let lease = Arc::new(lease);
        objects.lease = Some(Arc::clone(&lease));
        if let Some(runtime) = &objects.runtime {
            runtime.spawn(async move { lease.keep().await });
        }
        objects.find_left_over().map_err(|error| failed(&error))?;
        let objects = Arc::new(objects);
        let uploading = Arc::clone(&objects);
        let builder = thread::Builder::new().name("vramscope-upload".to_owned());
        let thread = builder.spawn(move || uploading.run_uploads()).map_err(|error| failed(&error))?;
        Ok(Self { objects, uploader: Some(thread) })
    }

    /// Opens a prefix of a bucket to look at: nothing is changed. Fails unless it answers.
    pub fn look(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let objects = Objects::new(url, variables, files)?;
        objects.ask().map_err(|error| failure(url, &error))?;
        Ok(Self { objects: Arc::new(objects), uploader: None })
    }

    /// Waits until this server can't use the store any more, or ever. Returns a sentence for people.
    pub fn refused(&self) -> impl Future<Output = String> + Send + use<> {
        let refused = self.objects.lease.as_ref().map(|lease| lease.refused());
        async move {
            match refused {
                Some(refused) => refused.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the store can be used. Fails with a sentence for people if it can't be, or does not answer.
    pub fn wait_until_open(&self) -> Result<(), String> {
        let Some(lease) = self.objects.lease.clone() else { return Ok(()) };
        let held = self.objects.wait(async move { Ok(lease.held().await) });
        held.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Returns the shelf of the same object store.
    pub fn shelf(&self) -> ObjectShelf {
        ObjectShelf::new(Arc::clone(&self.objects))
    }
}

impl fmt::Debug for ObjectArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectArchive").field("objects", &self.objects).finish_non_exhaustive()
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Drop for ObjectArchive {
    fn drop(&mut self) {
        // What is not uploaded stays in the folder for the next start.
        self.objects.stop();
        if let Some(thread) = self.uploader.take() {
            thread.thread().unpark();
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
        self.objects.release();
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // A runtime must not be dropped on a thread of another runtime in a way that waits.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Objects {
    /// Creates the clients of an object store, without asking it.
    fn new(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn fmt::Display| failure(url, error);
        // The library for HTTP has no cryptography of its own. Fails if it is set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parsed = Url::parse(url).map_err(|error| failed(&error))?;
        let limits = ObjectLimits::default();
        let (store, prefix) = line::open(&parsed, variables, limits).map_err(|error| failed(&error))?;
        let store: Arc<dyn ObjectStore> = store.into();
        let builder = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = builder.map_err(|error| failed(&error))?;
        Ok(Self {
            parts: Parts::new(Arc::clone(&store), Arc::clone(&files), limits),
            store,
            prefix,
            files,
            limits,
            runtime: Some(runtime),
            lease: None,
            known: BriefLock::default(),
            marked: BriefLock::default(),
            queue: UploadQueue::new(&limits),
        })
    }

    /// Returns the object store.
    pub(in crate::store) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Fails with the reason unless this server may change objects now.
    pub(in crate::store) fn check(&self) -> StoreResult {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check())
    }

    /// Waits for a request that ends by itself, or until the program ends. What can take long is wrapped in [`within`].
    pub(in crate::store) fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        self.wait_while(|| !self.queue.stop.is_set(), request)
    }

    fn wait_while<T: Send + 'static>(
        &self,
        is_wanted: impl Fn() -> bool,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        assert_none_held();
        let (done, waited) = channel();
        let task = self.runtime.as_ref().map(|runtime| {
            runtime.spawn(async move {
                // Nobody waits for a request that is not wanted any more.
                let _ = done.send(request.await);
            })
        });
        loop {
            match waited.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if is_wanted() => {}
                Err(_) => {
                    task.inspect(JoinTask::abort);
                    return Err(StoreError::Io(io::Error::other("the request was given up")));
                }
            }
        }
    }

    /// Gives up every request, and each later one.
    fn stop(&self) {
        self.queue.stop.set();
    }

    /// Gives the lease back, if the store answers soon.
    fn release(&self) {
        if let (Some(lease), Some(runtime)) = (&self.lease, &self.runtime) {
            let (lease, (done, waited)) = (Arc::clone(lease), channel());
            runtime.spawn(async move {
                lease.release().await;
                // Nobody waits any more if it took too long.
                let _ = done.send(());
            });
            let _ = waited.recv_timeout(self.limits.release);
        }
    }

    /// Returns where a path of the store's folder is among the objects.
    pub(in crate::store) fn place(&self, path: &str) -> Path {
        path.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// Checks that the store answers.
    fn ask(&self) -> StoreResult {
        let place = self.place(SEGMENTS);
        let store = Arc::clone(&self.store);
        self.wait(within(self.limits.request_seconds, async move {
            store.list_with_delimiter(Some(&place)).await.map(drop)
        }))
    }

    /// Queues the sealed segments that an earlier server had not uploaded, or whose local files it had kept.
    fn find_left_over(&self) -> StoreResult {
        for entry in self.files.list(LOG)? {
            if let Some((session, number, Some(hash))) = parse_log(&entry.name) {
                let sealed = Sealed { number, hash, bytes: entry.bytes };
                self.queue.add(Upload { session: session.to_owned(), sealed }, true);
            }
        }
        Ok(())
    }

    /// Sends a local file of so many bytes. Returns the bytes that the object store has of it then.
    pub(in crate::store) fn send(&self, local: &str, bytes: u64, to: Path) -> StoreResult<u64> {
        self.check()?;
        // It ends by itself when the program does, after it has taken away what it left there.
        self.wait_while(|| true, self.parts.clone().send(local.to_owned(), bytes, to, self.queue.stop.clone()))
    }

    /// Removes a local file whose content is in the object store.
    pub(in crate::store) fn remove_local(&self, local: &str) -> StoreResult {
        Ok(self.files.remove(local)?)
    }

    /// Notes that a segment is in the object store now.
    pub(super) fn note_uploaded(&self, session: &str, sealed: Sealed) {
        let mut known = self.known.lock();
        known.changes += 1;
        if let Some(segments) = known.segments.get_mut(session).filter(|segments| !segments.contains(&sealed)) {
            segments.push(sealed);
        }
    }

    /// Returns the segments in a folder, by session, and the sessions that have marks there.
    fn list(&self, folder: &str) -> StoreResult<Listed> {
        let (store, place) = (Arc::clone(&self.store), self.place(folder));
        let (removed, seconds) = (self.removed_upload()?, self.limits.request_seconds);
        self.wait(async move {
            let (mut all, mut marked) = (BTreeMap::<String, Vec<Sealed>>::new(), HashSet::new());
            let mut objects = store.list(Some(&place));
            while let Some(object) = within(seconds, objects.try_next()).await? {
                let parts: Vec<_> = object.location.parts().collect();
                let [.., session, name] = &parts[..] else { continue };
                if name.as_ref() == MARKS {
                    marked.insert(session.as_ref().to_owned());
                } else if let Some((number, hash)) = parse_sealed(name.as_ref()) {
                    let (session, sealed) = (session.as_ref().to_owned(), Sealed { number, hash, bytes: object.size });
                    if removed.as_ref().is_none_or(|upload| (&upload.session, upload.sealed) != (&session, sealed)) {
                        all.entry(session).or_default().push(sealed);
                    }
                }
            }
            Ok((all, marked))
        })
    }

    /// Returns what is being uploaded although it was removed.
    fn removed_upload(&self) -> StoreResult<Option<Upload>> {
        let Some(upload) = self.queue.current() else { return Ok(None) };
        let read = self.files.read(&upload.path()?, 0, 0).map_err(StoreError::from);
        Ok(matches!(read, Err(StoreError::Missing)).then_some(upload))
    }

    /// Deletes objects, in as few requests as the store allows, each within so many seconds. Those that are not there count as
    /// deleted.
    pub(in crate::store) fn delete(&self, places: &[Path], seconds: u64) -> StoreResult {
        self.check()?;
        for places in places.chunks(DELETED_AT_ONCE) {
            let (store, places) = (Arc::clone(&self.store), places.to_vec());
            self.wait(async move {
                let mut deleted = store.delete_stream(stream::iter(places.into_iter().map(Ok)).boxed());
                loop {
                    match within(seconds, deleted.try_next()).await {
                        Ok(None) => return Ok(()),
                        Ok(Some(_)) | Err(StoreError::Missing) => {}
                        Err(error) => return Err(error),
                    }
                }
            })?;
        }
        Ok(())
    }
}

impl Archive for ObjectArchive {
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Sealed>>> {
        let (all, marked) = self.objects.list(SEGMENTS)?;
        self.objects.marked.lock().listed = Some(marked);
        Ok(all)
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<Sealed>> {
        let changes = {
            let known = self.objects.known.lock();
            if let Some(segments) = known.segments.get(session) {
                return Ok(segments.clone());
            }
            known.changes
        };
        let (found, _) = self.objects.list(&session_folder(session)?)?;
        let segments = found.into_values().next().unwrap_or_default();
        let mut known = self.objects.known.lock();
        if known.changes == changes {
            if known.segments.len() >= REMEMBERED {
                known.segments.clear();
            }
            known.segments.insert(session.to_owned(), segments.clone());
        }
        Ok(segments)
    }

    fn take(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        self.objects.files.rename(path, &pending_path(session, sealed.number, sealed.hash)?)?;
        self.objects.queue.add(Upload { session: session.to_owned(), sealed }, false);
        if let Some(thread) = &self.uploader {
            thread.thread().unpark();
        }
        Ok(())
    }

    fn read(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let to = from.saturating_add(most as u64).min(sealed.bytes);
        if from >= to {
            return Ok(Vec::new());
        }
        let place = self.objects.place(&sealed_path(session, sealed.number, sealed.hash)?);
        let store = Arc::clone(&self.objects.store);
        let read = within(self.objects.limits.request_seconds, async move { store.get_range(&place, from..to).await });
        Ok(self.objects.wait(read)?.to_vec())
    }

    fn remove(&self, session: &str, sealed: &[Sealed]) -> StoreResult {
        let place = |sealed: &Sealed| Ok(self.objects.place(&sealed_path(session, sealed.number, sealed.hash)?));
        let places: Vec<_> = sealed.iter().map(place).collect::<StoreResult<_>>()?;
        let deleted = self.objects.delete(&places, self.objects.limits.request_seconds);
        let mut known = self.objects.known.lock();
        known.changes += 1;
        known.segments.remove(session);
        deleted
    }

    fn give_back(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        let mut file = self.objects.files.create(path)?;
        let mut at = 0;
        while at < sealed.bytes {
            let bytes = self.read(session, sealed, at, READ_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
            file.append(&bytes)?;
        }
        file.sync()?;
        self.remove(session, &[sealed])
    }

    fn marks(&self, session: &str) -> StoreResult<Option<Vec<u8>>> {
        let place = self.objects.place(&marks_path(session)?);
        if self.objects.marked.lock().has_none(session) {
            return Ok(None);
        }
        let store = Arc::clone(&self.objects.store);
        let read = within(self.objects.limits.request_seconds, async move { store.get(&place).await?.bytes().await });
        match self.objects.wait(read) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_marks(&self, session: &str, marks: Option<&[u8]>) -> StoreResult {
        let place = self.objects.place(&marks_path(session)?);
        let Some(marks) = marks else {
            // Most sessions never had any.
            let has_none = self.objects.marked.lock().has_none(session);
            return if has_none { Ok(()) } else { self.objects.delete(&[place], self.objects.limits.request_seconds) };
        };
        self.objects.check()?;
        // Noted before the request, so that a reader never misses marks that were just written.
        self.objects.marked.lock().given.insert(session.to_owned());
        let (store, marks) = (Arc::clone(&self.objects.store), marks.to_vec());
        self.objects.wait(within(self.objects.limits.request_seconds, async move {
            store.put(&place, marks.into()).await.map(drop)
        }))
    }

    fn is_local(&self) -> bool {
        false
    }

    fn check_reachable(&self) -> StoreResult {
        self.objects.check()
    }

    fn uploads(&self) -> Uploads {
        self.objects.queue.uploads()
    }

    fn settle(&self, catalogue: &Catalogue) {
        self.objects.settle(catalogue);
    }

    fn stop(&self) {
        self.objects.stop();
    }
}

/// Returns what tells this folder from all others, made when it is asked for the first time.
fn owner_of(files: &dyn Files) -> StoreResult<String> {
    match files.read(OWNER, 0, SESSION_CHARS).map_err(StoreError::from) {
        Ok(bytes) if bytes.len() == SESSION_CHARS => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(_) | Err(StoreError::Missing) => {}
        Err(error) => return Err(error),
    }
    let owner = random_id()?;
    replace(files, OWNER, owner.as_bytes())?;
    Ok(owner)
}

fn random_id() -> StoreResult<String> {
    let mut bytes = [0; SESSION_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Io(io::Error::other(error)))?;
    Ok(session_id(bytes))
}

/// Returns the sentence for people that says that an object store can't be used.
pub(super) fn failure(url: &str, error: &dyn fmt::Display) -> String {
    format!("The object store {url} can't be used: {error}. Check its name and the credentials in the environment.")
}
