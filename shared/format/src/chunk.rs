//! The envelope of a chunk: its kind, its length and its checksums. The only definition of the marker and the layout.

use codec::checksum::{self, Checksum};
use trace::error::{Checked, damaged, too_much, unsupported};
use trace::narrow::number32;

/// The first bytes of a recording. A byte above 127, both kinds of line ending and a control character: a transfer that
/// treats the file as text changes them, so it is detected.
pub const MAGIC: [u8; 8] = *b"\x89VRS\r\n\x1a\n";
/// The major version that this build writes. It rises with every change that older readers can't skip.
pub const MAJOR: u16 = 1;
/// The minor version. It rises with additions that older readers skip: keys in maps, kinds of chunks. A golden file of each
/// version stays among the tests.
pub const MINOR: u16 = 0;
/// Bytes before the first chunk: [`MAGIC`], [`MAJOR`] and [`MINOR`].
pub const PRELUDE_BYTES: usize = 12;

/// The first bytes of a chunk. After damage, readers search for them to find the next chunk.
const MARKER: [u8; 4] = *b"\xc7VRC";
/// Bytes of a chunk before its payload.
pub const ENVELOPE_BYTES: usize = 20;
/// The highest compression ratio that LZ4 can reach; a higher declared length is refused.
const LZ4_RATIO: usize = 255;

/// What to do about a recording that a later version wrote.
pub(crate) const UPDATE: &str = "Update Vramscope.";

/// What a chunk holds. The numbers are part of the file format and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Program, host, devices and settings; the first chunk.
    Header = 1,
    /// New strings, frames, stacks and tags.
    Symbols = 2,
    /// Events of one device.
    Events = 3,
    /// Marks and annotations of one device.
    Marks = 4,
    /// A run of one device's events that was lost.
    LostEvents = 5,
    /// Segments and blocks of one device at one position.
    Segments = 6,
    /// The recording ended normally.
    End = 7,
    /// Offsets of the chunks.
    Index = 8,
    /// The offset of the index; the last chunk.
    Trailer = 9,
    /// Sampled totals of one device.
    Statistics = 10,
    /// The end of a batch of a live stream; only in a server's store.
    Batch = 11,
    /// Samples of the memory beside one device's allocator.
    Outside = 12,
    /// What names a segment of a server's store; only in that store, never in a file that leaves it.
    Label = 13,
    /// Answers for a first picture before the rest has been read, and which there are.
    Preview = 14,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Header,
        Self::Symbols,
        Self::Events,
        Self::Marks,
        Self::LostEvents,
        Self::Segments,
        Self::End,
        Self::Index,
        Self::Trailer,
        Self::Statistics,
        Self::Batch,
        Self::Outside,
        Self::Label,
        Self::Preview,
    ];

    /// Returns the kind with this number; `None` for a kind of a later version.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == code)
    }
}

/// Codec: the payload is stored as it is.
const STORED: u8 = 0;
/// Codec: the payload is an LZ4 block.
const LZ4: u8 = 1;

/// A decoded envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) kind: u8,
    codec: u8,
    /// Bytes of the payload as stored.
    pub(super) packed: u32,
    /// Bytes of the unpacked payload.
    pub(super) plain: u32,
    /// CRC-32 of the payload as stored.
    sum: u32,
}

impl Envelope {
    /// Encodes the envelope. Bytes 6 and 7 hold its own checksum: the low half of the CRC-32 over the other bytes.
    fn to_bytes(self) -> [u8; ENVELOPE_BYTES] {
        let mut bytes = [0; ENVELOPE_BYTES];
        let fields = [self.packed, self.plain, self.sum];
        bytes[..4].copy_from_slice(&MARKER);
        (bytes[4], bytes[5]) = (self.kind, self.codec);
        for (to, field) in bytes[8..].chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        let check = check(&bytes);
        bytes[6..8].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads an envelope; `None` unless its marker and its own checksum are right.
    pub(super) fn read(bytes: &[u8; ENVELOPE_BYTES]) -> Option<Self> {
        let [_, _, _, _, _, _, low, high, ..] = *bytes;
        Self::parse(bytes).filter(|_| u16::from_le_bytes([low, high]) == check(bytes))
    }

    /// Reads an envelope without verifying its checksum; `None` without a marker.
    fn parse(bytes: &[u8; ENVELOPE_BYTES]) -> Option<Self> {
        let [a, b, c, d, kind, codec, _, _, fields @ ..] = *bytes;
        if [a, b, c, d] != MARKER {
            return None;
        }
        let mut numbers = fields.as_chunks::<4>().0.iter().map(|&field| u32::from_le_bytes(field));
        let mut next = || numbers.next().unwrap_or_default();
        Some(Self { kind, codec, packed: next(), plain: next(), sum: next() })
    }

    /// Returns the length of the whole chunk in the file, envelope included.
    pub(super) fn chunk_bytes(&self) -> usize {
        ENVELOPE_BYTES.saturating_add(self.packed as usize)
    }

    /// Whether the payload matches its checksum.
    pub(super) fn is_whole(&self, payload: &[u8]) -> bool {
        checksum::of(payload) == self.sum
    }

    /// Returns the unpacked payload. `plain` is the buffer for packed ones. Fails beyond `limit` bytes.
    pub(super) fn unpack<'a>(&self, payload: &'a [u8], plain: &'a mut Vec<u8>, limit: usize) -> Checked<&'a [u8]> {
        let length = self.plain as usize;
        if length > limit {
            return Err(too_much(format!("a chunk would unpack to more than {limit} bytes")));
        }
        match self.codec {
            STORED if payload.len() == length => Ok(payload),
            LZ4 if length <= payload.len().saturating_mul(LZ4_RATIO) => {
                plain.resize(length, 0);
                match lz4_flex::block::decompress_into(payload, plain) {
                    Ok(made) if made == length => Ok(plain),
                    _ => Err(damaged("a chunk can't be unpacked")),
                }
            }
            STORED | LZ4 => Err(damaged("the length of a chunk does not match its envelope")),
            codec => Err(unsupported(format!("a chunk is packed with an unknown codec ({codec})"), UPDATE)),
        }
    }
}

/// Returns the low half of the CRC-32 over an envelope without its bytes 6 and 7.
fn check(bytes: &[u8; ENVELOPE_BYTES]) -> u16 {
    let mut hasher = Checksum::new();
    hasher.update(&bytes[..6]);
    hasher.update(&bytes[8..]);
    (hasher.finalize() & 0xffff) as u16
}

/// Returns the length of the chunk that `bytes` begin with, envelope included; `None` without a whole envelope. The
/// payload is not verified: for bytes that a [`super::Writer`] just made.
pub fn chunk_bytes(bytes: &[u8]) -> Option<usize> {
    Envelope::read(bytes.first_chunk()?).map(|envelope| envelope.chunk_bytes())
}

/// Returns the length of the chunk that `bytes` begin with, envelope included; `None` without a whole envelope of this kind.
pub(super) fn bytes_of(bytes: &[u8], kind: Kind) -> Option<usize> {
    Envelope::read(bytes.first_chunk()?).filter(|found| found.kind == kind as u8).map(|found| found.chunk_bytes())
}

/// Whether `bytes` begin with the marker, or with as much of it as they are long.
pub(super) fn is_marker_start(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MARKER.len());
    bytes.get(..count) == MARKER.get(..count)
}

