//! The recorder's end of a publisher.

use std::io;
use std::sync::Arc;

use format::{ChunkReader, Kind, PRELUDE_BYTES};
use trace::limits::ImportLimits;

use super::state::SharedState;
use crate::Output;

/// An [`Output`] that queues chunks for the server. It never waits for the network. While it moves batches to the
/// spool, it waits for that disk as a file would.
pub struct PublisherOutput {
    pub(super) shared: Arc<SharedState>,
    /// The next bytes are the recording's first.
    pub(super) is_first: bool,
    /// Events in the next bytes.
    pub(super) events: u64,
}

impl Output for PublisherOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let events = std::mem::take(&mut self.events);
        if self.shared.is_forked_child() {
            return Ok(());
        }
        let (mut chunks, mut header) = (bytes, None);
        if std::mem::take(&mut self.is_first) {
            let missing = || io::Error::other("the recording does not begin with a header");
            header = Some(header_payload(bytes).ok_or_else(missing)?);
            chunks = bytes.get(PRELUDE_BYTES..).unwrap_or(&[]);
        }
        let mut state = self.shared.lock();
        if let Some(header) = header {
            state.header = header;
        }
        if state.failure.is_some() || state.is_done {
            // Nothing is sent any more; the events count as undelivered.
            state.queue.events += events;
        } else {
            state.queue.push(chunks, events);
        }
        drop(state);
        self.shared.notify();
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        // The child of a fork keeps nothing, so it always has room.
        self.shared.is_forked_child() || self.shared.lock().queue.has_room()
    }

    fn announce(&mut self, events: u64) {
        self.events += events;
    }
}

/// Returns the payload of the header chunk at the start of a recording.
fn header_payload(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let mut chunks = ChunkReader::at_start(&ImportLimits::default());
    let visit = &mut |chunk: format::Chunk<'_>| {
        if chunk.kind == Kind::Header as u8 && found.is_none() {
            found = Some(chunk.payload.to_vec());
        }
    };
    chunks.push(bytes, visit).ok()?;
    found
}
