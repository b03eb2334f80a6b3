//! The segments at the end of a trace that does not record them, replayed from the last known state.
//!
//! The reserved ranges and the active blocks follow from the events. The sizes of blocks follow from where later ones
//! were put: [`super::sizes`] derives them from the ranges and blocks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::segments::{Ranges, ReservedRange, described};
use super::{AllocatorState, Replay};
use trace::event::Action;
use trace::frames::StackId;
use trace::order::SortFew;
use trace::{Block, BlockState, DeviceTrace, Segment, Settings, Tags};

/// Sets the segments of `trace` to those after its last event. `from` are the segments after its first `position`
/// events. Changes by missing events are not included.
pub fn end(trace: &mut DeviceTrace, tags: &mut Tags, settings: &Settings, from: &[Segment], position: u32) {
    let (ranges, open) = forward(trace, tags, from, position);
    trace.segments = ranges.iter().map(|range| segment(range, &open)).collect();
    let replay = Replay::build(trace, tags, settings);
    let state = replay.state_at(u32::MAX);
    trace.segments = state.ranges.iter().enumerate().map(|(i, range)| tiled(i, range, &state, &replay)).collect();
}

/// Derives the segments at the end of a truncated trace from its events, if the allocator was empty before them: the
/// recorded segments are those of a later moment. Only what events don't say of a segment is taken from the recorded
/// one.
pub fn end_of_part(trace: &mut DeviceTrace, tags: &mut Tags, settings: &Settings) {
    if !begins_empty(trace, tags) {
        return;
    }
    let recorded: FxHashMap<(u64, u64), Segment> =
        trace.segments.drain(..).map(|old| ((old.address.0, old.size), old)).collect();
    end(trace, tags, settings, &[], 0);
    for segment in &mut trace.segments {
        if let Some(old) = recorded.get(&(segment.address.0, segment.size)) {
            (segment.pool, segment.stream, segment.is_small) = (old.pool, old.stream, old.is_small);
        }
    }
}

/// Returns whether the allocator was empty before a trace, as far as its events show: they free only what was allocated
/// in the trace, and allocate only in segments that were reserved in it.
fn begins_empty(trace: &DeviceTrace, tags: &Tags) -> bool {
    let mut ranges = Ranges::default();
    let mut open: FxHashSet<u64> = FxHashSet::default();
    for event in trace.events.iter_from(0) {
        let address = event.address.0;
        let is_known = match event.action {
            Action::Alloc => {
                open.insert(address);
                ranges.find(address).is_some()
            }
            Action::FreeRequested => open.contains(&address),
            Action::FreeCompleted => open.remove(&address),
            Action::SegmentAlloc | Action::SegmentMap if event.size > 0 => {
                let range = described(&event, tags, &ranges);
                ranges.add(range);
                true
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                ranges.cut(address, event.size);
                true
            }
            _ => true,
        };
        if !is_known {
            return false;
        }
    }
    !trace.events.is_empty()
}

/// Returns the reserved ranges at the end, and the active blocks by address. Blocks made after `position` have size 0:
/// unknown.
fn forward(trace: &DeviceTrace, tags: &Tags, from: &[Segment], position: u32) -> (Ranges, Vec<Block>) {
    let mut ranges = Ranges::default();
    let mut open: FxHashMap<u64, Block> = FxHashMap::default();
    for segment in from {
        ranges.add(ReservedRange::of(segment));
        let active = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
        open.extend(active.map(|block| (block.address.0, *block)));
    }
    for event in trace.events.iter_from(position as usize) {
        let address = event.address;
        match event.action {
            Action::Alloc => {
                let state = BlockState::Allocated;
                let block = Block { address, size: 0, requested: event.size, state, stack: event.stack };
                open.insert(address.0, block);
            }
            Action::FreeRequested => {
                if let Some(block) = open.get_mut(&address.0) {
                    block.state = BlockState::Pending;
                }
            }
            Action::FreeCompleted => {
                open.remove(&address.0);
            }
            Action::SegmentAlloc | Action::SegmentMap if event.size > 0 => {
                let range = described(&event, tags, &ranges);
                ranges.add(range);
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                ranges.cut(address.0, event.size);
            }
            _ => {}
        }
    }
    let mut open: Vec<Block> = open.into_values().collect();
    open.sort_few_by_key(|block| block.address);
    (ranges, open)
}

/// Returns a range as a segment with its active blocks.
fn segment(range: &ReservedRange, open: &[Block]) -> Segment {
    let first = open.partition_point(|block| block.address < range.address);
    let inside = open.get(first..).unwrap_or(&[]).iter().take_while(|block| block.address.0 < range.end());
    range.segment(inside.copied().collect())
}

/// Returns range `i` of a state as a segment tiled by its blocks, including the free ones.
pub(super) fn tiled(i: usize, range: &ReservedRange, state: &AllocatorState, replay: &Replay) -> Segment {
    let mut segment = segment(range, &[]);
    let blocks = &mut segment.blocks;
    for allocation in state.active_in(i).iter().filter_map(|&number| replay.allocations.get(number)) {
        let is_allocated = allocation.is_allocated_at(state.position);
        blocks.push(Block {
            address: allocation.address,
            size: allocation.size,
            requested: allocation.requested,
            state: if is_allocated { BlockState::Allocated } else { BlockState::Pending },
            stack: allocation.stack,
        });
    }
    for gap in state.gaps_in(i, &replay.allocations) {
        let state = BlockState::Inactive;
        blocks.push(Block { address: gap.address, size: gap.size, requested: 0, state, stack: StackId(0) });
    }
    blocks.sort_few_by_key(|block| block.address);
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::Snapshot;

    const LINES: &str = "segment_alloc 0x1000000 20971520
        alloc 0x1000000 3000000 a@/m/a.py:1
        alloc 0x1400000 2000000 b@/m/b.py:1
        free 0x1000000
        segment_alloc 0x4000000 20971520
        alloc 0x4000000 15000000 c@/m/c.py:1
        free 0x4000000
        segment_free 0x4000000 20971520
        alloc 0x1000000 3000000 a@/m/a.py:1
        free 0x1400000";

    /// Returns the totals at each position of a trace that has only the events from `lost` to `count`, but the segments
    /// of the whole trace. `is_mended` derives the segments from the events instead.
    fn totals(count: usize, lost: usize, is_mended: bool) -> Vec<(u64, u64, u64)> {
        let Snapshot { mut devices, mut tags, settings, .. } = trace::testing::snapshot(LINES);
        let mut trace = devices.remove(0);
        drop(trace.events.split_off(count));
        trace.events = trace.events.split_off(lost);
        if is_mended {
            end_of_part(&mut trace, &mut tags, &settings);
        }
        let replay = Replay::build(&trace, &mut tags, &settings);
        let at = |position| replay.state_at(position).totals;
        (0..=replay.positions()).map(at).map(|totals| (totals.requested, totals.reserved, totals.cached)).collect()
    }

    #[test]
    fn a_part_has_the_state_that_its_events_lead_to() {
        let events = LINES.lines().count();
        let whole = totals(usize::MAX, 0, false);
        assert!(whole.len() > events, "{whole:?}");
        for count in 1..whole.len() {
            assert_eq!(totals(count, 0, true), whole[..=count], "{count}");
        }
        let differs = (1..whole.len()).any(|count| totals(count, 0, false) != whole[..=count]);
        assert!(differs, "what was recorded is of a later moment");
    }

    #[test]
    fn a_part_that_begins_late_is_left_as_it_is() {
        for count in 4..9 {
            assert_eq!(totals(count, 2, true), totals(count, 2, false), "{count}");
        }
    }
}
