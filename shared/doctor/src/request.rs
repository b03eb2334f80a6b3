//! The memory that the allocator asked the driver for when a request failed, and the memory that would have been
//! enough.

use allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER, SMALL_SIZE, segment_size};
use allocator::{AllocatorConfig, TORCH_2_15, parse};
use replay::Gap;
use trace::event::Action;
use trace::units::{PoolId, Stream};
use trace::{DeviceTrace, Settings, Tags};

/// The name of the setting, as snapshots write it.
const EXPANDABLE_SEGMENTS: &str = "expandable_segments";

/// The rules by which a trace's allocator took memory from the driver.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Whether segments are expandable, if it was recorded.
    expandable: Option<bool>,
    large_segment_size: u64,
    /// The share of the device that the process may use, if the settings limit it.
    pub(super) fraction: Option<f64>,
}

impl Rules {
    /// Returns the rules of a trace's settings. A settings string that can't be read leaves the defaults.
    pub(super) fn of(settings: &Settings) -> Self {
        let mut config = AllocatorConfig::default();
        let is_read = parse(&settings.conf, &TORCH_2_15, &mut config).is_ok();
        let is_recorded =
            !settings.conf.is_empty() || settings.as_written.iter().any(|(name, _)| name == EXPANDABLE_SEGMENTS);
        Self {
            expandable: (is_recorded || settings.expandable_segments).then_some(settings.expandable_segments),
            large_segment_size: if is_read { config.large_segment_size } else { LARGE_BUFFER },
            fraction: config.per_process_memory_fraction.filter(|share| is_read && *share < 1.0),
        }
    }

    /// Returns whether new memory comes from an expandable segment, given which kinds of segments the request's pool and
    /// stream have. A pool with an allocator of its own never has expandable ones.
    pub(super) fn grows(&self, pool: PoolId, has_expandable: bool, has_native: bool) -> bool {
        match self.expandable {
            Some(is_set) => is_set && !(pool.is_private() && has_native && !has_expandable),
            None => has_expandable,
        }
    }

    /// Returns the size of a page of expandable segments.
    const fn page(&self, is_small: bool) -> u64 {
        if is_small { SMALL_BUFFER } else { self.large_segment_size }
    }

    /// Returns the segment that a request needs.
    pub(super) fn segment(&self, requested: u64) -> u64 {
        segment_size(requested, self.large_segment_size)
    }

    /// Returns the pages that hold this many bytes.
    pub(super) fn pages(&self, bytes: u64, is_small: bool) -> u64 {
        bytes.checked_next_multiple_of(self.page(is_small)).unwrap_or(u64::MAX)
    }

    /// Returns the bytes that had to be free in addition to `cached` and `driver_free` for a request, if all free
    /// memory had been in one piece; 0 if it would have fitted then.
    pub(super) fn missing(&self, requested: u64, is_expandable: bool, cached: u64, driver_free: u64) -> u64 {
        let of_cached = requested.saturating_sub(cached);
        let of_driver = if is_expandable {
            self.pages(of_cached, is_small(requested)).saturating_sub(driver_free)
        } else {
            self.segment(requested).saturating_sub(cached).saturating_sub(driver_free)
        };
        of_cached.min(of_driver)
    }

    /// Returns the bytes of the pages that an expandable segment needs for a request (`find_expandable_block`): the
    /// first run of free blocks and unmapped addresses that is long enough decides, and only what is not mapped there is
    /// asked for.
    ///
    /// `ranges` are the mapped ranges of the request's pool and stream with their gaps, by address; `reach` the addresses
    /// that were ever mapped there, which shows what is unmapped before and between the ranges.
    pub(super) fn asked_of_expandable(
        &self,
        requested: u64,
        ranges: &[((u64, u64), Vec<Gap>)],
        reach: &[(u64, u64)],
    ) -> u64 {
        let page = self.page(is_small(requested));
        let mut reach = reach.iter().copied().chain(ranges.iter().map(|(bounds, _)| *bounds)).collect::<Vec<_>>();
        merge(&mut reach);
        for &(first, end) in &reach {
            let own: Vec<_> = ranges.iter().filter(|((start, _), _)| (first..end).contains(start)).collect();
            // The addresses of a segment that is unmapped as a whole are given back.
            if own.is_empty() {
                continue;
            }
            let pieces = pieces(first, end, own.into_iter());
            let unmapped = pieces.iter().enumerate().filter(|(_, piece)| piece.kind == PieceKind::Unmapped);
            for (at, _) in unmapped {
                let before =
                    at.checked_sub(1).and_then(|i| pieces.get(i)).filter(|piece| piece.kind == PieceKind::Free);
                let start = at - usize::from(before.is_some());
                if let Some(asked) = map(pieces.get(start..).unwrap_or(&[]), requested, page) {
                    return asked;
                }
            }
        }
        requested.checked_next_multiple_of(page).unwrap_or(u64::MAX)
    }
}

