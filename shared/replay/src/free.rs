//! Sums over the free memory of a running job, as a server and a monitor show them from time to time.
//!
//! [`super::Space`] follows every gap of a trace. A server follows many jobs and is asked every few seconds, so
//! [`Forward::free_sums`] looks at all blocks when it is asked and costs nothing before: a millisecond for ten thousand
//! blocks.

use super::Forward;
use allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER, largest_servable};
use trace::units::PoolId;
use trace::{BlockState, Segment};

/// Sums over the gaps of a state, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeSums {
    /// Bytes of all gaps: reserved, and in no active block.
    pub cached: u64,
    /// Bytes of gaps in segments that hold no active block.
    pub cached_whole: u64,
    /// Bytes of gaps in segments that hold an active block (`inactive_split_bytes`).
    pub inactive_split: u64,
    /// The largest gap of the small pools.
    pub largest_small_gap: u64,
    /// The largest gap of the large pools.
    pub largest_large_gap: u64,
    /// Bytes of the whole pages in gaps, with the page sizes of expandable segments: memory that those could join.
    /// Pages of private pools stay with them and are not counted.
    pub whole_pages: u64,
}

/// Returns the bytes of the whole pages of an expandable segment that fit into a gap.
pub const fn whole_pages(gap: u64, is_small: bool) -> u64 {
    let page = if is_small { SMALL_BUFFER } else { LARGE_BUFFER };
    gap / page * page
}

impl FreeSums {
    /// Returns the sums over the inactive blocks of segments.
    pub fn of(segments: &[Segment]) -> Self {
        let mut sums = Self::default();
        for segment in segments {
            let is_free = |state| state == BlockState::Inactive;
            let gaps = segment.blocks.iter().filter(|block| is_free(block.state)).map(|block| block.size);
            let is_whole = segment.blocks.iter().all(|block| is_free(block.state));
            sums.add((segment.is_small, segment.pool), is_whole, gaps);
        }
        sums
    }

    /// Adds the gaps of a range.
    fn add(&mut self, (is_small, pool): (bool, PoolId), is_whole: bool, gaps: impl Iterator<Item = u64>) {
        let (mut free, mut largest) = (0_u64, 0_u64);
        for gap in gaps {
            (free, largest) = (free.saturating_add(gap), largest.max(gap));
            if !pool.is_private() {
                self.whole_pages = self.whole_pages.saturating_add(whole_pages(gap, is_small));
            }
        }
        self.cached = self.cached.saturating_add(free);
        let sum = if is_whole { &mut self.cached_whole } else { &mut self.inactive_split };
        *sum = sum.saturating_add(free);
        let most = if is_small { &mut self.largest_small_gap } else { &mut self.largest_large_gap };
        *most = largest.max(*most);
    }

    /// Returns the largest request that some small pool can serve without the driver.
    pub const fn largest_servable_small(&self) -> u64 {
        largest_servable(self.largest_small_gap, true)
    }

    /// Returns the largest request that some large pool can serve without the driver.
    pub const fn largest_servable_large(&self) -> u64 {
        largest_servable(self.largest_large_gap, false)
    }

    /// Returns the largest request that can be served without the driver.
    pub fn largest_servable(&self) -> u64 {
        self.largest_servable_small().max(self.largest_servable_large())
    }

    /// Returns the [`unusable_share`].
    pub fn unusable_share(&self) -> f64 {
        unusable_share(self.largest_servable(), self.cached)
    }
}

/// Returns the share of cached bytes that the largest request which can be served leaves over:
/// `1 - largest_servable / cached`. It is 0 without cached bytes, and near 1 when all gaps are small.
pub fn unusable_share(largest_servable: u64, cached: u64) -> f64 {
    if cached == 0 { 0.0 } else { 1.0 - largest_servable as f64 / cached as f64 }
}

