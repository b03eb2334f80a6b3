//! A session's segments, put together to one recording.

use std::sync::Arc;

use shared::format::{ChunkScanner, Kind, PRELUDE_BYTES, RawChunk, TRAILER_BYTES, index_byte, prelude};

use super::stream::Broken;
use crate::ingest::Session;
use crate::store::{SegmentInfo, TraceStore};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Recording {
    store: Arc<dyn TraceStore>,
    session: String,
    segments: Vec<SegmentInfo>,
}

impl Recording {
    /// What a session has now of a span of time, in whole segments; `None` where that is nothing.
    pub(super) fn new(store: Arc<dyn TraceStore>, session: &Session, (from_us, to_us): (i64, i64)) -> Option<Self> {
        let overlaps = |segment: &&SegmentInfo| segment.from_us <= to_us && segment.to_us >= from_us;
        let segments: Vec<_> = session.look(|view| view.segments.iter().filter(overlaps).copied().collect());
        (!segments.is_empty()).then(|| Self { store, session: session.id().to_owned(), segments })
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Reads it piece by piece. Waits for the disk.
    pub(super) fn read(&self, send: &mut dyn FnMut(Vec<u8>) -> Result<(), Broken>) -> Result<(), Broken> {
        send(prelude().to_vec())?;
        let mut page = Page { byte: PRELUDE_BYTES as u64, bytes: Vec::new(), index: None };
        for (i, segment) in self.segments.iter().enumerate() {
            // The head of the first makes it a recording; those of the others say what is known by then.
            let mut at = if i == 0 { 0 } else { segment.head };
            let mut scanner = if at == 0 { ChunkScanner::at_start() } else { ChunkScanner::at_chunk() };
            while at < segment.bytes {
                let most = (segment.bytes - at).min(READ_BYTES) as usize;
                let bytes = self.store.read(&self.session, segment.number, at, most).map_err(|_| Broken)?;
                if bytes.is_empty() {
                    return Err(Broken);
                }
                at += bytes.len() as u64;
                scanner.push(&bytes);
                while let Some(piece) = scanner.next_chunk().map_err(|_| Broken)? {
                    page.add(piece);
                }
                send(std::mem::take(&mut page.bytes))?;
            }
        }
        Ok(())
    }
}

/// What is sent next.
struct Page {
    /// Where it ends in the file.
    byte: u64,
    bytes: Vec<u8>,
    /// An index that waits for the trailer that says where it is, and where it would stand.
    index: Option<(u64, Vec<u8>)>,
}

impl Page {
    fn add(&mut self, piece: RawChunk<'_>) {
        if piece.is(Kind::Batch) {
            return;
        }
        if piece.is(Kind::Index) {
            self.index = Some((self.byte, piece.bytes.to_vec()));
            return;
        }
        if piece.is(Kind::Trailer) {
            // In a part of a recording the collector's own index would lead astray; it goes without.
            if let Some((_, index)) = self.index.take().filter(|(byte, _)| is_place(piece.bytes, *byte)) {
                self.put(&index);
                self.put(piece.bytes);
            }
            return;
        }
        self.put(piece.bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.byte += bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
    }
}

/// Whether a trailer says that the index is at a byte.
fn is_place(trailer: &[u8], byte: u64) -> bool {
    trailer.len() == TRAILER_BYTES && index_byte(trailer) == Some(byte)
}
