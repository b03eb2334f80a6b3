//! A run's reserved memory in columns of pixels: the work is that of the columns and the changes in them.

use std::ops::RangeInclusive;

use protocol::whatif::{CurvesAsked, RunCurve};
use whatif::ReservedCurve;

use crate::axis::Times;

/// Returns the curve of a run up to the event at which it stopped, if it did.
pub fn curve(
    id: u32,
    reserved: &ReservedCurve,
    stopped_at: Option<u32>,
    times: &Times,
    asked: &CurvesAsked,
) -> RunCurve {
    let (mut least, mut most) = (Vec::new(), Vec::new());
    for column in 0..asked.columns {
        let positions = times.column(asked, column);
        if stopped_at.is_some_and(|event| *positions.start() > event) {
            break;
        }
        let (low, high) = extremes(reserved, positions);
        least.push(low);
        most.push(high);
    }
    RunCurve { id, least: least.into(), most: most.into() }
}

/// Returns the least and the most bytes at some positions.
fn extremes(reserved: &ReservedCurve, positions: RangeInclusive<u32>) -> (u64, u64) {
    // A position follows the event of the number before.
    let place = |position: u32| reserved.events.partition_point(|event| *event < position).saturating_sub(1);
    let (first, last) = (place(*positions.start()), place(*positions.end()));
    let values = reserved.reserved.get(first..=last).unwrap_or_default();
    let most = values.iter().copied().max().unwrap_or_default();
    (values.iter().copied().min().unwrap_or_default(), most)
}

#[cfg(test)]
mod tests {
    use query::{Axis, Window};

    use super::*;

    #[test]
    fn each_column_has_its_extremes() {
        let reserved = ReservedCurve { events: vec![0, 2, 3, 7], reserved: vec![10, 40, 20, 30] };
        let asked = CurvesAsked { axis: Axis::Event, window: Window { start: 0.0, end: 10.0 }, columns: 5 };
        let found = curve(3, &reserved, None, &Times::default(), &asked);
        assert_eq!(found.least.0, [10, 10, 20, 20, 30]);
        assert_eq!(found.most.0, [10, 40, 20, 30, 30]);
        let stopped = curve(3, &reserved, Some(3), &Times::default(), &asked);
        assert_eq!((stopped.id, stopped.least.len(), stopped.most.len()), (3, 2, 2));
        let empty = curve(3, &ReservedCurve::default(), None, &Times::default(), &asked);
        assert_eq!(empty.most.0, [0; 5]);
    }
}
