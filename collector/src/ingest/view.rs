//! What is shown of a session, readable without waiting for the disk.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::writer::SessionWriter;
use crate::store::{Record, SegmentInfo, SessionTotals};

/// The time over which the event rate is measured.
const RATE_SPAN: Duration = Duration::from_secs(5);
/// The shortest time between two samples of the rate.
const RATE_STEP: Duration = Duration::from_millis(250);

/// A session as of its last batch.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Its record.
    pub record: Record,
    /// Its totals.
    pub totals: SessionTotals,
    /// Its log segments.
    pub segments: Vec<SegmentInfo>,
    /// The number of its last batch.
    pub last: u64,
    /// Whether its recording contains an end.
    pub has_end: bool,
    /// When retention will delete it for its age, if that was announced.
    pub delete_us: Option<i64>,
    rate: VecDeque<(Instant, u64)>,
}

impl View {
    /// Creates the view of a session that is not open.
    pub fn of_record(mut record: Record) -> Self {
        let (totals, segments) = (std::mem::take(&mut record.totals), std::mem::take(&mut record.segments));
        let mut view = Self { last: record.last, record, totals, segments, ..Self::default() };
        view.lighten();
        view
    }

    /// Gives up what is only needed while the session is open. The store has it.
    pub(super) fn lighten(&mut self) {
        for device in &mut self.totals.devices {
            device.series = Default::default();
        }
        (self.record.totals, self.record.segments) = Default::default();
        self.rate = VecDeque::new();
    }

    /// Returns the whole record, for the catalogue.
    pub(super) fn to_record(&self) -> Record {
        let Self { record, totals, segments, last, .. } = self;
        Record { totals: totals.clone(), segments: segments.clone(), last: *last, ..record.clone() }.without_series()
    }

    /// Updates the view from the session's writer.
    pub(super) fn update(&mut self, writer: &SessionWriter) {
        self.record.clone_from(writer.record());
        self.totals.clone_from(writer.totals());
        self.segments = writer.segments();
        (self.last, self.has_end) = (writer.last(), writer.has_end());
    }

    /// Adds a sample for the event rate.
    pub(super) fn sample_rate(&mut self) {
        let now = Instant::now();
        if self.rate.back().is_some_and(|(then, _)| now.duration_since(*then) < RATE_STEP) {
            return;
        }
        self.rate.push_back((now, self.totals.events()));
        // One older sample stays, so that the whole span is covered.
        while self.rate.get(1).is_some_and(|(then, _)| now.duration_since(*then) > RATE_SPAN) {
            self.rate.pop_front();
        }
    }

    /// Returns the events per second over the last seconds.
    pub fn rate(&self) -> f64 {
        let now = Instant::now();
        let recent = self.rate.iter().find(|(then, _)| now.duration_since(*then) <= RATE_SPAN);
        let Some((then, events)) = recent else { return 0.0 };
        let seconds = now.duration_since(*then).as_secs_f64();
        let events = self.totals.events().saturating_sub(*events);
        if seconds < RATE_STEP.as_secs_f64() { 0.0 } else { events as f64 / seconds }
    }

    /// Returns the bytes in the store.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the bytes of batches after a place: the number of a log segment and an offset in it.
    pub fn bytes_behind(&self, (number, byte): (u32, u64)) -> u64 {
        let later = self.segments.iter().filter(|segment| segment.number > number);
        let here = self.segments.iter().find(|segment| segment.number == number);
        later.map(|segment| segment.bytes - segment.head.min(segment.bytes)).sum::<u64>()
            + here.map_or(0, |segment| segment.bytes.saturating_sub(byte))
    }
}
