//! A shelf in an object store.
//!
//! A shared trace is acknowledged only once the object store has it, so that a link never leads to something that is on one
//! machine alone.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::{GetOptions, ObjectStoreExt};

use super::Shelf;
use crate::store::archive::{Objects, error_of};
use crate::store::{StoreError, StoreResult};

/// Keeps shared traces in an object store.
#[derive(Debug)]
pub struct ObjectShelf {
    objects: Arc<Objects>,
}

impl ObjectShelf {
    /// Creates the shelf of an object store.
    pub(in crate::store) fn new(objects: Arc<Objects>) -> Self {
        Self { objects }
    }
}

impl Shelf for ObjectShelf {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        let (store, place) = (self.objects.store(), self.objects.place(folder));
        self.objects.wait(async move {
            let mut found = Vec::new();
            let mut objects = store.list(Some(&place));
            while let Some(object) = objects.try_next().await.map_err(error_of)? {
                // A listing has what is in the folders below, too.
                let name = object.location.prefix_match(&place).and_then(|mut parts| parts.next());
                found.extend(name.map(|name| (name.as_ref().to_owned(), object.size)));
            }
            Ok(found)
        })
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let (store, place) = (self.objects.store(), self.objects.place(path));
        if most == 0 {
            return Ok(Vec::new());
        }
        let range = Some((from..from.saturating_add(most as u64)).into());
        self.objects.wait(async move {
            let found =
                store.get_opts(&place, GetOptions { range, ..GetOptions::default() }).await.map_err(error_of)?;
            found.bytes().await.map(Into::into).map_err(error_of)
        })
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        self.objects.check()?;
        let (store, place, bytes) = (self.objects.store(), self.objects.place(path), bytes.to_vec());
        self.objects.wait(async move { store.put(&place, bytes.into()).await.map(drop).map_err(error_of) })
    }

    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        let stored = self.objects.send(local, bytes, self.objects.place(path))?;
        if stored != bytes {
            return Err(StoreError::Damaged(format!("{stored} of {bytes} bytes arrived")));
        }
        self.objects.remove_local(local)
    }

    fn remove(&self, path: &str) -> StoreResult {
        self.objects.delete(vec![self.objects.place(path)])
    }
}
