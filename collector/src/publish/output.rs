//! The recorder's end.

use std::io;
use std::sync::Arc;

use shared::format::{ChunkReader, Kind, PRELUDE_BYTES};
use shared::limits::ImportLimits;

use super::state::Shared;
use crate::recorder::Output;

/// Takes the chunks of a recording that is published. It never waits for the network; a disk that the spool is on it
/// waits for as a file would.
pub struct PublisherOutput {
    pub(super) shared: Arc<Shared>,
    /// What comes next is the file's first bytes.
    pub(super) is_first: bool,
    /// Events in what comes next.
    pub(super) events: u64,
}

impl Output for PublisherOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let events = std::mem::take(&mut self.events);
        if self.shared.is_elsewhere() {
            return Ok(());
        }
        let (mut chunks, mut header) = (bytes, None);
        if std::mem::take(&mut self.is_first) {
            header = Some(header_of(bytes).ok_or_else(|| io::Error::other("a recording begins with its header"))?);
            chunks = bytes.get(PRELUDE_BYTES..).unwrap_or(&[]);
        }
        let mut state = self.shared.lock();
        if let Some(header) = header {
            state.header = header;
        }
        if state.failure.is_some() || state.is_done {
            // Counted, and sent by nobody any more.
            state.queue.events += events;
        } else {
            state.queue.push(chunks, events);
        }
        drop(state);
        self.shared.ring();
        Ok(())
    }

    fn has_room(&self) -> bool {
        // In the child of a fork nothing is kept, so everything has room.
        self.shared.is_elsewhere() || self.shared.lock().queue.has_room()
    }

    fn announce(&mut self, events: u64) {
        self.events += events;
    }
}

/// The payload of the header chunk at the beginning of a recording.
fn header_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let mut chunks = ChunkReader::at_start(&ImportLimits::default());
    let visit = &mut |chunk: shared::format::Chunk<'_>| {
        if chunk.kind == Kind::Header as u8 && found.is_none() {
            found = Some(chunk.payload.to_vec());
        }
    };
    chunks.push(bytes, visit).ok()?;
    found
}
