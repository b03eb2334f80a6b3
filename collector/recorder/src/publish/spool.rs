//! Batches that do not fit in memory, in files.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::disk;

/// A first-in, first-out queue of byte strings on disk.
///
/// On Unix each file is unlinked as soon as it is created, so it vanishes with the process, however that ends.
/// Elsewhere a file is deleted once it is read, or with the spool.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// The prefix of file names.
    name: String,
    /// The size in bytes after which a new file is created.
    file_bytes: u64,
    /// Oldest first.
    files: VecDeque<SpoolFile>,
    created: u64,
}

#[derive(Debug)]
struct SpoolFile {
    file: File,
    /// Its path, while it has a name.
    path: Option<PathBuf>,
    written: u64,
    read: u64,
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing depends on its removal.
            let _ = fs::remove_file(path);
        }
    }
}

impl Spool {
    /// Creates an empty spool without a file. `name` must be unique in the folder.
    pub(super) fn new(folder: PathBuf, name: &str, file_bytes: u64) -> Self {
        Self { folder, name: format!("vramscope-{name}"), file_bytes, files: VecDeque::new(), created: 0 }
    }

    /// Returns the bytes on disk, including those that were read from files that still exist.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.written).sum()
    }

    /// Appends `bytes`: all of them, or none in case of an error.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.files.back().is_none_or(|file| file.written >= self.file_bytes) {
            let file = self.create()?;
            self.files.push_back(file);
        }
        let Some(last) = self.files.back_mut() else { return Err(io::Error::other("no file")) };
        let result = last.file.seek(SeekFrom::Start(last.written)).and_then(|_| last.file.write_all(bytes));
        match result {
            Ok(()) => last.written += bytes.len() as u64,
            // A partial write is cut off to free the space. If that fails, the next write overwrites it.
            Err(_) => drop(last.file.set_len(last.written)),
        }
        result
    }

    /// Removes and returns the oldest entry, which has `length` bytes. After an error it is lost.
    pub(super) fn pop(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let Some(first) = self.files.front_mut() else { return Err(io::Error::other("the spool is empty")) };
        let mut bytes = vec![0; length];
        let from = first.read;
        first.read += length as u64;
        let result = first.file.seek(SeekFrom::Start(from)).and_then(|_| first.file.read_exact(&mut bytes));
        if first.read >= first.written {
            self.files.pop_front();
        }
        result.map(|()| bytes)
    }

    /// Returns a sentence about an error, with the place of the files.
    pub(super) fn explain(&self, error: &io::Error) -> String {
        format!("events can't be kept in {}: {}", self.folder.display(), disk::why(error))
    }

    /// Deletes everything.
    pub(super) fn clear(&mut self) {
        self.files.clear();
    }

    fn create(&mut self) -> io::Result<SpoolFile> {
        fs::create_dir_all(&self.folder)?;
        self.created += 1;
        let path = self.folder.join(format!("{}-{}.spool", self.name, self.created));
        let mut options = OpenOptions::new();
        // `create_new` does not follow a planted symlink.
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let named = |error: io::Error| io::Error::new(error.kind(), disk::why_not_created(&error));
        let file = options.open(&path).map_err(named)?;
        let path = match fs::remove_file(&path) {
            Ok(()) if cfg!(unix) => None,
            _ => Some(path),
        };
        Ok(SpoolFile { file, path, written: 0, read: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_in_order_and_files_are_deleted_once_read() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("spool");
        let mut spool = Spool::new(folder.clone(), "test", 100);
        let piece = |i: usize| vec![i as u8; 1 + i * 7 % 60];
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..200 {
            for _ in 0..round % 7 {
                spool.push(&piece(pushed)).unwrap();
                pushed += 1;
            }
            for _ in 0..(round * 5 % 8).min(pushed - popped) {
                assert_eq!(spool.pop(piece(popped).len()).unwrap(), piece(popped));
                popped += 1;
            }
            let unread: usize = (popped..pushed).map(|i| piece(i).len()).sum();
            assert!((unread as u64..unread as u64 + 200).contains(&spool.bytes()), "{} {unread}", spool.bytes());
            // The files have no names.
            #[cfg(unix)]
            assert!(fs::read_dir(&folder).map_or(0, Iterator::count) == 0);
        }
        while popped < pushed {
            assert_eq!(spool.pop(piece(popped).len()).unwrap(), piece(popped));
            popped += 1;
        }
        assert!(spool.bytes() == 0 && spool.pop(1).is_err() && pushed > 100);
        drop(spool);
        // The folder is empty.
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn an_unwritable_folder_is_an_error() {
        let mut spool = Spool::new(PathBuf::from("/dev/null/no"), "test", 100);
        assert!(spool.push(b"piece").is_err());
        assert_eq!(spool.bytes(), 0);
    }
}
