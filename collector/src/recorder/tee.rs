//! One recording to two places.

use std::io;
use std::sync::{Arc, OnceLock};

use super::output::{FileOutput, Output};

/// A file, and beside it another output which gets the same chunks. That the file can't be written any more does not
/// end the other: it is said, and the file can be read up to there.
pub struct Tee<O> {
    file: Option<FileOutput>,
    failure: Arc<OnceLock<String>>,
    other: O,
    is_begun: bool,
}

impl<O: Output> Tee<O> {
    /// To both; the second value will hold why the file is not whole, if it comes to that.
    pub fn new(file: FileOutput, other: O) -> (Self, Arc<OnceLock<String>>) {
        let failure = Arc::new(OnceLock::new());
        (Self { file: Some(file), failure: Arc::clone(&failure), other, is_begun: false }, failure)
    }
}

impl<O: Output> Output for Tee<O> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file
            && let Err(error) = file.append(bytes)
        {
            // A file that can't even be begun is an error of who named it.
            if !self.is_begun {
                return Err(error);
            }
            // It is told once.
            let _ = self.failure.set(error.to_string());
            self.file = None;
        }
        self.is_begun = true;
        self.other.append(bytes)
    }

    fn has_room(&self) -> bool {
        self.other.has_room()
    }

    fn announce(&mut self, events: u64) {
        self.other.announce(events);
    }
}
