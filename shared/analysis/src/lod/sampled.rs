//! Recorded statistics, used where no events are known. They give sums, but not what the sums consist of.

use replay::Replay;
use trace::totals::Totals;
use trace::{DeviceTrace, Sample};

/// Returns the microseconds from the beginning of a trace to its last event or sample.
pub fn span_us(trace: &DeviceTrace, replay: &Replay) -> i64 {
    let newest = trace.samples.last().map_or(0, |sample| sample.time_us.saturating_sub(trace.start_us()));
    replay.time_at(trace, replay.positions()).max(newest)
}

/// Returns the newest statistics of a device without events: they are its current state.
pub fn newest<'a>(trace: &'a DeviceTrace, replay: &Replay) -> Option<&'a Sample> {
    trace.samples.last().filter(|_| replay.positions() == 0)
}

/// Returns the totals of a sample. It has no requested bytes: they are the state's where the active bytes are equal,
/// else the active bytes.
pub fn totals(&Sample { allocated, active, reserved, .. }: &Sample, state: Totals) -> Totals {
    let requested = if active == state.active { state.requested } else { active };
    Totals { requested, allocated, active, reserved, cached: reserved.saturating_sub(active), ..state }
}
