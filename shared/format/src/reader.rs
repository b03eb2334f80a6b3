//! From pushed bytes to checked and unpacked chunks.

use super::chunk::{ENVELOPE_BYTES, Envelope, Kind, MAGIC, MAJOR, PRELUDE_BYTES, find_marker, is_marker_start};
use trace::error::{Fault, ImportError};
use trace::limits::ImportLimits;

/// The format's name in messages.
pub(crate) const RECORDING: &str = "recording";

/// A chunk, checked and unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The number of its kind; see [`Chunk::known_kind`].
    pub kind: u8,
    /// Its offset in the file.
    pub byte: u64,
    /// Its length in the file, envelope included.
    pub bytes: u64,
    /// The unpacked payload: a MessagePack map, read by the decoder of its kind.
    pub payload: &'a [u8],
    /// The whole chunk as it is in the file.
    pub packed: &'a [u8],
}

impl Chunk<'_> {
    /// Returns the kind; `None` for a kind of a later version.
    pub fn known_kind(&self) -> Option<Kind> {
        Kind::from_code(self.kind)
    }

    /// Returns the offset of the first byte after the chunk.
    pub fn end(&self) -> u64 {
        self.byte.saturating_add(self.bytes)
    }
}

/// A range of a file that holds no readable chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its offset in the file.
    pub byte: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Cuts a recording into chunks, pushed in pieces of any size. Holds at most one chunk.
#[derive(Debug)]
pub struct ChunkReader {
    limit: usize,
    held: Vec<u8>,
    plain: Vec<u8>,
    /// The offset of `held` in the file.
    byte: u64,
    has_begun: bool,
    /// The offset where the current damage began.
    lost_from: Option<u64>,
    damages: Vec<Damage>,
    /// The number of damages beyond those listed.
    further: u64,
    /// The number of payloads that failed their checksum.
    broken: usize,
    /// The number of chunks that are packed with a codec of a later version.
    unsupported: u64,
    /// The unpacked bytes that further chunks may have in all.
    allowed: u64,
    /// Whether a chunk was left out because it would have exceeded them.
    is_exceeded: bool,
}

/// The number of damages that are listed; the rest are counted only.
const DAMAGES: usize = 64;

impl ChunkReader {
    /// Creates a reader for the first byte of a file, which must begin with the prelude.
    pub fn at_start(limits: &ImportLimits) -> Self {
        Self { has_begun: false, ..Self::at_chunk(limits, 0) }
    }

    /// Creates a reader for bytes that begin with a chunk. `byte` is the offset of that chunk in the file.
    pub fn at_chunk(limits: &ImportLimits, byte: u64) -> Self {
        Self {
            limit: limits.chunk_bytes,
            held: Vec::new(),
            plain: Vec::new(),
            byte,
            has_begun: true,
            lost_from: None,
            damages: Vec::new(),
            further: 0,
            broken: 0,
            unsupported: 0,
            allowed: u64::MAX,
            is_exceeded: false,
        }
    }

    /// Returns the offset of the first byte that belongs to no complete chunk.
    pub fn byte(&self) -> u64 {
        self.byte
    }

    /// Returns how many bytes belong to a chunk that is not complete.
    pub fn unfinished(&self) -> usize {
        self.held.len()
    }

    /// Returns the damaged ranges, and the number of further ones that are not listed.
    pub fn damages(&self) -> (&[Damage], u64) {
        (&self.damages, self.further)
    }

    /// Returns the number of chunks that were left out because a later version packed them.
    pub fn unsupported(&self) -> u64 {
        self.unsupported
    }

    /// Bounds the unpacked bytes of all chunks from here on. A chunk that would exceed them is left out as if it were
    /// damaged, without being unpacked.
    pub fn allow(&mut self, plain: u64) {
        (self.allowed, self.is_exceeded) = (plain, false);
    }

    /// Whether a chunk was left out because of [`Self::allow`] since its last call.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Reads more bytes and visits each chunk that they complete. Fails only for a file of a later version, or one
    /// whose first bytes are no recording's.
    pub fn push(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Chunk<'_>)) -> Result<(), ImportError> {
        // Complete chunks are read in place; only the remainder is copied.
        let mut held = std::mem::take(&mut self.held);
        let joined = !held.is_empty();
        if joined {
            held.extend_from_slice(bytes);
        }
        let all = if joined { &held[..] } else { bytes };
        let done = self.read(all, visit)?;
        self.byte += done as u64;
        if joined {
            held.drain(..done);
        } else {
            held.extend_from_slice(bytes.get(done..).unwrap_or(&[]));
        }
        self.held = held;
        Ok(())
    }

