//! A session's log segments, joined to one recording.

use std::sync::Arc;

use shared::format::{Kind, PRELUDE_BYTES, TRAILER_BYTES, index_byte, prelude};

use super::stream::BodyError;
use crate::ingest::Session;
use crate::store::{Cut, Piece, SegmentInfo, TraceStore};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// The part of a session that a client downloads.
#[derive(Debug)]
pub(super) struct Download {
    store: Arc<dyn TraceStore>,
    session: String,
    segments: Vec<SegmentInfo>,
}

impl Download {
    /// Selects the log segments that overlap a span of time. Returns `None` if there are none.
    pub(super) fn new(store: Arc<dyn TraceStore>, session: &Session, (from_us, to_us): (i64, i64)) -> Option<Self> {
        let overlaps = |segment: &&SegmentInfo| segment.from_us <= to_us && segment.to_us >= from_us;
        let segments: Vec<_> = session.look(|view| view.segments.iter().filter(overlaps).copied().collect());
        (!segments.is_empty()).then(|| Self { store, session: session.id().to_owned(), segments })
    }

    /// Returns the number of stored bytes. The recording is slightly smaller.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Reads the recording piece by piece. Waits for the disk.
    pub(super) fn read(&self, send: &mut dyn FnMut(Vec<u8>) -> Result<(), BodyError>) -> Result<(), BodyError> {
        send(prelude().to_vec())?;
        let mut output = RecordingOutput { byte: PRELUDE_BYTES as u64, bytes: Vec::new(), index: None };
        for (i, segment) in self.segments.iter().enumerate() {
            // The first head makes this a recording; later heads repeat what is known by then.
            let mut at = if i == 0 { 0 } else { segment.head };
            let mut cut = Cut::new(at);
            let damaged = |how: &str| BodyError::Damaged(format!("segment {} {how}", segment.number));
            while at < segment.bytes {
                let most = (segment.bytes - at).min(READ_BYTES) as usize;
                let bytes = self.store.read(&self.session, segment.number, at, most)?;
                if bytes.is_empty() {
                    return Err(damaged("is too short"));
                }
                at += bytes.len() as u64;
                cut.push(&bytes);
                while let Some(piece) = cut.piece().map_err(|_| damaged("holds no chunk"))? {
                    output.add(piece);
                }
                send(std::mem::take(&mut output.bytes))?;
            }
        }
        Ok(())
    }
}

/// The recording as far as it was joined.
struct RecordingOutput {
    /// The length of the recording so far.
    byte: u64,
    /// Bytes that were not sent yet.
    bytes: Vec<u8>,
    /// An index whose trailer has not been read yet, and the byte at which it would stand.
    index: Option<(u64, Vec<u8>)>,
}

impl RecordingOutput {
    fn add(&mut self, piece: Piece<'_>) {
        if piece.is(Kind::Batch) {
            return;
        }
        if piece.is(Kind::Index) {
            self.index = Some((self.byte, piece.bytes.to_vec()));
            return;
        }
        if piece.is(Kind::Trailer) {
            // In a part of a recording the collector's index would be wrong: it is left out.
            if let Some((_, index)) = self.index.take().filter(|(byte, _)| points_to(piece.bytes, *byte)) {
                self.append(&index);
                self.append(piece.bytes);
            }
            return;
        }
        self.append(piece.bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.byte += bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
    }
}

/// Whether a trailer says that the index is at `byte`.
fn points_to(trailer: &[u8], byte: u64) -> bool {
    trailer.len() == TRAILER_BYTES && index_byte(trailer) == Some(byte)
}
