//! The sizes that a trace requests from each pool and stream, which decide which gaps are usable.
//!
//! # Usable gaps
//! *A gap is usable if at least half of the bytes that its pool and stream, in its kind of segment (small or large),
//! request in this trace come in requests that it could hold.* A request counts with its rounded size, as often as it
//! was served. So the smallest usable gap is the byte-weighted median of the rounded requests: see
//! [`Requests::threshold`].
//!
//! Where a request failed though enough memory was free, no smaller gap of its kind is usable either: see
//! [`HeatmapNeed`](query::HeatmapNeed).
//!
//! Half of the bytes, not half of the requests: a pool that serves a thousand requests of 1 KiB and ten of 1 GiB runs
//! out of memory for the latter.

use rustc_hash::FxHashMap;

use allocator::rounding::round_size;
use replay::{Allocation, Replay, ReservedRange};
use trace::units::{PoolId, Stream};
use trace::{Settings, TagId, Tags};

/// The memory that serves a request: only ranges of its pool, stream and kind can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolKind {
    /// The pool.
    pub pool: PoolId,
    /// The stream.
    pub stream: Stream,
    /// Whether it serves requests up to 1 MiB.
    pub is_small: bool,
}

impl PoolKind {
    /// Returns the kind of a range.
    pub const fn of(range: &ReservedRange) -> Self {
        Self { pool: range.pool, stream: range.stream, is_small: range.is_small }
    }
}

/// The requested bytes by kind and rounded size, extended as a trace grows.
#[derive(Debug, Default)]
pub struct Requests {
    /// How many allocations were counted.
    counted: u32,
    kinds: Vec<KindSums>,
    /// The largest rounded request.
    largest: u64,
}

#[derive(Debug)]
struct KindSums {
    kind: PoolKind,
    /// Bytes by rounded size.
    bytes: FxHashMap<u64, u64>,
    is_changed: bool,
    threshold: u64,
}

impl Requests {
    /// Counts the requests that were made since the last time. Returns whether a threshold has changed.
    pub fn extend(&mut self, replay: &Replay, tags: &Tags, settings: &Settings) -> bool {
        let allocations = &replay.allocations;
        // Those at the start were requested before the trace.
        let from = self.counted.max(allocations.made_by(0));
        let to = allocations.len() as u32;
        let (first, last) = (from as usize, to as usize);
        let columns = allocations.requested.range(first..last).zip(allocations.tag.range(first..last));
        let columns = columns.zip(allocations.pool.range(first..last)).zip(allocations.flags.range(first..last));
        // Neighbours are often alike, and there are few kinds.
        let mut now = None::<((u32, u8, u8), usize)>;
        for (((requested, tag), pool), flags) in columns {
            let key = (tag, pool, flags & Allocation::FLAG_SMALL);
            let i = match now {
                Some((known, i)) if known == key => i,
                _ => {
                    let pool = replay.pools.get(usize::from(pool)).copied().unwrap_or_default();
                    self.kind(PoolKind { pool, stream: tags.get(TagId(tag)).stream, is_small: key.2 != 0 })
                }
            };
            now = Some((key, i));
            let size = round_size(&settings.roundup_power2_divisions, requested);
            self.largest = self.largest.max(size);
            if let Some(of) = self.kinds.get_mut(i) {
                let sum = of.bytes.entry(size).or_default();
                *sum = sum.saturating_add(size);
                of.is_changed = true;
            }
        }
        self.counted = to;
        let mut has_changed = false;
        for of in &mut self.kinds {
            if !std::mem::take(&mut of.is_changed) {
                continue;
            }
            let threshold = median(&of.bytes);
            has_changed |= of.threshold != threshold;
            of.threshold = threshold;
        }
        has_changed
    }

    fn kind(&mut self, kind: PoolKind) -> usize {
        if let Some(i) = self.kinds.iter().position(|of| of.kind == kind) {
            return i;
        }
        self.kinds.push(KindSums { kind, bytes: FxHashMap::default(), is_changed: false, threshold: 0 });
        self.kinds.len() - 1
    }

    /// Returns the size of the smallest usable gap. It is 0, so that all gaps are usable, where nothing was requested.
    pub fn threshold(&self, kind: PoolKind) -> u64 {
        self.kinds.iter().find(|of| of.kind == kind).map_or(0, |of| of.threshold)
    }

    /// Returns the largest rounded request.
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.kinds.iter().map(|of| size_of::<KindSums>() + of.bytes.capacity() * 2 * size_of::<u64>()).sum()
    }
}

/// Returns the smallest size up to which at least half of the bytes are requested.
fn median(bytes: &FxHashMap<u64, u64>) -> u64 {
    let mut sizes: Vec<(u64, u64)> = bytes.iter().map(|(&size, &bytes)| (size, bytes)).collect();
    sizes.sort_unstable();
    let total: u128 = sizes.iter().map(|(_, bytes)| u128::from(*bytes)).sum();
    let mut below = 0_u128;
    for (size, bytes) in sizes {
        below += u128::from(bytes);
        if below * 2 >= total {
            return size;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::snapshot;

    fn thresholds(lines: &str) -> Vec<(bool, i64, u64)> {
        let mut snapshot = snapshot(lines);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mut requests = Requests::default();
        requests.extend(&replay, &snapshot.tags, &snapshot.settings);
        requests.kinds.iter().map(|of| (of.kind.is_small, of.kind.stream.0, of.threshold)).collect()
    }

    #[test]
    fn half_of_the_requested_bytes_fit() {
        let small = "segment_alloc 0x1000000 2097152\n";
        type Threshold = (bool, i64, u64);
        let cases: [(&str, &[Threshold]); 4] = [
            ("alloc 0x1000000 1000\nalloc 0x1000400 1000\nalloc 0x1000800 5000", &[(true, 0, 5120)]),
            ("alloc 0x1000000 1000\nalloc 0x1000400 1000\nalloc 0x1000800 2000", &[(true, 0, 1024)]),
            (
                "alloc 0x1000000 1000\nsegment_alloc 0x9000000 20971520\nalloc 0x9000000 3000000",
                &[(true, 0, 1024), (false, 0, 3_000_320)],
            ),
            ("", &[]),
        ];
        for (lines, want) in cases {
            assert_eq!(thresholds(&format!("{small}{lines}")), want, "{lines}");
        }
    }
}
