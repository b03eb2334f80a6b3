//! The order of the segments in the map, their groups, and which of their blocks pin them.

use query::{SegmentGroup, SegmentOrder};
use replay::{AllocatorState, ReservedRange};
use trace::order::SortFew;
use trace::units::{PoolId, Stream};

/// The least free share of a mostly free segment, in percent.
const FREE_PERCENT: u64 = 75;
/// The most active blocks that count as a few.
const FEW: usize = 8;

/// The pool and stream that the segments under one heading have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKey {
    /// The pool, and whether its segments are small.
    pub pool: Option<(PoolId, bool)>,
    /// The stream.
    pub stream: Option<Stream>,
}

/// A group of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// What its segments have in common.
    pub key: GroupKey,
    /// The place of its first segment in the order.
    pub first: usize,
    /// The number of its segments.
    pub segments: u32,
    /// The sum of their sizes in bytes.
    pub reserved: u64,
    /// Bytes in their active blocks.
    pub active: u64,
}

/// The order of the segments, and their groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The indices of the segments, in the order of the map.
    pub order: Vec<usize>,
    /// The groups in the same order; empty if segments are not grouped.
    pub groups: Vec<Group>,
}

impl Placed {
    /// Orders and groups segments. `active` has the bytes in active blocks of each segment; only
    /// [`SegmentOrder::Free`] and groups need them.
    pub fn new(ranges: &[ReservedRange], active: &[u64], order: SegmentOrder, group: SegmentGroup) -> Self {
        let mut all: Vec<usize> = (0..ranges.len()).collect();
        let active = |i: usize| active.get(i).copied().unwrap_or(0);
        // Ranges are in the order of addresses, which a stable sort keeps among equal ones.
        match order {
            SegmentOrder::Address => {}
            SegmentOrder::Size => {
                all.sort_few_by_key(|&i| std::cmp::Reverse(ranges.get(i).map_or(0, |range| range.size)));
            }
            SegmentOrder::Stream => {
                all.sort_few_by_key(|&i| ranges.get(i).map_or(0, |range| range.stream.0));
            }
            SegmentOrder::Free => {
                let share = |i: usize| {
                    let size = ranges.get(i).map_or(0, |range| range.size);
                    size.saturating_sub(active(i)) as f64 / size.max(1) as f64
                };
                all.sort_few_by(|&a, &b| share(b).total_cmp(&share(a)));
            }
        }
        if group == SegmentGroup::None {
            return Self { order: all, groups: Vec::new() };
        }
        let key = |range: &ReservedRange| GroupKey {
            pool: (group != SegmentGroup::Stream).then_some((range.pool, range.is_small)),
            stream: (group != SegmentGroup::Pool).then_some(range.stream),
        };
        let mut groups: Vec<(Group, Vec<usize>)> = Vec::new();
        for i in all {
            let Some(range) = ranges.get(i) else { continue };
            let key = key(range);
            let at = groups.iter().position(|(group, _)| group.key == key).unwrap_or(groups.len());
            if at == groups.len() {
                groups.push((Group { key, first: 0, segments: 0, reserved: 0, active: 0 }, Vec::new()));
            }
            let Some((group, members)) = groups.get_mut(at) else { continue };
            group.segments += 1;
            group.reserved = group.reserved.saturating_add(range.size);
            group.active = group.active.saturating_add(active(i));
            members.push(i);
        }
        groups.sort_few_by_key(|(group, _)| std::cmp::Reverse(group.reserved));
        let mut placed = Self::default();
        for (group, members) in groups {
            placed.groups.push(Group { first: placed.order.len(), ..group });
            placed.order.extend(members);
        }
        placed
    }
}

/// Returns whether a few blocks keep a mostly free segment from being given back: at least 75 % of it are free, and it
/// has one to eight active blocks. Expandable segments are never pinned: their free pages can be given back.
pub const fn is_pinned(range: &ReservedRange, active: u64, blocks: usize) -> bool {
    let free = range.size.saturating_sub(active) as u128;
    !range.is_expandable && blocks > 0 && blocks <= FEW && free * 100 >= range.size as u128 * FREE_PERCENT as u128
}

/// Returns the bytes in active blocks of each segment.
pub fn active_bytes(state: &AllocatorState, size: impl Fn(u32) -> u64) -> Vec<u64> {
    let bytes = |i| state.active_in(i).iter().fold(0, |sum: u64, id| sum.saturating_add(size(*id)));
    (0..state.ranges.len()).map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::frames::StackId;
    use trace::units::Address;

    fn range(address: u64, size: u64, stream: i64, pool: u64, is_small: bool) -> ReservedRange {
        ReservedRange {
            address: Address(address),
            size,
            stream: Stream(stream),
            pool: PoolId(pool, 0),
            is_small,
            is_expandable: false,
            since: 0,
            stack: StackId(0),
        }
    }

    fn ranges() -> [ReservedRange; 5] {
        [
            range(10, 100, 7, 0, false),
            range(20, 400, 0, 0, false),
            range(30, 2, 0, 0, true),
            range(40, 400, 7, 5, false),
            range(50, 300, 0, 5, false),
        ]
    }

    #[track_caller]
    fn check(order: SegmentOrder, group: SegmentGroup, want: &[usize], firsts: &[usize]) {
        let placed = Placed::new(&ranges(), &[90, 400, 1, 0, 30], order, group);
        assert_eq!(placed.order, want);
        assert_eq!(placed.groups.iter().map(|group| group.first).collect::<Vec<_>>(), firsts);
        let segments: u32 = placed.groups.iter().map(|group| group.segments).sum();
        assert!(segments == 0 || segments == 5);
    }

    #[test]
    fn segments_are_sorted_and_grouped() {
        use SegmentGroup::{None, Pool, PoolAndStream, Stream};
        check(SegmentOrder::Address, None, &[0, 1, 2, 3, 4], &[]);
        check(SegmentOrder::Size, None, &[1, 3, 4, 0, 2], &[]);
        check(SegmentOrder::Stream, None, &[1, 2, 4, 0, 3], &[]);
        check(SegmentOrder::Free, None, &[3, 4, 2, 0, 1], &[]);
        // 700 bytes in the private pool, 500 in the large one, 2 in the small one.
        check(SegmentOrder::Address, Pool, &[3, 4, 0, 1, 2], &[0, 2, 4]);
        check(SegmentOrder::Size, Stream, &[1, 4, 2, 3, 0], &[0, 3]);
        check(SegmentOrder::Size, PoolAndStream, &[1, 3, 4, 0, 2], &[0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_group_has_the_sums_of_its_segments() {
        let placed = Placed::new(&ranges(), &[90, 400, 1, 0, 30], SegmentOrder::Address, SegmentGroup::Pool);
        let Group { key, segments, reserved, active, .. } = placed.groups[0];
        assert_eq!((key.pool, key.stream), (Some((PoolId(5, 0), false)), None));
        assert_eq!((segments, reserved, active), (2, 700, 30));
    }

    #[test]
    fn few_blocks_pin_a_mostly_free_segment() {
        let segment = range(0, 1000, 0, 0, false);
        for (active, blocks, want) in [(0, 0, false), (250, 1, true), (251, 1, false), (250, 8, true), (250, 9, false)]
        {
            assert_eq!(is_pinned(&segment, active, blocks), want, "{active} bytes in {blocks}");
        }
        assert!(!is_pinned(&ReservedRange { is_expandable: true, ..segment }, 1, 1));
        assert!(is_pinned(&ReservedRange { size: u64::MAX, ..segment }, 1, 1));
    }
}
