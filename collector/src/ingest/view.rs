//! What is shown of a session, without waiting for its disk.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::desk::Desk;
use crate::store::{Record, SegmentInfo, Totals};

/// The time over which the rate of events is taken.
const RATE_SPAN: Duration = Duration::from_secs(5);
/// The least time between two points of it.
const RATE_STEP: Duration = Duration::from_millis(250);

/// A session as of its last batch.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// What is known of it.
    pub record: Record,
    /// Sums over it.
    pub totals: Totals,
    /// Its segments.
    pub segments: Vec<SegmentInfo>,
    /// Its last batch.
    pub last: u64,
    /// Whether the recording itself says that it ended.
    pub has_end: bool,
    rate: VecDeque<(Instant, u64)>,
}

impl View {
    /// Of a session that is not open.
    pub fn of_record(record: Record) -> Self {
        let (totals, segments, last) = (record.totals.clone(), record.segments.clone(), record.last);
        Self { record, totals, segments, last, ..Self::default() }
    }

    /// Brings it up to a desk.
    pub(super) fn update(&mut self, desk: &Desk) {
        self.record.clone_from(desk.record());
        self.totals.clone_from(desk.totals());
        self.segments = desk.segments();
        (self.last, self.has_end) = (desk.last(), desk.has_end());
    }

    /// Remembers when how many events were there.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        if self.rate.back().is_some_and(|(then, _)| now.duration_since(*then) < RATE_STEP) {
            return;
        }
        self.rate.push_back((now, self.totals.events()));
        // One older than the span stays, to have all of it.
        while self.rate.get(1).is_some_and(|(then, _)| now.duration_since(*then) > RATE_SPAN) {
            self.rate.pop_front();
        }
    }

    /// Events a second, over the last seconds.
    pub fn rate(&self) -> f64 {
        let now = Instant::now();
        let recent = self.rate.iter().find(|(then, _)| now.duration_since(*then) <= RATE_SPAN);
        let Some((then, events)) = recent else { return 0.0 };
        let seconds = now.duration_since(*then).as_secs_f64();
        let events = self.totals.events().saturating_sub(*events);
        if seconds < RATE_STEP.as_secs_f64() { 0.0 } else { events as f64 / seconds }
    }

    /// Bytes in the store.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes behind a place: a segment's number and a byte in it.
    pub fn bytes_behind(&self, (number, byte): (u32, u64)) -> u64 {
        let later = self.segments.iter().filter(|segment| segment.number > number);
        let here = self.segments.iter().find(|segment| segment.number == number);
        later.map(|segment| segment.bytes - segment.head.min(segment.bytes)).sum::<u64>()
            + here.map_or(0, |segment| segment.bytes.saturating_sub(byte))
    }
}
