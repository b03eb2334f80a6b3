//! Cuts a recording into whole chunks without unpacking them: for bytes that were checked when they were stored, and
//! will be checked again by the [`ChunkReader`](super::ChunkReader) that decodes them.

use super::chunk::{ENVELOPE_BYTES, Envelope, Kind, PRELUDE_BYTES, is_marker_start};
use super::records::BatchEnd;

/// A chunk with its envelope, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawChunk<'a> {
    /// The number of its [`Kind`].
    pub kind: u8,
    /// The whole chunk, envelope included.
    pub bytes: &'a [u8],
}

impl RawChunk<'_> {
    /// Whether the chunk is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u8
    }

    /// Returns the batch that ends with this chunk, if it is a batch mark.
    pub fn batch_end(&self) -> Option<BatchEnd> {
        // Batch marks are never packed.
        let payload = self.bytes.get(ENVELOPE_BYTES..).filter(|_| self.is(Kind::Batch))?;
        BatchEnd::decode(payload).ok()
    }
}

/// The bytes where a chunk should begin are not an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no chunk begins where one should")]
pub struct NotAChunk;

/// Finds chunk boundaries in bytes that are pushed in pieces of any size. Holds at most one chunk and one piece.
#[derive(Debug)]
pub struct ChunkScanner {
    held: Vec<u8>,
    /// Bytes of `held` that were returned already.
    done: usize,
    /// Bytes of the prelude still to be skipped.
    skip: usize,
}

impl ChunkScanner {
    /// Creates a scanner for the first byte of a recording.
    pub fn at_start() -> Self {
        Self { skip: PRELUDE_BYTES, ..Self::at_chunk() }
    }

    /// Creates a scanner for bytes that begin with a chunk.
    pub fn at_chunk() -> Self {
        Self { held: Vec::new(), done: 0, skip: 0 }
    }

    /// Adds bytes; [`Self::next_chunk`] then returns the chunks that are complete.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.done);
        self.held.extend_from_slice(bytes);
        self.done = self.skip.min(self.held.len());
        self.skip -= self.done;
    }

    /// Returns the next whole chunk; `None` until more bytes are pushed.
    pub fn next_chunk(&mut self) -> Result<Option<RawChunk<'_>>, NotAChunk> {
        let rest = self.held.get(self.done..).unwrap_or(&[]);
        if !is_marker_start(rest) {
            return Err(NotAChunk);
        }
        let Some(head) = rest.first_chunk::<ENVELOPE_BYTES>() else { return Ok(None) };
        let envelope = Envelope::parse(head).ok_or(NotAChunk)?;
        let Some(bytes) = rest.get(..envelope.chunk_bytes()) else { return Ok(None) };
        self.done += bytes.len();
        Ok(Some(RawChunk { kind: envelope.kind, bytes }))
    }

    /// Returns how many bytes belong to a chunk that is not complete.
    pub fn unfinished(&self) -> usize {
        self.held.len() - self.done
    }
}

#[cfg(test)]
mod tests {
    use super::super::{prelude, seal};
    use super::*;

    #[test]
    fn chunks_are_found_whatever_the_pieces() {
        let batch = BatchEnd { seq: 5, sent_us: 7 };
        let chunks = [seal(1, b"header"), seal(77, &[0; 1000]), batch.to_chunk()];
        let bytes = [&prelude()[..], &chunks.concat()].concat();
        for size in [1, 5, 19, 21, 4096] {
            let (mut scanner, mut got, mut batches) = (ChunkScanner::at_start(), Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                scanner.push(piece);
                while let Some(chunk) = scanner.next_chunk().unwrap() {
                    got.push(chunk.bytes.to_vec());
                    batches.extend(chunk.batch_end());
                }
            }
            assert_eq!((&got[..], &batches[..], scanner.unfinished()), (&chunks[..], &[batch][..], 0), "{size}");
        }
        let mut scanner = ChunkScanner::at_chunk();
        scanner.push(b"this is no chunk");
        assert_eq!(scanner.next_chunk(), Err(NotAChunk));
    }
}
