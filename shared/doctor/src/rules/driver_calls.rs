//! Calls of the driver after the program has set up: retries, `empty_cache`, and memory that is given back and taken
//! again. Releasing memory waits for the device.

use rustc_hash::FxHashMap;

use super::RuleContext;
use super::thresholds::{DRIVER_CALLS, DRIVER_CALLS_PER_THOUSAND, FEW_RETRIES, RELEASES, WARMUP_PART};
use analysis::oom;
use analysis::retries::{Reason, Release, releases};
use query::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use trace::frames::StackId;
use trace::units::{Bytes, Count, counted, counted_as};

/// Calls of the driver, counted.
#[derive(Debug, Default)]
struct Calls {
    retries: u64,
    retried_bytes: u64,
    /// The first and the last retry.
    retry: Option<(u32, u32)>,
    /// The number of retries by call site.
    retried: FxHashMap<u32, u64>,
    /// After the warm-up: times that the program asked for a release, by call site.
    asked: FxHashMap<u32, u64>,
    asked_first: Option<u32>,
    asked_bytes: u64,
    /// Requests that failed. `num_alloc_retries` counts them too, whether or not there was something to release.
    in_vain: u64,
    /// After the warm-up: how often memory was released, and the calls for it. A request that failed does not count.
    releases: u64,
    released: u64,
    /// After the warm-up: calls that take memory although as much was reserved before.
    taken_again: u64,
}

impl Calls {
    fn of(context: &RuleContext<'_>, warm: u32) -> Self {
        let (trace, replay) = (context.case.trace, context.case.replay);
        let mut calls = Self { in_vain: oom::positions(trace).len() as u64, ..Self::default() };
        releases(trace, |release| calls.add(&release, warm));
        let (mut reserved, mut most) = (replay.reserved_at_start(), replay.reserved_at_start());
        for (position, bytes) in replay.reserved_changes(0, u32::MAX) {
            reserved = reserved.saturating_add_signed(bytes);
            calls.taken_again += u64::from(bytes > 0 && position > warm && reserved <= most);
            most = most.max(reserved);
        }
        calls
    }

    fn add(&mut self, release: &Release, warm: u32) {
        if release.reason == Reason::Retry {
            self.retries += 1;
            self.retried_bytes = self.retried_bytes.saturating_add(release.bytes);
            *self.retried.entry(release.stack.0).or_default() += 1;
            self.retry = Some((self.retry.map_or(release.position, |(first, _)| first), release.position));
        }
        if release.position < warm || release.reason == Reason::Failed {
            return;
        }
        self.releases += 1;
        self.released += u64::from(release.calls);
        if release.reason == Reason::Asked {
            *self.asked.entry(release.stack.0).or_default() += 1;
            self.asked_first.get_or_insert(release.position);
            self.asked_bytes = self.asked_bytes.saturating_add(release.bytes);
        }
    }
}

/// Returns the known call site with the largest count.
fn most(counts: &FxHashMap<u32, u64>) -> Option<(StackId, u64)> {
    let known = counts.iter().filter(|(stack, _)| **stack != 0);
    let most = known.max_by_key(|(stack, count)| (**count, std::cmp::Reverse(**stack)));
    most.map(|(stack, count)| (StackId(*stack), *count))
}

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let end = context.case.replay.positions();
    let warm = end / WARMUP_PART;
    let calls = Calls::of(context, warm);
    [retries(context, &calls), in_steady_state(context, &calls, (warm, end))].into_iter().flatten().collect()
}

fn retries(context: &RuleContext<'_>, calls: &Calls) -> Option<Finding> {
    let (first, last) = calls.retry?;
    let line = most(&calls.retried).and_then(|(stack, _)| context.known(stack));
    let (released, position) = (Bytes(calls.retried_bytes), Count(first.into()));
    let message = match calls.retries {
        1 => format!(
            "The allocator released {released} of cached memory to serve a request{}, after event {position}. Such a retry waits \
             for the whole device.",
            line.map(|line| format!(" of {line}")).unwrap_or_default()
        ),
        many => format!(
            "The allocator released cached memory {many} times to serve a request ({released} in all), first after event \
             {position}{}. Each such retry waits for the whole device.",
            line.map(|line| format!(", most often for {line}")).unwrap_or_default()
        ),
    };
    let message = match calls.in_vain {
        0 => message,
        vain => format!(
            "{message} With {} that failed, PyTorch counts {}.",
            counted(vain, "request"),
            counted_as(calls.retries + vain, "retry", "retries")
        ),
    };
    let is_few = calls.retries < FEW_RETRIES;
    let finding = Finding::new(FindingCode::Retries, message)
        .with_severity(if is_few { Severity::Note } else { Severity::Warning })
        .at(first)
        .with_bytes(calls.retried_bytes)
        .with_evidence(Evidence::Window(first, last.saturating_add(1)))
        .with_remedy(Remedy::advice(
            "Leave more of the device free: use a smaller batch or shorter sequences, or free what one phase leaves before \
             the next one begins.",
        ));
    Some(finding)
}

