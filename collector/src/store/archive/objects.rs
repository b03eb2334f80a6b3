//! Sealed segments in an object store: S3, Google Cloud Storage or Azure.
//!
//! A sealed segment is durable in the local folder before anything is uploaded, so recording never waits for a network. A
//! thread uploads one after the other and removes each local file when the object store has it. Objects are never changed:
//! an upload that is repeated writes the same bytes under the same name. One server uses a prefix of a bucket at a time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use shared::limits::ObjectLimits;
use tokio::runtime::Runtime;
use url::Url;

use super::line::{self, error_of};
use super::parts::{Parts, Stop};
use super::{Archive, Sealed};
use crate::store::files::Files;
use crate::store::layout::{
    LOG, MARKS, SEGMENTS, marks_path, parse_log, parse_sealed, pending_path, sealed_path, session_folder,
};
use crate::store::shelf::ObjectShelf;
use crate::store::{StoreError, StoreResult};

/// Bytes of a segment that are read at once: also a slow line carries them within the time of a request.
const READ_BYTES: usize = 1 << 20;
/// The shortest and the longest pause after an upload that failed.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Sessions whose segments are remembered, so that reading one needn't list them each time.
const REMEMBERED: usize = 1_000;

/// Keeps sealed segments in an object store.
pub struct ObjectArchive {
    objects: Arc<Objects>,
    /// Where uploads are sent, and the thread that makes them; `None` if the store is only looked at.
    uploader: Option<(Sender<Upload>, JoinHandle<()>)>,
}

/// The object store, and what is known of it.
pub(in crate::store) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    files: Arc<dyn Files>,
    /// What sends files there.
    parts: Parts,
    /// Where requests run, so that any thread can wait for them, also one of another runtime. Taken when this is dropped.
    runtime: Option<Runtime>,
    known: Mutex<Known>,
    marked: Mutex<Marked>,
    /// What is being uploaded. If its local file is gone, it was removed meanwhile: its object doesn't count, and is deleted
    /// when the upload is over.
    uploading: Mutex<Option<Upload>>,
    stop: Stop,
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

/// A sealed segment in the local folder.
#[derive(Clone, Debug, PartialEq)]
struct Upload {
    session: String,
    sealed: Sealed,
}

impl ObjectArchive {
    /// Opens a prefix of a bucket, such as `s3://bucket/prefix`, `gs://…` or `az://…`. `variables` are those that the vendors'
    /// own tools read, with credentials and endpoints. The error is a sentence for people.
    pub fn open(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn fmt::Display| failure(url, error);
        let mut archive = Self::look(url, variables, files)?;
        let objects = Arc::clone(&archive.objects);
        let left_over = objects.left_over().map_err(|error| failed(&error))?;
        let (uploads, received) = channel();
        let builder = thread::Builder::new().name("vramscope-upload".to_owned());
        let thread = builder.spawn(move || objects.run(&received)).map_err(|error| failed(&error))?;
        archive.uploader = Some((uploads, thread));
        left_over.into_iter().for_each(|upload| archive.upload(upload));
        Ok(archive)
    }

    /// Opens a prefix of a bucket to look at: nothing is uploaded.
    pub fn look(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn fmt::Display| failure(url, error);
        // The library for HTTP has no cryptography of its own. Fails if it is set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parsed = Url::parse(url).map_err(|error| failed(&error))?;
        let variables = variables.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let limits = ObjectLimits::default();
        let (store, prefix) = line::open(&parsed, variables, limits).map_err(|error| failed(&error))?;
        let store: Arc<dyn ObjectStore> = store.into();
        let builder = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = builder.map_err(|error| failed(&error))?;
        let objects = Arc::new(Objects {
            parts: Parts::new(Arc::clone(&store), Arc::clone(&files), limits),
            store,
            prefix,
            files,
            runtime: Some(runtime),
            known: Mutex::default(),
            marked: Mutex::default(),
            uploading: Mutex::default(),
            stop: Stop::default(),
        });
        // Wrong credentials should be told now, and not when the first segment is sealed.
        objects.check().map_err(|error| failed(&error))?;
        Ok(Self { objects, uploader: None })
    }

