//! Pairs events with allocations, and finds the allocations that were active before the first event.
//!
//! Walking forward, a free without an `alloc` before it frees an allocation that was active at the start; a block of
//! the snapshot that no event made was active all along. The result is the same start as undoing the trace from its
//! end, and shows where events are missing.
//!
//! If a recording has losses, such an allocation is assumed to be made at the last loss before it is first seen. The
//! states before the first loss are therefore exact.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::address_map::AddressMap;
use super::allocations::{Allocation, Allocations};
use super::{Mismatches, PIECE, Replay};
use trace::event::Action;
use trace::frames::StackId;
use trace::order::SortFew;
use trace::order::sort_numbers_by_key;
use trace::units::Address;
use trace::{BlockState, Column, DeviceTrace, TagId};

/// The result of a walk over the events.
pub(super) struct Pairing {
    /// All allocations. The size is that of the allocation's block in the snapshot; 0 if it has none.
    pub(super) allocations: Allocations,
    /// The number of each event's allocation.
    pub(super) event_allocation: Column<u32>,
    /// Changes that no event records, in order: position and allocation. Each is the allocation's begin or end.
    pub(super) unrecorded: Vec<(u32, u32)>,
    pub(super) mismatches: Mismatches,
}

/// The flag of a preliminary number of an allocation that no event made. Numbers become final once all of those are
/// known.
const AT_START: u32 = 1 << 31;
/// The number at an address whose allocation has ended.
const CLOSED: u32 = u32::MAX;

/// An allocation that no event made: it was active at the start, or was made where events are missing.
struct AtStart {
    /// The position from which it is active.
    begin: u32,
    address: u64,
    requested: u64,
    size: u64,
    tag: u32,
    stack: u32,
    freed: u32,
    end: u32,
}

#[derive(Default)]
struct Walk {
    /// The number of the active allocation at each address, or [`CLOSED`].
    open: AddressMap<u32>,
    /// In a trace with losses: the position at which the last allocation at each address ended.
    closed: AddressMap<u32>,
    at_start: Vec<AtStart>,
    /// Positions of the allocations made in the trace, in order.
    freed: Column<u32>,
    end: Column<u32>,
    /// Sizes from the snapshot, of the allocations still active at the end.
    written: FxHashMap<u32, u64>,
    event_allocation: Column<u32>,
    /// The allocation that the next event ends, if it was looked up with the event before.
    ending: Option<u32>,
    /// Whether the trace has no `free_requested` (`skip_actions`), so that `free_completed` is both.
    skips_requests: bool,
    unrecorded: Vec<(u32, u32)>,
    /// Blocks of the snapshot that were made after the last event.
    late: Vec<AtStart>,
    mismatches: Mismatches,
}

impl Walk {
    /// Sets when `free` was called, if that is not known yet. Returns whether it was not.
    fn set_freed(&mut self, number: u32, position: u32) -> bool {
        if number & AT_START != 0 {
            if let Some(a) = self.at_start.get_mut((number & !AT_START) as usize)
                && a.freed == Allocation::NEVER
            {
                a.freed = position;
                return true;
            }
        } else if self.freed.get(number as usize) == Some(Allocation::NEVER) {
            self.freed.set(number as usize, position);
            return true;
        }
        false
    }

    /// Returns whether an allocation that no event made begins at a position.
    fn begins_at(&self, number: u32, position: u32) -> bool {
        number & AT_START != 0 && self.at_start.get((number & !AT_START) as usize).is_some_and(|a| a.begin == position)
    }

    fn set_end(&mut self, number: u32, position: u32) {
        self.set_freed(number, position);
        if number & AT_START != 0 {
            if let Some(a) = self.at_start.get_mut((number & !AT_START) as usize) {
                a.end = position;
            }
        } else {
            self.end.set(number as usize, position);
        }
    }

    /// Adds an allocation that no event made, first seen when it is freed or in the snapshot.
    fn push_at_start(&mut self, a: AtStart) -> u32 {
        self.at_start.push(a);
        (self.at_start.len() as u32 - 1) | AT_START
    }

    /// Returns the active allocation at an address, or [`CLOSED`]; `None` if none was seen since event `last_loss`.
    fn known(&self, address: u64, last_loss: usize) -> Option<u32> {
        let number = self.open.get(&address).copied()?;
        let is_old = last_loss > 0 && self.closed.get(&address).is_some_and(|&end| end as usize <= last_loss);
        (number != CLOSED || !is_old).then_some(number)
    }

