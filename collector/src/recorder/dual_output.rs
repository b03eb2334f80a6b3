//! One recording to a file and to another output.

use std::io;
use std::sync::{Arc, OnceLock};

use super::output::{FileOutput, Output};

/// Writes the same chunks to a file and to another output. A later failure of the file does not end the other output;
/// it is reported, and the file stays readable up to there.
pub struct DualOutput<O> {
    file: Option<FileOutput>,
    failure: Arc<OnceLock<String>>,
    other: O,
    has_begun: bool,
}

impl<O: Output> DualOutput<O> {
    /// Creates the output. The second value receives the file's error if writing it fails later.
    pub fn new(file: FileOutput, other: O) -> (Self, Arc<OnceLock<String>>) {
        let failure = Arc::new(OnceLock::new());
        (Self { file: Some(file), failure: Arc::clone(&failure), other, has_begun: false }, failure)
    }
}

impl<O: Output> Output for DualOutput<O> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file
            && let Err(error) = file.append(bytes)
        {
            // A file that fails at its first write is an error of the caller, who named it.
            if !self.has_begun {
                return Err(error);
            }
            // Set only here, and the file is dropped: it cannot be set yet.
            let _ = self.failure.set(error.to_string());
            self.file = None;
        }
        self.has_begun = true;
        self.other.append(bytes)
    }

    fn has_room(&self) -> bool {
        self.other.has_room()
    }

    fn announce(&mut self, events: u64) {
        self.other.announce(events);
    }
}
