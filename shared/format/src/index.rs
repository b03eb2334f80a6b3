//! The index and trailer chunks: offsets of a file's chunks, for readers that can seek.

use super::varint::{Varints, push, zigzag};
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged};

/// An index entry: one chunk of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its offset in the file.
    pub byte: u64,
    /// The number of its kind, as in its envelope.
    pub kind: u8,
    /// Its device; 0 if it has none.
    pub device: i64,
    /// For events and lost events the first sequence number; for segments that of the next event; otherwise 0.
    pub first: u64,
    /// The number of sequence numbers that it covers.
    pub count: u64,
    /// Its earliest time in microseconds since the epoch; 0 if it has no times.
    pub from_us: i64,
    /// Its latest time.
    pub to_us: i64,
}

/// Returns the payload of an index chunk.
pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), Entry::default());
    for entry in entries {
        push(&mut column, entry.byte.wrapping_sub(last.byte));
        push(&mut column, entry.kind.into());
        push(&mut column, zigzag(entry.device));
        push(&mut column, entry.first);
        push(&mut column, entry.count);
        push(&mut column, zigzag(entry.from_us.wrapping_sub(last.to_us)));
        push(&mut column, zigzag(entry.to_us.wrapping_sub(entry.from_us)));
        last = *entry;
    }
    let mut message = MapWriter::map(1);
    message.column("chunks", &column);
    message.into_bytes()
}

/// Reads the payload of an index chunk.
pub(super) fn decode(payload: &[u8]) -> Checked<Vec<Entry>> {
    let mut column = Varints::new(&[]);
    MapReader::new(payload).map(&mut |key, values| {
        if key == "chunks" {
            column = Varints::new(values.column()?);
        }
        Ok(key == "chunks")
    })?;
    let (mut entries, mut last) = (Vec::new(), Entry::default());
    while !column.is_empty() {
        let byte = last.byte.wrapping_add(column.next()?);
        let kind = u8::try_from(column.next()?).map_err(|_| damaged("a kind is too large for its field"))?;
        let (device, first, count) = (column.signed()?, column.next()?, column.next()?);
        let from_us = last.to_us.wrapping_add(column.signed()?);
        let to_us = from_us.wrapping_add(column.signed()?);
        last = Entry { byte, kind, device, first, count, from_us, to_us };
        entries.push(last);
    }
    Ok(entries)
}

/// Returns the payload of a trailer chunk. Its length is the same for every offset.
pub(super) fn encode_trailer(index_byte: u64) -> Vec<u8> {
    let mut message = MapWriter::map(1);
    message.wide("index", index_byte);
    message.into_bytes()
}

/// Reads the payload of a trailer chunk: the offset of the index.
pub(super) fn decode_trailer(payload: &[u8]) -> Checked<u64> {
    let mut byte = 0;
    MapReader::new(payload).map(&mut |key, values| {
        if key == "index" {
            byte = values.unsigned()?;
        }
        Ok(key == "index")
    })?;
    Ok(byte)
}
