//! A session's segments, joined to one recording.
//!
//! Every chunk is checked on the way. Damaged bytes are passed on as they are: whoever reads the recording finds them, says
//! how many there are, and counts the events that they held as lost. The session says so too from then on.

use std::sync::Arc;

use format::{ChunkScanner, Kind, PRELUDE_BYTES, Piece, RawChunk, TRAILER_BYTES, index_byte, prelude};

use super::stream::BodyError;
use crate::ingest::Session;
use crate::store::{SegmentInfo, SegmentStore};

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// The part of a session that a client downloads.
#[derive(Debug)]
pub(super) struct Download {
    store: Arc<SegmentStore>,
    session: Arc<Session>,
    segments: Vec<SegmentInfo>,
}

impl Download {
    /// Selects the segments that overlap a span of time. Returns `None` if there are none.
    pub(super) fn new(store: Arc<SegmentStore>, session: &Arc<Session>, (from_us, to_us): (i64, i64)) -> Option<Self> {
        let overlaps = |segment: &&SegmentInfo| segment.from_us <= to_us && segment.to_us >= from_us;
        let segments: Vec<_> = session.look(|view| view.segments.iter().filter(overlaps).cloned().collect());
        (!segments.is_empty()).then(|| Self { store, session: Arc::clone(session), segments })
    }

    /// Returns the number of stored bytes. The recording is slightly smaller.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the time that the selected log segments cover, in microseconds since the epoch. The start is `None` if they
    /// begin with the session, and the end if they may reach beyond the last event.
    pub(super) fn span(&self) -> (Option<i64>, Option<i64>) {
        let from_us = self.segments.iter().map(|segment| segment.from_us).min();
        let to_us = self.segments.iter().map(|segment| segment.to_us).max();
        (from_us.filter(|from_us| *from_us > i64::MIN), to_us.filter(|to_us| *to_us < i64::MAX))
    }

    /// Reads the recording piece by piece. Waits for the disk.
    pub(super) fn read(&self, send: &mut dyn FnMut(Vec<u8>) -> Result<(), BodyError>) -> Result<(), BodyError> {
        send(prelude().to_vec())?;
        let mut output = RecordingOutput { byte: PRELUDE_BYTES as u64, bytes: Vec::new(), index: None };
        let mut before = None;
        for segment in &self.segments {
            // The first head makes this a recording. Later heads repeat what is known by then, unless a segment is missing.
            let follows = before.replace(segment.number).is_some_and(|before| before + 1 == segment.number);
            let mut at = if follows { segment.head } else { 0 };
            let is_first = output.byte == PRELUDE_BYTES as u64;
            let mut scanner = if at == 0 { ChunkScanner::at_start() } else { ChunkScanner::at_chunk(at) };
            let mut damaged = 0;
            while at < segment.bytes {
                let most = (segment.bytes - at).min(READ_BYTES) as usize;
                let bytes = self.store.read(self.session.id(), segment.found(), at, most)?;
                if bytes.is_empty() {
                    damaged += segment.bytes - at;
                    break;
                }
                at += bytes.len() as u64;
                scanner.push(&bytes);
                while let Some(piece) = scanner.next_piece() {
                    match piece {
                        // A recording has one header.
                        Piece::Chunk(byte, chunk) if !is_first && byte < segment.head && chunk.is(Kind::Header) => {}
                        Piece::Chunk(_, chunk) => output.add(chunk),
                        Piece::Damage(damage) => {
                            damaged += damage.bytes;
                            let most = usize::try_from(damage.bytes).unwrap_or(usize::MAX);
                            let bytes = self.store.read(self.session.id(), segment.found(), damage.byte, most)?;
                            output.append(&bytes);
                        }
                    }
                }
                send(std::mem::take(&mut output.bytes))?;
            }
            if let Some(damage) = scanner.finish() {
                damaged += damage.bytes;
                let most = usize::try_from(damage.bytes).unwrap_or(usize::MAX);
                output.append(&self.store.read(self.session.id(), segment.found(), damage.byte, most)?);
                send(std::mem::take(&mut output.bytes))?;
            }
            if damaged > 0 {
                self.session.note_damage(segment.number, damaged);
            }
        }
        Ok(())
    }
}

/// The recording, as far as it is assembled.
struct RecordingOutput {
    /// The length of the recording so far.
    byte: u64,
    /// Bytes that were not sent yet.
    bytes: Vec<u8>,
    /// An index whose trailer has not been read yet, and the byte at which it would stand.
    index: Option<(u64, Vec<u8>)>,
}

impl RecordingOutput {
    fn add(&mut self, piece: RawChunk<'_>) {
        if piece.is(Kind::Batch) || piece.is(Kind::Label) {
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
