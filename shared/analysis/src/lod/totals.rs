//! Reserved, active and allocated bytes at any position, and the largest of each over any span.

use super::columns::{self, Span};
use super::maxima::{Maxima, larger};
use super::sampled;
use super::{BUCKET, bucket_of};
use query::{Axis, LossSpan, Overview, Packed, SampleAt, Window};
use replay::index::Index;
use replay::{Change, Replay, Replayed};
use trace::event::counts_in_words;
use trace::order::{SortFew, Within};
use trace::{ColumnReader, DeviceTrace, Loss, Sample, Stage};

/// Allocated, active and reserved bytes, in this order.
type Sums = [u64; 3];
/// Indices into [`Sums`].
const ALLOCATED: usize = 0;
const ACTIVE: usize = 1;
const RESERVED: usize = 2;
/// The quantities whose largest values are kept: the sums, and the complement of the allocated bytes, which is largest where
/// they are least.
type Measured = [u64; 4];
/// The index of the complement in [`Measured`].
const COMPLEMENT: usize = 3;

fn measured(&[allocated, active, reserved]: &Sums) -> Measured {
    [allocated, active, reserved, !allocated]
}

/// The running totals of a device by bucket.
#[derive(Debug, Default)]
pub struct RunningTotals {
    /// The sums at each bucket's first position.
    starts: Vec<Sums>,
    maxima: [Maxima; 4],
    /// The position up to which the trace was swept.
    until: Option<u32>,
}

/// Applies a change; `sizes` are those of the allocations.
#[inline]
fn apply(sums: &mut Sums, sizes: &mut ColumnReader<'_, u64>, change: Change) {
    let mut size = |n: u32| sizes.get(n as usize).unwrap_or_default();
    match change {
        Change::Begin(n) => {
            let size = size(n);
            sums[ALLOCATED] = sums[ALLOCATED].saturating_add(size);
            sums[ACTIVE] = sums[ACTIVE].saturating_add(size);
        }
        Change::Freed(n) => sums[ALLOCATED] = sums[ALLOCATED].saturating_sub(size(n)),
        Change::End(n) => sums[ACTIVE] = sums[ACTIVE].saturating_sub(size(n)),
        Change::Reserved(bytes) => sums[RESERVED] = sums[RESERVED].saturating_add_signed(bytes),
    }
}

/// The sums at one position, to which later changes can be applied.
pub(super) struct RunningSums<'a>(Sums, ColumnReader<'a, u64>);

impl RunningSums<'_> {
    pub(super) fn apply(&mut self, change: Change) {
        apply(&mut self.0, &mut self.1, change);
    }

    pub(super) fn active(&self) -> u64 {
        self.0[ACTIVE]
    }
}

impl Index<Replayed<'_>> for RunningTotals {
    fn extend(&mut self, Replayed { trace, replay, .. }: Replayed<'_>) {
        let end = replay.positions();
        if self.until == Some(end) {
            return;
        }
        self.until = Some(end);
        if self.starts.is_empty() {
            let start = replay.totals_at_start();
            self.starts.push([start.allocated, start.active, start.reserved]);
        }
        // The last bucket may have been incomplete: it is walked again.
        let first = self.starts.len() - 1;
        let starts = &mut self.starts;
        let mut sums = starts.last().copied().unwrap_or_default();
        let mut at = first as u32 * BUCKET;
        let mut best = measured(&sums).map(|v| (v, at));
        let mut maxima: [Vec<(u64, u32)>; 4] = Default::default();
        let mut settle = |sums: &Sums, at: u32, until: u32, best: &mut [(u64, u32); 4], starts: &mut Vec<Sums>| {
            for (best, value) in best.iter_mut().zip(measured(sums)) {
                if value > best.0 {
                    *best = (value, at);
                }
            }
            for bucket in bucket_of(at)..bucket_of(until) {
                for (maxima, best) in maxima.iter_mut().zip(best.iter()) {
                    maxima.push(*best);
                }
                *best = measured(sums).map(|v| (v, (bucket + 1) * BUCKET));
                starts.push(*sums);
            }
        };
        let mut sizes = replay.allocations.size.reader();
        replay.changes(trace, at, u32::MAX, |position, change| {
            if position > at {
                settle(&sums, at, position, &mut best, starts);
                at = position;
            }
            apply(&mut sums, &mut sizes, change);
            // A bucket's sums are those at its first position, after all changes there.
            if position.is_multiple_of(BUCKET)
                && let Some(last) = starts.last_mut()
            {
                *last = sums;
                best = measured(&sums).map(|v| (v, position));
            }
        });
        settle(&sums, at, (bucket_of(end) + 1) * BUCKET, &mut best, starts);
        starts.truncate(bucket_of(end) as usize + 1);
        for (known, found) in self.maxima.iter_mut().zip(&maxima) {
            known.replace_from(first, found);
        }
    }

    fn bytes(&self) -> usize {
        // The largest values of each bucket, and a seventh as many above.
        self.starts.len() * (size_of::<Sums>() + 4 * size_of::<(u64, u32)>() * 8 / 7)
    }
}

