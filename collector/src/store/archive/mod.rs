//! Where sealed segments are kept: a folder, or an object store.

mod folder;
mod lease;
mod line;
mod objects;
mod parts;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
pub(in crate::store) mod test_s3;
mod uploads;

use std::collections::BTreeMap;
use std::fmt;

pub use folder::FolderArchive;
pub(in crate::store) use line::within;
pub use objects::ObjectArchive;
pub(in crate::store) use objects::Objects;

use super::{Catalogue, Hash, StoreResult, Uploads};

/// A sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its number within the session.
    pub number: u32,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Keeps sealed segments, and for each session a small file of marks. Sessions have valid names.
pub trait Archive: Send + Sync + fmt::Debug {
    /// Returns the segments of all sessions.
    fn list(&self) -> StoreResult<BTreeMap<String, Vec<Sealed>>>;
    /// Returns the segments of one session; none if it has none.
    fn segments(&self, session: &str) -> StoreResult<Vec<Sealed>>;
    /// Moves a file of the store's folder here. Returns when it is durable here; then it is no longer at `path`, or will be
    /// removed there once it was uploaded.
    fn take(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult;
    /// Reads up to `most` bytes from the offset `from`; fewer only at the end.
    fn read(&self, session: &str, sealed: Sealed, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Deletes segments of a session; those that are not there count as deleted.
    fn remove(&self, session: &str, sealed: &[Sealed]) -> StoreResult;
    /// Moves a segment into the store's folder, to `path`.
    fn give_back(&self, session: &str, sealed: Sealed, path: &str) -> StoreResult;
    /// Returns the marks of a session; `None` if it has none.
    fn marks(&self, session: &str) -> StoreResult<Option<Vec<u8>>>;
    /// Replaces the marks of a session; `None` deletes them.
    fn set_marks(&self, session: &str, marks: Option<&[u8]>) -> StoreResult;
    /// Whether it is on the local disk.
    fn is_local(&self) -> bool {
        true
    }
    /// Fails with the reason if it can't be reached at all.
    fn check_reachable(&self) -> StoreResult {
        Ok(())
    }
    /// Returns what waits to be uploaded.
    fn uploads(&self) -> Uploads {
        Uploads::default()
    }
    /// Removes local copies of uploaded segments that this catalogue knows.
    fn settle(&self, _catalogue: &Catalogue) {}
    /// Gives up every request, and each later one.
    fn stop(&self) {}
}
