//! Cached memory in gaps that are too small for a request: it is reserved, and of no use.

use super::Ground;
use super::moment::{Moment, Outcome};
use super::thresholds::{FRAGMENTED_PERCENT, LEAST_BYTES, is_share};
use crate::finding::{Evidence, Finding, FindingCode, Remedy};
use crate::units::{Bytes, counted};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let gaps = ground.moments.iter().map(|moment| (moment, moment.split_gaps(ground.case)));
    let Some((moment, gaps)) = gaps.max_by_key(|(_, gaps)| gaps.bytes) else { return Vec::new() };
    let (reserved, Some(largest)) = (moment.state.totals.reserved, gaps.largest) else { return Vec::new() };
    // A gap that is large enough is not used under `max_split_size_mb`, which is no fragmentation.
    let is_fragmented = largest.size < moment.size
        && gaps.bytes >= moment.size.max(LEAST_BYTES)
        && is_share(gaps.bytes, reserved, FRAGMENTED_PERCENT);
    if !is_fragmented {
        return Vec::new();
    }
    let percent = u128::from(gaps.bytes) * 100 / u128::from(reserved.max(1));
    let request = match moment.outcome {
        Outcome::Failed => format!("too small for {}", ground.label(moment.stack)),
        _ => format!("so {} had to take {} from the driver", ground.label(moment.stack), Bytes(moment.size)),
    };
    let message = format!(
        "{}, {} lay in {} between blocks in use: {percent} % of the {} reserved. The largest gap was {}, {request}.",
        moment.words(),
        Bytes(gaps.bytes),
        counted(gaps.count, "gap"),
        Bytes(reserved),
        Bytes(largest.size),
    );
    let finding = Finding::new(FindingCode::Fragmentation, message)
        .at(moment.state.position)
        .with_bytes(gaps.bytes)
        .with_evidence(Evidence::Segment(largest.address));
    vec![remedies(ground).into_iter().fold(finding, Finding::with_remedy)]
}

/// Returns what to try against fragmentation.
pub(super) fn remedies(ground: &Ground<'_>) -> Vec<Remedy> {
    let sizes = "Let tensors have few distinct sizes, for example by padding lengths to a multiple: freed blocks are then \
                 used again.";
    if ground.has_expandable_segments() {
        return vec![Remedy::advice(sizes)];
    }
    let expandable = ground.setting("expandable_segments:True");
    vec![
        Remedy::advice(format!("Set {expandable}: segments then grow, and free pages of one serve another."))
            .with_copy(expandable),
        Remedy::advice(sizes),
    ]
}
