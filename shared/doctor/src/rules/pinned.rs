//! Segments that one small block, or a few, keep from being released.

use super::RuleContext;
use super::lines::{by_line, most_blocks};
use super::moment::{MissMoment, Outcome};
use super::thresholds::{LEAST_BYTES, PINNED_PART, PINNED_PERCENT, is_share};
use analysis::peak::held;
use analysis::segment_order::is_pinned;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use trace::units::{Address, Bytes, counted};

/// The sums over pinned segments.
#[derive(Debug, Default)]
struct Pinned {
    segments: u64,
    /// Their bytes, and those of them that are free.
    bytes: u64,
    free: u64,
    /// The blocks in them, by number.
    blocks: Vec<u32>,
    block_bytes: u64,
    /// The one with most free bytes.
    largest: Option<(u64, Address)>,
}

impl Pinned {
    /// Returns the pinned segments of a moment. Pages of an expandable segment are released one by one, so blocks don't
    /// pin it.
    fn at(context: &RuleContext<'_>, moment: &MissMoment) -> Self {
        let mut found = Self::default();
        let sizes = &context.case.replay.allocations.size;
        for (i, range) in moment.state.ranges.iter().enumerate().filter(|(_, range)| !range.is_expandable) {
            let blocks = moment.state.active_in(i);
            let used = blocks.iter().fold(0_u64, |sum, &n| sum.saturating_add(sizes.get(n as usize).unwrap_or(0)));
            let is_pinned = used <= range.size / PINNED_PART
                // Where a request failed because free memory was in pieces, fewer free bytes matter: those that the
                // segments' view marks.
                || moment.outcome == Outcome::Failed && is_pinned(range, used, blocks.len());
            if blocks.is_empty() || !is_pinned {
                continue;
            }
            let free = range.size.saturating_sub(used);
            found.segments += 1;
            found.bytes = found.bytes.saturating_add(range.size);
            found.free = found.free.saturating_add(free);
            found.block_bytes = found.block_bytes.saturating_add(used);
            found.blocks.extend_from_slice(blocks);
            if found.largest.is_none_or(|(largest, _)| largest < free) {
                found.largest = Some((free, range.address));
            }
        }
        found
    }
}

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let all = context.moments.iter().map(|moment| (moment, Pinned::at(context, moment)));
    let Some((moment, pinned)) = all.max_by_key(|(_, pinned)| pinned.free) else { return Vec::new() };
    let Some((_, address)) = pinned.largest else { return Vec::new() };
    if pinned.free < LEAST_BYTES || !is_share(pinned.free, context.survey.reserved, PINNED_PERCENT) {
        return Vec::new();
    }
    let count = pinned.blocks.len() as u64;
    let lines = by_line(context, &held(context.case.replay, pinned.blocks.iter().copied()));
    let message = format!(
        "{}, {} kept {} from being released. {}.",
        moment.description(),
        in_all(count, "block", pinned.block_bytes),
        in_all(pinned.segments, "segment", pinned.bytes),
        most_blocks(context, &lines),
    );
    let finding = Finding::new(FindingCode::PinnedSegments, message)
        .at(moment.state.position)
        .with_bytes(pinned.free)
        .with_evidence(Evidence::Segment(address))
        .with_remedy(Remedy::advice(
            "Allocate what stays before the large temporary tensors, or copy it once they are freed: it then shares \
             segments with what stays.",
        ));
    vec![finding.with_remedy(context.grow("free pages are then released beside a block in use"))]
}

/// Writes a number of things and their bytes: `1 block of 1.50 MiB`, `7 blocks (10.5 MiB in all)`.
fn in_all(count: u64, noun: &str, bytes: u64) -> String {
    let (things, bytes) = (counted(count, noun), Bytes(bytes));
    if count == 1 { format!("{things} of {bytes}") } else { format!("{things} ({bytes} in all)") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    /// Segments of 40 MiB that are full, and then hold a block of `kept` bytes each; then another segment is taken.
    fn found(segments: u64, kept: u64) -> Vec<String> {
        let mut lines = String::new();
        for i in 0..segments {
            let address = 0x1000_0000 + i * 0x1000_0000;
            lines += &format!("segment_alloc {address} 41943040\nalloc {address} {kept} keep@/m/a.py:{}\n", 1 + i % 3);
            lines += &format!("alloc {} 30000000 work@/m/a.py:9\nfree {}\n", address + (8 << 20), address + (8 << 20));
        }
        lines += "segment_alloc 0xf0000000 62914560 last@/m/a.py:7\nalloc 0xf0000000 62914560 last@/m/a.py:7";
        trace(&lines).messages(FindingCode::PinnedSegments)
    }

    #[test]
    fn segments_that_small_blocks_keep_are_found_with_their_lines() {
        assert_eq!(
            found(1, 1_572_864),
            [
                "Before reserved memory rose to its peak (after event 5), 1 block of 1.50 MiB kept 1 segment of 40.0 MiB from \
              being released. It came from m/a.py:1 (keep)."
            ]
        );
        assert_eq!(
            found(7, 1_572_864),
            [
                "Before reserved memory rose to its peak (after event 35), 7 blocks (10.5 MiB in all) kept 7 segments (280 MiB in all) \
              from being released. 3 came from m/a.py:1 (keep), 2 from m/a.py:2 (keep), and the rest from 1 other line."
            ]
        );
    }

    #[test]
    fn the_final_state_shows_pinned_segments_without_a_history() {
        let mut snapshot = trace::testing::snapshot(
            "segment_alloc 0x10000000 41943040
             alloc 0x10000000 1572864 keep@/m/a.py:1",
        );
        snapshot.devices[0].events = trace::Events::default();
        let found = super::super::testing::found(snapshot, &trace::Settings::default(), None);
        assert_eq!(
            found.into_iter().map(|finding| finding.message).collect::<Vec<_>>(),
            [
                "When the snapshot was taken, 1 block of 1.50 MiB kept 1 segment of 40.0 MiB from being released. It came from \
                 m/a.py:1 (keep)."
            ]
        );
    }

    #[test]
    fn what_makes_a_request_fail_is_found_where_a_quarter_of_a_segment_is_in_use() {
        let mut lines = String::new();
        for i in 0..7 {
            let address = 0x1000_0000 + i * 0x1000_0000_u64;
            lines += &format!("segment_alloc {address} 41943040\nalloc {address} 8000000 keep@/m/a.py:1\n");
        }
        let failed = lines.clone() + "oom 100 62914560 last@/m/a.py:7";
        assert_eq!(
            trace(&failed).messages(FindingCode::PinnedSegments),
            [
                "When the request of 60.0 MiB failed (event 15), 7 blocks (53.4 MiB in all) kept 7 segments (280 MiB in all) from being \
                 released. They came from m/a.py:1 (keep)."
            ]
        );
        assert_eq!(trace(&lines).messages(FindingCode::PinnedSegments), [""; 0]);
    }

    #[test]
    fn larger_blocks_pin_nothing() {
        assert_eq!(found(7, 4_000_000), [""; 0]);
        assert_eq!(found(0, 0), [""; 0]);
    }
}