    /// Reads chunks from the front. Returns the number of bytes that were used.
    fn read(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Chunk<'_>)) -> Result<usize, ImportError> {
        let mut at = 0;
        if !self.has_begun {
            let Some(head) = bytes.first_chunk::<PRELUDE_BYTES>() else { return Ok(0) };
            begin(head)?;
            self.has_begun = true;
            at = PRELUDE_BYTES;
        }
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let byte = self.byte + at as u64;
            match self.chunk(rest) {
                Found::More => break,
                Found::Whole { envelope, payload } => {
                    self.end_damage(byte);
                    let length = ENVELOPE_BYTES + payload.len();
                    let (packed, bytes) = (rest.get(..length).unwrap_or_default(), length as u64);
                    at += length;
                    let Some(allowed) = self.allowed.checked_sub(envelope.plain.into()) else {
                        self.is_exceeded = true;
                        self.add(Damage { byte, bytes });
                        continue;
                    };
                    self.allowed = allowed;
                    let mut plain = std::mem::take(&mut self.plain);
                    match envelope.unpack(payload, &mut plain, self.limit) {
                        Ok(payload) => visit(Chunk { kind: envelope.kind, byte, bytes, payload, packed }),
                        Err(fault) if matches!(*fault, Fault::Unsupported(..)) => self.unsupported += 1,
                        Err(_) => self.add(Damage { byte, bytes }),
                    }
                    self.plain = plain;
                }
                Found::Broken(length) if self.broken >= DAMAGES => {
                    self.lost_from.get_or_insert(byte);
                    at += length;
                }
                found => {
                    self.broken += usize::from(matches!(found, Found::Broken(_)));
                    self.lost_from.get_or_insert(byte);
                    at += find_marker(rest).unwrap_or(rest.len());
                }
            }
        }
        Ok(at)
    }

    /// Examines the chunk that `bytes` begin with.
    fn chunk<'b>(&self, bytes: &'b [u8]) -> Found<'b> {
        let Some((head, rest)) = bytes.split_first_chunk::<ENVELOPE_BYTES>() else {
            return if is_marker_start(bytes) { Found::More } else { Found::Nothing };
        };
        let Some(envelope) = Envelope::read(head).filter(|e| e.packed as usize <= self.limit) else {
            return Found::Nothing;
        };
        match rest.get(..envelope.packed as usize) {
            None => Found::More,
            Some(payload) if envelope.is_whole(payload) => Found::Whole { envelope, payload },
            Some(payload) => Found::Broken(ENVELOPE_BYTES + payload.len()),
        }
    }

    /// Ends the current damage at `byte`, where a chunk begins.
    fn end_damage(&mut self, byte: u64) {
        if let Some(from) = self.lost_from.take() {
            self.add(Damage { byte: from, bytes: byte.saturating_sub(from) });
        }
    }

    fn add(&mut self, damage: Damage) {
        if self.damages.len() < DAMAGES {
            self.damages.push(damage);
        } else {
            self.further += 1;
        }
    }

    /// Ends the file. Returns where its last whole chunk ends if other bytes follow it.
    pub fn finish(&mut self) -> Option<u64> {
        self.lost_from.take().or((!self.held.is_empty()).then_some(self.byte))
    }
}

/// What begins at an offset.
enum Found<'a> {
    /// A whole chunk.
    Whole { envelope: Envelope, payload: &'a [u8] },
    /// The beginning of a chunk.
    More,
    /// A chunk of this length whose payload fails its checksum. Bytes may be missing from it, so the next chunk may
    /// begin anywhere inside. In a file with many such chunks the length is trusted, or their bytes would be searched
    /// again and again.
    Broken(usize),
    /// No chunk.
    Nothing,
}