    fn events(&mut self, trace: &DeviceTrace) {
        let count = trace.events.len();
        for start in (0..count).step_by(PIECE) {
            self.events_in(trace, start..count.min(start + PIECE));
        }
        if self.skips_requests {
            for a in self.at_start.iter_mut().filter(|a| a.freed == a.begin) {
                a.freed = a.end;
            }
        }
    }

    #[inline(never)]
    fn events_in(&mut self, trace: &DeviceTrace, piece: Range<usize>) {
        let events = &trace.events;
        let mut losses = trace.losses.iter().map(|loss| loss.position as usize).peekable();
        // The first event after the last loss.
        let mut last_loss = 0;
        let (mut actions, mut addresses) = (events.action.reader(), events.address.reader());
        for i in piece {
            while let Some(position) = losses.next_if(|position| *position <= i) {
                last_loss = position;
            }
            let action = actions.get(i).map_or(Action::Other, Action::from_code);
            let position = i as u32 + 1;
            let mut number = Replay::NONE;
            match action {
                Action::Alloc => {
                    let address = addresses.get(i).unwrap_or_default();
                    number = self.freed.len() as u32;
                    self.freed.push(Allocation::NEVER);
                    self.end.push(Allocation::NEVER);
                    if let Some(before) = self.open.insert(address, number)
                        && before != CLOSED
                    {
                        self.mismatches.alloc_over_alloc += 1;
                        self.set_end(before, position);
                        self.unrecorded.push((position, before));
                    }
                }
                Action::FreeRequested | Action::FreeCompleted => {
                    let address = addresses.get(i).unwrap_or_default();
                    let is_end = action == Action::FreeCompleted;
                    // What ended before events went missing is not known to be free.
                    let is_unknown = |closed: &AddressMap<u32>| {
                        last_loss > 0 && closed.get(&address).is_some_and(|&end| end as usize <= last_loss)
                    };
                    let known = self.ending.take();
                    match (known, if known.is_none() { self.open.get_mut(&address) } else { None }) {
                        (Some(known), _) => number = known,
                        (None, Some(open)) if *open != CLOSED || !is_unknown(&self.closed) => {
                            number = *open;
                            // Mostly the very next event ends it.
                            let ends_next = !is_end
                                && number != CLOSED
                                && actions.get(i + 1) == Some(Action::FreeCompleted as u8)
                                && addresses.get(i + 1) == Some(address);
                            self.ending = ends_next.then_some(number);
                            if is_end || ends_next {
                                *open = CLOSED;
                            }
                        }
                        _ => {
                            let begin = unseen(last_loss, i);
                            number = self.push_at_start(AtStart {
                                begin,
                                address,
                                requested: events.size.get(i).unwrap_or_default(),
                                size: 0,
                                tag: events.tag.get(i).unwrap_or_default(),
                                stack: events.stack.get(i).unwrap_or_default(),
                                // First seen when the free completes: the request was before the first event, or is
                                // missing.
                                freed: if is_end { begin } else { Allocation::NEVER },
                                end: Allocation::NEVER,
                            });
                            self.open.insert(address, if is_end { CLOSED } else { number });
                        }
                    }
                    if number == CLOSED {
                        self.mismatches.free_without_alloc += 1;
                        number = Replay::NONE;
                    } else if is_end {
                        self.skips_requests |=
                            number & AT_START == 0 && self.freed.get(number as usize) == Some(Allocation::NEVER);
                        self.set_end(number, position);
                        if !trace.losses.is_empty() {
                            self.closed.insert(address, position);
                        }
                    } else {
                        self.set_freed(number, position);
                    }
                }
                _ => {}
            }
            self.event_allocation.push(number);
        }
    }

