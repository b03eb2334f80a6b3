//! The verdict on a device's trace: the likely cause of its trouble, in one or two sentences.
//!
//! It follows from the trace and from the capacity, if that is known. So a run, the file that it writes, the page and a
//! live session reach the same verdict.

use serde::Serialize;

use super::folding::BestFrames;
use super::high_water::HighWater;
use super::leak::{LeakCandidate, LeakSource};
use super::oom::{self, Cause, OutOfMemory};
use super::retries;
use super::site::label;
use crate::frames::Symbols;
use crate::replay::Replay;
use crate::trace::{DeviceTrace, Tags};
use crate::units::{Bytes, counted};

/// From this percentage of the capacity on, live tensors make a device nearly full.
const NEARLY_FULL_PERCENT: u64 = 95;

/// The kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Nothing went wrong.
    None,
    /// Live tensors filled the device, or nearly.
    Full,
    /// A call site held more and more: the failed request would have fitted into what it gained.
    Leak,
    /// Enough memory was free, but in pieces too small.
    Fragmented,
    /// A gap was large enough, but in another pool or on another stream.
    OutOfReach,
    /// A limit stood in the way.
    Limited,
    /// Requests were served only after cached memory had been released, which waits for the device.
    Retries,
    /// A call site holds more and more, but the device is not full yet.
    Growth,
    /// The device itself failed.
    Driver,
}

/// The likely cause of a trace's trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The kind. Scripts may match on it.
    pub kind: VerdictKind,
    /// One or two sentences.
    pub message: String,
}

/// A device's trace, and everything else that its verdict follows from.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// Its tags.
    pub tags: &'a Tags,
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Which frame represents each stack.
    pub telling: &'a BestFrames,
    /// The index that rebuilds the allocator's state.
    pub replay: &'a Replay,
    /// Bytes of the device that the process may use, if known.
    pub capacity: Option<u64>,
}

/// A failed request, with the state in which it failed.
#[derive(Clone, Copy)]
struct Failure {
    oom: OutOfMemory,
    gaps: u32,
    capacity: u64,
}

/// A leak candidate with the line that represents its call site.
struct Leak {
    line: String,
    candidate: LeakCandidate,
}

impl Verdict {
    /// Returns the verdict on a trace: on its decisive failure (see [`oom::decisive_position`]), if a request failed.
    pub fn of(evidence: Evidence<'_>) -> Self {
        Self::on(evidence, oom::decisive_position(evidence.trace))
    }

    /// Returns the verdict on the request that failed at position `failed`, or else on the whole trace.
    ///
    /// `failed` is a position right after an out-of-memory event (see [`oom::positions`]); any other position counts as
    /// none.
    pub fn on(evidence: Evidence<'_>, failed: Option<u32>) -> Self {
        let Evidence { trace, symbols, telling, replay, .. } = evidence;
        let failure = failed.and_then(|position| Failure::at(evidence, position));
        let end = failure.map_or_else(|| replay.positions(), |failure| failure.oom.position);
        let peak = HighWater::of(trace, replay);
        let source = LeakSource { trace, replay, symbols, best_frames: telling };
        let leak = LeakCandidate::largest(source, end, peak.requested)
            .map(|candidate| Leak { line: label(symbols, telling, candidate.stack), candidate });
        match failure {
            Some(failure) => Self::of_failure(failure, leak),
            None => Self::without_failure(evidence, peak, leak),
        }
    }

    fn of_failure(failure: Failure, leak: Option<Leak>) -> Self {
        let (kind, mut message) = failure.describe();
        let Some(leak) = leak else { return Self { kind, message } };
        // Without the rise the request would have fitted.
        if leak.candidate.rise() >= failure.oom.requested {
            return Self { kind: VerdictKind::Leak, message: format!("A leak: {} {message}", leak.sentence()) };
        }
        message += &format!(" And {}", leak.sentence());
        Self { kind, message }
    }

    fn without_failure(evidence: Evidence<'_>, peak: HighWater, leak: Option<Leak>) -> Self {
        let of_capacity = evidence.capacity.map_or_else(String::new, |bytes| format!(" of {}", Bytes(bytes)));
        let (reserved, allocated) = (Bytes(peak.reserved), Bytes(peak.allocated));
        if let Some(leak) = leak {
            let message = format!("Growing: {} The run ended before the device was full.", leak.sentence());
            return Self { kind: VerdictKind::Growth, message };
        }
        match retries::count(evidence.trace) {
            0 => Self {
                kind: VerdictKind::None,
                message: format!(
                    "Nothing failed: at most {reserved}{of_capacity} was reserved, and at most {allocated} was in use."
                ),
            },
            count => Self {
                kind: VerdictKind::Retries,
                message: format!(
                    "Tight: {} had to wait until cached memory was released ({reserved} reserved{of_capacity}). Each \
                     such retry stalls the device.",
                    counted(count.into(), "request")
                ),
            },
        }
    }
}

impl Failure {
    fn at(evidence: Evidence<'_>, position: u32) -> Option<Self> {
        let Evidence { trace, tags, replay, capacity, .. } = evidence;
        let oom = OutOfMemory::at(trace, tags, replay, position)?;
        let reachable = oom.active.saturating_add(oom.cached).saturating_add(oom.driver_free);
        let capacity = capacity.unwrap_or(reachable);
        Some(Self { oom: oom.limited_to(capacity), gaps: replay.state_at(position).totals.gaps, capacity })
    }

    fn is_nearly_full(&self) -> bool {
        self.oom.active >= self.capacity / 100 * NEARLY_FULL_PERCENT
    }

