//! What each event changes, found once. The many walks over a trace then read a byte for each event, where they would
//! have to compare its position with three columns of its allocation.

use super::Replay;
use super::allocations::Allocations;
use trace::event::Action;
use trace::{Column, ColumnReader, DeviceTrace};

/// An allocation begins.
pub(super) const BEGINS: u8 = 1;
/// An allocation is freed.
pub(super) const FREES: u8 = 2;
/// An allocation ends, after it is freed if both are set.
pub(super) const ENDS: u8 = 4;

/// Finds what events change. Changes that no event records are left out: see `Replay::unrecorded`.
pub(super) struct Effects<'a> {
    actions: ColumnReader<'a, u8>,
    numbers: ColumnReader<'a, u32>,
    begins: ColumnReader<'a, u32>,
    freed: ColumnReader<'a, u32>,
    ends: ColumnReader<'a, u32>,
}

impl<'a> Effects<'a> {
    pub(super) fn new(trace: &'a DeviceTrace, allocations: &'a Allocations, numbers: &'a Column<u32>) -> Self {
        let Allocations { begin, freed, end, .. } = allocations;
        Self {
            actions: trace.events.action.reader(),
            numbers: numbers.reader(),
            begins: begin.reader(),
            freed: freed.reader(),
            ends: end.reader(),
        }
    }

    /// Returns what event `i` changes, as bits.
    #[inline]
    pub(super) fn of(&mut self, i: usize) -> u8 {
        let Self { actions, numbers, begins, freed, ends } = self;
        let (number, position) = (numbers.get(i).unwrap_or(Replay::NONE), i as u32 + 1);
        if number == Replay::NONE {
            return 0;
        }
        let is = |column: &mut ColumnReader<'_, u32>| column.get(number as usize) == Some(position);
        match actions.get(i).map_or(Action::Other, Action::from_code) {
            // What also ends here, by no event, is freed here too: see `Replay::unrecorded_changes`.
            Action::Alloc if !is(freed) => BEGINS,
            // An allocation of a recorded state begins with the event after it, which may free it.
            Action::FreeRequested => {
                let gone_or_begun = is(ends) || is(begins);
                if !gone_or_begun && is(freed) { FREES } else { 0 }
            }
            Action::FreeCompleted if is(ends) && !is(begins) => ENDS | if is(freed) { FREES } else { 0 },
            _ => 0,
        }
    }
}
