//! Lines that keep what they allocate.

use super::Ground;
use super::thresholds::{GRAVE_LEAK_PERCENT, LEAKS, is_share};
use crate::analysis::leak::LeakCandidate;
use crate::finding::{Evidence, Finding, FindingCode, Remedy, Severity};
use crate::units::{Bytes, Count, counted};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let leaks: Vec<&LeakCandidate> = ground.rising.iter().filter(|candidate| !candidate.is_cache).collect();
    let more = leaks.len().saturating_sub(LEAKS);
    let last = leaks.len().min(LEAKS).saturating_sub(1);
    let first = leaks.iter().take(LEAKS).enumerate();
    first.map(|(i, leak)| finding(ground, leak, if i == last { more } else { 0 })).collect()
}

fn finding(ground: &Ground<'_>, leak: &LeakCandidate, more: usize) -> Finding {
    let others = match more {
        0 => String::new(),
        _ => format!(" {} keep less.", crate::units::counted_as(more as u64, "other line", "other lines")),
    };
    let message = format!(
        "{} keeps what it allocates: {} of it, {}, were still live after event {}, the first since event {}. Behind the \
         first quarter of the run that is {} more for every 1,000 events.{others}",
        ground.label(leak.stack),
        counted(leak.count.into(), "allocation"),
        Bytes(leak.last_bytes),
        Count(leak.until.into()),
        Count(leak.first_seen.into()),
        Bytes(leak.rise_per_thousand_events()),
    );
    let is_grave = is_share(leak.rise(), ground.case.usage.peak_bytes, GRAVE_LEAK_PERCENT);
    Finding::new(FindingCode::Leak, message)
        .with_severity(if is_grave { Severity::Failure } else { Severity::Warning })
        .at(leak.until)
        .with_bytes(leak.last_bytes)
        .with_evidence(Evidence::Site(leak.stack.0))
        .with_remedy(Remedy::advice(
            "Keep numbers, not tensors: call .item(), or .detach().cpu() if the values are needed later, and delete what \
             holds the tensors (a list, a closure, a graph that a loss keeps alive).",
        ))
}
