//! How fragmented the cached memory of a device is at one position.

use serde::Serialize;

use replay::Space;

/// The gaps of a device at one position. Segments without a live block are counted apart: the allocator gives them back
/// to the driver before a request fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Bytes that are reserved and in no active block.
    pub cached_bytes: u64,
    /// The part of them in segments without an active block.
    pub whole_bytes: u64,
    /// The rest: the gaps of segments in use.
    pub split_bytes: u64,
    /// Number of gaps of segments in use.
    pub gaps: u32,
    /// Bytes of the largest of these gaps.
    pub largest_gap: u64,
    /// Share of these gaps' bytes outside the largest one: 0 for a single gap, close to 1 for many small ones.
    pub share: f64,
}

impl From<&Space> for Fragmentation {
    fn from(space: &Space) -> Self {
        let mut new = Self { cached_bytes: space.cached(), whole_bytes: space.cached_whole(), ..Self::default() };
        for own in space.ranges().filter(|own| !own.is_whole()) {
            for gap in space.gaps_of(&own.range) {
                new.gaps += 1;
                new.split_bytes = new.split_bytes.saturating_add(gap.size);
                new.largest_gap = new.largest_gap.max(gap.size);
            }
        }
        if new.split_bytes > 0 {
            new.share = 1.0 - new.largest_gap as f64 / new.split_bytes as f64;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::Replay;
    use trace::testing::snapshot;

    #[test]
    fn the_share_is_what_lies_outside_the_largest_gap_of_segments_in_use() {
        let check = |lines: &str| {
            let mut snapshot = snapshot(lines);
            let trace = snapshot.devices.remove(0);
            let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
            let found = Fragmentation::from(&replay.space_at(replay.positions()));
            (found.cached_bytes, found.whole_bytes, found.split_bytes, found.gaps, found.largest_gap, found.share)
        };
        assert_eq!(check("segment_alloc 0x1000000 20971520"), (20_971_520, 20_971_520, 0, 0, 0, 0.0));
        let split = "segment_alloc 0x1000000 20971520\nsegment_alloc 0x4000000 2097152\nalloc 0x1a00000 2097152";
        assert_eq!(check(split), (20_971_520, 2_097_152, 18_874_368, 2, 10_485_760, 1.0 - 10.0 / 18.0));
    }
}
