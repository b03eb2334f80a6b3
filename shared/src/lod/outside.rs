//! The memory beside the allocator in pixel columns.

use crate::query::{Axis, OutsideCurve, Packed, Window};
use crate::replay::Replay;
use crate::trace::{DeviceTrace, OutsideSample};

use super::columns;

/// Returns a curve for each quantity that was sampled: in each column the largest value of its samples, or that of the
/// last sample before. Columns before the first known value have 0.
pub(super) fn curves(
    trace: &DeviceTrace,
    replay: &Replay,
    axis: Axis,
    window: Window,
    columns: u32,
) -> Vec<OutsideCurve> {
    if trace.outside.is_empty() {
        return Vec::new();
    }
    let first = trace.start_us();
    let mut samples: Vec<OutsideSample> = trace.outside.clone();
    samples.sort_by_key(|sample| sample.time_us);
    let mut rest = samples.iter().peekable();
    let mut last: [Option<u64>; OutsideSample::NAMES.len()] = Default::default();
    let mut curves: [Packed<u64>; OutsideSample::NAMES.len()] = Default::default();
    let mut most = last;
    for c in 1..=columns {
        let x = window.start + window.length() * f64::from(c) / f64::from(columns);
        let until = match axis {
            Axis::Time => x,
            // Casts of floats saturate. The last column holds everything that was sampled after the last event.
            Axis::Event if c < columns => columns::coordinate(trace, replay, Axis::Time, x as u32),
            Axis::Event => f64::INFINITY,
        };
        let mut here = last;
        while let Some(sample) = rest.next_if(|sample| (sample.time_us.saturating_sub(first) as f64) < until) {
            for ((here, last), value) in here.iter_mut().zip(&mut last).zip(sample.values()) {
                (*here, *last) = (value.max(*here), value.or(*last));
            }
        }
        for ((curve, most), here) in curves.iter_mut().zip(&mut most).zip(here) {
            curve.push(here.unwrap_or(0));
            *most = here.max(*most);
        }
    }
    let named = OutsideSample::NAMES.into_iter().zip(curves).zip(most);
    named
        .filter(|(_, most)| most.is_some())
        .map(|((name, bytes), _)| OutsideCurve { name: name.to_owned(), bytes })
        .collect()
}
