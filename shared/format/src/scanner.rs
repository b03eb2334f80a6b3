//! Cuts stored bytes into whole chunks, checks each of them, and steps over damage: for servers, which must pass on
//! everything that is still readable, and nothing else.

use super::chunk::{ENVELOPE_BYTES, Envelope, Kind, PRELUDE_BYTES, find_marker, is_marker_start};
use super::reader::Damage;
use super::records::BatchEnd;
use trace::limits::ImportLimits;

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

/// What a [`ChunkScanner`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A chunk whose checksums are right, and its offset.
    Chunk(u64, RawChunk<'a>),
    /// Bytes that are no readable chunk.
    Damage(Damage),
}

/// Finds chunks in bytes that are pushed in pieces of any size, verifies their checksums, and goes on behind damage. Unlike a
/// [`ChunkReader`](super::ChunkReader) it unpacks nothing. Holds at most one chunk and one piece.
#[derive(Debug)]
pub struct ChunkScanner {
    limit: usize,
    held: Vec<u8>,
    /// Bytes of `held` that were returned or stepped over.
    done: usize,
    /// The offset of `held`.
    byte: u64,
    /// Bytes of the prelude still to be skipped.
    skip: usize,
    /// Where the current damage began.
    lost_from: Option<u64>,
    /// The number of chunks whose payload failed its checksum.
    broken: usize,
}

/// The number of broken payloads that are searched for the next chunk. From then on their length is trusted, or their bytes
/// would be searched again and again.
const SEARCHED: usize = 64;

impl ChunkScanner {
    /// Creates a scanner for the first byte of a recording.
    pub fn at_start() -> Self {
        Self { skip: PRELUDE_BYTES, ..Self::at_chunk(0) }
    }

    /// Creates a scanner for bytes that begin with a chunk, at an offset.
    pub fn at_chunk(byte: u64) -> Self {
        let limit = ImportLimits::default().chunk_bytes;
        Self { limit, held: Vec::new(), done: 0, byte, skip: 0, lost_from: None, broken: 0 }
    }

