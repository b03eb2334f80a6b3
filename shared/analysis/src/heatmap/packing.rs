//! The address space with everything left out that was never reserved.

use rustc_hash::FxHashSet;

use super::PoolKind;
use query::HeatmapPart;
use replay::{Replay, ReservedRange};
use trace::units::{PoolId, Stream};

/// A stretch of addresses that was reserved at some time of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first range that was reserved there, made longer by those that overlap it or join it.
    pub range: ReservedRange,
    /// Bytes of the extents before it.
    pub offset: u64,
}

/// All extents by address, one after the other.
///
/// A place in it is an *offset*. As all of the trace counts, and not only a window, an address keeps its offset when the
/// window moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// What was reserved, by address and then by time, without repetitions. Extents are made from all of it each time,
    /// since merged ranges can't be separated again.
    ranges: Vec<ReservedRange>,
    /// The first address, the bytes and the kind of each range, and whether it is expandable.
    known: FxHashSet<(u64, u64, PoolKind, bool)>,
    extents: Vec<Extent>,
    total: u64,
    /// How many changes of the reserved ranges were read; `None` before the ranges at the start were.
    read: Option<usize>,
}

impl Packing {
    /// Adds the ranges that were reserved since the last time and that belong to `part`. Returns whether offsets
    /// have changed.
    pub fn extend(&mut self, replay: &Replay, part: HeatmapPart) -> bool {
        let new = replay.ranges_reserved_since(self.read).filter(|range| range.size > 0 && is_of(part, range));
        self.read = Some(replay.segment_changes());
        self.add(new, part)
    }

    fn add(&mut self, new: impl Iterator<Item = ReservedRange>, part: HeatmapPart) -> bool {
        let before = self.ranges.len();
        for range in new {
            if self.known.insert((range.address.0, range.size, PoolKind::of(&range), range.is_expandable)) {
                self.ranges.push(range);
            }
        }
        if self.ranges.len() == before {
            return false;
        }
        // Stable: of ranges with one address, the earliest names the extent.
        self.ranges.sort_by_key(|range| range.address);
        let mut joined = self.ranges.clone();
        joined.dedup_by(|next, last| {
            let is_joined = next.address.0 < last.end() || last.joins(next);
            if is_joined {
                last.size = last.end().max(next.end()) - last.address.0;
            }
            is_joined
        });
        let mut total = 0_u64;
        let extents = joined.iter().filter(|range| match part {
            HeatmapPart::Segment(address) => range.holds(address.0),
            _ => true,
        });
        let extents: Vec<Extent> = extents
            .map(|&range| {
                let offset = total;
                total = total.saturating_add(range.size);
                Extent { range, offset }
            })
            .collect();
        self.total = total;
        let has_moved = extents != self.extents;
        self.extents = extents;
        has_moved
    }

    /// Returns the extents by address.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Returns the bytes of all extents.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the offsets of the part of `[address, address + size)` that lies in the extent that holds `address`, and in
    /// those that follow it without a gap: where expandable segments of several streams were mapped one after the other,
    /// a later range can cover several extents.
    pub fn place(&self, address: u64, size: u64) -> Option<(u64, u64)> {
        self.place_near(&mut 0, address, size)
    }

    /// Returns what [`Self::place`] returns. It is fastest if the address lies in extent `near`, which is set to that of
    /// the address.
    #[inline]
    pub(super) fn place_near(&self, near: &mut usize, address: u64, size: u64) -> Option<(u64, u64)> {
        let extent = match self.extents.get(*near) {
            Some(extent) if extent.range.holds(address) => extent,
            _ => {
                let next = self.extents.partition_point(|extent| extent.range.address.0 <= address);
                *near = next.checked_sub(1)?;
                self.extents.get(*near)?
            }
        };
        if !extent.range.holds(address) {
            return None;
        }
        let from = extent.offset.saturating_add(address - extent.range.address.0);
        let end = address.saturating_add(size);
        let mut last = extent;
        let mut following = self.extents.get(*near + 1..).unwrap_or(&[]).iter();
        while last.range.end() < end
            && let Some(next) = following.next().filter(|next| next.range.address.0 == last.range.end())
        {
            last = next;
        }
        let to = last.offset.saturating_add(end.min(last.range.end()) - last.range.address.0);
        (from < to).then_some((from, to))
    }

    /// Returns the addresses of the offsets `[from, to)`, extent by extent.
    pub fn addresses(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.extents.partition_point(|extent| extent.offset <= from).saturating_sub(1);
        let extents = self.extents.get(first..).unwrap_or(&[]).iter().take_while(move |extent| extent.offset < to);
        extents.filter_map(move |extent| {
            let (skipped, length) = (from.saturating_sub(extent.offset), (to - extent.offset).min(extent.range.size));
            let base = extent.range.address.0;
            (skipped < length).then(|| (base.saturating_add(skipped), base.saturating_add(length)))
        })
    }
}

