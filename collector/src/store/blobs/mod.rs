//! Files that are written as a whole: sealed segments, marks, shared traces and their links.
//!
//! [`FolderBlobs`] keeps them in the store's own folder, [`ObjectBlobs`] in an object store. A path names the same file in
//! both, and is built from checked names only.

mod client;
mod folder;
mod lease;
mod objects;
mod parts;
#[cfg(test)]
mod parts_tests;
#[cfg(test)]
mod test_s3;

use std::fmt;

pub(super) use client::failure;
pub use folder::FolderBlobs;
pub(super) use objects::ObjectBlobs;

use super::StoreResult;

/// Keeps files that are written as a whole and read in parts.
pub trait Blobs: Send + Sync + fmt::Debug {
    /// Returns the names of the files in a folder, with their lengths in bytes; nothing if there is no such folder.
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>>;
    /// Calls `visit` with the folder, the name and the length in bytes of each file in those folders directly below `folder`
    /// whose names `wants` accepts.
    fn list_below(
        &self,
        folder: &str,
        wants: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&str, &str, u64),
    ) -> StoreResult;
    /// Reads up to `most` bytes from the offset `from`, which is before the end of the file; fewer only at its end.
    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>>;
    /// Reads a whole small file.
    fn get(&self, path: &str) -> StoreResult<Vec<u8>>;
    /// Writes a small file, in place of any earlier one. Readers find the earlier one or all of the new one. Returns when it
    /// is durable.
    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult;
    /// Moves a complete file of `bytes` bytes here from the path `local` of the local folder. Returns when it is durable here.
    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult;
    /// Moves a file of `bytes` bytes from here to the path `local` of the local folder. Returns when it is durable there.
    fn give_back(&self, path: &str, bytes: u64, local: &str) -> StoreResult;
    /// Deletes files; those that are not there count as deleted.
    fn remove(&self, paths: &[String]) -> StoreResult;
    /// Deletes a folder if it exists and is empty. Does nothing where there are no folders.
    fn remove_folder(&self, folder: &str) -> StoreResult;
}
