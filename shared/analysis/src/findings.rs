//! The first findings about a device: lost history, and events that contradict each other. All other findings are made
//! by [`doctor`].

use query::finding::{Finding, FindingCode, Integrity, lacks_end};
use replay::{Mismatches, Replay};
use trace::DeviceTrace;
use trace::totals::Totals;
use trace::units::{Bytes, Count};

/// Returns the findings about one device. `start` is what the allocator held before the first event; `known` are the
/// findings of the import.
pub fn findings(trace: &DeviceTrace, replay: &Replay, start: &Totals, known: &[Finding]) -> Vec<Finding> {
    // The start is rebuilt from the end, so that of a trace without its end is wrong.
    findings_of(trace, replay, (!lacks_end(known)).then_some(start), Integrity::of(known))
}

/// Returns the findings about one device. Without a `start`, lost history is not reported.
pub fn findings_of(trace: &DeviceTrace, replay: &Replay, start: Option<&Totals>, integrity: Integrity) -> Vec<Finding> {
    let lost = start.and_then(|start| lost_history(trace, start, integrity));
    let found = [lost, inconsistent(trace, &replay.mismatches, integrity)];
    found.into_iter().flatten().map(|finding| finding.on_device(trace.device)).collect()
}

/// Returns a finding if a trace does not begin with an empty allocator. A trace of one event comes from another mode of
/// recording, which the import reports.
fn lost_history(trace: &DeviceTrace, start: &Totals, integrity: Integrity) -> Option<Finding> {
    let entries = trace.events.len();
    if entries < 2 || start.reserved == 0 {
        return None;
    }
    let cause = if integrity.is_damaged {
        "Its history may have been in the damaged part of the file.".to_owned()
    } else if !trace.losses.is_empty() {
        "Its history is missing because events were lost while recording.".to_owned()
    } else if looks_like_a_limit(entries) {
        format!(
            "It has exactly {} events: the history was most likely full, or this is a part of a run. Record with a larger \
             max_entries.",
            Count(entries as u64)
        )
    } else {
        "Recording began late, or the history was full. Record from the program's start: call vramscope.attach, or \
         torch.cuda.memory._record_memory_history with a larger max_entries."
            .to_owned()
    };
    let message = format!(
        "Device {}: {} was already reserved and {} in use before the first event. {cause}",
        trace.device,
        Bytes(start.reserved),
        Bytes(start.active),
    );
    Some(Finding::new(FindingCode::RingOverflow, message).at(0))
}

/// Returns whether a number of events looks like a value of `max_entries`: whole thousands, a short whole hundred, or a
/// power of two.
fn looks_like_a_limit(entries: usize) -> bool {
    let is_round = entries.is_multiple_of(1_000) || entries < 1_000 && entries.is_multiple_of(100);
    entries >= 100 && (is_round || entries.is_power_of_two())
}

/// Returns a finding if events contradict the segments or each other.
fn inconsistent(trace: &DeviceTrace, mismatches: &Mismatches, integrity: Integrity) -> Option<Finding> {
    let Mismatches { alloc_over_alloc, free_without_alloc, lost_at_end, made_after_end, outside_segments } =
        *mismatches;
    let parts: Vec<String> = [
        (alloc_over_alloc, "made at an address still in use"),
        (free_without_alloc, "freed but never allocated"),
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
    let why = if integrity.is_cut {
        "The file is cut off"
    } else if integrity.is_damaged {
        "The file is damaged"
    } else if !trace.losses.is_empty() {
        "Events were lost while recording"
    } else {
        "Events are missing: recording paused, skipped some actions, or continued while the snapshot was taken"
    };
    let message = format!(
        "Device {}: the trace and the segments disagree about some allocations ({}). {why}. Totals may be off by their sizes.",
        trace.device,
        parts.join(", "),
    );
    Some(Finding::new(FindingCode::Inconsistent, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: &str = "segment_alloc 0x1000000 20971520
                        alloc 0x1000000 1000 a@/m/a.py:1
                        alloc 0x1100000 3000000 b@/m/b.py:1
                        oom 100 40000000
                        oom 100 50000000";

    /// Returns the findings of [`LATE`] without its first `lost` events, with other findings known.
    fn check(lost: usize, known: &[Finding]) -> Vec<Finding> {
        let mut snapshot = trace::testing::snapshot(LATE);
        let mut trace = snapshot.devices.remove(0);
        trace.events = trace.events.split_off(lost);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        findings(&trace, &replay, &replay.state_at(0).totals, known)
    }

    #[test]
    fn a_late_start_is_reported_unless_the_file_is_cut() {
        let codes = |known: &[Finding]| check(2, known).iter().map(|f| f.code).collect::<Vec<_>>();
        assert_eq!(codes(&[]), [FindingCode::RingOverflow]);
        assert_eq!(codes(&[Finding::new(FindingCode::Truncated, "")]), []);
    }

    #[test]
    fn round_numbers_count_as_limits() {
        for n in [100, 300, 1_000, 5_000, 123_000, 1 << 16, 1 << 20] {
            assert!(looks_like_a_limit(n), "{n}");
        }
        for n in [0, 1, 2, 10, 64, 150, 1_100, 6_641, 101_350] {
            assert!(!looks_like_a_limit(n), "{n}");
        }
    }
}
