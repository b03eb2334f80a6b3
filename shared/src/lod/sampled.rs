//! A device of which no event has come: what its statistics say.
//!
//! Statistics are no events: nothing is known of what made the sums. So all of the run is one gap, and its time counts from
//! the first sample.

use crate::order;
use crate::query::{Axis, Packed, Totals, Window};
use crate::replay::Replay;
use crate::trace::{DeviceTrace, Sample};

/// The statistics of a device without events, in the order of time.
#[derive(Clone, Debug)]
pub struct Sampled {
    samples: Vec<Sample>,
    first_us: i64,
}

impl Sampled {
    /// Nothing where there are events, or no statistics.
    pub fn of(trace: &DeviceTrace, replay: &Replay) -> Option<Self> {
        let samples = if replay.positions() == 0 { trace.samples.clone() } else { Vec::new() };
        let mut new = Self { samples, first_us: 0 };
        order::sort_by_key(&mut new.samples, |sample| sample.time_us);
        new.first_us = new.samples.first()?.time_us;
        Some(new)
    }

    /// When the first was taken, in microseconds since the epoch.
    pub fn start_us(&self) -> i64 {
        self.first_us
    }

    /// Microseconds from the first to the newest.
    pub fn span_us(&self) -> i64 {
        self.samples.last().map_or(0, |last| last.time_us.saturating_sub(self.first_us))
    }

    /// The most bytes that were reserved.
    pub fn peak_reserved(&self) -> u64 {
        self.samples.iter().map(|sample| sample.reserved).max().unwrap_or(0)
    }

    /// The sums by the newest. What was requested they don't tell: where other bytes are allocated than a state says, it
    /// is taken for what is allocated.
    pub fn newest(&self, state: Totals) -> Totals {
        let Some(&Sample { allocated, active, reserved, .. }) = self.samples.last() else { return state };
        let requested = if active == state.active { state.requested } else { active };
        Totals { requested, allocated, active, reserved, cached: reserved.saturating_sub(active), ..state }
    }

    /// The largest allocated, active and reserved bytes by pixel column of a window, 0 outside of the run.
    pub(super) fn columns(&self, axis: Axis, window: Window, columns: u32) -> [Packed<u64>; 3] {
        let width = window.length() / f64::from(columns.max(1));
        let x = |sample: &Sample| sample.time_us.saturating_sub(self.first_us) as f64;
        let mut found: [Packed<u64>; 3] = Default::default();
        for column in 0..columns {
            let (a, b) = (window.start + f64::from(column) * width, window.start + f64::from(column + 1) * width);
            let (from, to) = match axis {
                // There is one position: now.
                Axis::Event => (self.samples.len().saturating_sub(1), self.samples.len()),
                Axis::Time => {
                    let before = self.samples.partition_point(|sample| x(sample) <= a);
                    (before.saturating_sub(1), self.samples.partition_point(|sample| x(sample) < b))
                }
            };
            let inside = self.samples.get(from..to).unwrap_or(&[]);
            for (i, sums) in found.iter_mut().enumerate() {
                sums.push(inside.iter().filter_map(|sample| sample.sums().get(i).copied()).max().unwrap_or(0));
            }
        }
        found
    }
}
