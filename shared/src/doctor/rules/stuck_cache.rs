//! Cached memory of one stream or pool that another would need.

use super::Ground;
use super::moment::{Moment, Outcome};
use super::thresholds::{LEAST_BYTES, STUCK_PERCENT, is_share};
use crate::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use crate::replay::{Gap, Range};
use crate::units::{Bytes, Count};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let stuck = ground.survey.stuck;
    if stuck.taken < LEAST_BYTES || !is_share(stuck.taken, ground.survey.reserved, STUCK_PERCENT) {
        return Vec::new();
    }
    let moment = stuck.largest.and_then(|miss| Moment::of(ground.case, miss, Outcome::Served));
    let Some((moment, (range, gap))) = moment.and_then(|moment| largest(ground, &moment).map(|gap| (moment, gap))) else {
        return Vec::new();
    };
    let message = format!(
        "{} {} from the driver while large enough gaps lay cached in another stream or pool. After event {}, {} took {} in \
         {} beside a gap of {} in {}.",
        if stuck.count == 1 { "1 request took".to_owned() } else { format!("At least {} requests took", Count(stuck.count.into())) },
        Bytes(stuck.taken),
        Count(moment.state.position.into()),
        ground.label(moment.stack),
        Bytes(moment.size),
        moment.place(),
        Bytes(gap.size),
        super::moment::place(range.stream, range.pool),
    );
    // It matters once memory is tight.
    let is_tight = ground.moments.iter().any(|moment| moment.outcome == Outcome::Failed);
    let finding = Finding::new(FindingCode::StuckCache, message)
        .with_severity(if is_tight { Severity::Warning } else { Severity::Note })
        .at(moment.state.position)
        .with_bytes(stuck.taken)
        .with_evidence(Evidence::Segment(gap.address))
        .with_remedy(Remedy::advice(
            "Allocate on one stream and use tensors on others (with record_stream or events), or call \
             torch.cuda.empty_cache() once between the phases that use different streams or pools.",
        ));
    vec![finding]
}

/// Returns the largest gap that the request could not use for its stream or pool alone, if it was large enough.
fn largest(ground: &Ground<'_>, moment: &Moment) -> Option<(Range, Gap)> {
    let state = &moment.state;
    let ranges = state.ranges.iter().enumerate().filter(|(_, range)| moment.is_kin(range) && !moment.can_use(range));
    let gaps = ranges.flat_map(|(i, range)| state.gaps_in(i, &ground.case.replay.allocations).map(|gap| (*range, gap)));
    gaps.max_by_key(|(_, gap)| gap.size).filter(|(_, gap)| gap.size >= moment.size)
}
