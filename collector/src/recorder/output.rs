//! Destinations for the bytes of a recording.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// Receives the whole chunks of a recording, in order.
pub trait Output: Send + 'static {
    /// Appends bytes: all of them or, in case of an error and as far as possible, none.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns whether events may be appended. If not, the recorder counts them as lost. It appends names, marks, losses
    /// and the end in any case.
    fn has_room(&self) -> bool {
        true
    }

    /// Announces how many events the next bytes hold, for outputs that count them.
    fn announce(&mut self, events: u64) {
        let _ = events;
    }
}

/// Keeps everything in memory: for tests, and to record without a file.
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
    /// Creates the file, or empties an existing one. Errs if another recorder is writing to it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another recorder is writing to it"));
            }
            // Some file systems do not support locks.
            Err(TryLockError::Error(_)) => {}
        }
        // A pipe or a device can be written but has no length to set.
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
            // A partial write is cut off, so that the file ends with a whole chunk. If that fails too, readers ignore
            // the torn chunk.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}
