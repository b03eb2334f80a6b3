//! A time series of bounded length: it becomes coarser as it grows longer, and loses no maximum.
//!
//! If every event's sums are added, each point is exactly the maximum over its span, however coarse it has become.

use serde::{Deserialize, Serialize};

/// The largest number of points.
const POINTS: usize = 240;

/// A device's memory use over a whole session. Each point covers a span of time and has the largest sums in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Time in microseconds since the epoch, then bytes allocated, active and reserved.
    pub points: Vec<(i64, [u64; 3])>,
    /// Microseconds that a point covers; 0 while each moment has its own point.
    span_us: i64,
}

impl Series {
    /// The most bytes of memory for its points.
    pub const BYTES: usize = POINTS.next_power_of_two() * size_of::<(i64, [u64; 3])>();

    /// Adds the sums at a moment. A moment before the last point counts for that point.
    #[inline]
    pub fn add(&mut self, time_us: i64, sums: [u64; 3]) {
        match self.points.last_mut() {
            Some((from_us, most)) if time_us.saturating_sub(*from_us) < self.span_us || time_us <= *from_us => {
                raise(most, sums);
            }
            _ => self.points.push((time_us, sums)),
        }
        if self.points.len() > POINTS {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        let length_us = match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => last.0.saturating_sub(first.0),
            _ => 0,
        };
        self.span_us = self.span_us.saturating_mul(2).max(length_us / (POINTS as i64 / 2)).max(1);
        let mut coarse = Self { points: Vec::with_capacity(POINTS), span_us: self.span_us };
        for (time_us, sums) in self.points.drain(..) {
            match coarse.points.last_mut() {
                Some((from_us, most)) if time_us.saturating_sub(*from_us) < coarse.span_us => raise(most, sums),
                _ => coarse.points.push((time_us, sums)),
            }
        }
        *self = coarse;
    }
}

#[inline]
fn raise(most: &mut [u64; 3], sums: [u64; 3]) {
    for (most, sum) in most.iter_mut().zip(sums) {
        *most = (*most).max(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_and_order_are_kept_at_any_length() {
        for step in [0, 1, 7, 1_000_003] {
            let mut series = Series::default();
            for i in 0..10_000_i64 {
                series.add(i * step, [i as u64 % 100, 5, if i == 4_321 { 1 << 40 } else { 9 }]);
            }
            assert!(series.points.len() <= POINTS, "{step}");
            assert!(step == 0 || series.points.len() > POINTS / 4, "{step}: {}", series.points.len());
            assert!(series.points.is_sorted_by(|a, b| a.0 < b.0), "{step}");
            assert_eq!(series.points.iter().map(|(_, sums)| sums[2]).max(), Some(1 << 40), "{step}");
        }
    }

    #[test]
    fn a_clock_that_jumps_does_not_panic() {
        let mut series = Series::default();
        for time_us in [5, 3, i64::MAX, i64::MIN, 0] {
            series.add(time_us, [1, 2, 3]);
        }
        for time_us in 0..1_000 {
            series.add(i64::MIN + time_us, [1, 2, 3]);
        }
        assert!(series.points.len() <= POINTS);
    }
}
