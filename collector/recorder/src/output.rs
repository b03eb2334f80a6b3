//! Destinations for the bytes of a recording.

use std::io;

/// Receives the whole chunks of a recording, in order.
pub trait Output: Send + 'static {
    /// Appends bytes: all of them or, in case of an error and as far as possible, none.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns whether events may be appended. If not, the recorder counts them as lost. It appends names, marks, losses
    /// and the end in any case.
    fn has_room(&mut self) -> bool {
        true
    }

    /// Returns whether an output without room will have some in moments, so that a writer that may wait does.
    fn is_draining(&self) -> bool {
        true
    }

    /// Announces how many events the next bytes hold, for outputs that count them.
    fn announce(&mut self, events: u64) {
        let _ = events;
    }

    /// Ends the output, after everything was appended. Returns what is not in it, though [`Self::append`] took it.
    fn finish(&mut self) -> Result<(), Unwritten> {
        Ok(())
    }
}

/// The data that an output accepted and could not keep.
#[derive(Debug)]
pub struct Unwritten {
    /// Why.
    pub error: io::Error,
    /// The number of events.
    pub events: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// Keeps everything in memory: for tests, and to record without a file.
impl Output for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}