/// Returns whether a range belongs to a part of the memory.
pub fn is_of(part: HeatmapPart, range: &ReservedRange) -> bool {
    is_of_pool(part, range.pool, range.stream)
}

/// Returns whether memory of a pool and stream belongs to a part of the memory. For a segment, addresses decide.
pub fn is_of_pool(part: HeatmapPart, pool: PoolId, stream: Stream) -> bool {
    match part {
        HeatmapPart::All | HeatmapPart::Segment(_) => true,
        HeatmapPart::Pool(own) => own == pool,
        HeatmapPart::Stream(own) => own == stream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::snapshot;
    use trace::units::Address;

    fn packed(lines: &str, part: HeatmapPart) -> Packing {
        let mut snapshot = snapshot(lines);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mut packing = Packing::default();
        assert!(packing.extend(&replay, part));
        assert!(!packing.extend(&replay, part), "nothing was reserved since");
        packing
    }

    const LINES: &str = "segment_alloc 0x9000000 20971520
         segment_alloc 0x1000000 2097152 stream=7
         segment_free 0x1000000 2097152 stream=7
         segment_alloc 0x1000000 4194304
         segment_alloc 0x1400000 2097152";

    #[test]
    fn what_was_never_reserved_takes_no_room() {
        let packing = packed(LINES, HeatmapPart::All);
        let places: Vec<_> = packing.extents().iter().map(|e| (e.range.address.0, e.range.size, e.offset)).collect();
        let mib = 1 << 20;
        assert_eq!(
            places,
            [(0x100_0000, 4 * mib, 0), (0x140_0000, 2 * mib, 4 * mib), (0x900_0000, 20 * mib, 6 * mib)],
            "memory that was reserved twice is one extent, neighbours are two"
        );
        assert_eq!(packing.total(), 26 * mib);
        assert_eq!(packing.place(0x900_0000 + 5, 100), Some((6 * mib + 5, 6 * mib + 105)));
        assert_eq!(packing.place(0x900_0000 + 20 * mib - 1, 100), Some((26 * mib - 1, 26 * mib)));
        assert_eq!((packing.place(0x800_0000, 1), packing.place(0x10, 1)), (None, None));
        let pieces: Vec<_> = packing.addresses(4 * mib - 1, 6 * mib + 1).collect();
        assert_eq!(pieces, [(0x140_0000 - 1, 0x140_0000), (0x140_0000, 0x160_0000), (0x900_0000, 0x900_0001)]);
    }

    #[test]
    fn memory_that_covers_several_extents_is_placed_in_all_of_them() {
        let packing = packed(LINES, HeatmapPart::All);
        let mib = 1 << 20;
        assert_eq!(packing.place(0x100_0000 + 5, 5 * mib), Some((5, 5 * mib + 5)));
        assert_eq!(packing.place(0x100_0000, 100 * mib), Some((0, 6 * mib)), "the next extent is elsewhere");
    }

    #[test]
    fn extents_do_not_depend_on_when_they_were_asked_for() {
        // The default stream takes over what stream 7 had, and more. In MiB.
        let ranges = [(0, 20, 7), (20, 20, 7), (40, 20, 0), (60, 20, 0), (20, 40, 0), (80, 20, 0)];
        let range = |&(at, size, stream): &(u64, u64, i64)| ReservedRange {
            address: Address(at << 20),
            size: size << 20,
            stream: Stream(stream),
            pool: PoolId::default(),
            is_small: false,
            is_expandable: true,
            since: 0,
            stack: trace::frames::StackId(0),
        };
        let part = HeatmapPart::All;
        let mut whole = Packing::default();
        whole.add(ranges.iter().map(range), part);
        for cut in 1..ranges.len() {
            let mut packing = Packing::default();
            packing.add(ranges[..cut].iter().map(range), part);
            packing.add(ranges[cut..].iter().map(range), part);
            assert_eq!(packing, whole, "after {cut}");
        }
        assert!(!whole.add(ranges.iter().map(range), part), "all of it is known");
    }

    #[test]
    fn a_part_has_its_own_extents() {
        let sizes = |part| packed(LINES, part).extents().iter().map(|e| e.range.size >> 20).collect::<Vec<_>>();
        assert_eq!(sizes(HeatmapPart::Stream(Stream(7))), [2]);
        assert_eq!(sizes(HeatmapPart::Stream(Stream(0))), [4, 2, 20]);
        assert_eq!(sizes(HeatmapPart::Segment(Address(0x140_0000))), [2]);
        assert_eq!(sizes(HeatmapPart::Pool(PoolId::default())), [4, 2, 20]);
    }
}