    /// Returns what stood in the way of the request, regardless of what led there.
    fn describe(&self) -> (VerdictKind, String) {
        let OutOfMemory { requested, driver_free, cached, active, usable_gap, largest_gap, .. } = self.oom;
        let [asked, free, cached, active, usable, largest] =
            [requested, driver_free, cached, active, usable_gap, largest_gap].map(Bytes);
        let capacity = Bytes(self.capacity);
        let gaps = counted(self.gaps.into(), "gap");
        match self.oom.cause() {
            Cause::Full if requested > self.capacity => (
                VerdictKind::Full,
                format!("Too large: one request was for {asked}, and the whole device has {capacity}."),
            ),
            Cause::Full => (
                VerdictKind::Full,
                format!("Full: live tensors held {active} of {capacity}, and {asked} more did not fit."),
            ),
            Cause::Fragmented if self.is_nearly_full() => (
                VerdictKind::Full,
                format!(
                    "Nearly full: live tensors held {active} of {capacity}. The {cached} cached in {gaps} and the {free} \
                     that the driver had free would together have been enough for the request of {asked}, but the largest \
                     contiguous block that it could use was {usable}."
                ),
            ),
            Cause::Fragmented => (
                VerdictKind::Fragmented,
                format!(
                    "Fragmented: {cached} was cached in {gaps}, but the largest contiguous block that the request could \
                     use was {usable}, and the driver had {free} free; the request was for {asked}."
                ),
            ),
            Cause::OutOfReach => (
                VerdictKind::OutOfReach,
                format!(
                    "Out of reach: a contiguous block of {largest} was cached, but in another pool or on another stream; the request \
                     was for {asked}."
                ),
            ),
            Cause::Limited => (
                VerdictKind::Limited,
                format!(
                    "Limited: the device had {free} free, and the request was for {asked}; a limit of this process stood \
                     in the way."
                ),
            ),
        }
    }
}

impl Leak {
    fn sentence(&self) -> String {
        let (first, last) = (Bytes(self.candidate.first_bytes), Bytes(self.candidate.last_bytes));
        let line = &self.line;
        format!("{line} held at least {first} a third of the way through the run, and at least {last} near its end.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;

    fn check(lines: &str, capacity: Option<u64>) -> Verdict {
        let mut snapshot = crate::testing::snapshot(lines);
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let telling = BestFrames::build(&snapshot.symbols);
        let evidence = Evidence {
            trace: &trace,
            tags: &snapshot.tags,
            symbols: &snapshot.symbols,
            telling: &telling,
            replay: &replay,
            capacity,
        };
        Verdict::of(evidence)
    }

    /// Steps that each keep a tensor of 100 kB.
    fn leaking_steps() -> String {
        let steps = (0..40).map(|step| {
            let address = 0x110_0000 + 102_400 * step;
            format!("alloc 0x1000000 4000 f@/m/a.py:1\nalloc {address} 100000 keep@/m/a.py:2\nfree 0x1000000\n")
        });
        format!("segment_alloc 0x1000000 20971520\n{}", steps.collect::<String>())
    }

    #[test]
    fn without_trouble_the_peak_is_named() {
        let lines = "segment_alloc 0x1000000 20971520\nalloc 0x1000000 1000000";
        let verdict = check(lines, Some(1 << 30));
        assert_eq!(verdict.kind, VerdictKind::None);
        let want = "Nothing failed: at most 20.0 MiB of 1.00 GiB was reserved, and at most 977 KiB was in use.";
        assert_eq!(verdict.message, want);
        let unknown = check(lines, None).message;
        assert_eq!(unknown, "Nothing failed: at most 20.0 MiB was reserved, and at most 977 KiB was in use.");
    }

    #[test]
    fn a_failure_is_full_nearly_full_fragmented_or_a_limit() {
        let kind = |lines: &str, capacity| check(&format!("segment_alloc 0x1000000 20971520\n{lines}"), capacity).kind;
        assert_eq!(kind("oom 100 30000000", None), VerdictKind::Full);
        assert_eq!(kind("oom 3000000 20971521", None), VerdictKind::Fragmented);
        // 98 of 100 MiB are in use, with a gap of 1 MiB on either side.
        let nearly = "segment_alloc 0x1000000 104857600\nalloc 0x1100000 102760448\noom 100 1500000";
        let verdict = check(nearly, None);
        assert_eq!(verdict.kind, VerdictKind::Full);
        assert!(
            verdict.message.starts_with("Nearly full: live tensors held 98.0 MiB of 100 MiB."),
            "{}",
            verdict.message
        );
        // The same event, with and without a limit on what the process may take.
        assert_eq!(kind("oom 40000000 30000000", Some(100 << 20)), VerdictKind::Limited);
        assert_eq!(kind("oom 40000000 30000000", Some(20 << 20)), VerdictKind::Full);
    }

    #[test]
    fn a_rise_that_would_have_held_the_request_is_a_leak() {
        let steps = leaking_steps();
        let growth = check(&steps, None);
        assert_eq!(growth.kind, VerdictKind::Growth);
        assert!(growth.message.starts_with("Growing: keep  m/a.py:2 held at least "), "{}", growth.message);
        assert_eq!(check(&format!("{steps}oom 100 1500000"), None).kind, VerdictKind::Leak);
        let beside = check(&format!("{steps}oom 100 90000000"), None);
        assert_eq!(beside.kind, VerdictKind::Full);
        assert!(beside.message.contains(" And keep  m/a.py:2 held at least "), "{}", beside.message);
    }
}
