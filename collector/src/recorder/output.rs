//! Where the bytes of a recording go.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// Takes whole chunks, in order.
pub trait Output: Send + 'static {
    /// Adds bytes at the end: all of them, or, as far as that can be had, none.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Whether more events may come. Where not, the recorder counts them as lost; names, marks, what was lost, and the
    /// end come in any case.
    fn has_room(&self) -> bool {
        true
    }

    /// How many events the bytes hold that come next: for outputs that give account of them.
    fn announce(&mut self, events: u64) {
        let _ = events;
    }
}

/// Everything is kept: for tests, and to record without a file.
impl Output for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A file that grows chunk by chunk.
#[derive(Debug)]
pub struct FileOutput {
    file: File,
    length: u64,
}

impl FileOutput {
    /// Creates the file, or empties the one that is there, unless another recorder writes to it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another recorder writes to it"));
            }
            // Some file systems have no locks: then it goes without.
            Err(TryLockError::Error(_)) => {}
        }
        // A pipe or a device has no length, and takes bytes all the same.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(Self { file, length: 0 })
    }
}

impl Output for FileOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // What came of it is cut off, so that the file ends with a whole chunk. Where even that fails, readers
            // leave the torn chunk out.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}
