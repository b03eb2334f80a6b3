//! The events chunk: columns, with the device and the sequence number of the first event.

use super::columns::{EventColumns, EventReader};
use super::varint::Varints;
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged};

/// What the payload of an events chunk consists of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) device: i64,
    /// The sequence number of the first event.
    pub(super) first: u64,
    pub(super) start_us: i64,
    /// Actions, addresses, sizes, times, tags and stacks.
    pub(super) columns: [&'a [u8]; 6],
}

impl<'a> Parts<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let [action, address, size, time, tag, stack] = self.columns;
        let mut message = MapWriter::map(9);
        message.signed("device", self.device);
        message.unsigned("first", self.first);
        message.signed("start_us", self.start_us);
        message.column("action", action);
        message.column("address", address);
        message.column("size", size);
        message.column("time", time);
        message.column("tag", tag);
        message.column("stack", stack);
        message.into_bytes()
    }

    /// Reads a payload. Its columns are not read.
    pub(super) fn decode(payload: &'a [u8]) -> Checked<Self> {
        let mut parts = Self { device: 0, first: 0, start_us: 0, columns: [&[]; 6] };
        MapReader::new(payload).map(&mut |key, values| {
            let [action, address, size, time, tag, stack] = &mut parts.columns;
            match key {
                "device" => parts.device = values.signed()?,
                "first" => parts.first = values.unsigned()?,
                "start_us" => parts.start_us = values.signed()?,
                "action" => *action = values.column()?,
                "address" => *address = values.column()?,
                "size" => *size = values.column()?,
                "time" => *time = values.column()?,
                "tag" => *tag = values.column()?,
                "stack" => *stack = values.column()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(parts)
    }
}

/// Returns the payload of an events chunk. `first` is the sequence number of the first event.
pub fn encode_events(device: i64, first: u64, columns: &EventColumns) -> Vec<u8> {
    let EventColumns { action, address, size, time, tag, stack, start_us, .. } = columns;
    Parts { device, first, start_us: *start_us, columns: [action, address, size, time, tag, stack] }.encode()
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
        let Parts { device, first, start_us, columns: [action, address, size, time, tag, stack] } =
            Parts::decode(payload)?;
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
