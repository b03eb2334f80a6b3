//! The events chunk: columns, with the device and the sequence number of the first event.

use super::columns::{EventColumns, EventReader};
use super::varint::Varints;
use crate::error::{Checked, damaged};
use crate::msgpack::{MapReader, MapWriter};

/// Returns the payload of an events chunk. `first` is the sequence number of the first event.
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

/// The contents of an events chunk, read event by event from its columns.
#[derive(Clone, Copy, Debug)]
pub struct EventsChunk<'a> {
    /// The device.
    pub device: i64,
    /// The sequence number of the first event.
    pub first: u64,
    /// The events.
    pub events: EventReader<'a>,
}

impl<'a> EventsChunk<'a> {
    /// Reads the payload of an events chunk. Damage inside the columns is found when its event is read.
    pub fn decode(payload: &'a [u8]) -> Checked<Self> {
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
            return Err(damaged("the sequence numbers of events overflow"));
        }
        let some = |column: &'a [u8]| (!column.is_empty()).then(|| Varints::new(column));
        let mut events = EventReader::new(start_us);
        events.action = action;
        (events.address, events.size, events.time) = (Varints::new(address), Varints::new(size), Varints::new(time));
        (events.tag, events.stack) = (some(tag), some(stack));
        Ok(Self { device, first, events })
    }
}
