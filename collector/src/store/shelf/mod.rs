//! Where shared traces are kept, and what is known of their links: beside the sealed segments, in the store's folder or in
//! its object store.

mod folder;
mod objects;

use std::fmt;

pub use folder::FolderShelf;
pub use objects::ObjectShelf;

use super::StoreResult;

/// Keeps files that are written as a whole and read in parts. Paths are built from checked names only.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// Returns the names in a folder, with their lengths in bytes; nothing if there is no such folder.
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>>;
    /// Reads up to `most` bytes from the offset `from`, which is before the end of the file; fewer only at its end.
    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Writes a small file, in place of any earlier one. Readers find the earlier one or all of the new one. Returns when it
    /// is durable.
    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult;
    /// Moves a complete file of so many bytes here from the store's local folder. Returns when it is durable here.
    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult;
    /// Deletes a file. Does nothing if there is none.
    fn remove(&self, path: &str) -> StoreResult;
}