    /// Returns the shelf of the same object store.
    pub fn shelf(&self) -> ObjectShelf {
        ObjectShelf::new(Arc::clone(&self.objects))
    }

    fn upload(&self, upload: Upload) {
        if let Some((uploads, _)) = &self.uploader {
            // The thread lives as long as this value.
            let _ = uploads.send(upload);
        }
    }
}

impl Drop for ObjectArchive {
    fn drop(&mut self) {
        if let Some((uploads, thread)) = self.uploader.take() {
            // What is not uploaded stays in the folder for the next start.
            self.objects.stop.set();
            drop(uploads);
            thread.thread().unpark();
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every value is consistent at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Returns the object store.
    pub(in crate::store) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Waits for a request.
    pub(in crate::store) fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        let (done, waited) = channel();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                // The receiver waits below.
                let _ = done.send(request.await);
            });
        }
        waited.recv().unwrap_or_else(|_| Err(StoreError::Io(io::Error::other("the request was given up"))))
    }

    /// Returns where a path of the store's folder is among the objects.
    pub(in crate::store) fn place(&self, path: &str) -> Path {
        path.split('/').fold(self.prefix.clone(), Path::join)
    }

    fn check(&self) -> StoreResult {
        let place = self.place(SEGMENTS);
        let store = Arc::clone(&self.store);
        self.wait(async move { store.list_with_delimiter(Some(&place)).await.map(drop).map_err(error_of) })
    }

    /// Returns the sealed segments that an earlier server had not uploaded.
    fn left_over(&self) -> StoreResult<Vec<Upload>> {
        let entries = self.files.list(LOG)?.into_iter();
        let parsed = entries.filter_map(|entry| {
            let (session, number, hash) = parse_log(&entry.name)?;
            let sealed = Sealed { number, hash: hash?, bytes: entry.bytes };
            Some(Upload { session: session.to_owned(), sealed })
        });
        Ok(parsed.collect())
    }

    /// Uploads one segment after the other until nobody can send another.
    fn run(&self, received: &Receiver<Upload>) {
        while let Ok(upload) = received.recv() {
            let mut pause = PAUSES.0;
            while let Err(error) = self.upload(&upload) {
                if self.stop.is_set() {
                    return;
                }
                let Upload { session, sealed } = &upload;
                tracing::error!(session, number = sealed.number, "cannot upload a segment, trying again: {error}");
                thread::park_timeout(pause);
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }

    fn upload(&self, upload: &Upload) -> StoreResult {
        *lock(&self.uploading) = Some(upload.clone());
        let done = self.upload_now(upload);
        *lock(&self.uploading) = None;
        done
    }

    /// Sends a local file of so many bytes. Returns the bytes that the object store has of it then.
    pub(in crate::store) fn send(&self, local: &str, bytes: u64, to: Path) -> StoreResult<u64> {
        self.wait(self.parts.clone().send(local.to_owned(), bytes, to, self.stop.clone()))
    }

    /// Removes a local file whose content is in the object store.
    pub(in crate::store) fn remove_local(&self, local: &str) -> StoreResult {
        Ok(self.files.remove(local)?)
    }

    fn upload_now(&self, &Upload { ref session, sealed }: &Upload) -> StoreResult {
        let path = pending_path(session, sealed.number, sealed.hash)?;
        let place = self.place(&sealed_path(session, sealed.number, sealed.hash)?);
        let stored = match self.send(&path, sealed.bytes, place.clone()) {
            // Deleted while it waited.
            Err(StoreError::Missing) => return Ok(()),
            stored => stored?,
        };
        if stored != sealed.bytes {
            return Err(StoreError::Damaged(format!("{stored} of {} bytes arrived", sealed.bytes)));
        }
        if let Err(StoreError::Missing) = self.files.read(&path, 0, 0).map_err(StoreError::from) {
            // Deleted while it was uploaded.
            return self.delete(place);
        }
        {
            let mut known = lock(&self.known);
            known.changes += 1;
            if let Some(segments) = known.segments.get_mut(session).filter(|segments| !segments.contains(&sealed)) {
                segments.push(sealed);
            }
        }
        // From here on its local file may be gone, and it still counts.
        *lock(&self.uploading) = None;
        Ok(self.files.remove(&path)?)
    }

    /// Returns the segments in a folder, by session, and the sessions that have marks there.
    fn list(&self, folder: &str) -> StoreResult<Listed> {
        let (store, place) = (Arc::clone(&self.store), self.place(folder));
        let removed = self.removed_upload()?;
        self.wait(async move {
            let (mut all, mut marked) = (BTreeMap::<String, Vec<Sealed>>::new(), HashSet::new());
            let mut objects = store.list(Some(&place));
            while let Some(object) = objects.try_next().await.map_err(error_of)? {
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
        let Some(upload) = lock(&self.uploading).clone() else { return Ok(None) };
        let path = pending_path(&upload.session, upload.sealed.number, upload.sealed.hash)?;
        let is_removed = matches!(self.files.read(&path, 0, 0).map_err(StoreError::from), Err(StoreError::Missing));
        Ok(is_removed.then_some(upload))
    }

    /// Deletes an object, if there is one.
    pub(in crate::store) fn delete(&self, place: Path) -> StoreResult {
        let store = Arc::clone(&self.store);
        match self.wait(async move { store.delete(&place).await.map_err(error_of) }) {
            Err(StoreError::Missing) => Ok(()),
            other => other,
        }
    }
}

impl Archive for ObjectArchive {
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Sealed>>> {
        let (all, marked) = self.objects.list(SEGMENTS)?;
        lock(&self.objects.marked).listed = Some(marked);
        Ok(all)
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<Sealed>> {
        let changes = {
            let known = lock(&self.objects.known);
            if let Some(segments) = known.segments.get(session) {
                return Ok(segments.clone());
            }
            known.changes
        };
        let (found, _) = self.objects.list(&session_folder(session)?)?;
        let segments = found.into_values().next().unwrap_or_default();
        let mut known = lock(&self.objects.known);
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
        self.upload(Upload { session: session.to_owned(), sealed });
        Ok(())
    }

    fn read(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let to = from.saturating_add(most as u64).min(sealed.bytes);
        if from >= to {
            return Ok(Vec::new());
        }
        let place = self.objects.place(&sealed_path(session, sealed.number, sealed.hash)?);
        let store = Arc::clone(&self.objects.store);
        let read = async move { store.get_range(&place, from..to).await.map_err(error_of) };
        Ok(self.objects.wait(read)?.to_vec())
    }

    fn remove(&self, session: &str, sealed: Sealed) -> StoreResult {
        let place = self.objects.place(&sealed_path(session, sealed.number, sealed.hash)?);
        let deleted = self.objects.delete(place);
        let mut known = lock(&self.objects.known);
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
        self.remove(session, sealed)
    }

    fn marks(&self, session: &str) -> StoreResult<Option<Vec<u8>>> {
        let place = self.objects.place(&marks_path(session)?);
        if lock(&self.objects.marked).has_none(session) {
            return Ok(None);
        }
        let store = Arc::clone(&self.objects.store);
        let read = async move {
            let object = store.get(&place).await.map_err(error_of)?;
            object.bytes().await.map_err(error_of)
        };
        match self.objects.wait(read) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_marks(&self, session: &str, marks: Option<&[u8]>) -> StoreResult {
        let place = self.objects.place(&marks_path(session)?);
        let Some(marks) = marks else { return self.objects.delete(place) };
        // Noted before the request, so that a reader never misses marks that were just written.
        lock(&self.objects.marked).given.insert(session.to_owned());
        let (store, marks) = (Arc::clone(&self.objects.store), marks.to_vec());
        self.objects.wait(async move { store.put(&place, marks.into()).await.map(drop).map_err(error_of) })
    }
}

fn failure(url: &str, error: &dyn fmt::Display) -> String {
    format!("The object store {url} can't be used: {error}. Check its name and the credentials in the environment.")
}
