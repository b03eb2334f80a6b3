//! Cached memory in gaps that are too small for a request: it is reserved, and of no use.

use super::Ground;
use super::moment::{Moment, Outcome, SplitGaps};
use super::thresholds::{FRAGMENTED_PERCENT, FRAGMENTED_PERCENT_OF_PEAK, LEAST_BYTES, is_share};
use crate::finding::{Evidence, Finding, FindingCode, Remedy};
use crate::frames::StackId;
use crate::replay::Gap;
use crate::units::{Bytes, counted};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let gaps = ground.moments.iter().map(|moment| (moment, moment.split_gaps(ground.case)));
    let fragmented: Vec<(&Moment, SplitGaps, Gap)> = gaps.filter_map(|(moment, gaps)| fragmented(ground, moment, gaps)).collect();
    // What made a request fail matters most.
    let failed = fragmented.iter().find(|(moment, ..)| moment.outcome == Outcome::Failed);
    let Some((moment, gaps, largest)) = failed.or_else(|| fragmented.iter().max_by_key(|(_, gaps, _)| gaps.bytes)) else {
        return Vec::new();
    };
    let reserved = moment.state.totals.reserved;
    let percent = u128::from(gaps.bytes) * 100 / u128::from(reserved.max(1));
    let (line, size) = (ground.label(moment.stack), Bytes(moment.size));
    let request = match moment.outcome {
        Outcome::Failed if moment.stack == StackId(0) => "too small for it".to_owned(),
        Outcome::Failed => format!("too small for {line}"),
        _ => format!("so {} was taken from the driver for {size} of {line}", Bytes(moment.taken)),
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

/// Returns a moment with its gaps and the largest of them, if much lies in gaps that are too small for the request.
fn fragmented<'a>(ground: &Ground<'_>, moment: &'a Moment, gaps: SplitGaps) -> Option<(&'a Moment, SplitGaps, Gap)> {
    let largest = gaps.largest?;
    let is_much = match moment.outcome {
        Outcome::Served => is_share(gaps.bytes, ground.survey.reserved, FRAGMENTED_PERCENT_OF_PEAK),
        Outcome::Failed | Outcome::Peak => is_share(gaps.bytes, moment.state.totals.reserved, FRAGMENTED_PERCENT),
    };
    // A gap that is large enough is not used under `max_split_size_mb`, which is no fragmentation.
    let is_fragmented = is_much && largest.size < moment.size && gaps.bytes >= moment.size.max(LEAST_BYTES);
    is_fragmented.then_some((moment, gaps, largest))
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
