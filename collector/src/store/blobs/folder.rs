//! Blobs in the store's own folder.
//!
//! A file is taken by a rename, so it is not copied, and appears as a whole.

use std::sync::Arc;

use super::Blobs;
use crate::store::StoreResult;
use crate::store::files::{Files, replace};

/// Keeps files in the store's folder.
#[derive(Debug)]
pub struct FolderBlobs {
    files: Arc<dyn Files>,
}

impl FolderBlobs {
    /// Creates the blobs of a folder.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }
}

impl Blobs for FolderBlobs {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        let entries = self.files.list(folder)?.into_iter().filter(|entry| !entry.is_folder);
        Ok(entries.map(|entry| (entry.name, entry.bytes)).collect())
    }

    fn list_below(
        &self,
        folder: &str,
        wants: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&str, &str, u64),
    ) -> StoreResult {
        for below in self.files.list(folder)?.into_iter().filter(|entry| entry.is_folder && wants(&entry.name)) {
            match self.list(&format!("{folder}/{}", below.name)) {
                Ok(found) => found.iter().for_each(|(name, bytes)| visit(&below.name, name, *bytes)),
                // A folder that can't be read must not hide all the others.
                Err(error) => tracing::error!(folder, name = below.name, "cannot list a folder: {error}"),
            }
        }
        Ok(())
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(path, from, most)?)
    }

    fn get(&self, path: &str) -> StoreResult<Vec<u8>> {
        self.read(path, 0, usize::MAX)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        Ok(replace(&*self.files, path, bytes)?)
    }

    fn take(&self, local: &str, _bytes: u64, path: &str) -> StoreResult {
        Ok(self.files.rename(local, path)?)
    }

    fn give_back(&self, path: &str, _bytes: u64, local: &str) -> StoreResult {
        Ok(self.files.rename(path, local)?)
    }

    fn remove(&self, paths: &[String]) -> StoreResult {
        for path in paths {
            self.files.remove(path)?;
        }
        Ok(())
    }

    fn remove_folder(&self, folder: &str) -> StoreResult {
        Ok(self.files.remove_folder(folder)?)
    }
}
