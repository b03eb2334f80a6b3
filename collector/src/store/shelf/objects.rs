//! A shelf in an object store.
//!
//! A shared trace is acknowledged only once the object store has it, so that a link never leads to something that is on one
//! machine alone. A store that does not answer fails each request after [a while](ObjectLimits::request_seconds); only a trace
//! that is being sent takes as long as it moves.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::{GetOptions, ObjectStoreExt};
use trace::limits::ObjectLimits;

use super::Shelf;
use crate::store::archive::{Objects, within};
use crate::store::{StoreError, StoreResult};

/// Keeps shared traces in an object store.
#[derive(Debug)]
pub struct ObjectShelf {
    objects: Arc<Objects>,
    /// Seconds for one request.
    seconds: u64,
}

impl ObjectShelf {
    /// Creates the shelf of an object store.
    pub(in crate::store) fn new(objects: Arc<Objects>) -> Self {
        Self { objects, seconds: ObjectLimits::default().request_seconds }
    }
}

impl Shelf for ObjectShelf {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        let (store, place, seconds) = (self.objects.store(), self.objects.place(folder), self.seconds);
        self.objects.wait(async move {
            let mut found = Vec::new();
            let mut objects = store.list(Some(&place));
            while let Some(object) = within(seconds, objects.try_next()).await? {
                // A listing has what is in the folders below, too.
                let name = object.location.prefix_match(&place).and_then(|mut parts| parts.next());
                found.extend(name.map(|name| (name.as_ref().to_owned(), object.size)));
            }
            Ok(found)
        })
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let (store, place, seconds) = (self.objects.store(), self.objects.place(path), self.seconds);
        if most == 0 {
            return Ok(Vec::new());
        }
        let range = Some((from..from.saturating_add(most as u64)).into());
        self.objects.wait(within(seconds, async move {
            store.get_opts(&place, GetOptions { range, ..GetOptions::default() }).await?.bytes().await.map(Into::into)
        }))
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        self.objects.check()?;
        let (store, place, bytes) = (self.objects.store(), self.objects.place(path), bytes.to_vec());
        self.objects.wait(within(self.seconds, async move { store.put(&place, bytes.into()).await.map(drop) }))
    }

    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        let stored = self.objects.send(local, bytes, self.objects.place(path))?;
        if stored != bytes {
            return Err(StoreError::Damaged(format!("{stored} of {bytes} bytes arrived")));
        }
        self.objects.remove_local(local)
    }

    fn remove(&self, path: &str) -> StoreResult {
        self.objects.delete(&[self.objects.place(path)], self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::store::ObjectArchive;
    use crate::store::archive::test_s3::{Reaction, S3};
    use crate::store::files::MemoryFiles;

    #[test]
    fn a_store_that_accepts_and_never_answers_fails_each_request_in_time() {
        // It answers the look at the start, and nothing after that.
        let s3 = S3::start(
            |_, about, before| {
                if about == "list" && before == 0 { Reaction::Answer } else { Reaction::Silent }
            },
        );
        let archive = ObjectArchive::look("s3://b/p", s3.variables(), Arc::new(MemoryFiles::default())).unwrap();
        let shelf = ObjectShelf { seconds: 1, ..archive.shelf() };
        let path = "shares/links/x.json";
        type Run = fn(&ObjectShelf, &str) -> StoreResult;
        let cases: [(&str, Run); 4] = [
            ("list", |shelf, path| shelf.list(path).map(drop)),
            ("read", |shelf, path| shelf.read(path, 0, 9).map(drop)),
            ("put", |shelf, path| shelf.put(path, b"x")),
            ("remove", |shelf, path| shelf.remove(path)),
        ];
        for (what, run) in cases {
            let begun = Instant::now();
            let Err(StoreError::Io(error)) = run(&shelf, path) else { panic!("{what} was answered") };
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{what}: {error}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {:?}", begun.elapsed());
        }
    }
}
