//! Freed blocks that wait for other streams: no request can use them meanwhile.

use super::RuleContext;
use super::thresholds::{LEAST_BYTES, WAITING_PERCENT, is_share};
use crate::Case;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use replay::Allocation;
use trace::units::{Bytes, Count, Micros, counted};

/// The waiting blocks, found while a trace is swept.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    now: u64,
    /// The largest sum of bytes that waited at once, and the position at which it was first reached.
    peak: (u64, u32),
    /// The number of blocks that waited.
    count: u64,
    /// The sum of the times that they waited, in microseconds.
    time_us: i64,
    /// The allocation that was the first to wait at the largest sum.
    largest: u32,
}

impl Waiting {
    /// Notes that `free` was called for an allocation.
    pub(super) fn freed(&mut self, case: &Case<'_>, position: u32, number: u32) {
        let replay = case.replay;
        let end = replay.allocations.end.get(number as usize).unwrap_or(0);
        if !has_waited(position, end) {
            return;
        }
        self.count += 1;
        let waited = replay.time_at(case.trace, end).saturating_sub(replay.time_at(case.trace, position));
        self.time_us = self.time_us.saturating_add(waited);
        self.now = self.now.saturating_add(replay.allocations.size.get(number as usize).unwrap_or(0));
        if self.now > self.peak.0 {
            self.peak = (self.now, position);
            self.largest = number;
        }
    }

    /// Notes that an allocation's block became free.
    pub(super) fn ended(&mut self, case: &Case<'_>, number: u32) {
        let allocations = &case.replay.allocations;
        let [freed, end] = [&allocations.freed, &allocations.end].map(|column| column.get(number as usize));
        if self.now > 0 && freed.zip(end).is_some_and(|(freed, end)| freed > 0 && has_waited(freed, end)) {
            self.now = self.now.saturating_sub(allocations.size.get(number as usize).unwrap_or(0));
        }
    }
}

/// Without a stream to wait for, a block becomes free with the event that follows the call of `free`.
const fn has_waited(freed: u32, end: u32) -> bool {
    freed != Allocation::NEVER && end > freed.saturating_add(1)
}

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let Waiting { peak: (bytes, position), count, time_us, largest, .. } = context.survey.waiting;
    if bytes < LEAST_BYTES || !is_share(bytes, context.survey.active, WAITING_PERCENT) {
        return Vec::new();
    }
    let allocation = context.case.replay.allocations.get(largest);
    let line = allocation.map_or_else(String::new, |allocation| context.line(allocation.stack));
    let message = format!(
        "Up to {} of freed memory waited for other streams at once (after event {}, last freed: {line}). {} waited, {} in \
         all.",
        Bytes(bytes),
        Count(position.into()),
        counted(count, "block"),
        Micros(time_us),
    );
    let finding = Finding::new(FindingCode::Waiting, message)
        .at(position)
        .with_bytes(bytes)
        .with_evidence(Evidence::Allocation(largest))
        .with_remedy(Remedy::advice(
            "Let the stream that allocated a tensor wait for the streams that used it (an event and wait_event) and free \
             it then, instead of calling record_stream on it: its memory is free at once.",
        ));
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    fn found(block: u64, freed: &str) -> Vec<String> {
        let lines = format!(
            "segment_alloc 0x10000000 104857600
             alloc 0x10000000 {block} copy@/m/a.py:1
             alloc 0x14000000 1000 other@/m/a.py:2
             {freed}"
        );
        trace(&lines).messages(FindingCode::Waiting)
    }

    const WAITS: &str = "free_requested 0x10000000
                         free 0x14000000
                         free_completed 0x10000000";

    #[test]
    fn blocks_that_other_streams_still_use_are_found() {
        assert_eq!(
            found(41_943_040, WAITS),
            [
                "Up to 40.0 MiB of freed memory waited for other streams at once (after event 4, last freed: m/a.py:1 (copy)). 1 \
              block waited, 30 µs in all."
            ]
        );
        // It waits until the end.
        assert_eq!(found(41_943_040, "free_requested 0x10000000\nfree 0x14000000").len(), 1);
    }

    #[test]
    fn what_is_free_at_once_or_small_does_not_count() {
        assert_eq!(found(41_943_040, "free 0x10000000"), [""; 0]);
        assert_eq!(found(2_097_152, WAITS), [""; 0]);
    }
}