/// Checks the first bytes of a recording.
fn begin(head: &[u8; PRELUDE_BYTES]) -> Result<(), ImportError> {
    let damaged = |what: &str| ImportError::Damaged { format: RECORDING, byte: 0, what: what.to_owned() };
    let (magic, [low, high, ..]) = (&head[..8], [head[8], head[9], head[10], head[11]]);
    if magic != MAGIC {
        // Copying as text changes the last four, or the highest bit of the first.
        let is_changed = magic.get(1..4) == MAGIC.get(1..4);
        return Err(damaged(match is_changed {
            true => "its first bytes were changed, as happens when a file is copied as text",
            false => "it does not begin as a recording does",
        }));
    }
    match u16::from_le_bytes([low, high]) {
        0 => Err(damaged("it has no version")),
        found if found > MAJOR => Err(ImportError::Newer { found, known: MAJOR }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::{prelude, seal};
    use super::*;

    /// A file of three chunks, and where each begins.
    fn file() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = prelude().to_vec();
        let mut starts = Vec::new();
        for (kind, payload) in [(1, &b"one"[..]), (2, &[2; 300]), (77, b"three")] {
            starts.push(bytes.len());
            bytes.extend(seal(kind, payload));
        }
        (bytes, starts)
    }

    /// Kind, offset and payload of every chunk; the damages; where the file is cut.
    type Read = (Vec<(u8, u64, Vec<u8>)>, Vec<Damage>, Option<u64>);

    fn read(bytes: &[u8], piece: usize) -> Read {
        let mut reader = ChunkReader::at_start(&ImportLimits::default());
        let mut chunks = Vec::new();
        for piece in bytes.chunks(piece) {
            reader.push(piece, &mut |c| chunks.push((c.kind, c.byte, c.payload.to_vec()))).unwrap();
        }
        let cut = reader.finish();
        (chunks, reader.damages().0.to_vec(), cut)
    }

    #[test]
    fn chunks_are_read_whatever_the_pieces() {
        let (bytes, starts) = file();
        let want: Vec<_> = [(1, b"one".to_vec()), (2, vec![2; 300]), (77, b"three".to_vec())]
            .into_iter()
            .zip(&starts)
            .map(|((kind, payload), &start)| (kind, start as u64, payload))
            .collect();
        for piece in [1, 2, 3, 19, 20, 21, 1000] {
            assert_eq!(read(&bytes, piece), (want.clone(), vec![], None), "pieces of {piece}");
        }
    }

    #[test]
    fn a_reader_can_start_at_any_chunk() {
        let (mut bytes, starts) = file();
        let kinds = [1, 2, 77];
        for (i, &start) in starts.iter().enumerate() {
            for piece in [1, 21, 1000] {
                let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), start as u64);
                let mut chunks = Vec::new();
                for piece in bytes[start..].chunks(piece) {
                    reader.push(piece, &mut |c| chunks.push((c.kind, c.byte))).unwrap();
                }
                let want: Vec<_> = kinds.into_iter().zip(starts.iter().map(|&start| start as u64)).skip(i).collect();
                assert_eq!((chunks, reader.finish(), reader.byte()), (want, None, bytes.len() as u64));
            }
        }
        bytes[starts[1] + 30] ^= 1;
        let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), starts[1] as u64);
        reader.push(&bytes[starts[1]..], &mut |_| {}).unwrap();
        assert_eq!(reader.damages().0[0].byte, starts[1] as u64, "damage is reported at its offset in the file");
    }

    #[test]
    fn a_truncated_tail_costs_only_its_chunk() {
        let (bytes, starts) = file();
        for cut in PRELUDE_BYTES..bytes.len() {
            let whole = starts.iter().filter(|&&s| s < cut).count() - usize::from(!starts.contains(&cut) && cut > 12);
            let (chunks, damages, at) = read(&bytes[..cut], 7);
            assert_eq!((chunks.len(), damages.len()), (whole, 0), "cut at {cut}");
            assert_eq!(at, (!starts.contains(&cut)).then(|| starts[whole] as u64));
        }
    }

    #[test]
    fn damage_in_the_middle_costs_only_its_chunk() {
        let (bytes, starts) = file();
        for at in starts[1]..starts[2] {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            let mut shorter = bytes.clone();
            shorter.remove(at);
            for (bytes, lost) in [(broken, starts[2] - starts[1]), (shorter, starts[2] - starts[1] - 1)] {
                for piece in [1, 64, 1000] {
                    let (chunks, damages, cut) = read(&bytes, piece);
                    let kinds: Vec<u8> = chunks.iter().map(|c| c.0).collect();
                    assert_eq!((kinds, cut), (vec![1, 77], None), "byte {at}");
                    assert_eq!(damages, [Damage { byte: starts[1] as u64, bytes: lost as u64 }]);
                }
            }
        }
    }

    #[test]
    fn another_version_or_a_changed_beginning_is_an_error() {
        let (bytes, _) = file();
        let refusal = |at: usize, to: u8| {
            let mut changed = bytes.clone();
            changed[at] = to;
            ChunkReader::at_start(&ImportLimits::default()).push(&changed, &mut |_| {}).unwrap_err().to_string()
        };
        assert!(refusal(8, 2).contains("version 2"), "{}", refusal(8, 2));
        assert!(refusal(8, 0).contains("no version"));
        assert!(refusal(5, b' ').contains("copied as text"));
        // A later minor version is read.
        let mut later = bytes.clone();
        later[10] = 200;
        assert_eq!(read(&later, 5).0.len(), 3);
    }
}
