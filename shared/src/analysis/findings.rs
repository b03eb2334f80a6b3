//! What is worth knowing of a device before looking at anything else: lost history, entries that contradict each
//! other, requests that failed.

use super::oom::{self, OutOfMemory};
use crate::finding::{Finding, FindingCode};
use crate::replay::{Mismatches, Replay};
use crate::totals::Totals;
use crate::trace::{DeviceTrace, Tags};
use crate::units::{Bytes, Count};

/// The findings of one device. `start` is what the allocator held before the first entry; `known` is what the import
/// has found.
pub fn findings(trace: &DeviceTrace, tags: &Tags, replay: &Replay, start: &Totals, known: &[Finding]) -> Vec<Finding> {
    // Rewound from a trace that is cut off, the start is not the start.
    let is_cut = known.iter().any(|finding| finding.code == FindingCode::Truncated);
    findings_of(trace, tags, replay, (!is_cut).then_some(start), &oom::positions(trace), is_cut)
}

/// The same where it is known which requests failed (see [`oom::positions`]) and whether the trace is cut off. Without a
/// `start`, nothing is said of it.
pub fn findings_of(
    trace: &DeviceTrace,
    tags: &Tags,
    replay: &Replay,
    start: Option<&Totals>,
    ooms: &[(u32, u64)],
    is_cut: bool,
) -> Vec<Finding> {
    let lost = start.and_then(|start| lost_history(trace, start));
    let found = [lost, inconsistent(trace, &replay.mismatches, is_cut), out_of_memory(trace, tags, replay, ooms)];
    found.into_iter().flatten().map(|finding| finding.on_device(trace.device)).collect()
}

/// A trace that does not begin with an empty allocator. A trace of one entry is another mode of recording, which the
/// import tells of.
fn lost_history(trace: &DeviceTrace, start: &Totals) -> Option<Finding> {
    let entries = trace.events.len();
    if entries < 2 || start.reserved == 0 {
        return None;
    }
    let cause = if !trace.losses.is_empty() {
        "What led to it was not seen: see the events that were lost.".to_owned()
    } else if looks_like_a_limit(entries) {
        format!(
            "The trace has exactly {} entries: the history was most likely full, and its first entries are lost. Record \
             with a larger max_entries to keep them.",
            Count(entries as u64)
        )
    } else {
        "Recording began late, or the history was full and its first entries are lost. To see where they come from, record \
         from the program's start: vramscope.attach, or torch.cuda.memory._record_memory_history with a larger max_entries."
            .to_owned()
    };
    let message = format!(
        "Device {}: {} were already reserved and {} in use before the first entry. {cause}",
        trace.device,
        Bytes(start.reserved),
        Bytes(start.active),
    );
    Some(Finding::new(FindingCode::RingOverflow, message).at(0))
}

/// Whether a number of entries is one that a person writes as `max_entries`: whole thousands, a short whole hundred, or
/// a power of two.
fn looks_like_a_limit(entries: usize) -> bool {
    let is_round = entries.is_multiple_of(1_000) || entries < 1_000 && entries.is_multiple_of(100);
    entries >= 100 && (is_round || entries.is_power_of_two())
}

/// Entries that cannot all be true.
fn inconsistent(trace: &DeviceTrace, mismatches: &Mismatches, is_cut: bool) -> Option<Finding> {
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
    let why = if is_cut {
        "The file is cut off"
    } else if !trace.losses.is_empty() {
        "Events were lost while recording"
    } else {
        "Entries are missing: recording paused, skipped some actions, or went on while the snapshot was taken"
    };
    let message = format!(
        "Device {}: the trace and the segments disagree on some allocations ({}). {why}. Sums may be off by those.",
        trace.device,
        parts.join(", "),
    );
    Some(Finding::new(FindingCode::Inconsistent, message))
}

/// The first request that failed, and why; how many there were.
fn out_of_memory(trace: &DeviceTrace, tags: &Tags, replay: &Replay, ooms: &[(u32, u64)]) -> Option<Finding> {
    let (first, _) = *ooms.first()?;
    let cause = OutOfMemory::at(trace, tags, replay, first)?;
    let more = match ooms.len() - 1 {
        0 => String::new(),
        1 => " One more request failed later.".to_owned(),
        n => format!(" {} more requests failed later.", Count(n as u64)),
    };
    let message = format!("Device {}: out of memory at event {}. {cause}{more}", trace.device, Count(first.into()));
    Some(Finding::new(FindingCode::OutOfMemory, message).at(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: &str = "segment_alloc 0x1000000 20971520
                        alloc 0x1000000 1000 a@/m/a.py:1
                        alloc 0x1100000 3000000 b@/m/b.py:1
                        oom 100 40000000
                        oom 100 50000000";

    /// The findings of [`LATE`] without its first `lost` events, with others known.
    fn check(lost: usize, known: &[Finding]) -> Vec<Finding> {
        let mut snapshot = crate::testing::snapshot(LATE);
        let mut trace = snapshot.devices.remove(0);
        trace.events = trace.events.split_off(lost);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        findings(&trace, &snapshot.tags, &replay, &replay.state_at(0).totals, known)
    }

    #[test]
    fn a_late_start_is_told_of_unless_the_file_is_cut() {
        let codes = |known: &[Finding]| check(2, known).iter().map(|f| f.code).collect::<Vec<_>>();
        assert_eq!(codes(&[]), [FindingCode::RingOverflow, FindingCode::OutOfMemory]);
        assert_eq!(codes(&[Finding::new(FindingCode::Truncated, "")]), [FindingCode::OutOfMemory]);
    }

    #[test]
    fn round_numbers_are_taken_for_limits() {
        for n in [100, 300, 1_000, 5_000, 123_000, 1 << 16, 1 << 20] {
            assert!(looks_like_a_limit(n), "{n}");
        }
        for n in [0, 1, 2, 10, 64, 150, 1_100, 6_641, 101_350] {
            assert!(!looks_like_a_limit(n), "{n}");
        }
    }

    #[test]
    fn the_first_failed_request_is_explained() {
        let [found] = &check(0, &[])[..] else { panic!("one finding") };
        assert_eq!((found.code, found.device, found.position), (FindingCode::OutOfMemory, Some(0), Some(4)));
        assert_eq!(
            found.message,
            "Device 0: out of memory at event 4. Asked for 38.1 MiB; the driver had 100 B free. Only 17.1 MiB reserved \
             were unused beside 2.86 MiB in use: the device was full. One more request failed later."
        );
    }
}