/// Returns the offset of the next byte of `bytes`, after the first, that may begin a marker.
pub(super) fn find_marker(bytes: &[u8]) -> Option<usize> {
    bytes.iter().skip(1).position(|&byte| byte == MARKER[0]).map(|n| n + 1)
}

/// Returns the first bytes of a recording.
pub fn prelude() -> [u8; PRELUDE_BYTES] {
    let mut bytes = [0; PRELUDE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    bytes[10..].copy_from_slice(&MINOR.to_le_bytes());
    bytes
}

/// Returns a whole chunk with this payload, packed if that makes it smaller.
pub fn seal(kind: u8, payload: &[u8]) -> Vec<u8> {
    let packed = lz4_flex::block::compress(payload);
    let (codec, body) = if packed.len() < payload.len() { (LZ4, &packed[..]) } else { (STORED, payload) };
    seal_as(kind, codec, body, payload.len())
}

/// Returns a whole chunk with this payload, not packed.
pub(super) fn seal_stored(kind: u8, payload: &[u8]) -> Vec<u8> {
    seal_as(kind, STORED, payload, payload.len())
}

fn seal_as(kind: u8, codec: u8, body: &[u8], plain: usize) -> Vec<u8> {
    // Writers stay far below 4 GiB: readers refuse more than `ImportLimits::chunk_bytes`.
    let (packed, plain) = (number32(body.len()), number32(plain));
    let envelope = Envelope { kind, codec, packed, plain, sum: checksum::of(body) };
    let mut bytes = Vec::with_capacity(ENVELOPE_BYTES + body.len());
    bytes.extend_from_slice(&envelope.to_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::error::Fault;

    const LIMIT: usize = 1 << 20;

    fn open(bytes: &[u8]) -> Option<Vec<u8>> {
        let (head, payload) = bytes.split_first_chunk()?;
        let envelope = Envelope::read(head)?;
        if !envelope.is_whole(payload) {
            return None;
        }
        envelope.unpack(payload, &mut Vec::new(), LIMIT).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn a_payload_comes_out_as_it_went_in_and_no_bit_may_change() {
        for payload in [&b""[..], b"short", &[7; 1000], &(0..=255).collect::<Vec<u8>>()] {
            let sealed = seal(200, payload);
            assert!(sealed.len() <= ENVELOPE_BYTES + payload.len());
            assert_eq!(open(&sealed).as_deref(), Some(payload));
            assert_eq!(chunk_bytes(&[&sealed[..], b"next"].concat()), Some(sealed.len()));
            assert_eq!(chunk_bytes(&sealed[1..]).or(chunk_bytes(&sealed[..ENVELOPE_BYTES - 1])), None);
            for bit in 0..sealed.len() * 8 {
                let mut broken = sealed.clone();
                broken[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&broken), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn an_impossible_length_is_refused_before_memory_is_allocated() {
        let lies = [(STORED, 3, 4), (LZ4, 3, 3 * LZ4_RATIO + 1), (LZ4, LIMIT, LIMIT + 1), (9, 3, 3)];
        for (codec, length, plain) in lies {
            let payload = vec![0; length];
            let sealed = seal_as(1, codec, &payload, plain);
            assert_eq!(open(&sealed), None, "{codec} {length} {plain}");
        }
    }

    #[test]
    fn an_unknown_codec_is_not_damage() {
        let sealed = seal_as(1, 9, &[0; 3], 3);
        let (head, payload) = sealed.split_first_chunk().unwrap();
        let fault = Envelope::read(head).unwrap().unpack(payload, &mut Vec::new(), LIMIT).unwrap_err();
        assert_eq!(*fault, Fault::Unsupported("a chunk is packed with an unknown codec (9)".to_owned(), UPDATE));
    }

    #[test]
    fn kinds_are_numbered_for_good() {
        let codes: Vec<u8> = Kind::ALL.iter().map(|&kind| kind as u8).collect();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!((Kind::from_code(3), Kind::from_code(0), Kind::from_code(15)), (Some(Kind::Events), None, None));
    }
}
