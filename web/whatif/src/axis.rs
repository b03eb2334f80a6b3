//! The positions of a trace on the axes of the page.

use std::ops::RangeInclusive;

use protocol::whatif::CurvesAsked;
use query::Axis;

/// When each position was reached.
#[derive(Debug, Default)]
pub struct Times {
    /// Microseconds since the trace begins, by position; empty without times.
    us: Vec<u64>,
}

impl Times {
    /// Adds up the steps from each position to the next.
    pub fn of(steps_us: &[u32]) -> Self {
        let mut now = 0;
        let rest = steps_us.iter().map(|step| {
            now += u64::from(*step);
            now
        });
        Self { us: if steps_us.is_empty() { Vec::new() } else { std::iter::once(0).chain(rest).collect() } }
    }

    /// Returns the positions in a column.
    pub fn column(&self, asked: &CurvesAsked, column: u32) -> RangeInclusive<u32> {
        let unit = asked.window.length() / f64::from(asked.columns.max(1));
        let start = asked.window.start + f64::from(column) * unit;
        self.position(asked.axis, start)..=self.position(asked.axis, start + unit)
    }

    /// Returns the last position up to a coordinate.
    fn position(&self, axis: Axis, x: f64) -> u32 {
        match axis {
            // Casts of floats saturate.
            Axis::Event => x.max(0.0) as u32,
            Axis::Time => (self.us.partition_point(|us| *us as f64 <= x) as u32).saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use query::Window;

    use super::*;

    #[test]
    fn a_column_has_the_positions_that_are_reached_in_it() {
        let times = Times::of(&[10, 0, 5, 100]);
        let asked = |axis, start, end| CurvesAsked { axis, window: Window { start, end }, columns: 4 };
        let on_time = asked(Axis::Time, 0.0, 40.0);
        assert_eq!([0, 1, 2, 3].map(|column| times.column(&on_time, column)), [0..=2, 2..=3, 3..=3, 3..=3]);
        let on_events = asked(Axis::Event, 1.0, 9.0);
        assert_eq!([0, 3].map(|column| times.column(&on_events, column)), [1..=3, 7..=9]);
        assert_eq!(Times::of(&[]).column(&on_time, 3), 0..=0);
    }
}
