//! Cuts stored bytes into chunks and batches without unpacking them: what is in the store was checked when it came, and is
//! checked again by who decodes it.

use shared::format::{BatchEnd, ENVELOPE_BYTES, Kind, PRELUDE_BYTES};

/// The first bytes of a chunk.
const MARKER: [u8; 4] = *b"\xc7VRC";

/// A chunk as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it holds.
    pub kind: u8,
    /// All of it, its envelope included.
    pub bytes: &'a [u8],
}

impl Piece<'_> {
    /// Whether it is of a kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u8
    }

    /// The batch that ends here, if one does.
    pub fn batch(&self) -> Option<BatchEnd> {
        if self.is(Kind::Batch) { BatchEnd::decode(self.payload()) } else { None }
    }

    /// What it holds, as it stands.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(ENVELOPE_BYTES..).unwrap_or(&[])
    }
}

/// Bytes that come to be cut, from the start of a segment or from behind a chunk.
#[derive(Debug)]
pub struct Cut {
    held: Vec<u8>,
    /// Bytes of `held` that are done with.
    done: usize,
    skip: usize,
}

/// What stands where a chunk should begin is none: the store is damaged there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoChunk;

impl Cut {
    /// From behind a chunk; with `byte` 0 from a segment's start.
    pub fn new(byte: u64) -> Self {
        Self { held: Vec::new(), done: 0, skip: if byte == 0 { PRELUDE_BYTES } else { 0 } }
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.done);
        self.done = 0;
        self.held.extend_from_slice(bytes);
        let skipped = self.skip.min(self.held.len());
        (self.done, self.skip) = (skipped, self.skip - skipped);
    }

    /// The next whole chunk; `None` until more bytes come.
    pub fn piece(&mut self) -> Result<Option<Piece<'_>>, NoChunk> {
        let rest = self.held.get(self.done..).unwrap_or(&[]);
        let Some(&[a, b, c, d, kind, _, _, _, e, f, g, h]) = rest.first_chunk::<12>() else { return Ok(None) };
        if [a, b, c, d] != MARKER {
            return Err(NoChunk);
        }
        let length = ENVELOPE_BYTES + u32::from_le_bytes([e, f, g, h]) as usize;
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        self.done += length;
        Ok(Some(Piece { kind, bytes }))
    }

    /// Bytes of a chunk that has not come whole.
    pub fn unfinished(&self) -> usize {
        self.held.len() - self.done
    }
}

#[cfg(test)]
mod tests {
    use shared::format::{prelude, seal};

    use super::*;

    #[test]
    fn chunks_come_out_whole_whatever_the_pieces() {
        let batch = BatchEnd { seq: 5, sent_us: 7 };
        let chunks = [seal(1, b"header"), seal(77, &[0; 1000]), batch.to_chunk()];
        let bytes = [&prelude()[..], &chunks.concat()].concat();
        for size in [1, 5, 19, 21, 4096] {
            let (mut cut, mut got, mut batches) = (Cut::new(0), Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                cut.push(piece);
                while let Some(piece) = cut.piece().unwrap() {
                    got.push(piece.bytes.to_vec());
                    batches.extend(piece.batch());
                }
            }
            assert_eq!((&got[..], &batches[..], cut.unfinished()), (&chunks[..], &[batch][..], 0), "{size}");
        }
        let mut cut = Cut::new(9);
        cut.push(b"this is no chunk");
        assert_eq!(cut.piece(), Err(NoChunk));
    }
}
