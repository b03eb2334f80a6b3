//! A shelf in the store's own folder.

use std::sync::Arc;

use super::Shelf;
use crate::store::StoreResult;
use crate::store::files::{Files, replace};

/// Keeps shared traces in the store's folder.
#[derive(Debug)]
pub struct FolderShelf {
    files: Arc<dyn Files>,
}

impl FolderShelf {
    /// Creates the shelf of a folder.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }
}

impl Shelf for FolderShelf {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        let entries = self.files.list(folder)?.into_iter().filter(|entry| !entry.is_folder);
        Ok(entries.map(|entry| (entry.name, entry.bytes)).collect())
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(path, from, most)?)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        replace(&*self.files, path, bytes).map_err(|error| {
            // What was written of it may be what the disk has no room for.
            let _ = self.files.remove(&format!("{path}.new"));
            error.into()
        })
    }

    fn take(&self, local: &str, _bytes: u64, path: &str) -> StoreResult {
        Ok(self.files.rename(local, path)?)
    }

    fn remove(&self, path: &str) -> StoreResult {
        Ok(self.files.remove(path)?)
    }
}
