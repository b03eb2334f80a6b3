#![doc = include_str!("FORMAT.md")]
//!
//! # In this module
//!
//! [`ChunkReader`] cuts pushed bytes into checked, unpacked [`Chunk`]s; [`ChunkScanner`] checks them and
//! leaves them packed.
//! Each kind of chunk has a type that decodes its payload: [`Header`], [`SymbolsChunk`], [`EventsChunk`],
//! [`MarksChunk`], [`LostEvents`], [`SegmentsChunk`], [`StatisticsChunk`], [`OutsideChunk`], [`End`] and [`BatchEnd`]. [`Writer`] writes
//! them. Whole recordings are read by [`crate::recording`].
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]
// Tests count in small numbers.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation))]

use std::ops::Range;

mod assembler;
pub mod baked;
mod chunk;
mod columns;
mod events;
pub mod export;
mod header;
pub mod import;
mod index;
mod json;
mod lost_names;
mod outside;
mod own_events;
mod pickle;
mod reader;
pub mod recording;
mod records;
pub mod redaction;
mod scanner;
mod segments;
mod sequence;
pub mod sweep;
mod symbols;
mod values;
pub(crate) mod varint;
mod writer;

pub use assembler::SegmentsAssembler;
pub(crate) use chunk::UPDATE;
pub use chunk::{ENVELOPE_BYTES, Kind, MAGIC, MAJOR, MINOR, PRELUDE_BYTES, chunk_bytes, prelude, seal};
pub use columns::{EventColumns, EventReader};
pub use events::{EventsChunk, encode_events};
pub use header::{Device, Fault, Header};
pub use index::Entry;
pub use lost_names::LostNames;
pub use outside::OutsideChunk;
pub(crate) use own_events::OwnEvents;
pub(crate) use reader::RECORDING;
pub use reader::{Chunk, ChunkReader, Damage};
pub use records::{BatchEnd, End, LostEvents, MarksChunk, StatisticsChunk};
pub use scanner::{ChunkScanner, Piece, RawChunk};
pub use segments::{SegmentPiece, SegmentsChunk, encode_segments};
pub use sequence::Sequence;
pub use symbols::{SymbolMap, SymbolsChunk, TagStreams};
pub use writer::{TRAILER_BYTES, Writer, write, write_with_previews};

use trace::limits::{ImportLimits, PREVIEW_PART_BYTES};

/// The extension of a recording's file name.
pub const EXTENSION: &str = "vramscope";

/// Returns the offset of the index, from the last [`TRAILER_BYTES`] of a file; `None` for a file that was not ended.
pub fn index_byte(tail: &[u8]) -> Option<u64> {
    first_payload(tail, Kind::Trailer).and_then(|payload| index::decode_trailer(&payload).ok())
}

/// Returns the index, from the bytes at the offset that [`index_byte`] returned; `None` if there is none.
pub fn index(bytes: &[u8]) -> Option<Vec<Entry>> {
    first_payload(bytes, Kind::Index).and_then(|payload| index::decode(&payload).ok())
}

/// Returns the bytes of the first preview within a recording, from any number of the recording's first bytes; `None` if
/// they don't reach to it, or it has none there.
pub fn preview_range(start: &[u8]) -> Option<Range<usize>> {
    let header = start.get(PRELUDE_BYTES..).filter(|_| start.starts_with(&MAGIC))?;
    let from = PRELUDE_BYTES.checked_add(chunk_bytes(header)?)?;
    let bytes = chunk::bytes_of(start.get(from..)?, Kind::Preview)?;
    Some(from..from.checked_add(bytes)?)
}

/// Returns the payload of the preview that `bytes` begin with, if it is whole.
pub fn preview(bytes: &[u8]) -> Option<Vec<u8>> {
    let limits = ImportLimits { chunk_bytes: PREVIEW_PART_BYTES, ..ImportLimits::default() };
    first_payload_within(bytes, Kind::Preview, &limits)
}

/// Returns the payload of the chunk that `bytes` begin with, if it is whole and of this kind.
fn first_payload(bytes: &[u8], kind: Kind) -> Option<Vec<u8>> {
    first_payload_within(bytes, kind, &ImportLimits::default())
}

fn first_payload_within(bytes: &[u8], kind: Kind, limits: &ImportLimits) -> Option<Vec<u8>> {
    let mut found = None;
    let mut reader = ChunkReader::at_chunk(limits, 0);
    let visit = &mut |chunk: Chunk<'_>| {
        if chunk.byte == 0 && chunk.known_kind() == Some(kind) {
            found = Some(chunk.payload.to_vec());
        }
    };
    reader.push(bytes, visit).ok()?;
    found
}
