//! The requests that each pool and stream can serve at one position without the driver.

use allocator::rounding::largest_servable;
use replay::Space;
use trace::units::{PoolId, Stream};

/// The free memory of one pool on one stream: a request is served from there, or by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Servable {
    /// The stream.
    pub stream: Stream,
    /// The pool.
    pub pool: PoolId,
    /// Whether it serves requests up to 1 MiB, or larger ones.
    pub is_small: bool,
    /// Bytes in its ranges.
    pub reserved: u64,
    /// Bytes in its gaps.
    pub cached: u64,
    /// Bytes of its ranges without an active block.
    pub cached_whole: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// Its largest gap.
    pub largest_gap: u64,
}

impl Servable {
    /// Returns the largest request that it can serve. A request has the size that it is rounded to.
    ///
    /// `max_split_size` does not matter: a request of exactly the size of a block gets it, whatever the setting.
    pub const fn largest(&self) -> u64 {
        largest_servable(self.largest_gap, self.is_small)
    }
}

/// Returns the free memory of each pool and stream, in their order, small pools before large ones.
pub fn servable(space: &Space) -> Vec<Servable> {
    let mut all: Vec<Servable> = Vec::new();
    for own in space.ranges() {
        let range = &own.range;
        let key = (range.pool, range.stream, !range.is_small);
        let place = all.binary_search_by_key(&key, |known| (known.pool, known.stream, !known.is_small));
        let place = place.unwrap_or_else(|place| {
            let (stream, pool, is_small) = (range.stream, range.pool, range.is_small);
            all.insert(place, Servable { stream, pool, is_small, ..Servable::default() });
            place
        });
        let Some(here) = all.get_mut(place) else { continue };
        here.reserved = here.reserved.saturating_add(range.size);
        here.cached = here.cached.saturating_add(own.free);
        here.cached_whole = here.cached_whole.saturating_add(if own.is_whole() { own.free } else { 0 });
        for gap in space.gaps_of(range) {
            here.gaps += 1;
            here.largest_gap = here.largest_gap.max(gap.size);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use replay::Replay;

    #[test]
    fn each_pool_and_stream_serves_from_its_own_gaps() {
        let mut snapshot = trace::testing::snapshot(
            "segment_alloc 0x1000000 2097152 stream=7
             segment_alloc 0x4000000 20971520
             segment_alloc 0x8000000 20971520 stream=7
             alloc 0x4000000 4194304
             alloc 0x8000000 20971520 stream=7",
        );
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mib = 1 << 20;
        let found = servable(&replay.space_at(u32::MAX));
        let facts: Vec<_> =
            found.iter().map(|own| (own.stream.0, own.is_small, own.cached, own.cached_whole, own.largest())).collect();
        let want = [(0, false, 16 * mib, 0, 16 * mib), (7, true, 2 * mib, 2 * mib, mib), (7, false, 0, 0, 0)];
        assert_eq!(facts, want);
    }
}
