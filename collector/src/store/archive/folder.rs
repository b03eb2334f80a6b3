//! Sealed segments in the store's own folder.
//!
//! A segment is sealed by a rename, so it is neither copied nor ever half there.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::is_session;

use super::{Archive, Sealed};
use crate::store::files::{Files, replace};
use crate::store::layout::{SEGMENTS, marks_path, parse_sealed, sealed_path, session_folder};
use crate::store::{StoreError, StoreResult};

/// Keeps sealed segments in the store's folder.
#[derive(Debug)]
pub struct FolderArchive {
    files: Arc<dyn Files>,
}

impl FolderArchive {
    /// Creates the archive of a folder.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }
}

impl Archive for FolderArchive {
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Sealed>>> {
        let mut all = BTreeMap::new();
        for entry in self.files.list(SEGMENTS)? {
            if entry.is_folder && is_session(&entry.name) {
                // A folder that can't be read must not hide all the others.
                let segments = self.segments(&entry.name).unwrap_or_else(|error| {
                    tracing::error!(session = entry.name, "cannot list segments: {error}");
                    Vec::new()
                });
                all.insert(entry.name, segments);
            }
        }
        Ok(all)
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<Sealed>> {
        let sealed = self.files.list(&session_folder(session)?)?.into_iter().filter_map(|entry| {
            let (number, hash) = parse_sealed(&entry.name).filter(|_| !entry.is_folder)?;
            Some(Sealed { number, hash, bytes: entry.bytes })
        });
        Ok(sealed.collect())
    }

    fn take(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        Ok(self.files.rename(path, &sealed_path(session, sealed.number, sealed.hash)?)?)
    }

    fn read(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        Ok(self.files.read(&sealed_path(session, sealed.number, sealed.hash)?, from, most)?)
    }

    fn remove(&self, session: &str, sealed: &[Sealed]) -> StoreResult {
        for sealed in sealed {
            self.files.remove(&sealed_path(session, sealed.number, sealed.hash)?)?;
        }
        Ok(self.files.remove_folder(&session_folder(session)?)?)
    }

    fn give_back(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult {
        Ok(self.files.rename(&sealed_path(session, sealed.number, sealed.hash)?, path)?)
    }

    fn marks(&self, session: &str) -> StoreResult<Option<Vec<u8>>> {
        match self.files.read(&marks_path(session)?, 0, usize::MAX).map_err(StoreError::from) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_marks(&self, session: &str, marks: Option<&[u8]>) -> StoreResult {
        let path = marks_path(session)?;
        match marks {
            Some(bytes) => Ok(replace(&*self.files, &path, bytes)?),
            None => {
                self.files.remove(&path)?;
                Ok(self.files.remove_folder(&session_folder(session)?)?)
            }
        }
    }
}