impl RunningTotals {
    /// Returns allocated, active and reserved bytes at a position.
    pub fn at(&self, trace: &DeviceTrace, replay: &Replay, position: u32) -> (u64, u64, u64) {
        let bucket = bucket_of(position);
        let mut sums = self.starts.get(bucket as usize).copied().unwrap_or_default();
        let mut sizes = replay.allocations.size.reader();
        replay.changes(trace, bucket * BUCKET, position, |_, change| apply(&mut sums, &mut sizes, change));
        (sums[ALLOCATED], sums[ACTIVE], sums[RESERVED])
    }

    /// Returns the sums at the first position of a position's bucket.
    pub(super) fn before<'a>(&self, replay: &'a Replay, position: u32) -> RunningSums<'a> {
        let sums = self.starts.get(bucket_of(position) as usize).copied().unwrap_or_default();
        RunningSums(sums, replay.allocations.size.reader())
    }

    /// Returns the largest allocated, active and reserved bytes over the positions of a span, each with its position.
    pub fn largest(&self, trace: &DeviceTrace, replay: &Replay, span: Span) -> [(u64, u32); 3] {
        let [allocated, active, reserved, _] = self.extremes(trace, replay, span);
        [allocated, active, reserved]
    }

    /// Returns the least allocated bytes over the positions of a span.
    pub fn least_allocated(&self, trace: &DeviceTrace, replay: &Replay, span: Span) -> u64 {
        !self.extremes(trace, replay, span)[COMPLEMENT].0
    }

    /// Returns the largest of each measured quantity over the positions of a span, each with its position.
    fn extremes(&self, trace: &DeviceTrace, replay: &Replay, span: Span) -> [(u64, u32); 4] {
        let (first, last) = (bucket_of(span.first), bucket_of(span.last));
        let between = |quantity: usize| self.maxima[quantity].over(first as usize + 1, last as usize);
        let mut best = [between(ALLOCATED), between(ACTIVE), None, between(COMPLEMENT)];
        for bucket in [first, last].into_iter().take(if last > first { 2 } else { 1 }) {
            // No short circuit: each of them that is settled by the bucket's maximum needs no walk.
            let mut is_settled = true;
            for quantity in [ALLOCATED, ACTIVE, COMPLEMENT] {
                is_settled &= self.maxima[quantity].settle(bucket, span, &mut best[quantity]);
            }
            if !is_settled {
                self.walk(trace, replay, bucket, span, &mut best);
            }
        }
        best[RESERVED] = Some(self.largest_reserved(replay, span));
        best.map(Option::unwrap_or_default)
    }

    /// Raises `best` to the largest values over the positions of a span in one bucket, event by event. Reserved bytes are
    /// not looked at.
    fn walk(&self, trace: &DeviceTrace, replay: &Replay, bucket: u32, span: Span, best: &mut [Option<(u64, u32)>; 4]) {
        let mut sums = self.starts.get(bucket as usize).copied().unwrap_or_default();
        let mut at = bucket * BUCKET;
        let to = span.last.min(at + BUCKET - 1);
        let consider = |sums: &Sums, at: u32, until: u32, best: &mut [Option<(u64, u32)>; 4]| {
            if until > span.first {
                let values = measured(sums);
                for quantity in [ALLOCATED, ACTIVE, COMPLEMENT] {
                    best[quantity] = larger(best[quantity], Some((values[quantity], at.max(span.first))));
                }
            }
        };
        let mut sizes = replay.allocations.size.reader();
        replay.changes(trace, at, to, |position, change| {
            if position > at {
                consider(&sums, at, position, best);
                at = position;
            }
            apply(&mut sums, &mut sizes, change);
        });
        consider(&sums, at, to + 1, best);
    }

    /// Returns the largest reserved total over the positions of a span, and its position. Only the few changes of
    /// reserved bytes are walked.
    pub(super) fn largest_reserved(&self, replay: &Replay, span: Span) -> (u64, u32) {
        let (first, last) = (bucket_of(span.first), bucket_of(span.last));
        let mut best = self.maxima[RESERVED].over(first as usize + 1, last as usize);
        for bucket in [first, last].into_iter().take(if last > first { 2 } else { 1 }) {
            let mut reserved = self.starts.get(bucket as usize).map_or(0, |sums| sums[RESERVED]);
            let mut at = bucket * BUCKET;
            let to = span.last.min(at + BUCKET - 1);
            for (position, bytes) in replay.reserved_changes(at, to) {
                if position > at && position > span.first {
                    best = larger(best, Some((reserved, at.max(span.first))));
                }
                at = position;
                reserved = reserved.saturating_add_signed(bytes);
            }
            best = larger(best, Some((reserved, at.max(span.first))));
        }
        best.unwrap_or_default()
    }

    /// Returns the largest reserved total of the run, and its position.
    pub fn peak_reserved(&self) -> (u64, u32) {
        self.maxima[RESERVED].over(0, self.starts.len()).unwrap_or_default()
    }
}

