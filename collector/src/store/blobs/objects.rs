//! Blobs in an object store: S3, Google Cloud Storage or Azure.
//!
//! [`Blobs::take`] returns only once the object store has the file, so that a link never leads to a file that is on one machine
//! alone. Only [`Blobs::put`] overwrites objects; a file that is sent again has the same content. One server uses a prefix of a
//! bucket at a time ([`super::lease`]). Small requests end after [some time](ObjectLimits::request_seconds); an upload goes on
//! for as long as bytes are transferred.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trace::limits::ObjectLimits;
use url::Url;
use wire::{SESSION_CHARS, session_id};

use super::Blobs;
use super::client::{self, failure, within};
use super::lease::{Holder, Lease};
use super::parts::{Parts, Stop};
use crate::brief_lock::assert_none_held;
use crate::host_name::host_name;
use crate::store::files::{Files, folder_of, replace};
use crate::store::layout::{LEASE, OWNER, SEGMENTS};
use crate::store::{StoreError, StoreResult};

/// Bytes of a file that are read at once: also a slow line carries them within the time of a request.
const READ_BYTES: usize = 1 << 20;
/// The interval at which a waiting thread checks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);
/// Objects that are deleted at once: as many as S3 deletes by one request, and other stores in some seconds.
const DELETED_AT_ONCE: usize = 1_000;
/// Objects of a list that are held in memory at once: as many as S3 returns by one request.
const LISTED_AT_ONCE: usize = 1_000;

/// Keeps files in an object store.
pub(in crate::store) struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    files: Arc<dyn Files>,
    limits: ObjectLimits,
    /// The sender of files.
    parts: Parts,
    /// Where requests run, so that any thread can wait for them, also one of another runtime. Taken when this is dropped.
    runtime: Option<Runtime>,
    /// The permission to change objects; `None` if the store is only looked at.
    lease: Option<Arc<Lease>>,
    stop: Stop,
}

impl ObjectBlobs {
    /// Opens a prefix of a bucket, such as `s3://bucket/prefix`, `gs://…` or `az://…`, without waiting for it: see
    /// [`Self::wait_until_open`]. `variables` are those that the vendors' own tools read, with credentials and endpoints. The
    /// error is a sentence for people.
    pub(in crate::store) fn open(
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
        let mut blobs = Self::new(url, variables, files)?;
        let lease = Lease::new(Arc::clone(&blobs.store), blobs.place(LEASE), url, own, blobs.limits);
        let lease = Arc::new(lease);
        blobs.lease = Some(Arc::clone(&lease));
        if let Some(runtime) = &blobs.runtime {
            runtime.spawn(async move { lease.keep().await });
        }
        Ok(blobs)
    }