    /// Compares the allocations that are still active with the snapshot's blocks.
    fn blocks(&mut self, trace: &DeviceTrace) {
        let end = trace.events.len() as u32;
        let last_loss = trace.losses.last().map_or(0, |loss| loss.position as usize);
        let begin = unseen(last_loss, trace.events.len());
        for block in trace.segments.iter().flat_map(|s| &s.blocks) {
            if block.state == BlockState::Inactive {
                continue;
            }
            let is_pending = block.state == BlockState::Pending;
            let from_before = AtStart {
                begin,
                address: block.address.0,
                requested: block.requested,
                size: block.size,
                tag: Replay::NONE,
                stack: block.stack.0,
                freed: if is_pending { begin } else { Allocation::NEVER },
                end: Allocation::NEVER,
            };
            match self.known(block.address.0, last_loss) {
                Some(CLOSED) => {
                    // Made after the last event: trace and segments are not read at one instant.
                    self.late.push(AtStart { freed: if is_pending { end } else { Allocation::NEVER }, ..from_before });
                    self.mismatches.made_after_end += 1;
                }
                Some(number) => {
                    // No event records this free, unless it is part of an unrecorded begin.
                    if is_pending && self.set_freed(number, end) && !self.begins_at(number, end) {
                        self.unrecorded.push((end, number));
                    }
                    if number & AT_START != 0 {
                        if let Some(a) = self.at_start.get_mut((number & !AT_START) as usize) {
                            (a.size, a.requested) = (block.size, block.requested);
                        }
                    } else {
                        self.written.insert(number, block.size);
                    }
                }
                None => {
                    let number = self.push_at_start(from_before);
                    self.open.insert(block.address.0, number);
                }
            }
        }
        if trace.segments.is_empty() {
            return;
        }
        // Allocations without a block were freed after the last event.
        let mut lost: Vec<u32> = self
            .open
            .values()
            .copied()
            .filter(|&n| n != CLOSED && n & AT_START == 0 && !self.written.contains_key(&n))
            .collect();
        // The order of a hash map differs between platforms.
        lost.sort_unstable();
        self.mismatches.lost_at_end = lost.len() as u32;
        for number in lost {
            self.set_end(number, end);
            self.unrecorded.push((end, number));
        }
    }
}

/// Returns the position from which an allocation is active that is first seen at event `i`, if events before event
/// `last_loss` are missing. It is after that event, so that the event's own change stays separate.
fn unseen(last_loss: usize, i: usize) -> u32 {
    if last_loss == 0 { 0 } else { (last_loss + 1).min(i) as u32 }
}

/// Pairs the events of a trace. `tag_of` returns the tag of a block that no event names, by its address.
pub(super) fn pair(trace: &DeviceTrace, tag_of: &mut dyn FnMut(u64) -> TagId) -> Pairing {
    let mut walk = Walk::default();
    walk.events(trace);
    walk.blocks(trace);
    // From here on they are only read, while the allocations are assembled.
    walk.freed.pack();
    walk.end.pack();
    let numbers = std::mem::take(&mut walk.event_allocation);
    Assembly::new(&walk, trace, tag_of).finish(numbers)
}

/// Numbers all allocations in the order in which they begin.
struct Assembly<'a> {
    walk: &'a Walk,
    trace: &'a DeviceTrace,
    tag_of: &'a mut dyn FnMut(u64) -> TagId,
    allocations: Allocations,
    /// The allocations that no event made, as numbers of `walk.at_start`: those of the start by address, then those of each loss.
    order: Vec<u32>,
    /// How many of them were added.
    added: usize,
    /// By number in `walk.at_start`: the final number.
    renumbered: Vec<u32>,
    /// The number of allocations added that an event made.
    made: u32,
    /// How many of those were added before each allocation of a loss.
    made_before: Vec<u32>,
    /// The begins that no event records: position and allocation.
    unrecorded: Vec<(u32, u32)>,
}

impl<'a> Assembly<'a> {
    fn new(walk: &'a Walk, trace: &'a DeviceTrace, tag_of: &'a mut dyn FnMut(u64) -> TagId) -> Self {
        let mut order: Vec<u32> = (0..walk.at_start.len() as u32).collect();
        sort_numbers_by_key(&mut order, |i| walk.at_start[i as usize].address);
        if !trace.losses.is_empty() {
            let mut by_begin: Vec<u32> = (0..order.len() as u32).collect();
            sort_numbers_by_key(&mut by_begin, |n| walk.at_start[order[n as usize] as usize].begin.into());
            order = by_begin.into_iter().map(|n| order[n as usize]).collect();
        }
        let renumbered = vec![0_u32; order.len()];
        Self {
            walk,
            trace,
            tag_of,
            allocations: Allocations::default(),
            order,
            added: 0,
            renumbered,
            made: 0,
            made_before: Vec::new(),
            unrecorded: Vec::new(),
        }
    }

