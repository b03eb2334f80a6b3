//! Limits of the work that explaining a trace may take.

/// Failed requests of a device that are explained one by one: each takes a few milliseconds. Where a program catches
/// more of them, they have one cause.
pub const EXPLAINED_FAILURES: usize = 256;

/// Blocks and segments that are looked at to explain failed requests, all of them together: a few seconds. Programs
/// have tens of thousands at a time.
pub const EXPLAINED_BLOCKS: usize = 1 << 24;

/// The least time between two diagnoses of a running job, in milliseconds: a verdict that changes more often can't be read.
pub const LIVE_DIAGNOSIS_REST_MS: f64 = 2_000.0;

/// A running job is diagnosed at most this share of the time. A diagnosis takes time proportional to the events that are
/// held, so the rest between two of them grows with the session. A request that fails is diagnosed at once.
pub const LIVE_DIAGNOSIS_SHARE: f64 = 0.04;

/// Returns how long to rest after a diagnosis of a running job that took `took_ms`, in milliseconds.
pub fn live_diagnosis_rest_ms(took_ms: f64) -> f64 {
    (took_ms / LIVE_DIAGNOSIS_SHARE - took_ms).max(LIVE_DIAGNOSIS_REST_MS)
}

/// The most overlaps of a new segment with an older one after which the state of a running job is corrected: each
/// correction takes time proportional to the live blocks. Lost events explain a few of them.
pub const OVERLAPPING_SEGMENTS: u32 = 1_000;

/// Blocks and ranges that all these corrections may visit together: a second or two, however many blocks are live.
pub const OVERLAP_STEPS: usize = 1 << 24;

/// Steps that may be taken to follow the gaps of a trace whose blocks and segments contradict each other: a second or
/// so. Gaps without a contradiction are not counted. Real files with lost events need a few thousand.
pub const CONTRADICTION_STEPS: u64 = 1 << 22;
