//! The envelope of a chunk: what it is, how long it is, and whether it is whole.

use crate::checksum::{self, Checksum};
use crate::import::error::{Checked, damaged, too_much};

/// The first bytes of a recording. A byte above 127, both line ends and a control character: whatever treats the file
/// as text breaks them, and is found out.
pub const MAGIC: [u8; 8] = *b"\x89VRS\r\n\x1a\n";
/// The version that this build writes. A change that older readers can't step over raises it.
pub const MAJOR: u16 = 1;
/// Additions that older readers step over: names in maps, kinds of chunks.
pub const MINOR: u16 = 1;
/// Bytes before the first chunk: [`MAGIC`], [`MAJOR`], [`MINOR`].
pub const PRELUDE_BYTES: usize = 12;

/// The first bytes of a chunk; after damage, the next chunk is looked for by them.
pub(super) const MARKER: [u8; 4] = *b"\xc7VRC";
/// Bytes of a chunk before its payload.
pub const ENVELOPE_BYTES: usize = 20;
/// LZ4 can't make more bytes of one; a length beyond that is a lie.
const LZ4_RATIO: usize = 255;

/// What a chunk holds. The numbers stand in files and never change their meaning.
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
    /// Events of one device that were lost.
    Gap = 5,
    /// Segments and blocks of one device at one moment.
    Segments = 6,
    /// The recording ended as it should.
    End = 7,
    /// Where the chunks are.
    Index = 8,
    /// Where the index is; the last chunk.
    Trailer = 9,
    /// Sums of one device at moments.
    Statistics = 10,
    /// A batch of a live stream ends here; only in a server's store.
    Batch = 11,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Header,
        Self::Symbols,
        Self::Events,
        Self::Marks,
        Self::Gap,
        Self::Segments,
        Self::End,
        Self::Index,
        Self::Trailer,
        Self::Statistics,
        Self::Batch,
    ];

    /// The kind with this number; `None` for one of a later version.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == code)
    }
}

/// How a payload is packed.
const STORED: u8 = 0;
const LZ4: u8 = 1;

/// An envelope that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) kind: u8,
    codec: u8,
    /// Bytes of the payload in the file.
    pub(super) packed: u32,
    /// Bytes that it unpacks to.
    plain: u32,
    /// CRC-32 of the payload in the file.
    sum: u32,
}

impl Envelope {
    /// With its own check in bytes 6 and 7: the low half of the CRC-32 over all others.
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

    /// Reads an envelope; `None` where none is.
    pub(super) fn read(bytes: &[u8; ENVELOPE_BYTES]) -> Option<Self> {
        let [a, b, c, d, kind, codec, low, high, fields @ ..] = *bytes;
        if [a, b, c, d] != MARKER || u16::from_le_bytes([low, high]) != check(bytes) {
            return None;
        }
        let mut numbers = fields.as_chunks::<4>().0.iter().map(|&field| u32::from_le_bytes(field));
        let mut next = || numbers.next().unwrap_or_default();
        Some(Self { kind, codec, packed: next(), plain: next(), sum: next() })
    }

    /// Whether the payload is what was written.
    pub(super) fn is_whole(&self, payload: &[u8]) -> bool {
        checksum::of(payload) == self.sum
    }

    /// Unpacks a payload into `plain`; gives what it unpacks to.
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
            STORED | LZ4 => Err(damaged("a chunk has another length than it says")),
            codec => Err(damaged(format!("a chunk is packed in a way that is not known ({codec})"))),
        }
    }
}

/// The low half of the CRC-32 over an envelope without its bytes 6 and 7.
fn check(bytes: &[u8; ENVELOPE_BYTES]) -> u16 {
    let mut hasher = Checksum::new();
    hasher.update(&bytes[..6]);
    hasher.update(&bytes[8..]);
    hasher.finalize() as u16
}

/// How many bytes the chunk takes that `bytes` begin with, as its envelope says; `None` where no whole envelope of one
/// is. Its payload is not looked at: for who passes on what a [`super::Writer`] made.
pub fn chunk_bytes(bytes: &[u8]) -> Option<usize> {
    let envelope = Envelope::read(bytes.first_chunk()?)?;
    (envelope.packed as usize).checked_add(ENVELOPE_BYTES)
}

/// The first bytes of a recording.
pub fn prelude() -> [u8; PRELUDE_BYTES] {
    let mut bytes = [0; PRELUDE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    bytes[10..].copy_from_slice(&MINOR.to_le_bytes());
    bytes
}

/// Puts a payload into its envelope, packed where that makes it smaller.
pub fn seal(kind: u8, payload: &[u8]) -> Vec<u8> {
    let packed = lz4_flex::block::compress(payload);
    let (codec, body) = if packed.len() < payload.len() { (LZ4, &packed[..]) } else { (STORED, payload) };
    seal_as(kind, codec, body, payload.len())
}

/// Puts a payload into its envelope as it stands.
pub(super) fn seal_stored(kind: u8, payload: &[u8]) -> Vec<u8> {
    seal_as(kind, STORED, payload, payload.len())
}

fn seal_as(kind: u8, codec: u8, body: &[u8], plain: usize) -> Vec<u8> {
    // Writers keep far below 4 GiB: readers refuse more than `ImportLimits::chunk_bytes`.
    let length = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let envelope = Envelope { kind, codec, packed: length(body.len()), plain: length(plain), sum: checksum::of(body) };
    let mut bytes = Vec::with_capacity(ENVELOPE_BYTES + body.len());
    bytes.extend_from_slice(&envelope.to_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_length_that_cannot_be_is_refused_before_memory_is_taken() {
        let lies = [(STORED, 3, 4), (LZ4, 3, 3 * LZ4_RATIO + 1), (LZ4, LIMIT, LIMIT + 1), (9, 3, 3)];
        for (codec, length, plain) in lies {
            let payload = vec![0; length];
            let sealed = seal_as(1, codec, &payload, plain);
            assert_eq!(open(&sealed), None, "{codec} {length} {plain}");
        }
    }

    #[test]
    fn kinds_are_numbered_for_good() {
        let codes: Vec<u8> = Kind::ALL.iter().map(|&kind| kind as u8).collect();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!((Kind::from_code(3), Kind::from_code(0), Kind::from_code(12)), (Some(Kind::Events), None, None));
    }
}
