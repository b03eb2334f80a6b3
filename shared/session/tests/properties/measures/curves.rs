//! The extremes of each pixel column against those of all its positions.

use analysis::lod::{RunningMeasures, extent, spans};
use analysis::measures::Measures;
use proptest::prelude::*;
use query::{Axis, CurvesQuery, Measure, Window};
use replay::index::Index;
use replay::{Replay, Replayed};

use super::followed;
use crate::support::{ops, run};

/// Returns the value that a curve shows, whose fragmentation index has steps.
fn shown(now: &Measures, measure: Measure) -> f64 {
    let value = now.value(measure);
    let steps = (1_u64 << 32) as f64;
    if measure == Measure::FragmentationIndex { (value * steps).floor() / steps } else { value }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_extreme_of_a_column_is_lost(
        ops in ops(900),
        lost in 0_usize..80,
        windows in prop::collection::vec((0.0_f64..1.0, 0.0_f64..1.0, 1_u32..40), 1..6),
        axis in prop::sample::select(vec![Axis::Event, Axis::Time]),
    ) {
        let mut run = run(&ops, lost);
        let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
        let measures = followed(&run.trace, &replay, 0);
        let index = RunningMeasures::build(Replayed { trace: &run.trace, tags: &run.tags, replay: &replay });
        let whole = extent(&run.trace, &replay, axis);
        for (a, b, columns) in windows {
            // Beyond both ends too.
            let x = |share: f64| whole.start + whole.length() * (share * 1.2 - 0.1);
            let window = Window { start: x(a.min(b)), end: x(a.max(b)) };
            let query = CurvesQuery { axis, window, columns, measures: Measure::ALL.to_vec() };
            let found = index.curves(&run.trace, &replay, &query);
            for (i, span) in spans(&run.trace, &replay, axis, window, columns).enumerate() {
                for curve in &found.curves {
                    let found = (curve.least[i], curve.most[i]);
                    let Some(span) = span else {
                        prop_assert!(found.0.is_nan() && found.1.is_nan());
                        continue;
                    };
                    let inside = &measures[span.first as usize..=span.last as usize];
                    let values = || inside.iter().map(|now| shown(now, curve.measure));
                    let want = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
                    prop_assert_eq!(found, want, "{:?} in column {} of {:?}", curve.measure, i, window);
                }
            }
        }
    }
}
