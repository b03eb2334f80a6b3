//! What stood in the way of a request that failed.

use query::diagnosis::{Cause, FailedRequest, HeldBlock, Obstacle};
use replay::ReservedRange;

use super::Case;
use super::blocking::{self, Pins};

/// A request is far larger than all before it if it is this many times as large.
const FAR_LARGER: u64 = 4;

/// The obstruction of a request that failed, beyond the bare sizes.
pub(super) struct Obstruction {
    /// What keeps segments with gaps from being released, if no segment is as long as the request.
    pub(super) pins: Option<Pins>,
    /// The largest request before it, in requested bytes, if this one is far larger and asks for most of the memory.
    pub(super) largest_before: Option<u64>,
}

impl Obstruction {
    pub(super) fn of(case: &Case<'_>, failed: &FailedRequest) -> Self {
        let pins = (failed.cause == Cause::Fragmented && place(failed).is_none()).then(|| {
            let kind = (failed.stream, failed.pool, failed.is_small);
            let is_own = |range: &ReservedRange| (range.stream, range.pool, range.is_small) == kind;
            blocking::pins(case, &case.replay.state_at(failed.position()), is_own)
        });
        let is_most = failed.requested >= failed.whole() / 2 && failed.requested <= failed.whole();
        let largest_before = is_most.then(|| {
            let made = case.replay.allocations.made_by(failed.position()) as usize;
            case.replay.allocations.requested.range(0..made).max().unwrap_or(0)
        });
        let is_far = |bytes: &u64| *bytes > 0 && failed.requested / FAR_LARGER >= *bytes;
        Self { pins: pins.flatten(), largest_before: largest_before.filter(is_far) }
    }

    /// Returns whether that block's line has less than a quarter of the blocks that stand in the way.
    pub(super) fn is_one_of_many(&self, failed: &FailedRequest) -> bool {
        let is_few = |pins: &Pins| u64::from(pins.own.0) * 4 < u64::from(pins.all.0);
        place(failed).is_none() && self.pins.as_ref().is_some_and(is_few)
    }

    /// Returns a block that stands in the way.
    pub(super) fn block<'a>(&'a self, failed: &'a FailedRequest) -> Option<&'a HeldBlock> {
        let in_place = place(failed).and_then(|obstacle| obstacle.largest.first());
        in_place.or(self.pins.as_ref().map(|pins| &pins.block))
    }
}

/// Returns what stood in the way where the request came closest to fitting. A place without any free byte came no closer
/// than others: it is as long as the request, and all in use.
pub(super) fn place(failed: &FailedRequest) -> Option<&Obstacle> {
    failed.obstacle.as_ref().filter(|obstacle| obstacle.blocks > 0 && obstacle.bytes < failed.requested)
}
