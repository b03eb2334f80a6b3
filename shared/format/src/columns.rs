//! Events as columns of small numbers, in files and in live streams.
//!
//! Each column is one byte string. A value that equals the previous event's costs one byte; an empty column means that
//! all values are 0.

use super::varint::{Varints, push, unzigzag, zigzag};
use trace::error::{Checked, damaged};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::Address;
use trace::{Event, TagId};

/// The allocator's granularity, 512 bytes, as a power of two: most address differences are multiples of it.
const QUANTUM_BITS: u32 = 9;
/// Marks a difference without a short form: the address follows in eight bytes.
const RAW: u64 = u64::MAX;

/// Encodes events for a chunk.
#[derive(Clone, Debug, Default)]
pub struct EventColumns {
    /// [`Action`] codes, one byte each.
    pub(super) action: Vec<u8>,
    /// Differences of addresses; see [`encode_address`].
    pub(super) address: Vec<u8>,
    /// Differences of sizes, zigzag-encoded.
    pub(super) size: Vec<u8>,
    /// Differences of times in microseconds, zigzag-encoded. The first is relative to [`Self::start_us`].
    pub(super) time: Vec<u8>,
    /// Numbers of tags; empty when all are 0.
    pub(super) tag: Vec<u8>,
    /// Numbers of stacks; empty when all are 0.
    pub(super) stack: Vec<u8>,
    /// The time of the first event.
    pub(super) start_us: i64,
    /// The earliest and the latest time.
    pub(super) span_us: (i64, i64),
    last: Last,
}

/// The previous event's values, from which the next differences are taken.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    address: u64,
    size: u64,
    time_us: i64,
}

/// Encodes a difference of addresses: the lowest bit tells whether the rest counts bytes (1) or units of 512 bytes (0).
#[inline]
fn encode_address(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    if difference & ((1 << QUANTUM_BITS) - 1) == 0 {
        return zigzag(difference >> QUANTUM_BITS) << 1;
    }
    let encoded = zigzag(difference);
    // A difference that doesn't fit after the shift is marked, and the whole address follows.
    if encoded < (1 << 63) - 1 { encoded << 1 | 1 } else { RAW }
}

impl EventColumns {
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// Returns the bytes of all columns, before compression.
    pub fn bytes(&self) -> usize {
        [&self.action, &self.address, &self.size, &self.time, &self.tag, &self.stack].iter().map(|c| c.len()).sum()
    }

    /// Removes all events and keeps the memory.
    pub fn clear(&mut self) {
        for column in
            [&mut self.action, &mut self.address, &mut self.size, &mut self.time, &mut self.tag, &mut self.stack]
        {
            column.clear();
        }
        (self.last, self.start_us, self.span_us) = (Last::default(), 0, (0, 0));
    }

    /// Appends an event. Its tag and stack are numbers of the recording.
    #[inline]
    pub fn push(&mut self, event: Event) {
        if self.is_empty() {
            self.start_us = event.time_us;
            self.last.time_us = event.time_us;
            self.span_us = (event.time_us, event.time_us);
        }
        self.span_us = (self.span_us.0.min(event.time_us), self.span_us.1.max(event.time_us));
        self.action.push(event.action as u8);
        let encoded = encode_address(self.last.address, event.address.0);
        push(&mut self.address, encoded);
        if encoded == RAW {
            self.address.extend_from_slice(&event.address.0.to_le_bytes());
        }
        push(&mut self.size, zigzag(event.size.wrapping_sub(self.last.size) as i64));
        push(&mut self.time, zigzag(event.time_us.wrapping_sub(self.last.time_us)));
        number(&mut self.tag, event.tag.0, self.action.len());
        number(&mut self.stack, event.stack.0, self.action.len());
        self.last = Last { address: event.address.0, size: event.size, time_us: event.time_us };
    }
}

/// Appends a number to a column that stays empty until the first number other than 0. `count` includes this event.
#[inline]
fn number(column: &mut Vec<u8>, number: u32, count: usize) {
    if column.is_empty() && number != 0 {
        column.resize(count - 1, 0);
    }
    if !column.is_empty() || number != 0 {
        push(column, u64::from(number));
    }
}

/// Reads events from the columns of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct EventReader<'a> {
    pub(super) action: &'a [u8],
    pub(super) address: Varints<'a>,
    pub(super) size: Varints<'a>,
    pub(super) time: Varints<'a>,
    pub(super) tag: Option<Varints<'a>>,
    pub(super) stack: Option<Varints<'a>>,
    last: Last,
}

impl<'a> EventReader<'a> {
    pub(super) fn new(start_us: i64) -> Self {
        let none = Varints::new(&[]);
        let last = Last { time_us: start_us, ..Last::default() };
        Self { action: &[], address: none, size: none, time: none, tag: None, stack: None, last }
    }

    /// Returns the next event; `None` after the last. Its tag and stack are numbers of the recording.
    #[inline]
    pub fn next_event(&mut self) -> Checked<Option<Event>> {
        let Some((&code, rest)) = self.action.split_first() else { return Ok(None) };
        self.action = rest;
        let Last { address, size, time_us } = self.last;
        let address = match self.address.fast()? {
            RAW => {
                let bytes = self.address.bytes(8)?;
                u64::from_le_bytes(bytes.try_into().map_err(|_| damaged("an address is cut short"))?)
            }
            encoded => {
                let difference = unzigzag(encoded >> 1);
                let quantum = if encoded & 1 == 0 { QUANTUM_BITS } else { 0 };
                address.wrapping_add((difference as u64) << quantum)
            }
        };
        let size = size.wrapping_add(unzigzag(self.size.fast()?) as u64);
        let time_us = time_us.wrapping_add(unzigzag(self.time.fast()?));
        let tag = number_of(&mut self.tag)?;
        let stack = number_of(&mut self.stack)?;
        self.last = Last { address, size, time_us };
        Ok(Some(Event {
            action: Action::from_code(code),
            address: Address(address),
            size,
            time_us,
            tag: TagId(tag),
            stack: StackId(stack),
        }))
    }
}

/// Returns the next number of a column that may be empty.
#[inline]
fn number_of(column: &mut Option<Varints<'_>>) -> Checked<u32> {
    let Some(column) = column else { return Ok(0) };
    u32::try_from(column.fast()?).map_err(|_| damaged("a number is too large for its field"))
}
