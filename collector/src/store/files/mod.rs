//! Files in one folder, as the store uses them.
//!
//! The store accesses the disk only through [`Files`], so that tests can simulate a power cut, a full disk, or a failure of any
//! call ([`MemoryFiles`]). Paths are relative, are separated by `/`, and are built by [`super::layout`] from
//! checked names only.

mod disk;
mod memory;

use std::fmt;
use std::io;

pub use disk::DiskFiles;
pub use memory::{MemoryFiles, PowerCut};

/// A file or folder in a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name, without the folder's.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its length in bytes; 0 for a folder.
    pub bytes: u64,
}

/// The files of one folder. Symbolic links below the folders at its top, and special files, are not followed: they count as
/// missing wherever they are met. No [`BriefLock`](crate::brief_lock::BriefLock) may be held during a call.
pub trait Files: Send + Sync + fmt::Debug {
    /// Returns what a folder holds, in no particular order; nothing if there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;
    /// Returns the paths of symbolic links that were met and not followed, for people.
    fn unfollowed(&self) -> Vec<String> {
        Vec::new()
    }
    /// Reads up to `most` bytes from the offset `from`; fewer only at the end of the file.
    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>>;
    /// Creates an empty file to append to, in place of any earlier one. Creates its folder if necessary. The name is durable
    /// only after [`Self::sync_folder`] or a [`Self::rename`].
    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>>;
    /// Renames a file, in place of any earlier one of the new name. Creates the new folder if necessary. Returns when both
    /// folders are durable. A file that moves to another disk is copied; what is appended to it later is lost.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; does nothing if there is none.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Removes an empty folder; does nothing if there is none, or if it is not empty.
    fn remove_folder(&self, folder: &str) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
}

/// A file that is open at its end. At most one is open for each path.
pub trait OpenFile: Send + fmt::Debug {
    /// Appends bytes. Readers see them at once. After an error, a part of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Shortens the file to a length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Makes everything appended so far durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// Returns the folder of a path; empty for a path without one.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The ending of files that are not complete.
pub(super) const NEW: &str = ".new";

/// Returns the name of a file while it is not complete.
pub(super) fn new_name(path: &str) -> String {
    format!("{path}{NEW}")
}

/// Writes a whole file under another name and renames it, so that readers find all of it or the earlier one. Leaves nothing
/// else behind, also if the disk is full.
pub(crate) fn replace(files: &dyn Files, path: &str, bytes: &[u8]) -> io::Result<()> {
    let new = new_name(path);
    let written = (|| {
        let mut file = files.create(&new)?;
        file.append(bytes)?;
        file.sync()?;
        drop(file);
        files.rename(&new, path)
    })();
    written.inspect_err(|_| drop(files.remove(&new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &dyn Files, folder: &str) -> Vec<(String, u64)> {
        let mut names: Vec<_> =
            files.list(folder).unwrap().into_iter().map(|entry| (entry.name, entry.bytes)).collect();
        names.sort();
        names
    }

    /// What every implementation must do.
    fn check(files: &dyn Files) {
        assert!(files.list("no/such").unwrap().is_empty());
        assert_eq!(files.read("no/such", 0, 9).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(files.rename("no", "yes").unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut file = files.create("a/b/one").unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        for (from, most, want) in [(0, 5, "hello"), (6, 99, "world"), (11, 9, ""), (50, 9, "")] {
            assert_eq!(files.read("a/b/one", from, most).unwrap(), want.as_bytes());
        }
        file.truncate(5).unwrap();
        file.append(b"!").unwrap();
        file.sync().unwrap();
        files.rename("a/b/one", "c/two").unwrap();
        // The file is the same under its new name.
        file.append(b"!").unwrap();
        assert_eq!(files.read("c/two", 0, 99).unwrap(), b"hello!!");
        assert_eq!((names(files, "a/b"), names(files, "c")), (vec![], vec![("two".to_owned(), 7)]));
        assert_eq!(names(files, "a"), [("b".to_owned(), 0)]);
        replace(files, "c/three", b"3").unwrap();
        replace(files, "c/three", b"33").unwrap();
        assert_eq!(names(files, "c"), [("three".to_owned(), 2), ("two".to_owned(), 7)]);
        files.remove("c/three").unwrap();
        files.remove("c/three").unwrap();
        files.remove_folder("c").unwrap();
        assert_eq!(names(files, "c"), [("two".to_owned(), 7)], "a folder that is not empty stays");
        assert_eq!(files.create("c/two").map(|_| files.read("c/two", 0, 9).unwrap()).unwrap(), b"");
        files.remove("c/two").unwrap();
        files.remove_folder("c").unwrap();
        files.remove_folder("c").unwrap();
        files.sync_folder("a").unwrap();
        assert!(names(files, "").contains(&("a".to_owned(), 0)));
    }

    #[test]
    fn memory_and_disk_behave_alike() {
        check(&MemoryFiles::default());
        let folder = tempfile::tempdir().unwrap();
        let files = DiskFiles::open(folder.path()).unwrap();
        check(&files);
    }
}