    /// Opens a prefix of a bucket to look at: nothing is changed. Fails unless it answers.
    pub(in crate::store) fn look(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
        files: Arc<dyn Files>,
    ) -> Result<Self, String> {
        let blobs = Self::new(url, variables, files)?;
        let (store, place) = (Arc::clone(&blobs.store), blobs.place(SEGMENTS));
        let asked = blobs.request(async move { store.list_with_delimiter(Some(&place)).await.map(drop) });
        asked.map_err(|error| failure(url, &error))?;
        Ok(blobs)
    }

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
        let (store, prefix) = client::open(&parsed, variables, limits).map_err(|error| failed(&error))?;
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
            stop: Stop::default(),
        })
    }

    /// Returns a future that resolves to a sentence for people when this server can't use the store, or can't any more.
    pub(in crate::store) fn refused(&self) -> impl Future<Output = String> + Send + use<> {
        let refused = self.lease.as_ref().map(|lease| lease.refused());
        async move {
            match refused {
                Some(refused) => refused.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the store can be used. Fails with a sentence for people if it can't be, or does not answer.
    pub(in crate::store) fn wait_until_open(&self) -> Result<(), String> {
        let Some(lease) = self.lease.clone() else { return Ok(()) };
        let held = self.wait(async move { Ok(lease.held().await) });
        held.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Returns the limits of requests and uploads.
    pub(in crate::store) fn limits(&self) -> &ObjectLimits {
        &self.limits
    }

    /// Fails with the reason unless this server may change objects now.
    pub(in crate::store) fn check(&self) -> StoreResult {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check())
    }

    /// Cancels every request, and each later one.
    pub(in crate::store) fn stop(&self) {
        self.stop.set();
    }

    /// Whether requests are cancelled.
    pub(in crate::store) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Releases the lease, if the store answers soon.
    pub(in crate::store) fn release(&self) {
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

    /// Sends a local file of so many bytes, and fails unless all of them arrive. The local file stays.
    pub(in crate::store) fn send(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        self.check()?;
        let sent = self.parts.clone().send(local.to_owned(), bytes, self.place(path), self.stop.clone());
        // It ends by itself when the program does, after it has taken away what it left there.
        let stored = self.wait_while(|| true, sent)?;
        if stored == bytes { Ok(()) } else { Err(StoreError::Damaged(format!("{stored} of {bytes} bytes arrived"))) }
    }

    /// Returns the length of an object in bytes; `None` if there is none.
    pub(in crate::store) fn length(&self, path: &str) -> StoreResult<Option<u64>> {
        let (store, place) = (Arc::clone(&self.store), self.place(path));
        match self.request(async move { store.head(&place).await.map(|found| found.size) }) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the object of a path.
    fn place(&self, path: &str) -> Path {
        path.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// Waits for a request with a small body and answer.
    fn request<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> StoreResult<T> {
        self.wait(within(self.limits.request_seconds, request))
    }

    /// Waits for a request that ends by itself, or until the program ends.
    fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        self.wait_while(|| !self.stop.is_set(), request)
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
                    task.inspect(JoinHandle::abort);
                    return Err(StoreError::Io(io::Error::other("the request was cancelled")));
                }
            }
        }
    }

    /// Visits every object below a place.
    fn visit(&self, place: &Path, mut visit: impl FnMut(ObjectMeta)) -> StoreResult {
        let (mut objects, seconds) = (self.store.list(Some(place)), self.limits.request_seconds);
        loop {
            let found = self.wait(async move {
                let mut found = Vec::new();
                while found.len() < LISTED_AT_ONCE
                    && let Some(object) = within(seconds, objects.try_next()).await?
                {
                    found.push(object);
                }
                Ok((objects, found))
            });
            let (rest, found) = found?;
            let is_last = found.len() < LISTED_AT_ONCE;
            found.into_iter().for_each(&mut visit);
            if is_last {
                return Ok(());
            }
            objects = rest;
        }
    }
}

impl fmt::Debug for ObjectBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBlobs").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Drop for ObjectBlobs {
    fn drop(&mut self) {
        // A runtime must not be dropped on a thread of another runtime in a way that waits.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Blobs for ObjectBlobs {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        let (place, mut found) = (self.place(folder), Vec::new());
        self.visit(&place, |object| {
            // A listing has what is in the folders below, too.
            let name = object.location.prefix_match(&place).and_then(|mut parts| parts.next());
            found.extend(name.map(|name| (name.as_ref().to_owned(), object.size)));
        })?;
        Ok(found)
    }

    fn list_below(
        &self,
        folder: &str,
        wants: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&str, &str, u64),
    ) -> StoreResult {
        let place = self.place(folder);
        self.visit(&place, |object| {
            let parts: Vec<_> = object.location.prefix_match(&place).into_iter().flatten().collect();
            if let [below, name] = &parts[..]
                && wants(below.as_ref())
            {
                visit(below.as_ref(), name.as_ref(), object.size);
            }
        })
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let (store, place) = (Arc::clone(&self.store), self.place(path));
        let options =
            GetOptions { range: Some((from..from.saturating_add(most as u64)).into()), ..GetOptions::default() };
        self.request(async move { store.get_opts(&place, options).await?.bytes().await.map(Into::into) })
    }

    fn get(&self, path: &str) -> StoreResult<Vec<u8>> {
        let (store, place) = (Arc::clone(&self.store), self.place(path));
        self.request(async move { store.get(&place).await?.bytes().await.map(Into::into) })
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        self.check()?;
        let (store, place, bytes) = (Arc::clone(&self.store), self.place(path), bytes.to_vec());
        self.request(async move { store.put(&place, bytes.into()).await.map(drop) })
    }

    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        self.send(local, bytes, path)?;
        Ok(self.files.remove(local)?)
    }

    fn give_back(&self, path: &str, bytes: u64, local: &str) -> StoreResult {
        let mut file = self.files.create(local)?;
        let mut at = 0;
        while at < bytes {
            let left = usize::try_from(bytes - at).unwrap_or(usize::MAX);
            let piece = self.read(path, at, READ_BYTES.min(left))?;
            if piece.is_empty() {
                break;
            }
            at += piece.len() as u64;
            file.append(&piece)?;
        }
        file.sync()?;
        self.files.sync_folder(folder_of(local))?;
        self.remove(&[path.to_owned()])
    }

    fn remove(&self, paths: &[String]) -> StoreResult {
        self.check()?;
        let seconds = self.limits.request_seconds;
        for paths in paths.chunks(DELETED_AT_ONCE) {
            let store = Arc::clone(&self.store);
            let places: Vec<_> = paths.iter().map(|path| Ok(self.place(path))).collect();
            self.wait(async move {
                let mut deleted = store.delete_stream(stream::iter(places).boxed());
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

    fn remove_folder(&self, _folder: &str) -> StoreResult {
        Ok(())
    }
}

/// Returns the random name of this folder, which is made the first time.
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

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Instant;

    use super::super::test_s3::{Reaction, S3};
    use super::*;
    use crate::store::files::MemoryFiles;

    #[test]
    fn a_store_that_accepts_and_never_answers_fails_each_request_in_time() {
        // It answers the look at the start, and nothing after that.
        let s3 = S3::start(
            |_, about, before| {
                if about == "list" && before == 0 { Reaction::Answer } else { Reaction::Silent }
            },
        );
        let mut blobs = ObjectBlobs::look("s3://b/p", s3.variables(), Arc::new(MemoryFiles::default())).unwrap();
        blobs.limits.request_seconds = 1;
        let path = "shares/links/x.json";
        type Request = fn(&ObjectBlobs, &str) -> StoreResult;
        let cases: [(&str, Request); 6] = [
            ("list", |blobs, path| blobs.list(path).map(drop)),
            ("list below", |blobs, path| blobs.list_below(path, &|_| true, &mut |_, _, _| {})),
            ("read", |blobs, path| blobs.read(path, 0, 9).map(drop)),
            ("get", |blobs, path| blobs.get(path).map(drop)),
            ("put", |blobs, path| blobs.put(path, b"x")),
            ("remove", |blobs, path| blobs.remove(&[path.to_owned()])),
        ];
        for (what, run) in cases {
            let begun = Instant::now();
            let Err(StoreError::Io(error)) = run(&blobs, path) else { panic!("{what} was answered") };
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{what}: {error}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
        }
    }
}
