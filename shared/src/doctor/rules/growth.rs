//! Lines that hold more and more for a reason that is known: caches, and what stops growing.

use rustc_hash::FxHashMap;

use super::Ground;
use super::thresholds::{GROWTH_PERCENT, is_share};
use crate::analysis::leak::{LeakCandidate, Trend, is_cache};
use crate::analysis::peak::{Held, held_at};
use crate::finding::{Evidence, Finding, FindingCode, Remedy};
use crate::units::{Bytes, Count, counted};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let peak = ground.case.usage.peak_bytes;
    let mut found: Vec<(String, Finding)> = (ground.rising.iter())
        .filter(|candidate| !candidate.is_leak() && is_share(candidate.most_held.0, peak, GROWTH_PERCENT))
        .map(|candidate| rising(ground, candidate))
        .collect();
    // A cache whose entries are replaced and freed again never looks as if it kept them.
    let known: Vec<String> = found.iter().map(|(line, _)| line.clone()).collect();
    found.extend(caches(ground).filter(|(line, _)| !known.contains(line)));
    found.into_iter().map(|(_, finding)| finding).collect()
}

fn rising(ground: &Ground<'_>, candidate: &LeakCandidate) -> (String, Finding) {
    let line = ground.label(candidate.stack);
    let (most, at) = candidate.most_held;
    let message = match candidate.trend {
        Trend::Rising => format!(
            "{line} fills a cache, by its name: {}, {}, were still live after event {}. It is not counted as a leak.",
            counted(candidate.count.into(), "allocation"),
            Bytes(candidate.last_bytes),
            Count(candidate.until.into()),
        ),
        Trend::Level => format!(
            "{line} grew up to {} (seen after event {}) and no further, as a cache or buffer that fills up does.",
            Bytes(most),
            Count(at.into()),
        ),
    };
    let finding = Finding::new(FindingCode::Growth, message)
        .at(if candidate.trend == Trend::Level { at } else { candidate.until })
        .with_bytes(most)
        .with_evidence(Evidence::Site(candidate.stack.0))
        .with_remedy(bound());
    (line, finding)
}

/// Returns the caches, by their names, that hold much at the peak, and most of whose entries have been freed again.
fn caches(ground: &Ground<'_>) -> impl Iterator<Item = (String, Finding)> {
    let usage = ground.case.usage;
    let position = usage.peak_position;
    let mut lines: FxHashMap<String, (Held, u64)> = FxHashMap::default();
    for held in held_at(ground.case.replay, position) {
        let line = ground.label(held.stack);
        let made = u64::from(usage.site(held.stack).count);
        lines
            .entry(line)
            .and_modify(|(sum, count)| {
                *sum = Held { stack: sum.stack, bytes: sum.bytes.saturating_add(held.bytes), count: sum.count + held.count };
                *count += made;
            })
            .or_insert((held, made));
    }
    let is_much = move |held: &Held| is_share(held.bytes, usage.peak_bytes, GROWTH_PERCENT);
    let mut found: Vec<(String, (Held, u64))> = (lines.into_iter())
        .filter(|(line, (held, made))| is_cache(line) && is_much(held) && *made >= u64::from(held.count) * 2)
        .collect();
    found.sort_by(|a, b| b.1.0.bytes.cmp(&a.1.0.bytes).then_with(|| a.0.cmp(&b.0)));
    found.into_iter().map(move |(line, (held, made))| {
        let percent = u128::from(held.bytes) * 100 / u128::from(usage.peak_bytes.max(1));
        let message = format!(
            "{line}, a cache by its name, held {} at the peak of requested memory (after event {}): {percent} % of it, in {} of \
             the {} that it made. It grows and is freed again.",
            Bytes(held.bytes),
            Count(position.into()),
            Count(held.count.into()),
            Count(made),
        );
        let finding = Finding::new(FindingCode::Growth, message)
            .at(position)
            .with_bytes(held.bytes)
            .with_evidence(Evidence::Site(held.stack.0))
            .with_remedy(bound());
        (line, finding)
    })
}

fn bound() -> Remedy {
    Remedy::advice("Bound it: fewer entries or concurrent requests, or pages of one size that are used again.")
}
