//! Sends a local file to an object store in parts.
//!
//! A part is read only when it can be sent, and [few](ObjectLimits::parts) are in flight at once, of all uploads together. So an
//! upload takes the same memory whatever its length, and on a slow line it only takes long. An upload that fails, or that
//! is cancelled because the server stops, is aborted: otherwise the object store would keep its parts, invisibly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use object_store::path::Path;
use object_store::retry::{RetryContext, RetryFailure, RetryPolicy};
use object_store::{
    MultipartUpload, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutPayload, Result as ObjectResult,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::sleep;
use trace::limits::ObjectLimits;

use super::client::{error_of, within};
use crate::store::files::Files;
use crate::store::{StoreError, StoreResult};

/// The interval at which [`Stop`] is checked.
const LOOK: Duration = Duration::from_millis(100);

/// Sends files in parts. Clones share the number of parts in flight.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    store: Arc<dyn ObjectStore>,
    files: Arc<dyn Files>,
    limits: ObjectLimits,
    free: Arc<Semaphore>,
}

impl Parts {
    /// Creates a sender of files of a folder to an object store.
    pub(super) fn new(store: Arc<dyn ObjectStore>, files: Arc<dyn Files>, limits: ObjectLimits) -> Self {
        Self { store, files, limits, free: Arc::new(Semaphore::new(limits.parts)) }
    }

    /// Sends a local file of so many bytes, unless the server stops meanwhile. Returns the bytes that the object store has of
    /// it then.
    pub(super) async fn send(self, local: String, bytes: u64, to: Path, stop: Stop) -> StoreResult<u64> {
        let options = PutMultipartOptions::default().with_retry_policy(Arc::new(RetryAttempts(self.limits.attempts)));
        let seconds = self.limits.request_seconds;
        let mut upload = stop.unless(within(seconds, self.store.put_multipart_opts(&to, options))).await?;
        let mut tasks = JoinSet::new();
        let stored = stop.unless(async {
            self.send_parts(&mut *upload, &mut tasks, &local, bytes).await?;
            let completed = within(seconds, upload.complete()).await;
            match (completed, within(seconds, self.store.head(&to)).await) {
                // Perhaps only the answer was lost. Names are made of hashes, so the length tells.
                (Err(error), Ok(stored)) if stored.size != bytes => Err(error),
                (Err(error), Err(_)) => Err(error),
                (_, stored) => stored.map(|stored| stored.size),
            }
        });
        let stored = stored.await;
        if stored.is_err() {
            // A part that arrives after its upload was aborted would stay.
            tasks.shutdown().await;
            let aborted = tokio::select! {
                aborted = within(seconds, upload.abort()) => aborted,
                stopped = stop.after(self.limits.stop_seconds) => Err(stopped),
            };
            if let Err(error) = aborted {
                tracing::warn!("the parts of an upload that failed may stay in the object store: {error}");
            }
        }
        stored
    }

    async fn send_parts(
        &self,
        upload: &mut dyn MultipartUpload,
        tasks: &mut JoinSet<ObjectResult<()>>,
        local: &str,
        bytes: u64,
    ) -> StoreResult {
        let mut at = 0;
        while at < bytes {
            let place = tokio::select! {
                biased;
                Some(done) = tasks.join_next() => {
                    sent(done)?;
                    continue;
                }
                place = Arc::clone(&self.free).acquire_owned() => place.map_err(io::Error::other)?,
            };
            let (part, length) = self.read(local, at).await?;
            if length == 0 {
                return Err(StoreError::Damaged(format!("{local} has {at} bytes instead of {bytes}")));
            }
            at += length;
            tasks.spawn(put(upload, part, place));
        }
        while let Some(done) = tasks.join_next().await {
            sent(done)?;
        }
        Ok(())
    }

    /// Reads the part at an offset, on a thread that may wait for the disk. Returns it with its length, which is 0 at the end.
    async fn read(&self, local: &str, from: u64) -> StoreResult<(PutPayload, u64)> {
        let (files, local, limits) = (Arc::clone(&self.files), local.to_owned(), self.limits);
        let read = spawn_blocking(move || {
            let (mut pieces, mut length) = (Vec::new(), 0);
            while length < limits.part_bytes {
                let most = limits.read_bytes.min(limits.part_bytes - length);
                let piece = files.read(&local, from + length as u64, most)?;
                if piece.is_empty() {
                    break;
                }
                length += piece.len();
                // Without the room that reading has left behind it.
                pieces.push(Bytes::from(piece.into_boxed_slice()));
            }
            Ok((PutPayload::from_iter(pieces), length as u64))
        });
        read.await.map_err(io::Error::other)?
    }
}

/// A flag that is set when the server stops.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets the flag.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the server stops.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for a request, unless the server stops meanwhile.
    async fn unless<T>(&self, request: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        tokio::select! {
            done = request => done,
            stopped = self.after(0) => Err(stopped),
        }
    }

    /// Resolves so many seconds after the server stops.
    async fn after(&self, seconds: u64) -> StoreError {
        while !self.is_set() {
            sleep(LOOK).await;
        }
        sleep(Duration::from_secs(seconds)).await;
        StoreError::Io(io::Error::other("the server stops"))
    }
}

/// Sends a part, then releases its permit.
fn put(
    upload: &mut dyn MultipartUpload,
    part: PutPayload,
    place: OwnedSemaphorePermit,
) -> impl Future<Output = ObjectResult<()>> + 'static {
    let put = upload.put_part(part);
    async move {
        let _place = place;
        put.await
    }
}

fn sent(done: Result<ObjectResult<()>, JoinError>) -> StoreResult {
    done.map_err(io::Error::other)?.map_err(error_of)
}

/// Retries a part up to a number of attempts.
#[derive(Debug)]
struct RetryAttempts(usize);

impl RetryPolicy for RetryAttempts {
    fn retry<'a, 'b>(&'a self, failed: RetryContext) -> Pin<Box<dyn Future<Output = bool> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let is_temporary = match failed.failure {
            RetryFailure::Status(status) => status.is_server_error() || matches!(status.as_u16(), 408 | 429),
            _ => true,
        };
        let again = is_temporary && failed.attempt < self.0;
        Box::pin(async move { again })
    }
}