    /// Adds them all. `numbers` are the preliminary numbers of the events' allocations.
    fn finish(mut self, numbers: Column<u32>) -> Pairing {
        while self.next_begin().is_some_and(|begin| begin == 0) {
            self.add_next();
        }
        let of_start = self.added as u32;
        let count = self.trace.events.len();
        for start in (0..count).step_by(PIECE) {
            self.add_made(start..count.min(start + PIECE));
        }
        while self.next_begin().is_some() {
            self.add_of_loss();
        }
        for late in &self.walk.late {
            self.unrecorded.push((count as u32, self.allocations.len() as u32));
            self.add(late, count as u32);
        }
        let Self { walk, allocations, renumbered, made_before, unrecorded: begins, .. } = self;
        let renumber = |number: u32| {
            if number == Replay::NONE {
                number
            } else if number & AT_START != 0 {
                renumbered.get((number & !AT_START) as usize).copied().unwrap_or(Replay::NONE)
            } else {
                number + of_start + made_before.partition_point(|&before| before <= number) as u32
            }
        };
        // Unrecorded ends come before unrecorded begins: an address may have been used again.
        let mut unrecorded: Vec<(u32, u32)> = walk.unrecorded.iter().map(|&(p, n)| (p, renumber(n))).collect();
        // If events made all allocations, their numbers are final.
        let event_allocation = match renumbered.is_empty() {
            true => numbers,
            false => numbers.iter().map(renumber).collect(),
        };
        unrecorded.extend(begins);
        unrecorded.sort_few_by_key(|&(position, _)| position);
        Pairing { allocations, event_allocation, unrecorded, mismatches: walk.mismatches }
    }

    /// Returns where the next allocation begins that no event made.
    fn next_begin(&self) -> Option<u32> {
        self.order.get(self.added).map(|&i| self.walk.at_start[i as usize].begin)
    }

    /// Adds the next allocation that no event made.
    fn add_next(&mut self) {
        let Some(&i) = self.order.get(self.added) else { return };
        self.added += 1;
        self.renumbered[i as usize] = self.allocations.len() as u32;
        let a = &self.walk.at_start[i as usize];
        self.add(a, a.begin);
    }

    /// Adds the next allocation that was made where events are missing.
    fn add_of_loss(&mut self) {
        self.made_before.push(self.made);
        self.unrecorded.extend(self.next_begin().map(|begin| (begin, self.allocations.len() as u32)));
        self.add_next();
    }

    fn add(&mut self, a: &AtStart, begin: u32) {
        self.allocations.push(Allocation {
            address: Address(a.address),
            requested: a.requested,
            size: a.size,
            begin,
            freed: a.freed,
            end: a.end,
            tag: if a.tag == Replay::NONE { (self.tag_of)(a.address) } else { TagId(a.tag) },
            stack: StackId(a.stack),
            pool: 0,
            flags: if a.size > 0 { Allocation::FLAG_SIZE_WRITTEN } else { 0 },
        });
    }

    /// Adds the allocations that a piece of the events made.
    #[inline(never)]
    fn add_made(&mut self, piece: Range<usize>) {
        let (walk, events) = (self.walk, &self.trace.events);
        let mut actions = events.action.reader();
        let (mut addresses, mut sizes) = (events.address.reader(), events.size.reader());
        let (mut tags, mut stacks) = (events.tag.reader(), events.stack.reader());
        let (mut freed, mut end) = (walk.freed.reader(), walk.end.reader());
        for i in piece {
            if actions.get(i) != Some(Action::Alloc as u8) {
                continue;
            }
            // Numbers are in order of `begin`. Allocations of a loss come before the event after it.
            while self.next_begin().is_some_and(|begin| begin as usize <= i + 1) {
                self.add_of_loss();
            }
            let made = self.made as usize;
            let written = walk.written.get(&self.made).copied();
            self.allocations.push(Allocation {
                address: Address(addresses.get(i).unwrap_or_default()),
                requested: sizes.get(i).unwrap_or_default(),
                size: written.unwrap_or(0),
                begin: i as u32 + 1,
                freed: freed.get(made).unwrap_or(Allocation::NEVER),
                end: end.get(made).unwrap_or(Allocation::NEVER),
                tag: TagId(tags.get(i).unwrap_or_default()),
                stack: StackId(stacks.get(i).unwrap_or_default()),
                pool: 0,
                flags: if written.is_some() { Allocation::FLAG_SIZE_WRITTEN } else { 0 },
            });
            self.made += 1;
        }
    }
}