fn in_steady_state(context: &RuleContext<'_>, calls: &Calls, (warm, end): (u32, u32)) -> Option<Finding> {
    let count = calls.released + calls.taken_again;
    let events = u64::from(end - warm).max(1);
    let is_habit = calls.releases >= RELEASES && count >= DRIVER_CALLS.into();
    if !is_habit || count.saturating_mul(1_000) < events.saturating_mul(DRIVER_CALLS_PER_THOUSAND) {
        return None;
    }
    let asked = calls.asked.values().sum::<u64>();
    let caller = most(&calls.asked).map_or_else(String::new, |(stack, most)| {
        format!(
            " {} asked for a release {} ({} in all), as torch.cuda.empty_cache() does.",
            context.known(stack).unwrap_or_else(|| "The program".to_owned()),
            counted(most, "time"),
            Bytes(calls.asked_bytes)
        )
    });
    let message = format!(
        "After the first quarter of the events, the allocator called the driver {} to release memory and {} to take it \
         again: {} for every 1,000 events.{caller}",
        counted(calls.released, "time"),
        counted(calls.taken_again, "time"),
        counted((count.saturating_mul(1_000) + events / 2) / events, "call"),
    );
    let finding = Finding::new(FindingCode::DriverCalls, message)
        .at(calls.asked_first.unwrap_or(warm))
        .with_evidence(Evidence::Window(warm, end));
    Some(if asked > 0 && !caller.is_empty() {
        finding.with_remedy(Remedy::advice(
            "Call torch.cuda.empty_cache() only between phases of a program, not in each step: the allocator releases \
             cached memory by itself when a request needs it.",
        ))
    } else {
        finding.with_remedy(Remedy::advice(
            "Leave more of the device free, or let tensors have few distinct sizes, so that cached memory serves requests \
             without the driver.",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    /// Rounds that each take a segment, use it and release it, at these call sites.
    fn rounds(count: u64, taken: &str, released: &str) -> String {
        let round = format!(
            "segment_alloc 0x10000000 41943040 {taken}
             alloc 0x10000000 41943040 {taken}
             free 0x10000000
             segment_free 0x10000000 {released}\n"
        );
        round.repeat(count as usize)
    }

    #[test]
    fn retries_are_counted_with_their_line() {
        let retries = |count: u64| {
            let lines = rounds(count + 1, "f@/m/a.py:1", "f@/m/a.py:1");
            trace(&lines).findings().into_iter().find(|finding| finding.code == FindingCode::Retries)
        };
        let one = retries(1).expect("a retry");
        assert_eq!(
            (one.message.as_str(), one.severity),
            (
                "The allocator released 40.0 MiB of cached memory to serve a request of m/a.py:1 (f), after event 4. Such a \
                 retry waits for the whole device.",
                Severity::Note
            )
        );
        let many = retries(7).expect("retries");
        assert_eq!(
            (many.message.as_str(), many.severity),
            (
                "The allocator released cached memory 7 times to serve a request (280 MiB in all), first after event 4, most \
                 often for m/a.py:1 (f). Each such retry waits for the whole device.",
                Severity::Warning
            )
        );
        assert!(retries(0).is_none());
        // PyTorch and what-if count a request that failed, too.
        let failed = rounds(2, "f@/m/a.py:1", "f@/m/a.py:1")
            + "segment_alloc 0x10000000 41943040 f@/m/a.py:1\n\
             segment_free 0x10000000 g@/m/a.py:2\noom 100 83886080 g@/m/a.py:2";
        let messages = trace(&failed).messages(FindingCode::Retries);
        let want = "With 1 request that failed, PyTorch counts 3 retries.";
        assert!(messages.iter().any(|message| message.ends_with(want)), "{messages:?}");
        // Without stacks they look like other releases, unless they make room for something larger.
        assert_eq!(trace(&rounds(9, "", "")).messages(FindingCode::Retries), [""; 0]);
        let larger = rounds(1, "", "") + "segment_alloc 0x20000000 83886080\nalloc 0x20000000 83886080 f@/m/a.py:1";
        assert_eq!(
            trace(&larger).messages(FindingCode::Retries),
            [
                "The allocator released 40.0 MiB of cached memory to serve a request, after event 4. Such a retry waits for \
                 the whole device."
            ]
        );
    }

    #[test]
    fn releases_in_each_step_are_found_with_who_asks_for_them() {
        let lines = rounds(40, "f@/m/a.py:1", "clear@/m/a.py:9");
        assert_eq!(
            trace(&lines).messages(FindingCode::DriverCalls),
            [
                "After the first quarter of the events, the allocator called the driver 30 times to release memory and 30 times \
              to take it again: 400 calls for every 1,000 events. m/a.py:9 (clear) asked for a release 30 times (1.17 GiB in \
              all), as torch.cuda.empty_cache() does."
            ]
        );
    }

    #[test]
    fn calls_while_setting_up_are_not_counted() {
        let quiet = "alloc 0x50000000 512\nfree 0x50000000\n".repeat(400);
        let busy = rounds(20, "f@/m/a.py:1", "clear@/m/a.py:9");
        let cases = [
            // Many calls, but at the start; and few calls later.
            format!("{busy}{quiet}"),
            format!("{quiet}{}", rounds(3, "f@/m/a.py:1", "clear@/m/a.py:9")),
            // Segments that are taken and stay.
            (0..200).map(|i| format!("segment_alloc {} 41943040\n", 0x1000_0000 + i * 0x1000_0000_u64)).collect(),
        ];
        for lines in cases {
            assert_eq!(trace(&lines).messages(FindingCode::DriverCalls), [""; 0]);
        }
    }
}