/// Returns whether small segments serve a request of a rounded size.
pub(super) const fn is_small(requested: u64) -> bool {
    requested <= SMALL_SIZE
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Free,
    Used,
    Unmapped,
}

/// A part of the addresses of an expandable segment.
#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: PieceKind,
    size: u64,
}

/// Returns the pieces of the addresses from `first` on. After `end`, nothing was ever mapped.
fn pieces<'a>(first: u64, end: u64, ranges: impl Iterator<Item = &'a ((u64, u64), Vec<Gap>)>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = first;
    let mut add = |kind, from: u64, to: u64| {
        if to > from {
            pieces.push(Piece { kind, size: to - from });
        }
    };
    for ((start, range_end), gaps) in ranges {
        add(PieceKind::Unmapped, at, *start);
        at = *start;
        for gap in gaps {
            add(PieceKind::Used, at, gap.address.0);
            add(PieceKind::Free, gap.address.0, gap.end());
            at = gap.end();
        }
        add(PieceKind::Used, at, *range_end);
        at = *range_end;
    }
    add(PieceKind::Unmapped, at, end.max(at));
    // The addresses of a segment are more than the device has memory.
    match pieces.last_mut() {
        Some(last) if last.kind == PieceKind::Unmapped => last.size = u64::MAX,
        _ => pieces.push(Piece { kind: PieceKind::Unmapped, size: u64::MAX }),
    }
    pieces
}

/// Returns the bytes that are mapped for a request at the start of these pieces; `None` if a block in use comes first.
fn map(pieces: &[Piece], requested: u64, page: u64) -> Option<u64> {
    let (mut have, mut asked) = (0_u64, 0_u64);
    for piece in pieces {
        match piece.kind {
            PieceKind::Used => return None,
            PieceKind::Free => have = have.saturating_add(piece.size),
            PieceKind::Unmapped => {
                let missing = requested.saturating_sub(have).min(piece.size);
                let mapped = missing.checked_next_multiple_of(page).unwrap_or(u64::MAX).min(piece.size);
                asked = asked.saturating_add(mapped);
                have = have.saturating_add(mapped);
            }
        }
        if have >= requested {
            return Some(asked);
        }
    }
    None
}

/// Sorts intervals and merges those that touch.
fn merge(intervals: &mut Vec<(u64, u64)>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, own| {
        let touches = next.0 <= own.1;
        if touches {
            own.1 = own.1.max(next.1);
        }
        touches
    });
}

/// The memory that was mapped in a trace: for each event its position, stream, pool, kind of segment, and addresses.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    events: Vec<Mapping>,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    position: u32,
    stream: Stream,
    pool: Option<PoolId>,
    is_small: bool,
    bounds: (u64, u64),
}

impl Mappings {
    pub(super) fn of(trace: &DeviceTrace, tags: &Tags) -> Self {
        let actions = (0..).zip(trace.events.action.iter());
        let mapped = actions.filter(|(_, action)| *action == Action::SegmentMap as u8);
        let mapping = |i: u32| {
            let event = trace.events.get(i as usize)?;
            let tag = tags.get(event.tag);
            let bounds = (event.address.0, event.address.0.saturating_add(event.size));
            Some(Mapping {
                position: i + 1,
                stream: tag.stream,
                pool: tag.pool,
                // A page of a small pool has 2 MiB; a large pool maps larger ones.
                is_small: event.size == SMALL_BUFFER,
                bounds,
            })
        };
        Self { events: mapped.filter_map(|(i, _)| mapping(i)).collect() }
    }

    /// Returns the addresses that were mapped for a pool and stream until a position.
    pub(super) fn until(&self, position: u32, stream: Stream, pool: PoolId, is_small: bool) -> Vec<(u64, u64)> {
        let known = self.events.iter().take_while(|mapping| mapping.position <= position);
        let own = known.filter(|mapping| {
            mapping.stream == stream
                && mapping.is_small == is_small
                && mapping.pool.is_none_or(|of_event| of_event == pool)
        });
        let mut bounds: Vec<(u64, u64)> = own.map(|mapping| mapping.bounds).collect();
        merge(&mut bounds);
        bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::units::Address;

    const MIB: u64 = 1 << 20;

    fn rules(conf: &str) -> Rules {
        let expandable_segments = conf.contains("expandable_segments:True");
        Rules::of(&Settings { conf: conf.to_owned(), expandable_segments, ..Settings::default() })
    }

    /// A range with its gaps, from the first number to the second.
    type Mapped<'a> = ((u64, u64), &'a [(u64, u64)]);

