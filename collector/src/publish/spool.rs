//! What finds no room in memory: files that are read again in the order in which they were written.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A row of pieces on disk, first in, first out.
///
/// Each file loses its name as soon as it is made, where the system allows that: so it is gone when the process ends,
/// however it ends. Elsewhere it goes when it was read, or with the spool.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// What the files are called.
    name: String,
    /// Bytes after which another file is begun.
    file_bytes: u64,
    /// Oldest first.
    files: VecDeque<Part>,
    made: u64,
}

#[derive(Debug)]
struct Part {
    file: File,
    /// Where it is, while it has a name.
    path: Option<PathBuf>,
    written: u64,
    read: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing depends on its going.
            let _ = fs::remove_file(path);
        }
    }
}

impl Spool {
    /// No file yet; `name` is one that nobody else has.
    pub(super) fn new(folder: PathBuf, name: &str, file_bytes: u64) -> Self {
        Self { folder, name: format!("vramscope-{name}"), file_bytes, files: VecDeque::new(), made: 0 }
    }

    /// Bytes on disk, those included that were read and whose file is still there.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|part| part.written).sum()
    }

    /// Adds a piece: all of it or nothing.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.files.back().is_none_or(|part| part.written >= self.file_bytes) {
            let part = self.create()?;
            self.files.push_back(part);
        }
        let Some(part) = self.files.back_mut() else { return Err(io::Error::other("no file")) };
        let result = part.file.seek(SeekFrom::Start(part.written)).and_then(|_| part.file.write_all(piece));
        match result {
            Ok(()) => part.written += piece.len() as u64,
            // What came of it is cut off, to leave the room to others. If that fails, the next piece overwrites it.
            Err(_) => drop(part.file.set_len(part.written)),
        }
        result
    }

    /// Takes the oldest piece, which has this length. After an error it is lost.
    pub(super) fn pop(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let Some(part) = self.files.front_mut() else { return Err(io::Error::other("the spool is empty")) };
        let mut piece = vec![0; length];
        let from = part.read;
        part.read += length as u64;
        let result = part.file.seek(SeekFrom::Start(from)).and_then(|_| part.file.read_exact(&mut piece));
        if part.read >= part.written {
            self.files.pop_front();
        }
        result.map(|()| piece)
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        self.files.clear();
    }

    fn create(&mut self) -> io::Result<Part> {
        fs::create_dir_all(&self.folder)?;
        self.made += 1;
        let path = self.folder.join(format!("{}-{}.spool", self.name, self.made));
        let mut options = OpenOptions::new();
        // New: a link that somebody put there beforehand leads nowhere.
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        let path = match fs::remove_file(&path) {
            Ok(()) if cfg!(unix) => None,
            _ => Some(path),
        };
        Ok(Part { file, path, written: 0, read: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_files_go_when_they_were_read() {
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
            // Nobody finds them, whatever becomes of this process.
            #[cfg(unix)]
            assert!(fs::read_dir(&folder).map_or(0, Iterator::count) == 0);
        }
        while popped < pushed {
            assert_eq!(spool.pop(piece(popped).len()).unwrap(), piece(popped));
            popped += 1;
        }
        assert!(spool.bytes() == 0 && spool.pop(1).is_err() && pushed > 100);
        drop(spool);
        // It leaves nothing in it.
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_no_more() {
        let mut spool = Spool::new(PathBuf::from("/dev/null/no"), "test", 100);
        assert!(spool.push(b"piece").is_err());
        assert_eq!(spool.bytes(), 0);
    }
}
