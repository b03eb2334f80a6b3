//! The curves of measures: the smallest and largest value of each over any span of positions, in steps that depend on
//! the pixels and not on the length of the trace.

use super::bucket_values::BucketValues;
use super::columns::{self, Span};
use super::maxima::{Maxima, larger};
use super::{BUCKET, bucket_of};
use crate::measures::{Measures, Measuring};
use query::{Curve, Curves, CurvesQuery, Measure};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::DeviceTrace;

/// The sums that follow from the trace alone.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requested: u64,
    allocated: u64,
    active: u64,
    reserved: u64,
}

/// The parts of the measures that follow from the gaps, at every position. All other measures follow from these and from
/// the sums.
#[derive(Debug, Default)]
struct GapValues {
    split: BucketValues,
    whole: BucketValues,
    small: BucketValues,
    large: BucketValues,
    gaps: BucketValues,
    index: BucketValues,
}

/// A measure at one position.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    now: Measures,
    /// The fragmentation index in units of [`INDEX_UNIT`], rounded down.
    index: u32,
}

/// The steps of a stored fragmentation index, which is below 1: far finer than any digit that is shown.
const INDEX_UNIT: f64 = 1.0 / (1_u64 << 32) as f64;

impl Point {
    fn of(now: &Measures) -> Self {
        // Casts of floats saturate.
        Self { now: *now, index: (now.fragmentation_index() / INDEX_UNIT) as u32 }
    }

    /// Returns a number whose order is that of the measure's values. Values are never negative, so these are their bits.
    #[inline]
    fn rank(&self, measure: Measure) -> u64 {
        match measure {
            Measure::FragmentationIndex => f64::from(self.index) * INDEX_UNIT,
            other => self.now.value(other),
        }
        .to_bits()
    }
}

/// The extremes of a measure in each bucket.
#[derive(Debug, Default)]
struct Extremes {
    most: Maxima,
    /// The complement of each rank is kept: its largest is that of the smallest value.
    least: Maxima,
}

/// The measures of a device by bucket.
#[derive(Debug, Default)]
pub struct RunningMeasures {
    /// The measures up to here; `None` before the first event.
    measuring: Option<Measuring>,
    /// The measures at the positions of the last bucket.
    tail: Vec<Point>,
    /// The sums at each bucket's first position.
    starts: Vec<Sums>,
    values: GapValues,
    /// By measure.
    extremes: [Extremes; Measure::ALL.len()],
}

impl Index<Replayed<'_>> for RunningMeasures {
    fn extend(&mut self, Replayed { trace, replay, .. }: Replayed<'_>) {
        let end = replay.positions();
        let mut measuring = match self.measuring.take() {
            Some(measuring) => measuring,
            None => {
                let measuring = Measuring::at(replay, 0);
                self.tail.push(Point::of(&measuring.now()));
                measuring
            }
        };
        if measuring.position() < end || self.starts.is_empty() {
            // The last bucket may have been incomplete: it is written again.
            let first = self.starts.len().saturating_sub(1);
            self.starts.truncate(first);
            self.values.each().into_iter().for_each(|values| values.truncate(first));
            let mut found: [[Vec<(u64, u32)>; 2]; Measure::ALL.len()] = Default::default();
            let Self { tail, starts, values, .. } = self;
            measuring.advance(trace, replay, end, |position, now| {
                if position.is_multiple_of(BUCKET) {
                    close(tail, starts, values, &mut found);
                    tail.clear();
                }
                tail.push(Point::of(now));
            });
            close(tail, starts, values, &mut found);
            for (known, [most, least]) in self.extremes.iter_mut().zip(&found) {
                known.most.replace_from(first, most);
                known.least.replace_from(first, least);
            }
        }
        self.measuring = Some(measuring);
    }

    fn bytes(&self) -> usize {
        let GapValues { split, whole, small, large, gaps, index } = &self.values;
        let values: usize = [split, whole, small, large, gaps, index].map(BucketValues::memory).iter().sum();
        // The extremes of each bucket, and a seventh as many above.
        let extremes = Measure::ALL.len() * 2 * size_of::<(u64, u32)>() * 8 / 7;
        values + self.starts.len() * (size_of::<Sums>() + extremes)
    }
}

impl GapValues {
    fn each(&mut self) -> [&mut BucketValues; 6] {
        let Self { split, whole, small, large, gaps, index } = self;
        [split, whole, small, large, gaps, index]
    }
}

/// Writes the bucket of these points.
fn close(
    tail: &[Point],
    starts: &mut Vec<Sums>,
    values: &mut GapValues,
    found: &mut [[Vec<(u64, u32)>; 2]; Measure::ALL.len()],
) {
    let Some(start) = tail.first() else { return };
    let first = starts.len() as u32 * BUCKET;
    let Measures { requested, allocated, active, reserved, .. } = start.now;
    starts.push(Sums { requested, allocated, active, reserved });
    let points = tail.iter();
    values.split.push(points.clone().map(|point| point.now.inactive_split));
    values.whole.push(points.clone().map(|point| point.now.cached_whole));
    values.small.push(points.clone().map(|point| point.now.largest_small_gap));
    values.large.push(points.clone().map(|point| point.now.largest_large_gap));
    values.gaps.push(points.clone().map(|point| u64::from(point.now.gaps)));
    values.index.push(points.map(|point| u64::from(point.index)));
    for (measure, [most, least]) in Measure::ALL.into_iter().zip(found) {
        let (mut high, mut low) = ((start.rank(measure), first), (start.rank(measure), first));
        for (point, position) in tail.iter().zip(first..) {
            let rank = point.rank(measure);
            if rank > high.0 {
                high = (rank, position);
            }
            if rank < low.0 {
                low = (rank, position);
            }
        }
        most.push(high);
        least.push((!low.0, low.1));
    }
}

