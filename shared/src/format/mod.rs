#![doc = include_str!("FORMAT.md")]

mod chunk;
mod columns;
mod decoder;
mod events;
mod frames;
mod header;
mod index;
pub(crate) mod notes;
mod recording;
mod records;
mod segments;
mod sequence;
mod symbols;
mod tracker;
mod varint;
mod writer;

pub use chunk::{ENVELOPE_BYTES, Kind, MAGIC, MAJOR, MINOR, PRELUDE_BYTES, chunk_bytes, prelude, seal};
pub use columns::EventColumns;
pub use decoder::Decoder;
pub use events::encode_events;
pub use frames::{Chunk, Damage, Frames};
pub use header::{Device, Header};
pub use index::Entry;
pub(crate) use recording::Batch;
pub use recording::{Missing, Recording, Track};
pub use records::{BatchEnd, End, Gap};
pub use segments::encode_segments;
pub use tracker::{Tracked, Tracker};
pub use writer::{TRAILER_BYTES, Writer, write};

/// The ending of a recording's file name.
pub const EXTENSION: &str = "vramscope";

/// Where the index begins, as the last [`TRAILER_BYTES`] of a file say; `None` for a file that was not ended.
pub fn index_byte(tail: &[u8]) -> Option<u64> {
    only(tail, Kind::Trailer).and_then(|payload| index::decode_trailer(&payload).ok())
}

/// The index, from the bytes where [`index_byte`] says that it begins; `None` where none is.
pub fn index(bytes: &[u8]) -> Option<Vec<Entry>> {
    only(bytes, Kind::Index).and_then(|payload| index::decode(&payload).ok())
}

/// The payload of the chunk that `bytes` begin with, if it is whole and of this kind.
fn only(bytes: &[u8], kind: Kind) -> Option<Vec<u8>> {
    let mut found = None;
    let mut frames = Frames::new(&crate::limits::ImportLimits::default());
    frames.push(&prelude(), &mut |_| {}).ok()?;
    let visit = &mut |chunk: Chunk<'_>| {
        if found.is_none() && chunk.byte == PRELUDE_BYTES as u64 {
            found = Some((chunk.kind, chunk.payload.to_vec()));
        }
    };
    frames.push(bytes, visit).ok()?;
    found.filter(|(code, _)| *code == kind as u8).map(|(_, payload)| payload)
}