/// Returns the totals over the whole run in pixel columns, with out-of-memory events and annotations. `ooms` are those
/// of [`oom::positions`](crate::oom::positions), and `name_of` resolves strings.
pub fn overview(
    trace: &DeviceTrace,
    replay: &Replay,
    totals: &RunningTotals,
    axis: Axis,
    columns: u32,
    ooms: &[(u32, u64)],
    name_of: impl Fn(trace::frames::StrId) -> String,
) -> Overview {
    let window = columns::extent(trace, replay, axis);
    let (mut allocated, mut active, mut reserved) = (Packed::default(), Packed::default(), Packed::default());
    let mut least = Packed::default();
    for span in columns::spans(trace, replay, axis, window, columns) {
        let best = span.map_or([0; 4], |span| match sampled::newest(trace, replay) {
            Some(sample) => measured(&sample.sums()),
            None => totals.extremes(trace, replay, span).map(|(bytes, _)| bytes),
        });
        least.push(span.map_or(0, |_| !best[COMPLEMENT]));
        allocated.push(best[ALLOCATED]);
        active.push(best[ACTIVE]);
        reserved.push(best[RESERVED]);
    }
    let x = |position: u32| columns::coordinate(trace, replay, axis, position);
    let ooms = ooms.iter().map(|&(position, _)| (x(position), position)).collect();
    let annotations = annotations(trace, replay, axis, window, name_of);
    let losses = losses(trace, replay, totals, axis);
    let outside = super::outside::curves(trace, replay, axis, window, columns);
    Overview { window, reserved, active, allocated, least, ooms, annotations, losses, outside }
}

