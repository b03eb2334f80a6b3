//! What is worth knowing of a device before looking at anything else: lost history, entries that contradict each
//! other, requests that failed.

use super::oom::{self, OutOfMemory};
use crate::finding::{Finding, FindingCode};
use crate::query::Totals;
use crate::replay::{Mismatches, Replay};
use crate::trace::{DeviceTrace, Tags};
use crate::units::{Bytes, Count};

/// The findings of one device. `start` is what the allocator held before the first entry.
pub fn findings(trace: &DeviceTrace, tags: &Tags, replay: &Replay, start: &Totals) -> Vec<Finding> {
    let found =
        [lost_history(trace, start), inconsistent(trace, &replay.mismatches), out_of_memory(trace, tags, replay)];
    found.into_iter().flatten().map(|finding| finding.on_device(trace.device)).collect()
}

/// A trace that does not begin with an empty allocator. A trace of one entry is another mode of recording, which the
/// import tells of.
fn lost_history(trace: &DeviceTrace, start: &Totals) -> Option<Finding> {
    let entries = trace.events.len();
    if entries < 2 || start.reserved == 0 {
        return None;
    }
    let cause = if looks_like_a_limit(entries) {
        format!(
            "The trace has {} entries, a round number: the ring of history was probably full, and the oldest entries \
             were dropped.",
            Count(entries as u64)
        )
    } else {
        "Recording began late, or the ring of history was full and the oldest entries were dropped.".to_owned()
    };
    let message = format!(
        "Device {}: {} were already reserved and {} in use before the first entry. {cause} To see where they come from, \
         call torch.cuda.memory._record_memory_history at the program's start, with a larger max_entries.",
        trace.device,
        Bytes(start.reserved),
        Bytes(start.active),
    );
    Some(Finding::new(FindingCode::RingOverflow, message).at(0))
}

/// Whether a number of entries is one that a person writes as `max_entries`: one or two digits and at least three
/// zeros, or a power of two.
fn looks_like_a_limit(entries: usize) -> bool {
    let mut digits = entries;
    let mut zeros = 0;
    while digits > 0 && digits.is_multiple_of(10) {
        digits /= 10;
        zeros += 1;
    }
    entries >= 1_000 && (zeros >= 3 && digits < 100 || entries.is_power_of_two())
}

/// Entries that cannot all be true.
fn inconsistent(trace: &DeviceTrace, mismatches: &Mismatches) -> Option<Finding> {
    let Mismatches { alloc_over_alloc, free_without_alloc, lost_at_end, made_after_end, outside_segments } =
        *mismatches;
    let parts: Vec<String> = [
        (alloc_over_alloc, "made where another was still in use"),
        (free_without_alloc, "freed without having been made"),
        (lost_at_end, "neither freed nor in a segment at the end"),
        (made_after_end, "in a segment at the end but not in the trace"),
        (outside_segments, "made outside of any segment"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{} {what}", Count(u64::from(count))))
    .collect();
    if parts.is_empty() {
        return None;
    }
    let message = format!(
        "Device {}: the trace and the segments disagree on some allocations ({}). Entries are missing: recording paused, \
         skipped some actions, or went on while the snapshot was taken. Sums may be off by those.",
        trace.device,
        parts.join(", "),
    );
    Some(Finding::new(FindingCode::Inconsistent, message))
}

/// The first request that failed, and why; how many there were.
fn out_of_memory(trace: &DeviceTrace, tags: &Tags, replay: &Replay) -> Option<Finding> {
    let ooms = oom::positions(trace);
    let (first, _) = *ooms.first()?;
    let cause = OutOfMemory::at(trace, tags, replay, first)?;
    let more = match ooms.len() - 1 {
        0 => String::new(),
        1 => " One more request failed later.".to_owned(),
        n => format!(" {} more requests failed later.", Count(n as u64)),
    };
    let message = format!(
        "Device {}: out of memory at event {}. {cause}{more}",
        trace.device,
        Count(u64::from(first.saturating_sub(1)))
    );
    Some(Finding::new(FindingCode::OutOfMemory, message).at(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_are_taken_for_limits() {
        for n in [1_000, 5_000, 50_000, 100_000, 120_000, 1 << 16, 1 << 20] {
            assert!(looks_like_a_limit(n), "{n}");
        }
        for n in [0, 1, 2, 10, 100, 512, 6_641, 123_000, 101_350] {
            assert!(!looks_like_a_limit(n), "{n}");
        }
    }
}
