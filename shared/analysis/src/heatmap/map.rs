//! The two heatmaps, with the columns that they have kept.

use super::address::{AddressRows, Division, Scene};
use super::bands::{Bands, Columns, Progress};
use super::cells::{Cell, Peaks, Shares};
use super::sizes::{Extremes, SizeRows, classes};
use super::sweep::sweep;
use crate::lod::{Span, spans};
use query::{Axis, HeatmapPart, Window};
use replay::Replay;
use trace::DeviceTrace;

/// A trace and the axis on which it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// The trace.
    pub trace: &'a DeviceTrace,
    /// Its replay.
    pub replay: &'a Replay,
    /// The axis.
    pub axis: Axis,
}

impl<'a> Timed<'a> {
    fn progress(self) -> Progress {
        let positions = self.replay.positions();
        let settled = match self.axis {
            Axis::Event => f64::from(positions),
            Axis::Time => self.replay.time_at(self.trace, positions) as f64,
        };
        Progress { positions, settled }
    }

    /// Returns the positions of each column.
    fn spans(self, columns: Columns) -> impl Iterator<Item = Option<Span>> + 'a {
        self.spans_of(columns.window(), columns.count() as u32)
    }

    /// Returns the positions of each of `columns` equal parts of a window; `None` outside the trace.
    ///
    /// They are those of [`spans`], and on the time axis also those that last no time at the start of a column: of
    /// several events in one microsecond, only the last one's state is current, but a gap may be in any of them.
    pub fn spans_of(self, window: Window, columns: u32) -> impl Iterator<Item = Option<Span>> + 'a {
        let Self { trace, replay, axis } = self;
        let width = window.length() / f64::from(columns.max(1));
        spans(trace, replay, axis, window, columns).zip(0..columns).map(move |(span, column)| {
            let span = span?;
            let start = window.start + f64::from(column) * width;
            let first = match axis {
                Axis::Event => span.first,
                // Times are whole microseconds.
                Axis::Time => span.first.min(replay.position_at_time(trace, start.ceil() - 1.0).saturating_add(1)),
            };
            Some(Span { first, ..span })
        })
    }
}

/// The kept columns of the map of addresses.
#[derive(Debug)]
pub struct AddressMap {
    division: Division,
    bands: Bands<Shares>,
}

impl AddressMap {
    /// Creates a map without columns.
    pub fn new(division: Division) -> Self {
        Self { division, bands: Bands::new(division.rows()) }
    }

    /// Returns how its rows divide the addresses.
    pub const fn division(&self) -> Division {
        self.division
    }

    /// Returns the cells of columns, column by column.
    pub fn cells(&mut self, timed: Timed<'_>, scene: Scene<'_>, columns: Columns) -> &[Shares] {
        let division = self.division;
        self.bands.cells(columns, timed.progress(), |columns| {
            sweep(AddressRows::new(scene, division), (timed.trace, timed.replay), timed.spans(columns))
        })
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.bands.bytes()
    }
}

/// The kept columns of the map of sizes.
#[derive(Debug)]
pub struct SizeMap {
    bands: Bands<Extremes>,
    largest: u64,
}

impl SizeMap {
    /// Creates a map without columns, with a row for each class up to that of the largest request.
    pub fn new(largest: u64) -> Self {
        Self { bands: Bands::new(classes(largest)), largest }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.bands.rows()
    }

    /// Returns the cells of columns, column by column. `only` bounds the addresses for a single segment.
    pub fn cells(
        &mut self,
        timed: Timed<'_>,
        part: HeatmapPart,
        only: Option<(u64, u64)>,
        columns: Columns,
    ) -> &[Extremes] {
        let largest = self.largest;
        self.bands.cells(columns, timed.progress(), |columns| {
            sweep(SizeRows::new(part, largest, only), (timed.trace, timed.replay), timed.spans(columns))
        })
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.bands.bytes()
    }
}

/// Returns the most bytes of each use between two offsets, over the positions of a span.
pub fn peaks(timed: Timed<'_>, scene: Scene<'_>, (from, to): (u64, u64), span: Span) -> Peaks {
    let rows = AddressRows::new(scene, Division::new(from, to, 1));
    sweep(rows, (timed.trace, timed.replay), std::iter::once(Some(span))).pop().unwrap_or(Peaks::NONE)
}

/// Returns the most and the least free bytes for each size class, over the positions of a span.
pub fn extremes(
    timed: Timed<'_>,
    part: HeatmapPart,
    (largest, only): (u64, Option<(u64, u64)>),
    span: Span,
) -> Vec<Extremes> {
    sweep(SizeRows::new(part, largest, only), (timed.trace, timed.replay), std::iter::once(Some(span)))
}
