//! The likely cause of what a run came to, in plain words, derived from its facts.

use serde::Serialize;
use shared::analysis::oom::{self, OutOfMemory};
use shared::units::{Bytes, Count};

use super::report::Facts;

/// What kind of trouble it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Nothing went wrong.
    None,
    /// Live tensors filled the device, or nearly.
    Full,
    /// One call site held more and more, as much as the failed request at least.
    Leak,
    /// There was room enough in pieces too small.
    Fragmented,
    /// There was a piece large enough, in another pool or of another stream.
    OutOfReach,
    /// A limit stood in the way.
    Limited,
    /// Requests were met only after cached memory had been given back, which waits for the device.
    Retries,
    /// One call site holds more and more, and the device is not full yet.
    Growth,
    /// The device itself failed.
    Driver,
}

/// From this share of the device on, in percent, it is nearly full.
const NEARLY_FULL: u64 = 95;

/// The cause, and the sentence that tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The kind. Scripts may match on it.
    pub kind: CauseKind,
    /// One or two sentences.
    pub message: String,
}

/// Finds the cause.
pub(super) fn cause(facts: &Facts<'_>) -> Cause {
    if let Some((failed, gaps)) = facts.failed {
        return of_failure(facts, failed, gaps);
    }
    let growth = growth(facts);
    let retries = facts.stats.num_alloc_retries.max(0) as u64;
    let (kind, message) = match (growth, retries) {
        (Some(growth), _) => {
            (CauseKind::Growth, format!("Growing: {growth} The run ended before the device was full."))
        }
        (None, 1..) => (
            CauseKind::Retries,
            format!(
                "Tight: {} had to wait while all cached memory was given back and asked for again ({} reserved of {}). Each \
                 such retry stalls the device.",
                counted(retries, "request"),
                Bytes(facts.peak_reserved()),
                Bytes(facts.capacity)
            ),
        ),
        (None, 0) => (
            CauseKind::None,
            format!(
                "Nothing failed: at most {} of {} were reserved, {} of them in use.",
                Bytes(facts.peak_reserved()),
                Bytes(facts.capacity),
                Bytes(facts.stats.allocated_bytes.all.peak.max(0) as u64)
            ),
        ),
    };
    Cause { kind, message }
}

fn of_failure(facts: &Facts<'_>, failed: OutOfMemory, gaps: u32) -> Cause {
    let [requested, cached, usable, active] =
        [failed.requested, failed.cached, failed.usable_gap, failed.active].map(Bytes);
    let capacity = Bytes(facts.capacity);
    let (kind, mut message) = match failed.cause() {
        oom::Cause::Full if failed.requested > facts.capacity => (
            CauseKind::Full,
            format!("Too large: one request was for {requested}, and the whole device has {capacity}."),
        ),
        oom::Cause::Full => (
            CauseKind::Full,
            format!("Full: live tensors held {active} of {capacity}, and {requested} more did not fit."),
        ),
        oom::Cause::Fragmented => {
            let (gaps, free) = (counted(gaps.into(), "gap"), Bytes(failed.driver_free));
            if failed.active >= facts.capacity / 100 * NEARLY_FULL {
                let message = format!(
                    "Nearly full: live tensors held {active} of {capacity}. What was left, {cached} cached in {gaps} and \
                     {free} that the driver had, would have held the request of {requested} in one piece; the largest \
                     gap that could be used was {usable}."
                );
                (CauseKind::Full, message)
            } else {
                let message = format!(
                    "Fragmented: {cached} were cached in {gaps}, the largest that could be used {usable}, and the driver \
                     had {free} free; the request was {requested}."
                );
                (CauseKind::Fragmented, message)
            }
        }
        oom::Cause::OutOfReach => (
            CauseKind::OutOfReach,
            format!(
                "Out of reach: a gap of {} was cached, but in another pool or on another stream; the request was \
                 {requested}.",
                Bytes(failed.largest_gap)
            ),
        ),
        oom::Cause::Limited => (
            CauseKind::Limited,
            format!(
                "Limited: the device had {} free, and the request was {requested}; a limit of this process stood in the \
                 way.",
                Bytes(failed.driver_free)
            ),
        ),
    };
    let Some((_, grown)) = &facts.growth else { return Cause { kind, message } };
    let growth = growth(facts).unwrap_or_default();
    // Without the growth the request would have been met.
    if grown.to - grown.from >= failed.requested {
        return Cause { kind: CauseKind::Leak, message: format!("A leak: {growth} {message}") };
    }
    message += &format!(" And {growth}");
    Cause { kind, message }
}

/// The sentence of the site that grows most.
fn growth(facts: &Facts<'_>) -> Option<String> {
    let (line, growth) = facts.growth.as_ref()?;
    let (from, to) = (Bytes(growth.from), Bytes(growth.to));
    Some(format!("{line} held at least {from} in the third eighth of the run, and at least {to} in the last."))
}

pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", Count(count), if count == 1 { "" } else { "s" })
}
