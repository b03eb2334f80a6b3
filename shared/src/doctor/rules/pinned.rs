//! Segments that one small block, or a few, keep from being released.

use rustc_hash::FxHashMap;

use super::Ground;
use super::moment::Moment;
use super::thresholds::{LEAST_BYTES, NAMED_LINES, PINNED_PART, PINNED_PERCENT, is_share};
use crate::finding::{Evidence, Finding, FindingCode, Remedy};
use crate::units::{Address, Bytes, counted};

/// What pinned segments have in common.
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
    fn at(ground: &Ground<'_>, moment: &Moment) -> Self {
        let mut found = Self::default();
        let sizes = &ground.case.replay.allocations.size;
        for (i, range) in moment.state.ranges.iter().enumerate().filter(|(_, range)| !range.is_expandable) {
            let blocks = moment.state.active_in(i);
            let used = blocks.iter().fold(0_u64, |sum, &n| sum.saturating_add(sizes.get(n as usize).unwrap_or(0)));
            if blocks.is_empty() || used > range.size / PINNED_PART {
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

    /// Returns the lines that made most of the blocks: `keep  train.py:7 (12 blocks)`.
    fn lines(&self, ground: &Ground<'_>) -> String {
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        for &block in &self.blocks {
            *counts.entry(ground.case.replay.allocations.stack.get(block as usize).unwrap_or(0)).or_default() += 1;
        }
        let mut lines: FxHashMap<String, u64> = FxHashMap::default();
        for (stack, count) in counts {
            *lines.entry(ground.label(crate::frames::StackId(stack))).or_default() += count;
        }
        let mut lines: Vec<(String, u64)> = lines.into_iter().collect();
        lines.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let named =
            lines.iter().take(NAMED_LINES).map(|(line, count)| format!("{line} ({})", counted(*count, "block")));
        let named = named.collect::<Vec<_>>().join(" and ");
        match lines.len().saturating_sub(NAMED_LINES) {
            0 => named,
            more => format!("{named}, and {}", crate::units::counted_as(more as u64, "other line", "other lines")),
        }
    }
}

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let all = ground.moments.iter().map(|moment| (moment, Pinned::at(ground, moment)));
    let Some((moment, pinned)) = all.max_by_key(|(_, pinned)| pinned.free) else { return Vec::new() };
    let Some((_, address)) = pinned.largest else { return Vec::new() };
    if pinned.free < LEAST_BYTES || !is_share(pinned.free, moment.state.totals.reserved, PINNED_PERCENT) {
        return Vec::new();
    }
    let blocks = counted(pinned.blocks.len() as u64, "block");
    let message = format!(
        "{}, {blocks} of {} in all kept {} of {} from being released. They came from {}.",
        moment.words(),
        Bytes(pinned.block_bytes),
        counted(pinned.segments, "segment"),
        Bytes(pinned.bytes),
        pinned.lines(ground),
    );
    let finding = Finding::new(FindingCode::PinnedSegments, message)
        .at(moment.state.position)
        .with_bytes(pinned.free)
        .with_evidence(Evidence::Segment(address))
        .with_remedy(Remedy::advice(
            "Allocate what stays before the large temporary tensors, or copy it once they are freed: it then shares \
             segments with what stays.",
        ));
    let expandable = ground.setting("expandable_segments:True");
    let advice = format!("Set {expandable}: free pages are then released beside a block in use.");
    vec![finding.with_remedy(Remedy::advice(advice).with_copy(expandable))]
}
