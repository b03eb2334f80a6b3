//! Events as columns of small numbers: what a recording stores, and what travels live.
//!
//! Each column is one byte string. What an event shares with the one before it costs a byte; an empty column stands
//! for zeros throughout.

use super::varint::{Varints, fold, push, unfold};
use crate::event::Action;
use crate::frames::StackId;
use crate::import::error::{Checked, damaged};
use crate::trace::{Event, TagId};
use crate::units::Address;

/// The allocator's quantum: addresses are mostly multiples of it, and so are their differences.
const QUANTUM_BITS: u32 = 9;
/// Stands for a difference that has no short form: the address follows in eight bytes.
const RAW: u64 = u64::MAX;

/// Events that are being gathered for a chunk.
#[derive(Clone, Debug, Default)]
pub struct EventColumns {
    /// [`Action`] codes, a byte each.
    pub(super) action: Vec<u8>,
    /// Differences of addresses; see [`fold_address`].
    pub(super) address: Vec<u8>,
    /// Differences of sizes, folded.
    pub(super) size: Vec<u8>,
    /// Differences of times in microseconds, folded. The first is from [`Self::start_us`].
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

/// What the next event is told apart from.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    address: u64,
    size: u64,
    time_us: i64,
}

/// A difference of addresses as a number: its lowest bit says whether the rest counts bytes (1) or 512 of them (0).
#[inline]
fn fold_address(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    if difference & ((1 << QUANTUM_BITS) - 1) == 0 {
        return fold(difference >> QUANTUM_BITS) << 1;
    }
    let folded = fold(difference);
    // What would not fit when shifted has a number of its own, and the address follows as it stands.
    if folded < (1 << 63) - 1 { folded << 1 | 1 } else { RAW }
}

impl EventColumns {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// Bytes of all columns together, before they are packed.
    pub fn bytes(&self) -> usize {
        [&self.action, &self.address, &self.size, &self.time, &self.tag, &self.stack].iter().map(|c| c.len()).sum()
    }

    /// Starts over, with the memory that is there.
    pub fn clear(&mut self) {
        for column in
            [&mut self.action, &mut self.address, &mut self.size, &mut self.time, &mut self.tag, &mut self.stack]
        {
            column.clear();
        }
        (self.last, self.start_us, self.span_us) = (Last::default(), 0, (0, 0));
    }

    /// Appends an event. Tags and stacks are numbers of the recording.
    #[inline]
    pub fn push(&mut self, event: Event) {
        if self.is_empty() {
            self.start_us = event.time_us;
            self.last.time_us = event.time_us;
            self.span_us = (event.time_us, event.time_us);
        }
        self.span_us = (self.span_us.0.min(event.time_us), self.span_us.1.max(event.time_us));
        self.action.push(event.action as u8);
        let folded = fold_address(self.last.address, event.address.0);
        push(&mut self.address, folded);
        if folded == RAW {
            self.address.extend_from_slice(&event.address.0.to_le_bytes());
        }
        push(&mut self.size, fold(event.size.wrapping_sub(self.last.size) as i64));
        push(&mut self.time, fold(event.time_us.wrapping_sub(self.last.time_us)));
        number(&mut self.tag, event.tag.0, self.action.len());
        number(&mut self.stack, event.stack.0, self.action.len());
        self.last = Last { address: event.address.0, size: event.size, time_us: event.time_us };
    }
}

/// Appends a number to a column that begins with the first number that is not 0. `count` includes this event.
#[inline]
fn number(column: &mut Vec<u8>, number: u32, count: usize) {
    if column.is_empty() && number != 0 {
        column.resize(count - 1, 0);
    }
    if !column.is_empty() || number != 0 {
        push(column, u64::from(number));
    }
}

/// Columns that are being read.
#[derive(Clone, Copy)]
pub(super) struct EventReader<'a> {
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

    /// The next event; its tag and stack are numbers of the recording. `None` after the last.
    #[inline]
    pub(super) fn next(&mut self) -> Checked<Option<Event>> {
        let Some((&code, rest)) = self.action.split_first() else { return Ok(None) };
        self.action = rest;
        let Last { address, size, time_us } = self.last;
        let address = match self.address.fast()? {
            RAW => {
                let bytes = self.address.bytes(8)?;
                u64::from_le_bytes(bytes.try_into().map_err(|_| damaged("an address is cut short"))?)
            }
            folded => {
                let difference = unfold(folded >> 1);
                let quantum = if folded & 1 == 0 { QUANTUM_BITS } else { 0 };
                address.wrapping_add((difference as u64) << quantum)
            }
        };
        let size = size.wrapping_add(unfold(self.size.fast()?) as u64);
        let time_us = time_us.wrapping_add(unfold(self.time.fast()?));
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

/// The next number of a column that may be empty.
#[inline]
fn number_of(column: &mut Option<Varints<'_>>) -> Checked<u32> {
    let Some(column) = column else { return Ok(0) };
    u32::try_from(column.fast()?).map_err(|_| damaged("a number is too large for its place"))
}