    /// What is asked for a request in MiB, given ranges and gaps as `(start, end)` in MiB, and what was ever mapped.
    fn asked(requested: u64, ranges: &[Mapped<'_>], reach: &[(u64, u64)]) -> u64 {
        let gap = |&(start, end): &(u64, u64)| Gap { address: Address(start * MIB), size: (end - start) * MIB };
        let ranges: Vec<_> = ranges
            .iter()
            .map(|((start, end), gaps)| ((start * MIB, end * MIB), gaps.iter().map(gap).collect()))
            .collect();
        let reach: Vec<_> = reach.iter().map(|(start, end)| (start * MIB, end * MIB)).collect();
        rules("expandable_segments:True").asked_of_expandable(requested * MIB, &ranges, &reach) / MIB
    }

    #[test]
    fn an_expandable_segment_needs_only_the_rest_in_whole_pages() {
        let full: &[Mapped<'_>] = &[((1_000, 1_100), &[])];
        assert_eq!(asked(4, &[], &[]), 20, "a new segment");
        assert_eq!(asked(4, full, &[]), 20);
        assert_eq!(asked(41, full, &[]), 60);
        // The last 15 MiB are free: one page is enough up to 35 MiB.
        let tail: &[Mapped<'_>] = &[((1_000, 1_100), &[(1_085, 1_100)])];
        assert_eq!([asked(16, tail, &[]), asked(35, tail, &[]), asked(36, tail, &[])], [20, 20, 40]);
        // A gap that does not touch the end is of no use.
        assert_eq!(asked(35, &[((1_000, 1_100), &[(1_020, 1_050)])], &[]), 40);
        // The addresses before it were mapped once: 40 MiB of them, with 10 MiB free after.
        let head: &[Mapped<'_>] = &[((1_040, 1_100), &[(1_040, 1_050)])];
        assert_eq!(asked(50, head, &[(1_000, 1_100)]), 40);
        assert_eq!(asked(51, head, &[(1_000, 1_100)]), 60, "too long for the head");
        // A hole between two ranges.
        let two: &[Mapped<'_>] = &[((1_000, 1_020), &[(1_015, 1_020)]), ((1_060, 1_080), &[])];
        assert_eq!(asked(45, two, &[(1_000, 1_080)]), 40);
        assert_eq!(asked(46, two, &[(1_000, 1_080)]), 60);
    }

    #[test]
    fn what_is_missing_counts_all_free_memory_as_one_piece() {
        let native = rules("");
        let missing = |requested, cached, free| native.missing(requested * MIB, false, cached * MIB, free * MIB) / MIB;
        assert_eq!(missing(4, 0, 12), 4, "4 MiB of its own segment, or 8 MiB of the driver's");
        assert_eq!(missing(4, 6, 0), 0);
        assert_eq!(missing(100, 40, 50), 10);
        assert_eq!(missing(100, 60, 50), 0);
        let pages = rules("expandable_segments:True");
        let missing = |requested, cached, free| pages.missing(requested * MIB, true, cached * MIB, free * MIB) / MIB;
        assert_eq!([missing(4, 0, 12), missing(4, 0, 18), missing(30, 15, 12)], [4, 2, 8]);
        assert_eq!(missing(30, 15, 20), 0);
    }

    #[test]
    fn the_settings_decide_about_segments_and_pages() {
        let large = rules("large_segment_size_mb:32");
        assert_eq!((large.segment(2 * MIB), large.segment(11 * MIB)), (32 * MIB, 12 * MIB));
        assert_eq!(large.pages(33 * MIB, false), 64 * MIB);
        assert_eq!(large.pages(MIB, true), 2 * MIB);
        assert_eq!(rules("per_process_memory_fraction:0.5").fraction, Some(0.5));
        assert_eq!(rules("per_process_memory_fraction:1.0").fraction, None);
        let (default, own) = (PoolId::default(), PoolId(0, 1));
        let set = rules("expandable_segments:True");
        assert!(set.grows(default, false, true) && set.grows(own, false, false) && !set.grows(own, false, true));
        assert!(!rules("max_split_size_mb:100").grows(default, true, false));
        assert!(rules("").grows(default, true, false) && !rules("").grows(default, false, true));
    }
}