    /// Adds bytes; [`Self::next_piece`] then returns what they complete.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.done);
        self.byte += self.done as u64;
        self.held.extend_from_slice(bytes);
        self.done = self.skip.min(self.held.len());
        self.skip -= self.done;
    }

    /// Returns the next chunk or damage; `None` until more bytes are pushed.
    pub fn next_piece(&mut self) -> Option<Piece<'_>> {
        loop {
            let byte = self.byte + self.done as u64;
            let rest = self.held.get(self.done..).filter(|rest| !rest.is_empty())?;
            let (head, envelope) = match rest.first_chunk::<ENVELOPE_BYTES>() {
                None if is_marker_start(rest) => return None,
                head => (head, head.and_then(Envelope::read).filter(|found| found.packed as usize <= self.limit)),
            };
            let length = match (head, envelope) {
                (Some(_), Some(envelope)) => {
                    let bytes = rest.get(..envelope.chunk_bytes())?;
                    if envelope.is_whole(bytes.get(ENVELOPE_BYTES..).unwrap_or(&[])) {
                        if let Some(from) = self.lost_from.take() {
                            return Some(Piece::Damage(Damage { byte: from, bytes: byte - from }));
                        }
                        let start = self.done;
                        self.done += bytes.len();
                        let bytes = self.held.get(start..self.done)?;
                        return Some(Piece::Chunk(byte, RawChunk { kind: envelope.kind, bytes }));
                    }
                    self.broken += 1;
                    if self.broken > SEARCHED { bytes.len() } else { find_marker(rest).unwrap_or(rest.len()) }
                }
                _ => find_marker(rest).unwrap_or(rest.len()),
            };
            self.lost_from.get_or_insert(byte);
            self.done += length;
        }
    }

    /// Ends the file. Returns the bytes at its end that are no readable chunk, if there are any.
    pub fn finish(&mut self) -> Option<Damage> {
        let end = self.byte + self.held.len() as u64;
        let from = self.lost_from.take().unwrap_or(self.byte + self.done as u64);
        (end > from).then_some(Damage { byte: from, bytes: end - from })
    }

    /// Whether the bytes that are not complete at the end were preceded by bytes that are no chunk. A file whose last write
    /// was cut short ends with the beginning of a chunk, and with nothing else.
    pub fn is_lost(&self) -> bool {
        self.lost_from.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{prelude, seal};
    use super::*;

    /// The chunks and the damages of bytes, with offsets, and the damage at the end.
    type Scanned = (Vec<(u64, u8)>, Vec<Damage>, Option<Damage>);

    fn scan(bytes: &[u8], piece: usize) -> Scanned {
        let mut scanner = ChunkScanner::at_start();
        let (mut chunks, mut damages) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            scanner.push(piece);
            while let Some(piece) = scanner.next_piece() {
                match piece {
                    Piece::Chunk(byte, chunk) => {
                        assert_eq!(&bytes[byte as usize..][..chunk.bytes.len()], chunk.bytes);
                        chunks.push((byte, chunk.kind));
                    }
                    Piece::Damage(damage) => damages.push(damage),
                }
            }
        }
        let tail = scanner.finish();
        (chunks, damages, tail)
    }

    #[test]
    fn damage_anywhere_costs_its_chunk_and_is_reported_once() {
        let chunks = [seal(1, b"header"), seal(3, &[7; 300]), seal(11, b"mark"), seal(3, b"more")];
        let bytes = [&prelude()[..], &chunks.concat()].concat();
        let mut starts = vec![PRELUDE_BYTES];
        for chunk in &chunks {
            starts.push(starts[starts.len() - 1] + chunk.len());
        }
        for piece in [1, 21, 4096] {
            let (found, damages, tail) = scan(&bytes, piece);
            assert_eq!((found.len(), damages.len(), tail), (4, 0, None));
            for at in 0..bytes.len() {
                let mut broken = bytes.clone();
                broken[at] ^= 0x20;
                let (found, damages, tail) = scan(&broken, piece);
                // A damaged prelude costs nothing: the chunks are found nevertheless.
                let hit = starts.iter().position(|start| at < *start).and_then(|next| next.checked_sub(1));
                let Some(hit) = hit else {
                    assert_eq!((found.len(), damages.len(), tail), (4, 0, None), "byte {at}");
                    continue;
                };
                assert_eq!(found.len(), 3, "byte {at}");
                let lost = Damage { byte: starts[hit] as u64, bytes: (starts[hit + 1] - starts[hit]) as u64 };
                let want = if hit == 3 { (vec![], Some(lost)) } else { (vec![lost], None) };
                assert_eq!((damages, tail), want, "byte {at}");
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_short_ends_with_the_beginning_of_a_chunk() {
        let bytes = [&prelude()[..], &seal(1, b"header"), &seal(3, &[7; 300])].concat();
        for cut in PRELUDE_BYTES..bytes.len() {
            let mut scanner = ChunkScanner::at_start();
            scanner.push(&bytes[..cut]);
            while scanner.next_piece().is_some() {}
            assert!(!scanner.is_lost(), "cut at {cut}");
        }
        let mut scanner = ChunkScanner::at_start();
        scanner.push(&[&bytes[..], &[0; 99]].concat());
        while scanner.next_piece().is_some() {}
        assert!(scanner.is_lost());
        assert_eq!(scanner.finish(), Some(Damage { byte: bytes.len() as u64, bytes: 99 }));
    }

    #[test]
    fn many_broken_chunks_take_linear_time() {
        let mut chunk = seal(3, &(0..2_000).map(|n| (n * 7_919 % 251) as u8).collect::<Vec<u8>>());
        if let Some(last) = chunk.last_mut() {
            *last ^= 1;
        }
        let bytes = chunk.repeat(500);
        let mut scanner = ChunkScanner::at_chunk(0);
        scanner.push(&bytes);
        assert_eq!(scanner.next_piece(), None);
        assert_eq!(scanner.finish().map(|damage| damage.bytes), Some(bytes.len() as u64));
    }
}