/// The extremes of a measure over a span, as far as they were found. The lowest is kept as its complement.
struct SpanExtremes<'a> {
    measure: Measure,
    most: &'a Maxima,
    least: &'a Maxima,
    high: Option<(u64, u32)>,
    low: Option<(u64, u32)>,
}

/// The points of the bucket that was read last: neighbouring columns share theirs.
#[derive(Default)]
struct LastRead {
    bucket: Option<u32>,
    points: Vec<Point>,
}

impl RunningMeasures {
    /// Returns the curves of measures in a window. [`Index::extend`] must have been called with this trace.
    pub fn curves(&self, trace: &DeviceTrace, replay: &Replay, query: &CurvesQuery) -> Curves {
        let empty = |&measure: &Measure| Curve { measure, least: Vec::new().into(), most: Vec::new().into() };
        let mut curves: Vec<Curve> = query.measures.iter().map(empty).collect();
        let mut last = LastRead::default();
        for span in columns::spans(trace, replay, query.axis, query.window, query.columns) {
            let found = span.map(|span| self.extremes(trace, replay, &query.measures, span, &mut last));
            let found = found.unwrap_or_default();
            for (i, curve) in curves.iter_mut().enumerate() {
                let (least, most) = found.get(i).copied().unwrap_or((f64::NAN, f64::NAN));
                curve.least.push(least);
                curve.most.push(most);
            }
        }
        Curves { query: query.clone(), curves }
    }

    /// Returns the smallest and the largest value of some measures over the positions of a span.
    fn extremes(
        &self,
        trace: &DeviceTrace,
        replay: &Replay,
        measures: &[Measure],
        span: Span,
        last: &mut LastRead,
    ) -> Vec<(f64, f64)> {
        let (from, to) = (bucket_of(span.first), bucket_of(span.last));
        let mut found: Vec<SpanExtremes> = measures
            .iter()
            .filter_map(|&measure| {
                let Extremes { most, least } = self.extremes.get(measure as usize)?;
                let between = |maxima: &Maxima| maxima.over(from as usize + 1, to as usize);
                Some(SpanExtremes { measure, most, least, high: between(most), low: between(least) })
            })
            .collect();
        for bucket in [from, to].into_iter().take(if to > from { 2 } else { 1 }) {
            for SpanExtremes { measure, most, least, high, low } in &mut found {
                // No short circuit: what is settled by the bucket's own extreme needs no reading.
                let (is_high, is_low) = (most.settle(bucket, span, high), least.settle(bucket, span, low));
                if is_high && is_low {
                    continue;
                }
                self.read(trace, replay, bucket, last);
                for (point, position) in last.points.iter().zip(bucket * BUCKET..) {
                    if span.first <= position && position <= span.last {
                        let rank = point.rank(*measure);
                        *high = larger(*high, Some((rank, position)));
                        *low = larger(*low, Some((!rank, position)));
                    }
                }
            }
        }
        let value = |best: Option<(u64, u32)>| best.map_or(0, |(rank, _)| rank);
        found.iter().map(|found| (f64::from_bits(!value(found.low)), f64::from_bits(value(found.high)))).collect()
    }

    /// Reads the points of a bucket.
    fn read(&self, trace: &DeviceTrace, replay: &Replay, bucket: u32, last: &mut LastRead) {
        if last.bucket == Some(bucket) {
            return;
        }
        last.bucket = Some(bucket);
        let points = &mut last.points;
        let i = bucket as usize;
        let GapValues { split, whole, small, large, gaps, index } = &self.values;
        let gaps_and_index = gaps.bucket(i).zip(index.bucket(i));
        let values = split.bucket(i).zip(whole.bucket(i)).zip(small.bucket(i).zip(large.bucket(i))).zip(gaps_and_index);
        points.clear();
        points.extend(values.map(|(((split, whole), (small, large)), (gaps, index))| {
            let now = Measures {
                inactive_split: split,
                cached_whole: whole,
                largest_small_gap: small,
                largest_large_gap: large,
                gaps: gaps as u32,
                ..Measures::default()
            };
            Point { now, index: index as u32 }
        }));
        // The sums, from the bucket's start on.
        let Sums { requested, allocated, active, reserved } = self.starts.get(i).copied().unwrap_or_default();
        let mut now = Measures { requested, allocated, active, reserved, ..Measures::default() };
        let first = bucket * BUCKET;
        let mut next = first;
        let mut reach = |now: &Measures, position: u32| {
            for point in points.iter_mut().take((position - first) as usize).skip((next - first) as usize) {
                let Measures { requested, allocated, active, reserved, .. } = *now;
                (point.now.requested, point.now.allocated) = (requested, allocated);
                (point.now.active, point.now.reserved) = (active, reserved);
            }
            next = position;
        };
        replay.changes(trace, first, first + BUCKET - 1, |position, change| {
            reach(&now, position);
            now.add(replay, change);
        });
        reach(&now, first + BUCKET);
    }
}
