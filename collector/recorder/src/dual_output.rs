//! One recording to a file and to another output.

use std::io;

use super::file_output::FileOutput;
use super::output::{Output, Unwritten};

/// Writes the same chunks to a file and to another output. A later failure of the file does not end the other output:
/// [`FileOutput::condition`] reports it, and the file stays readable up to there. Neither does a full disk.
pub struct DualOutput<O> {
    file: Option<FileOutput>,
    other: O,
    has_begun: bool,
}

impl<O: Output> DualOutput<O> {
    /// Creates the output.
    pub fn new(file: FileOutput, other: O) -> Self {
        Self { file: Some(file), other, has_begun: false }
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
            file.condition().fail(&error);
            self.file = None;
        }
        self.has_begun = true;
        self.other.append(bytes)
    }

    fn has_room(&mut self) -> bool {
        self.other.has_room()
    }

    fn is_draining(&self) -> bool {
        self.other.is_draining()
    }

    fn announce(&mut self, events: u64) {
        if let Some(file) = &mut self.file {
            file.announce(events);
        }
        self.other.announce(events);
    }

    fn finish(&mut self) -> Result<(), Unwritten> {
        // The file has noted its own failure.
        let _ = self.file.as_mut().map(Output::finish);
        self.other.finish()
    }
}