impl Forward {
    /// Returns the sums over the gaps of the current state.
    pub fn free_sums(&self) -> FreeSums {
        let mut blocks: Vec<(u64, u64)> =
            self.live.iter().map(|(&address, block)| (address, address.saturating_add(block.size))).collect();
        blocks.sort_unstable();
        let (mut sums, mut rest) = (FreeSums::default(), &blocks[..]);
        for range in self.ranges() {
            let (start, end) = (range.address.0, range.end());
            let (_, from) = rest.split_at(rest.partition_point(|block| block.0 < start));
            let (inside, after) = from.split_at(from.partition_point(|block| block.0 < end));
            rest = after;
            let mut at = start;
            let gaps = inside.iter().copied().chain([(end, end)]).map(|(address, block_end)| {
                let gap = address.saturating_sub(at);
                at = at.max(block_end);
                gap
            });
            sums.add((range.is_small, range.pool), inside.is_empty(), gaps);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replay;
    use trace::Settings;

    fn forward(lines: &str) -> (Forward, FreeSums) {
        let mut snapshot = trace::testing::snapshot(lines);
        let (mut forward, device) = (Forward::new(&Settings::default()), snapshot.devices.remove(0));
        for event in device.events.iter() {
            let tag = snapshot.tags.get(event.tag);
            forward.apply(&event, tag.stream, tag.pool);
        }
        // The space of the same trace, gap by gap.
        let replay = Replay::build(&device, &mut snapshot.tags, &snapshot.settings);
        let space = replay.space_at(device.events.len() as u32);
        let largest = |is_small| {
            let ranges = space.ranges().filter(|own| own.range.is_small == is_small);
            ranges.flat_map(|own| space.gaps_of(&own.range)).map(|gap| gap.size).max().unwrap_or(0)
        };
        let pages = space.ranges().flat_map(|own| {
            space.gaps_of(&own.range).map(|gap| whole_pages(gap.size, own.range.is_small)).collect::<Vec<_>>()
        });
        let want = FreeSums {
            whole_pages: pages.sum(),
            cached: space.cached(),
            cached_whole: space.cached_whole(),
            inactive_split: space.cached() - space.cached_whole(),
            largest_small_gap: largest(true),
            largest_large_gap: largest(false),
        };
        (forward, want)
    }

    #[test]
    fn the_sums_are_those_of_every_gap() {
        let cases = [
            // Every other of six blocks is free, and a small segment is cached whole.
            "segment_alloc 0x1000000 12582912
             alloc 0x1000000 2097152\nalloc 0x1200000 2097152\nalloc 0x1400000 2097152
             alloc 0x1600000 2097152\nalloc 0x1800000 2097152\nalloc 0x1a00000 2097152
             free 0x1000000\nfree 0x1400000\nfree 0x1800000
             segment_alloc 0x4000000 2097152",
            "segment_alloc 0x4000000 2097152\nalloc 0x4000000 512\nalloc 0x4000400 512",
            "segment_alloc 0x1000000 20971520\nalloc 0x1000000 20971520",
            "alloc 0x1000000 512",
        ];
        for lines in cases {
            let (forward, want) = forward(lines);
            assert_eq!(forward.free_sums(), want, "{lines}");
            assert_eq!(FreeSums::of(&forward.segments()), want, "{lines}");
        }
    }

    #[test]
    fn the_unusable_share_is_what_the_largest_request_leaves_over() {
        let mib = 1 << 20;
        let share = |cached, largest_small_gap, largest_large_gap| {
            FreeSums { cached, largest_small_gap, largest_large_gap, ..FreeSums::default() }.unusable_share()
        };
        assert_eq!([share(0, 0, 0), share(8 * mib, 0, 8 * mib), share(8 * mib, 0, 0)], [0.0, 0.0, 1.0]);
        // A small pool serves 1 MiB at most, and a large one nothing up to that.
        assert_eq!([share(4 * mib, 2 * mib, 0), share(4 * mib, 0, mib)], [0.75, 1.0]);
    }
}
