//! Where a state that was written and the one that was carried forward are not the same: after events were lost.

use super::forward::{Forward, Live};
use super::segments::{Range, Ranges};
use crate::frames::StackId;
use crate::trace::{Block, BlockState, Segment};
use crate::units::Address;

/// An allocation that a state tells of, and that no event made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) address: Address,
    pub(crate) requested: u64,
    pub(crate) size: u64,
    pub(crate) stack: StackId,
    pub(crate) is_pending: bool,
    /// The index of its range.
    pub(crate) range: Option<usize>,
}

/// What changed so that a state is as it was written.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Allocations that are not there any more.
    pub(crate) ended: Vec<u32>,
    /// Ranges that are not reserved any more.
    pub(crate) given_back: Vec<Range>,
    /// Ranges that are reserved now.
    pub(crate) taken: Vec<Range>,
    /// Allocations that are there now, by address.
    pub(crate) begun: Vec<Begun>,
    /// Allocations that were freed, and wait.
    pub(crate) freed: Vec<u32>,
}

impl Differences {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { ended, given_back, taken, begun, freed } = self;
        [ended.len(), given_back.len(), taken.len(), begun.len(), freed.len()] == [0; 5]
    }

    /// Changes `forward` so that it holds what `segments` say.
    pub(super) fn settle(forward: &mut Forward, segments: &[Segment]) -> Self {
        let mut found = Self::default();
        found.blocks_gone(forward, segments);
        found.ranges(forward, segments);
        found.blocks_new(forward, segments);
        if !found.is_empty() {
            forward.place_large();
        }
        found
    }

    /// Gives up the blocks that the state does not have, or has otherwise.
    fn blocks_gone(&mut self, forward: &mut Forward, segments: &[Segment]) {
        let mut written: Vec<&Block> = active(segments).collect();
        written.sort_by_key(|block| block.address);
        let is_kept = |address: u64, live: &Live| {
            let found = written.binary_search_by_key(&address, |block| block.address.0);
            found.ok().and_then(|i| written.get(i)).is_some_and(|block| is_same(live, block))
        };
        let mut gone: Vec<(u32, u64)> = (forward.live.iter())
            .filter(|(address, live)| !is_kept(**address, live))
            .map(|(&address, live)| (live.number, address))
            .collect();
        gone.sort_by_key(|(number, _)| *number);
        for (number, address) in gone {
            forward.close(address);
            self.ended.push(number);
        }
    }

    fn ranges(&mut self, forward: &mut Forward, segments: &[Segment]) {
        let mut wanted = Ranges::default();
        for segment in segments.iter().filter(|segment| segment.size > 0) {
            wanted.add(Range::of(segment));
        }
        let held = forward.ranges.as_slice().to_vec();
        let in_both = |list: &[Range], range: &Range| {
            let found = list.binary_search_by_key(&range.address, |r| r.address);
            found.ok().and_then(|i| list.get(i)).is_some_and(|other| range.is_same(other))
        };
        for range in held.iter().filter(|range| !in_both(wanted.as_slice(), range)) {
            self.given_back.extend(forward.give_back(range.address.0, range.size));
        }
        for range in wanted.as_slice().iter().filter(|range| !in_both(&held, range)) {
            forward.take(*range);
            self.taken.push(*range);
        }
    }

    /// Takes in the blocks that only the state has.
    fn blocks_new(&mut self, forward: &mut Forward, segments: &[Segment]) {
        let mut written: Vec<Block> = active(segments).copied().collect();
        written.sort_by_key(|block| block.address);
        for block in written {
            let is_pending = block.state == BlockState::Pending;
            let address = block.address.0;
            if let Some(live) = forward.live.get_mut(&address) {
                // Only what is the same is left; but it may have been freed meanwhile.
                if is_pending && !live.is_pending {
                    live.is_pending = true;
                    forward.sums.allocated = forward.sums.allocated.saturating_sub(live.size);
                    self.freed.push(live.number);
                }
                continue;
            }
            let number = forward.number();
            let Block { requested, size, stack, .. } = block;
            forward.open(address, Live { requested, size, stack, number, is_pending, is_large: false });
            let range = forward.ranges.find(address);
            self.begun.push(Begun { address: block.address, requested, size, stack, is_pending, range });
        }
    }
}

fn active(segments: &[Segment]) -> impl Iterator<Item = &Block> {
    segments.iter().flat_map(|segment| &segment.blocks).filter(|block| block.state != BlockState::Inactive)
}

/// Whether a block may be the one that is held: nothing that waits becomes allocated again.
fn is_same(live: &Live, block: &Block) -> bool {
    let is_back = live.is_pending && block.state == BlockState::Allocated;
    (live.requested, live.size) == (block.requested, block.size) && !is_back
}
