//! The x axis that two runs share: time or events since each began, or their steps, with equal numbers above one another.

use query::{Axis, ComparedAxis, Overview, StepSpan, Window};
use trace::order::{SortFew, Within};

/// How many times as long one run may be as the other, so that both are drawn over time unless a person wants it.
const MOST_APART: f64 = 8.0;

/// The axis.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedAxis {
    /// What it measures.
    pub kind: ComparedAxis,
    /// The part of it that either run covers.
    pub extent: Window,
    /// Each run's steps by number, if it measures steps.
    steps: [Vec<StepSpan>; 2],
}

impl SharedAxis {
    /// Chooses the axis: the wanted one, as far as both runs have it. `wholes` are the extents of both runs in time, if they
    /// have times, and in events.
    pub fn of(wanted: ComparedAxis, wholes: [(Option<Window>, Window); 2], steps: [&[StepSpan]; 2]) -> Self {
        let [(time_a, events_a), (time_b, events_b)] = wholes;
        let has_steps = steps.iter().all(|steps| !steps.is_empty());
        let longer = |a: Window, b: Window| Window { start: 0.0, end: a.length().max(b.length()) };
        if wanted == ComparedAxis::Steps && has_steps {
            let numbers = || steps.iter().copied().flatten().map(|step| step.number as f64);
            let start = numbers().fold(f64::INFINITY, f64::min);
            let end = numbers().fold(0.0, f64::max) + 1.0;
            let steps = steps.map(|steps| {
                let mut steps = steps.to_vec();
                steps.sort_few_by_key(|step| step.number);
                steps
            });
            return Self { kind: ComparedAxis::Steps, extent: Window { start, end }, steps };
        }
        let none = || [Vec::new(), Vec::new()];
        // Of two that differ so much in time, the shorter would be a line.
        let is_alike = |a: Window, b: Window| {
            wanted == ComparedAxis::Time || a.length().max(b.length()) <= a.length().min(b.length()) * MOST_APART
        };
        match (time_a, time_b) {
            (Some(a), Some(b)) if wanted != ComparedAxis::Events && is_alike(a, b) => {
                Self { kind: ComparedAxis::Time, extent: longer(a, b), steps: none() }
            }
            _ => Self { kind: ComparedAxis::Events, extent: longer(events_a, events_b), steps: none() },
        }
    }

    /// Returns the axis of a run's own that the coordinates of [`Self::own`] are on.
    pub const fn axis(&self) -> Axis {
        match self.kind {
            ComparedAxis::Time => Axis::Time,
            ComparedAxis::Steps | ComparedAxis::Events => Axis::Event,
        }
    }

    /// Returns where a coordinate is in one of the runs, 0 or 1, whose extent is `whole`; `None` where that has nothing.
    pub fn own(&self, run: usize, x: f64, whole: Window) -> Option<f64> {
        if self.kind == ComparedAxis::Steps {
            let steps = self.steps.get(run)?;
            // Casts of floating point saturate.
            let place = steps.binary_search_by_key(&(x.floor() as u64), |step| step.number).ok()?;
            let step = steps.get(place)?;
            return Some(step.span.start + (x - x.floor()) * step.span.length());
        }
        let own = whole.start + x;
        (own <= whole.end).then_some(own)
    }

    /// Returns the coordinate of one of the runs that comes nearest to one of the axis: its start or its end where it has nothing.
    pub fn nearest(&self, run: usize, x: f64, whole: Window) -> f64 {
        let first = self.steps.get(run).and_then(|steps| steps.first()).map_or(0.0, |step| step.number as f64);
        self.own(run, x, whole).unwrap_or(if x < first { whole.start } else { whole.end })
    }

    /// Returns where a run's own coordinate is on the axis, the other way around.
    pub fn shared(&self, run: usize, own: f64, whole: Window) -> Option<f64> {
        if self.kind == ComparedAxis::Steps {
            let steps = self.steps.get(run)?;
            let step = steps.iter().find(|step| step.span.start <= own && own <= step.span.end)?;
            let phase = (own - step.span.start) / step.span.length().max(f64::MIN_POSITIVE);
            return Some(step.number as f64 + phase.within(0.0, 1.0));
        }
        Some(own - whole.start)
    }

