//! The memory outside the allocator in pixel columns.

use query::{Axis, OutsideCurve, Packed, Window};
use replay::Replay;
use trace::{DeviceTrace, OutsideSample};

use super::columns;
use trace::order::SortFew;

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
    samples.sort_few_by_key(|sample| sample.time_us);
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

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::START_US;

    /// Returns the curves of a trace with an event every 10 µs from 0 to 30 µs, and samples of the resident set and of
    /// other processes.
    fn curves_of(samples: &[(i64, Option<u64>, Option<u64>)], axis: Axis, columns: u32) -> Vec<(String, Vec<u64>)> {
        let lines =
            "segment_alloc 0x1000000 20971520\nalloc 0x1000000 2097152\nalloc 0x1200000 2097152\nfree 0x1000000";
        let mut snapshot = trace::testing::snapshot(lines);
        let mut trace = snapshot.devices.remove(0);
        let sample =
            |&(us, resident, others): &(i64, _, _)| OutsideSample::new(START_US + us, [resident, None, None, others]);
        trace.outside = samples.iter().map(sample).collect();
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let window = match axis {
            Axis::Time => Window { start: 0.0, end: 40.0 },
            Axis::Event => columns::extent(&trace, &replay, axis),
        };
        let curves = curves(&trace, &replay, axis, window, columns);
        curves.into_iter().map(|curve| (curve.name, curve.bytes.0)).collect()
    }

    #[test]
    fn a_column_has_the_largest_of_its_samples_or_the_last_one_before() {
        let samples = [
            (5, Some(7), None),
            (12, Some(9), None),
            (18, Some(2), Some(4)),
            // The quantity is unknown for a time, and the samples are not in order.
            (35, None, Some(1)),
            (34, Some(3), None),
        ];
        let want = [("resident", vec![7, 9, 2, 3]), ("others", vec![0, 4, 4, 4])];
        let want = want.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(curves_of(&samples, Axis::Time, 4), want);
        assert_eq!(curves_of(&[], Axis::Time, 4), []);
        assert_eq!(curves_of(&[(5, None, None)], Axis::Time, 4), []);
    }

    #[test]
    fn on_the_event_axis_the_last_column_has_what_came_after_the_last_event() {
        let columns = 6;
        let samples = [(0, Some(1), None), (25, Some(5), None), (1_000_000, Some(8), None)];
        let [(_, bytes)] = &curves_of(&samples, Axis::Event, columns)[..] else { panic!("one curve") };
        assert_eq!((bytes.len(), bytes.first(), bytes.last()), (columns as usize, Some(&0), Some(&8)));
        assert!(bytes.contains(&5) && bytes.is_sorted(), "{bytes:?}");
    }
}
