//! From pushed bytes to whole chunks: the one place that knows where a chunk begins and ends.

use super::chunk::{ENVELOPE_BYTES, Envelope, MAGIC, MAJOR, MARKER, PRELUDE_BYTES};
use crate::import::ImportError;
use crate::limits::ImportLimits;

/// The format's name in messages.
pub(super) const RECORDING: &str = "recording";

/// A chunk, checked and unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Its number; [`super::Kind::from_code`] tells what it holds.
    pub kind: u8,
    /// Where it begins in the file.
    pub byte: u64,
    /// How many bytes it takes there, its envelope included.
    pub bytes: u64,
    /// What it holds: a MessagePack map.
    pub payload: &'a [u8],
}

/// A part of a file that is no chunk, between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub byte: u64,
    /// Its length.
    pub bytes: u64,
}

/// Cuts a recording into chunks. Holds no more than one chunk.
#[derive(Debug)]
pub struct Frames {
    limit: usize,
    held: Vec<u8>,
    plain: Vec<u8>,
    /// Where `held` begins in the file.
    byte: u64,
    has_begun: bool,
    /// Where the present damage began.
    lost_from: Option<u64>,
    damages: Vec<Damage>,
    /// Damages that are not listed any more.
    further: u64,
    /// Payloads that were not what was written.
    broken: usize,
}

/// Damages that are told one by one; a file with more is told by their number.
const DAMAGES: usize = 64;

impl Frames {
    /// At the start of a file.
    pub fn new(limits: &ImportLimits) -> Self {
        Self {
            limit: limits.chunk_bytes,
            held: Vec::new(),
            plain: Vec::new(),
            byte: 0,
            has_begun: false,
            lost_from: None,
            damages: Vec::new(),
            further: 0,
            broken: 0,
        }
    }

    /// Where the first byte that belongs to no chunk yet stands.
    pub fn byte(&self) -> u64 {
        self.byte
    }

    /// Bytes of a chunk that has not come whole.
    pub fn unfinished(&self) -> usize {
        self.held.len()
    }

    /// What was damaged, and how many more parts were than are listed.
    pub fn damages(&self) -> (&[Damage], u64) {
        (&self.damages, self.further)
    }

    /// Reads more bytes and visits each chunk that became whole.
    pub fn push(&mut self, bytes: &[u8], visit: &mut dyn FnMut(Chunk<'_>)) -> Result<(), ImportError> {
        // Whole chunks are read where they are; only what is left over is kept.
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

    /// Reads chunks from the front; gives how many bytes are done with.
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
                    let bytes = (ENVELOPE_BYTES + payload.len()) as u64;
                    at += ENVELOPE_BYTES + payload.len();
                    let mut plain = std::mem::take(&mut self.plain);
                    match envelope.unpack(payload, &mut plain, self.limit) {
                        Ok(payload) => visit(Chunk { kind: envelope.kind, byte, bytes, payload }),
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
                    let next = rest.iter().skip(1).position(|&b| b == MARKER[0]);
                    at += next.map_or(rest.len(), |n| n + 1);
                }
            }
        }
        Ok(at)
    }

    /// The chunk that `bytes` begin with.
    fn chunk<'b>(&self, bytes: &'b [u8]) -> Found<'b> {
        let Some((head, rest)) = bytes.split_first_chunk::<ENVELOPE_BYTES>() else {
            return if is_start(bytes) { Found::More } else { Found::Nothing };
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

    /// Damage ends where a chunk begins.
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

    /// The file has ended: where its last whole chunk ends, if more follows that is none.
    pub fn finish(&mut self) -> Option<u64> {
        self.lost_from.take().or((!self.held.is_empty()).then_some(self.byte))
    }
}

/// What stands at a place.
enum Found<'a> {
    /// A chunk.
    Whole { envelope: Envelope, payload: &'a [u8] },
    /// What may become one.
    More,
    /// A chunk of this length whose payload is not what was written. Bytes may be missing from it, so the next chunk
    /// may begin anywhere in it; but a file that has many such is taken at its word, or each would be read again and
    /// again.
    Broken(usize),
    /// No chunk.
    Nothing,
}

/// Whether fewer bytes than an envelope has may begin one.
fn is_start(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MARKER.len());
    bytes.get(..count) == MARKER.get(..count)
}

/// Reads the first bytes of a recording.
fn begin(head: &[u8; PRELUDE_BYTES]) -> Result<(), ImportError> {
    let damaged = |what: &str| ImportError::Damaged { format: RECORDING, byte: 0, what: what.to_owned() };
    let (magic, [low, high, ..]) = (&head[..8], [head[8], head[9], head[10], head[11]]);
    if magic != MAGIC {
        return Err(damaged("its first bytes were changed, as happens when a file is copied as text"));
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

    /// Kind, place and payload of every chunk; damages; where the file is cut.
    type Read = (Vec<(u8, u64, Vec<u8>)>, Vec<Damage>, Option<u64>);

    fn read(bytes: &[u8], piece: usize) -> Read {
        let mut frames = Frames::new(&ImportLimits::default());
        let mut chunks = Vec::new();
        for piece in bytes.chunks(piece) {
            frames.push(piece, &mut |c| chunks.push((c.kind, c.byte, c.payload.to_vec()))).unwrap();
        }
        let cut = frames.finish();
        (chunks, frames.damages().0.to_vec(), cut)
    }

    #[test]
    fn chunks_come_out_whatever_the_pieces() {
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
    fn a_tail_that_is_torn_off_costs_its_chunk_only() {
        let (bytes, starts) = file();
        for cut in PRELUDE_BYTES..bytes.len() {
            let whole = starts.iter().filter(|&&s| s < cut).count() - usize::from(!starts.contains(&cut) && cut > 12);
            let (chunks, damages, at) = read(&bytes[..cut], 7);
            assert_eq!((chunks.len(), damages.len()), (whole, 0), "cut at {cut}");
            assert_eq!(at, (!starts.contains(&cut)).then(|| starts[whole] as u64));
        }
    }

    #[test]
    fn damage_in_the_middle_costs_its_chunk_only() {
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
            Frames::new(&ImportLimits::default()).push(&changed, &mut |_| {}).unwrap_err().to_string()
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