    /// Returns the least and the most bytes of a run's live tensors in each of the columns of a window.
    pub fn columns(&self, run: usize, overview: &Overview, window: Window, columns: u32) -> Vec<Option<(u64, u64)>> {
        let (whole, count) = (overview.window, overview.allocated.len());
        let place = |own: f64| (own - whole.start) / whole.length().max(f64::MIN_POSITIVE) * count as f64;
        let unit = window.length() / f64::from(columns.max(1));
        let value = |column: u32| {
            let left = window.start + f64::from(column) * unit;
            let from = self.own(run, left, whole)?;
            // Up to where the column ends, or the step or the run that it begins in.
            let to = self.own(run, left + unit * 0.999, whole).filter(|to| *to >= from).unwrap_or(from);
            // Casts of floating point saturate.
            let from = (place(from) as usize).min(count.checked_sub(1)?);
            let to = (place(to) as usize).clamp(from, count - 1);
            let most = overview.allocated.get(from..=to)?.iter().copied().max()?;
            let least = overview.least.get(from..=to).and_then(|least| least.iter().copied().min()).unwrap_or(most);
            Some((least.min(most), most))
        };
        (0..columns).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn w(start: f64, end: f64) -> Window {
        Window { start, end }
    }

    fn steps(spans: &[(u64, f64, f64)]) -> Vec<StepSpan> {
        let step = |&(number, start, end): &(u64, f64, f64)| StepSpan {
            number,
            from: start as u32,
            to: end as u32,
            span: w(start, end),
            is_whole: true,
        };
        spans.iter().map(step).collect()
    }

    #[test]
    fn steps_with_equal_numbers_stand_above_one_another() {
        let (a, b) = (steps(&[(1, 0.0, 10.0), (2, 10.0, 20.0)]), steps(&[(2, 0.0, 100.0), (3, 100.0, 150.0)]));
        let wholes = [(None, w(0.0, 21.0)), (None, w(0.0, 151.0))];
        let axis = SharedAxis::of(ComparedAxis::Steps, wholes, [&a, &b]);
        assert_eq!((axis.kind, axis.extent, axis.axis()), (ComparedAxis::Steps, w(1.0, 4.0), Axis::Event));
        let own = |run, x| axis.own(run, x, w(0.0, 0.0));
        assert_eq!([own(0, 2.5), own(1, 2.5), own(0, 3.5), own(1, 1.5)], [Some(15.0), Some(50.0), None, None]);
        for (run, at) in [(0, 15.0), (1, 120.0)] {
            let x = axis.shared(run, at, w(0.0, 0.0)).unwrap();
            assert!((own(run, x).unwrap() - at).abs() < 1e-9);
        }
    }

    #[test]
    fn without_steps_it_is_time_and_without_times_events() {
        let (time, events) = (w(5.0, 25.0), w(0.0, 11.0));
        let of = |wanted, a, b| SharedAxis::of(wanted, [(a, events), (b, w(0.0, 31.0))], [&[], &[]]);
        assert_eq!(
            of(ComparedAxis::Steps, Some(time), Some(w(0.0, 2.0))).kind,
            ComparedAxis::Events,
            "one is far longer"
        );
        assert_eq!(of(ComparedAxis::Time, Some(time), Some(w(0.0, 2.0))).kind, ComparedAxis::Time);
        let by_time = of(ComparedAxis::Steps, Some(time), Some(w(0.0, 8.0)));
        assert_eq!((by_time.kind, by_time.extent), (ComparedAxis::Time, w(0.0, 20.0)));
        assert_eq!([by_time.own(0, 3.0, time), by_time.own(0, 21.0, time)], [Some(8.0), None]);
        assert_eq!(by_time.shared(0, 8.0, time), Some(3.0));
        assert_eq!([by_time.nearest(0, 3.0, time), by_time.nearest(0, 99.0, time)], [8.0, 25.0]);
        for wanted in [ComparedAxis::Events, ComparedAxis::Time] {
            let time = Some(time).filter(|_| wanted == ComparedAxis::Events);
            let by_event = of(wanted, time, None);
            assert_eq!((by_event.kind, by_event.extent), (ComparedAxis::Events, w(0.0, 31.0)));
        }
    }

    #[test]
    fn a_column_has_the_most_of_all_that_it_covers_and_none_behind_the_end() {
        let overview = Overview {
            window: w(0.0, 8.0),
            allocated: vec![1, 9, 3, 4, 5, 6, 7, 8].into(),
            least: vec![0, 1, 2, 3, 4, 5, 6, 7].into(),
            ..Overview::default()
        };
        let wholes = [(None, w(0.0, 8.0)), (None, w(0.0, 16.0))];
        let axis = SharedAxis::of(ComparedAxis::Events, wholes, [&[], &[]]);
        let columns = axis.columns(0, &overview, axis.extent, 4);
        assert_eq!(columns, [Some((0, 9)), Some((4, 8)), Some((7, 8)), None]);
        assert_eq!(axis.columns(0, &Overview::default(), axis.extent, 2), [None, None]);
    }
}
