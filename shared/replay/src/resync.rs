//! The differences between a recorded state and the replayed one, which appear after events were lost.

use super::forward::{ActiveBlock, Forward};
use super::segments::{Ranges, ReservedRange};
use trace::frames::StackId;
use trace::order::SortFew;
use trace::units::Address;
use trace::{Block, BlockState, Segment};

/// An active block that only the recorded state has.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewBlock {
    pub(super) address: Address,
    pub(super) requested: u64,
    pub(super) size: u64,
    pub(super) stack: StackId,
    pub(super) is_pending: bool,
    /// Its range.
    pub(super) range: Option<ReservedRange>,
}

/// The changes that made the replayed state equal to a recorded one.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Whether the changes are only counted.
    is_unlisted: bool,
    /// The number of changes.
    changes: usize,
    /// Allocations that are no longer active.
    pub(super) ended: Vec<u32>,
    /// Ranges that are no longer reserved.
    pub(super) released: Vec<ReservedRange>,
    /// Ranges that are now reserved.
    pub(super) reserved: Vec<ReservedRange>,
    /// Blocks that are now active, by address.
    pub(super) allocated: Vec<NewBlock>,
    /// Allocations that were freed and wait for streams.
    pub(super) freed: Vec<u32>,
}

impl Differences {
    /// Returns whether the states were equal.
    pub(super) fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// Changes `forward` so that its state is `segments`. Takes less memory than [`Self::apply`], which lists what
    /// changed.
    pub(super) fn apply_unlisted(forward: &mut Forward, segments: &[Segment]) {
        Self { is_unlisted: true, ..Self::default() }.change(forward, segments);
    }

    /// Changes `forward` so that its state is `segments`, and returns what changed.
    pub(super) fn apply(forward: &mut Forward, segments: &[Segment]) -> Self {
        let mut found = Self::default();
        found.change(forward, segments);
        found
    }

    fn change(&mut self, forward: &mut Forward, segments: &[Segment]) {
        let mut written: Vec<&Block> = active(segments).collect();
        written.sort_few_by_key(|block| block.address);
        self.remove_blocks(forward, &written);
        self.replace_ranges(forward, segments);
        self.add_blocks(forward, &written);
        if !self.is_empty() {
            // Visiting a table costs its capacity, and states may follow each other closely.
            if forward.live.capacity() / 8 > forward.live.len() {
                forward.live.shrink_to_fit();
            }
            forward.place_large();
        }
    }

    /// Counts a change. Returns whether it is listed too.
    fn count(&mut self) -> bool {
        self.changes += 1;
        !self.is_unlisted
    }

    /// Removes the blocks that the recorded state does not have, or has with other sizes.
    fn remove_blocks(&mut self, forward: &mut Forward, written: &[&Block]) {
        let is_kept = |address: u64, live: &ActiveBlock| {
            let found = written.binary_search_by_key(&address, |block| block.address.0);
            found.ok().and_then(|i| written.get(i)).is_some_and(|block| is_same(live, block))
        };
        let mut gone: Vec<(u32, u64)> = (forward.live.iter())
            .filter(|(address, live)| !is_kept(**address, live))
            .map(|(&address, live)| (live.number, address))
            .collect();
        gone.sort_few_by_key(|(number, _)| *number);
        for (number, address) in gone {
            forward.close(address);
            if self.count() {
                self.ended.push(number);
            }
        }
    }

    /// Releases and reserves ranges as the recorded state has them.
    fn replace_ranges(&mut self, forward: &mut Forward, segments: &[Segment]) {
        let mut wanted = Ranges::default();
        for segment in segments.iter().filter(|segment| segment.size > 0) {
            wanted.add(ReservedRange::of(segment));
        }
        let held = forward.ranges.to_vec();
        let in_both = |list: &[ReservedRange], range: &ReservedRange| {
            let found = list.binary_search_by_key(&range.address, |r| r.address);
            found.ok().and_then(|i| list.get(i)).is_some_and(|other| range.is_same(other))
        };
        let wanted = wanted.to_vec();
        for range in held.iter().filter(|range| !in_both(&wanted, range)) {
            let released = forward.release(range.address.0, range.size);
            if released.is_some() && self.count() {
                self.released.extend(released);
            }
        }
        for range in wanted.iter().filter(|range| !in_both(&held, range)) {
            forward.reserve(*range);
            if self.count() {
                self.reserved.push(*range);
            }
        }
        // A range may have been released and reserved again among the lost events, by another call site.
        for range in &wanted {
            forward.ranges.set_stack(range);
        }
    }

    /// Adds the blocks that only the recorded state has.
    fn add_blocks(&mut self, forward: &mut Forward, written: &[&Block]) {
        for &&block in written {
            let is_pending = block.state == BlockState::Pending;
            let address = block.address.0;
            if let Some(live) = forward.live.get_mut(&address) {
                // Only equal blocks are left, but one may have been freed meanwhile.
                if is_pending && !live.is_pending {
                    live.is_pending = true;
                    forward.sums.allocated = forward.sums.allocated.saturating_sub(live.size);
                    let number = live.number;
                    if self.count() {
                        self.freed.push(number);
                    }
                }
                continue;
            }
            let number = forward.number();
            let Block { requested, size, stack, .. } = block;
            forward.open(address, ActiveBlock { requested, size, stack, number, is_pending, is_large: false });
            if !self.count() {
                continue;
            }
            let range = forward.ranges.find(address).copied();
            self.allocated.push(NewBlock { address: block.address, requested, size, stack, is_pending, range });
        }
    }
}

fn active(segments: &[Segment]) -> impl Iterator<Item = &Block> {
    segments.iter().flat_map(|segment| &segment.blocks).filter(|block| block.state != BlockState::Inactive)
}

/// Returns whether a recorded block may be the replayed one. A pending block never becomes allocated again.
fn is_same(live: &ActiveBlock, block: &Block) -> bool {
    let is_back = live.is_pending && block.state == BlockState::Allocated;
    (live.requested, live.size) == (block.requested, block.size) && !is_back
}
