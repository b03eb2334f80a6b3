//! Requested bytes by class at any position, and the largest total over any span.

use super::classes::{Classes, EXCLUDED};
use super::columns::Span;
use super::maxima::{Maxima, larger};
use super::{BUCKET, bucket_of};
use replay::{Change, Replay};
use trace::{ColumnReader, DeviceTrace};

/// The composition of a device's memory by bucket.
#[derive(Debug, Default)]
pub struct Pyramid {
    classes: usize,
    /// `classes` sums for each bucket's first position, bucket after bucket.
    starts: Vec<u64>,
    maxima: Maxima,
    buckets: usize,
}

/// Requested bytes by class while a trace is walked.
struct LiveSums<'a> {
    requested: ColumnReader<'a, u64>,
    class_of: &'a [u8],
    sums: Vec<u64>,
    total: u64,
}

impl LiveSums<'_> {
    #[inline]
    fn apply(&mut self, change: Change) {
        let (number, begins) = match change {
            Change::Begin(number) => (number, true),
            Change::End(number) => (number, false),
            Change::Freed(_) | Change::Reserved(_) => return,
        };
        let Some(sum) = self.class_of.get(number as usize).and_then(|&c| self.sums.get_mut(usize::from(c))) else {
            return;
        };
        let bytes = self.requested.get(number as usize).unwrap_or_default();
        if begins {
            *sum = sum.saturating_add(bytes);
            self.total = self.total.saturating_add(bytes);
        } else {
            *sum = sum.saturating_sub(bytes);
            self.total = self.total.saturating_sub(bytes);
        }
    }
}

impl Pyramid {
    /// Adds what the trace has beyond what was swept before. There may be more classes than before, but the earlier
    /// ones must be unchanged.
    pub(super) fn extend(&mut self, trace: &DeviceTrace, replay: &Replay, classes: &Classes) {
        let count = classes.classes.len().min(usize::from(EXCLUDED));
        let end = replay.positions();
        self.widen(count);
        let mut live = if self.buckets == 0 {
            let requested = replay.allocations.requested.reader();
            let mut live = LiveSums { requested, class_of: &classes.class_of, sums: vec![0; count], total: 0 };
            for number in 0..replay.allocations.made_by(0) {
                live.apply(Change::Begin(number));
            }
            self.starts.extend_from_slice(&live.sums);
            live
        } else {
            self.live_at(replay, classes, self.buckets as u32 - 1)
        };
        // The last bucket may have been incomplete: it is walked again.
        let first = self.buckets.saturating_sub(1);
        let buckets = bucket_of(end) as usize + 1;
        let starts = &mut self.starts;
        starts.reserve((buckets - first) * count);
        let mut maxima = Vec::with_capacity(buckets - first);
        let mut at = first as u32 * BUCKET;
        let mut best = (live.total, at);
        replay.changes(trace, at, end, |position, change| {
            if position > at {
                if live.total > best.0 {
                    best = (live.total, at);
                }
                for bucket in bucket_of(at)..bucket_of(position) {
                    maxima.push(best);
                    best = (live.total, (bucket + 1) * BUCKET);
                    starts.extend_from_slice(&live.sums);
                }
                at = position;
            }
            live.apply(change);
            // A bucket's sums are those at its first position, after all changes there.
            if position.is_multiple_of(BUCKET) {
                let from = starts.len() - count;
                starts[from..].copy_from_slice(&live.sums);
                best = (live.total, position);
            }
        });
        if live.total > best.0 {
            best = (live.total, at);
        }
        while first + maxima.len() < buckets {
            maxima.push(best);
            best = (live.total, (first + maxima.len()) as u32 * BUCKET);
            if (first + maxima.len()) * count >= starts.len() {
                starts.extend_from_slice(&live.sums);
            }
        }
        starts.truncate(buckets * count);
        self.maxima.replace_from(first, &maxima);
        self.buckets = buckets;
    }

    /// Adds classes, which were empty so far.
    fn widen(&mut self, count: usize) {
        if count > self.classes && self.classes > 0 {
            let mut wider = Vec::with_capacity(self.buckets * count);
            for sums in self.starts.chunks(self.classes) {
                wider.extend_from_slice(sums);
                wider.resize(wider.len() + count - sums.len(), 0);
            }
            self.starts = wider;
        } else if self.classes == 0 {
            self.starts = vec![0; self.buckets * count];
        }
        self.classes = count;
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        // The largest value of each bucket, and a seventh as many above.
        self.starts.capacity() * size_of::<u64>() + self.buckets * size_of::<(u64, u32)>() * 8 / 7
    }

    /// Returns the sums at a bucket's first position.
    fn live_at<'a>(&self, replay: &'a Replay, classes: &'a Classes, bucket: u32) -> LiveSums<'a> {
        let from = bucket as usize * self.classes;
        let sums = self.starts.get(from..from + self.classes).unwrap_or(&[]).to_vec();
        let (requested, total) =
            (replay.allocations.requested.reader(), sums.iter().fold(0, |a: u64, &b| a.saturating_add(b)));
        LiveSums { requested, class_of: &classes.class_of, sums, total }
    }

    /// Returns the largest total over the positions of a span, and the earliest position that has it.
    pub fn peak(&self, trace: &DeviceTrace, replay: &Replay, classes: &Classes, span: Span) -> (u64, u32) {
        let (first, last) = (bucket_of(span.first), bucket_of(span.last));
        let mut best = self.maxima.over(first as usize + 1, (last as usize).min(self.buckets));
        for bucket in [first, last].into_iter().take(if last > first { 2 } else { 1 }) {
            if !self.maxima.settle(bucket, span, &mut best) {
                best = larger(best, self.walked(trace, replay, classes, bucket, span));
            }
        }
        best.unwrap_or_default()
    }

    /// Returns the largest total over the positions of a span in one bucket, event by event.
    fn walked(
        &self,
        trace: &DeviceTrace,
        replay: &Replay,
        classes: &Classes,
        bucket: u32,
        span: Span,
    ) -> Option<(u64, u32)> {
        let mut best = None;
        let mut live = self.live_at(replay, classes, bucket);
        let mut at = bucket * BUCKET;
        let to = span.last.min(at + BUCKET - 1);
        replay.changes(trace, at, to, |position, change| {
            if position > at {
                if position > span.first {
                    best = larger(best, Some((live.total, at.max(span.first))));
                }
                at = position;
            }
            live.apply(change);
        });
        if to >= span.first { larger(best, Some((live.total, at.max(span.first)))) } else { best }
    }

    /// Returns the requested bytes by class at a position.
    pub fn composition(&self, trace: &DeviceTrace, replay: &Replay, classes: &Classes, position: u32) -> Vec<u64> {
        self.composition_and(trace, replay, classes, position, |_| {})
    }

    /// Returns the requested bytes by class at a position, and visits the changes from its bucket's first position to
    /// it, from which a caller can derive other sums.
    pub(super) fn composition_and(
        &self,
        trace: &DeviceTrace,
        replay: &Replay,
        classes: &Classes,
        position: u32,
        mut visit: impl FnMut(Change),
    ) -> Vec<u64> {
        let bucket = bucket_of(position);
        let mut live = self.live_at(replay, classes, bucket);
        replay.changes(trace, bucket * BUCKET, position, |_, change| {
            live.apply(change);
            visit(change);
        });
        live.sums
    }
}
