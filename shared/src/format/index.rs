//! Where the chunks of a file are: for readers that can jump.

use super::varint::{Varints, fold, push};
use crate::import::error::Checked;
use crate::msgpack::{MapReader, MapWriter};

/// A chunk of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins, in bytes from the start of the file.
    pub byte: u64,
    /// What it holds, as in its envelope.
    pub kind: u8,
    /// The device that it is about; 0 where it is about none.
    pub device: i64,
    /// For events and gaps the first sequence number, for segments that of the first event after their moment; else 0.
    pub first: u64,
    /// How many sequence numbers it covers.
    pub count: u64,
    /// The earliest time in it in microseconds since the epoch; 0 where it has none.
    pub from_us: i64,
    /// The latest time in it.
    pub to_us: i64,
}

/// The payload of the index.
pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let (mut column, mut last) = (Vec::new(), Entry::default());
    for entry in entries {
        push(&mut column, entry.byte.wrapping_sub(last.byte));
        push(&mut column, entry.kind.into());
        push(&mut column, fold(entry.device));
        push(&mut column, entry.first);
        push(&mut column, entry.count);
        push(&mut column, fold(entry.from_us.wrapping_sub(last.to_us)));
        push(&mut column, fold(entry.to_us.wrapping_sub(entry.from_us)));
        last = *entry;
    }
    let mut message = MapWriter::map(1);
    message.column("chunks", &column);
    message.into_bytes()
}

/// Reads an index.
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
        let kind = column.next()? as u8;
        let (device, first, count) = (column.signed()?, column.next()?, column.next()?);
        let from_us = last.to_us.wrapping_add(column.signed()?);
        let to_us = from_us.wrapping_add(column.signed()?);
        last = Entry { byte, kind, device, first, count, from_us, to_us };
        entries.push(last);
    }
    Ok(entries)
}

/// The payload of the trailer: of one length, whatever the index's place.
pub(super) fn encode_trailer(index_byte: u64) -> Vec<u8> {
    let mut message = MapWriter::map(1);
    message.wide("index", index_byte);
    message.into_bytes()
}

/// Where the trailer says that the index begins.
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
