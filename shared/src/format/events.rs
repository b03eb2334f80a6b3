//! The chunk of events: columns, with the device and the number of the first.

use super::columns::{EventColumns, EventReader};
use super::varint::Varints;
use crate::import::error::{Checked, damaged};
use crate::msgpack::{MapReader, MapWriter};

/// The payload for events of `device`, the first of which has the sequence number `first`.
pub fn encode_events(device: i64, first: u64, columns: &EventColumns) -> Vec<u8> {
    let mut message = MapWriter::map(9);
    message.signed("device", device);
    message.unsigned("first", first);
    message.signed("start_us", columns.start_us);
    message.column("action", &columns.action);
    message.column("address", &columns.address);
    message.column("size", &columns.size);
    message.column("time", &columns.time);
    message.column("tag", &columns.tag);
    message.column("stack", &columns.stack);
    message.into_bytes()
}

/// Events that are being read.
pub(super) struct EventChunk<'a> {
    pub(super) device: i64,
    pub(super) first: u64,
    pub(super) events: EventReader<'a>,
}

impl<'a> EventChunk<'a> {
    pub(super) fn decode(payload: &'a [u8]) -> Checked<Self> {
        let (mut device, mut first, mut start_us) = (0, 0, 0);
        let mut columns = [&[][..]; 6];
        MapReader::new(payload).map(&mut |key, values| {
            match key {
                "device" => device = values.signed()?,
                "first" => first = values.unsigned()?,
                "start_us" => start_us = values.signed()?,
                "action" => columns[0] = values.column()?,
                "address" => columns[1] = values.column()?,
                "size" => columns[2] = values.column()?,
                "time" => columns[3] = values.column()?,
                "tag" => columns[4] = values.column()?,
                "stack" => columns[5] = values.column()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let [action, address, size, time, tag, stack] = columns;
        if first.checked_add(action.len() as u64).is_none() {
            return Err(damaged("events are numbered beyond all bounds"));
        }
        let some = |column: &'a [u8]| (!column.is_empty()).then(|| Varints::new(column));
        let mut events = EventReader::new(start_us);
        events.action = action;
        (events.address, events.size, events.time) = (Varints::new(address), Varints::new(size), Varints::new(time));
        (events.tag, events.stack) = (some(tag), some(stack));
        Ok(Self { device, first, events })
    }
}
