//! Cached memory of one stream or pool that another would need.

use super::RuleContext;
use super::moment::{MissMoment, Outcome};
use super::thresholds::{LEAST_BYTES, STUCK_PERCENT, is_share};
use query::diagnosis::Cause;
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use replay::{Gap, ReservedRange};
use trace::units::{Bytes, Count, PoolId, counted};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let failure = context.failed.filter(|_| context.cause == Cause::OutOfReach);
    match failure.and_then(|position| MissMoment::failed(context.case, position)) {
        Some(moment) => of_failure(context, &moment).into_iter().collect(),
        None => over_the_run(context),
    }
}

/// Returns the finding about a request that failed although there was memory, which it could not use.
fn of_failure(context: &RuleContext<'_>, moment: &MissMoment) -> Option<Finding> {
    let (range, gap) = largest(context, moment)?;
    let cached = out_of_reach(context, moment).fold(0_u64, |sum, (_, gap)| sum.saturating_add(gap.size));
    let message = format!(
        "{}, {} lay cached in other streams and pools than {}, the largest gap of {} in {}.",
        moment.description(),
        Bytes(cached),
        moment.place(context.case),
        Bytes(gap.size),
        super::moment::place(context.case, range.stream, range.pool),
    );
    let remedy = remedy(moment.pool, range.pool);
    Some(finding(message, moment.state.position, cached, gap).with_remedy(remedy).with_severity(Severity::Warning))
}

fn over_the_run(context: &RuleContext<'_>) -> Vec<Finding> {
    let stuck = context.survey.stuck;
    if stuck.taken < LEAST_BYTES || !is_share(stuck.taken, context.survey.reserved, STUCK_PERCENT) {
        return Vec::new();
    }
    let moment = stuck.largest.and_then(|miss| MissMoment::of(context.case, miss, Outcome::Served));
    let Some((moment, (range, gap))) = moment.and_then(|moment| largest(context, &moment).map(|gap| (moment, gap)))
    else {
        return Vec::new();
    };
    let message = format!(
        "{} {} from the driver while large enough gaps lay cached in another stream or pool. After event {}, {} took {}{} in \
         {} beside a gap of {} in {}.",
        if stuck.count == 1 {
            "1 request took".to_owned()
        } else {
            format!("At least {} took", counted(stuck.count.into(), "request"))
        },
        Bytes(stuck.taken),
        Count(moment.state.position.into()),
        context.line(moment.stack),
        Bytes(moment.size.max(moment.taken)),
        if moment.taken > moment.size { format!(" for a request of {}", Bytes(moment.size)) } else { String::new() },
        moment.place(context.case),
        Bytes(gap.size),
        super::moment::place(context.case, range.stream, range.pool),
    );
    // It matters once memory is tight.
    let is_tight = context.failed.is_some();
    let finding =
        finding(message, moment.state.position, stuck.taken, gap).with_remedy(remedy(moment.pool, range.pool));
    vec![finding.with_severity(if is_tight { Severity::Warning } else { Severity::Note })]
}

fn finding(message: String, position: u32, bytes: u64, gap: Gap) -> Finding {
    Finding::new(FindingCode::StuckCache, message)
        .at(position)
        .with_bytes(bytes)
        .with_evidence(Evidence::Segment(gap.address))
}

/// Returns what to do where a request of one pool can't use what another holds.
fn remedy(asked: PoolId, held: PoolId) -> Remedy {
    Remedy::advice(if asked == held {
        "Allocate on one stream and use tensors on others (with record_stream or events), or call \
         torch.cuda.empty_cache() once between the phases that use different streams."
    } else if held.is_private() {
        "A private pool keeps its memory for its own CUDA graphs or torch.cuda.use_mem_pool blocks. Let graphs that never run \
         at the same time share one pool, and keep no MemPool longer than it is used."
    } else {
        "A private pool can't use what the default pool has cached: call torch.cuda.empty_cache() before CUDA graphs are \
         captured or a MemPool is used."
    })
}

/// Returns the gaps that the request could not use for its stream or pool alone, with their ranges.
fn out_of_reach<'a>(
    context: &'a RuleContext<'_>,
    moment: &'a MissMoment,
) -> impl Iterator<Item = (ReservedRange, Gap)> + 'a {
    let state = &moment.state;
    let ranges =
        state.ranges.iter().enumerate().filter(|(_, range)| moment.matches_kind(range) && !moment.can_use(range));
    ranges.flat_map(|(i, range)| state.gaps_in(i, &context.case.replay.allocations).map(|gap| (*range, gap)))
}

/// Returns the largest of those gaps, if it was large enough.
fn largest(context: &RuleContext<'_>, moment: &MissMoment) -> Option<(ReservedRange, Gap)> {
    out_of_reach(context, moment).max_by_key(|(_, gap)| gap.size).filter(|(_, gap)| gap.size >= moment.size)
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    fn found(cached: u64, place: &str, end: &str) -> Vec<(String, Severity)> {
        let lines = format!(
            "segment_alloc 0x10000000 {cached} {place} a@/m/a.py:1
             alloc 0x10000000 {cached} {place} a@/m/a.py:1
             free 0x10000000
             segment_alloc 0x40000000 31457280 b@/m/a.py:2
             alloc 0x40000000 31457280 b@/m/a.py:2
             {end}"
        );
        let findings = trace(&lines).findings().into_iter().filter(|finding| finding.code == FindingCode::StuckCache);
        findings.map(|finding| (finding.message, finding.severity)).collect()
    }

    #[test]
    fn memory_taken_beside_another_streams_or_pools_cache_is_found() {
        let message = |place: &str| {
            format!(
                "1 request took 30.0 MiB from the driver while large enough gaps lay cached in another stream or pool. After \
                 event 4, m/a.py:2 (b) took 30.0 MiB in the default stream beside a gap of 100 MiB in {place}."
            )
        };
        assert_eq!(found(104_857_600, "stream=7", ""), [(message("stream 7"), Severity::Note)]);
        let pool = [(message("the default stream of pool (0, 3)"), Severity::Note)];
        assert_eq!(found(104_857_600, "pool=3", ""), pool);
        assert_eq!(found(104_857_600, "stream=7", "oom 100 209715200"), [(message("stream 7"), Severity::Warning)]);
    }

    #[test]
    fn a_request_that_fails_beside_another_pools_cache_is_told_what_it_could_not_use() {
        let lines = "segment_alloc 0x10000000 104857600 pool=3
                     segment_alloc 0x20000000 41943040 stream=7
                     oom 100 62914560 f@/m/a.py:1";
        assert_eq!(
            trace(lines).messages(FindingCode::StuckCache),
            [
                "When the request of 60.0 MiB failed (event 3), 140 MiB lay cached in other streams and pools than the default \
              stream, the largest gap of 100 MiB in the default stream of pool (0, 3)."
            ]
        );
    }

    #[test]
    fn a_cache_that_is_too_small_for_the_request_is_not_stuck() {
        assert_eq!(found(20_971_520, "stream=7", ""), []);
        assert_eq!(found(20_971_520, "", ""), []);
    }
}
