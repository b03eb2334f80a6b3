//! What statistics say where no event is known. They are no events: nothing is known of what made the sums.

use crate::replay::Replay;
use crate::totals::Totals;
use crate::trace::{DeviceTrace, Sample};

/// Microseconds from where a trace begins to its last event or its last sample.
pub fn span_us(trace: &DeviceTrace, replay: &Replay) -> i64 {
    let newest = trace.samples.last().map_or(0, |sample| sample.time_us.saturating_sub(trace.start_us()));
    replay.time_at(trace, replay.positions()).max(newest)
}

/// The newest statistics of a device of which no event has come: they say what it holds.
pub fn newest<'a>(trace: &'a DeviceTrace, replay: &Replay) -> Option<&'a Sample> {
    trace.samples.last().filter(|_| replay.positions() == 0)
}

/// The sums by a sample. What was requested it doesn't tell: where other bytes are active than a state says, that is taken
/// for what is active.
pub fn totals(&Sample { allocated, active, reserved, .. }: &Sample, state: Totals) -> Totals {
    let requested = if active == state.active { state.requested } else { active };
    Totals { requested, allocated, active, reserved, cached: reserved.saturating_sub(active), ..state }
}