/// Returns the spans in which events are missing: each from the event before to the event after, within the axis.
/// Before the first event and after the last one a loss may not be recorded, but show in statistics that differ from
/// the state.
pub(super) fn losses(trace: &DeviceTrace, replay: &Replay, totals: &RunningTotals, axis: Axis) -> Vec<LossSpan> {
    let end = replay.positions();
    let extent = columns::extent(trace, replay, axis);
    let place = |loss: &Loss| {
        let position = loss.position.min(end);
        let start = columns::coordinate(trace, replay, axis, position);
        let after = if position < end { columns::coordinate(trace, replay, axis, position + 1) } else { extent.end };
        // Times may go back.
        let span = Window { start, end: after.max(start) };
        let samples = if axis == Axis::Time { samples(trace, span) } else { Vec::new() };
        LossSpan { span, position, events: loss.events, kinds: counts_in_words(&loss.by_action), samples }
    };
    let mut found: Vec<LossSpan> = trace.losses.iter().map(place).collect();
    for position in [0, end] {
        if found.iter().any(|loss| loss.position == position) {
            continue;
        }
        let loss = place(&Loss { position, ..Loss::default() });
        let held = totals.at(trace, replay, position);
        let differs = |sample: &SampleAt| (sample.allocated, sample.active, sample.reserved) != held;
        // A single sample may have been taken at the very moment of an event.
        let is_unseen = loss.samples.len() > 1 && loss.samples.iter().any(differs);
        if is_unseen || sampled::newest(trace, replay).is_some() {
            found.insert(if position == 0 { 0 } else { found.len() }, loss);
        }
    }
    found
}

/// Most samples of one loss in an answer: more than a screen can show.
const MOST_SAMPLES: usize = 512;

/// Returns the statistics of a span of the time axis. Where there are too many, each sample represents several.
fn samples(trace: &DeviceTrace, span: Window) -> Vec<SampleAt> {
    let first = trace.start_us();
    let x = |sample: &Sample| sample.time_us.saturating_sub(first) as f64;
    // Samples are expected in the order of time; otherwise some may be left out.
    let from = trace.samples.partition_point(|sample| x(sample) < span.start);
    let to = trace.samples.partition_point(|sample| x(sample) < span.end).max(from);
    let inside = trace.samples.get(from..to).unwrap_or(&[]);
    let together = inside.len().div_ceil(MOST_SAMPLES).max(1);
    let at = |sample: Sample| {
        let Sample { allocated, active, reserved, .. } = sample;
        SampleAt { x: x(&sample), allocated, active, reserved }
    };
    inside.chunks(together).filter_map(Sample::largest).map(at).collect()
}

/// Returns the annotated spans. Each end is paired with the newest open start of its name; a span without an end lasts
/// to the end of the axis. One that ended before the axis begins is left out.
fn annotations(
    trace: &DeviceTrace,
    replay: &Replay,
    axis: Axis,
    extent: Window,
    name_of: impl Fn(trace::frames::StrId) -> String,
) -> Vec<(Window, String)> {
    if trace.events.is_empty() && trace.samples.is_empty() {
        return Vec::new();
    }
    let x = |time_us: i64| {
        let since = time_us.saturating_sub(trace.start_us()) as f64;
        match axis {
            Axis::Time => since,
            Axis::Event if since < 0.0 => 0.0,
            Axis::Event => f64::from(replay.position_at_time(trace, since)),
        }
    };
    let is_before = |time_us: i64| time_us < trace.start_us();
    let mut open: Vec<(trace::frames::StrId, f64)> = Vec::new();
    let mut spans = Vec::new();
    // The file's order need not be that of time.
    let mut ordered = trace.annotations.clone();
    ordered.sort_few_by_key(|a| a.time_us);
    for a in &ordered {
        let at = x(a.time_us).within(extent.start, extent.end);
        match a.stage {
            Stage::Start => open.push((a.name, at)),
            Stage::End => {
                let start = match open.iter().rposition(|o| o.0 == a.name) {
                    Some(i) => open.remove(i).1,
                    None => extent.start,
                };
                if is_before(a.time_us) {
                    continue;
                }
                spans.push((Window { start, end: at }, name_of(a.name)));
            }
            Stage::Instant if is_before(a.time_us) => {}
            Stage::Instant => spans.push((Window { start: at, end: at }, name_of(a.name))),
        }
    }
    spans.extend(open.into_iter().map(|(name, start)| (Window { start, end: extent.end }, name_of(name))));
    spans.sort_few_by(|a, b| a.0.start.total_cmp(&b.0.start).then(b.0.end.total_cmp(&a.0.end)));
    spans
}
