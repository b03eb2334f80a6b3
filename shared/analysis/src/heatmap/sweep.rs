//! Visits the states of a trace in one pass, and keeps a column of cells for each column of pixels.

use std::iter::Peekable;

use super::cells::Cell;
use crate::lod::Span;
use replay::{AllocatorState, Change, Gap, Replay, ReservedRange, Space, SpaceVisitor};
use trace::DeviceTrace;

/// The rows of a heatmap at one position.
pub(super) trait Rows {
    /// The cell of a row and a column.
    type Cell: Cell;
    /// The property of a gap's range that matters for the rows.
    type Kind: Copy;

    /// Returns what a range means for its gaps; `None` if the rows don't show them.
    fn kind(&mut self, range: &ReservedRange) -> Option<Self::Kind>;
    /// A gap has changed, as in [`SpaceVisitor::gap`].
    fn gap(&mut self, kind: Self::Kind, before: Option<Gap>, after: Option<Gap>);
    /// The allocator has changed.
    fn change(&mut self, position: u32, change: Change, replay: &Replay);
    /// Begins with the blocks of a state. Its gaps follow.
    fn begin(&mut self, state: &AllocatorState, replay: &Replay);
    /// Returns the number of rows.
    fn count(&self) -> usize;
    /// Calls `update` with the rows that have changed since the last time, and their cells at `position`.
    fn settle(&mut self, position: u32, update: impl FnMut(usize, Self::Cell));
}

/// Returns the cells of columns with these spans, column by column. A column without a span has [`Cell::NONE`].
///
/// All states of a span count, those between two changes of one position don't: they never were the state at a position.
pub(super) fn sweep<R: Rows>(
    rows: R,
    (trace, replay): (&DeviceTrace, &Replay),
    spans: impl Iterator<Item = Option<Span>>,
) -> Vec<R::Cell> {
    let spans: Vec<Option<Span>> = spans.collect();
    let count = rows.count();
    let none = vec![R::Cell::NONE; count * spans.len()];
    let first = spans.iter().flatten().next().map(|span| span.first);
    let last = spans.iter().flatten().next_back().map(|span| span.last);
    let (Some(first), Some(last)) = (first, last) else { return none };
    let mut sweep = Sweep {
        now: vec![R::Cell::NONE; count],
        rows,
        replay,
        position: first,
        gaps: Vec::new(),
        cells: none,
        column: 0,
        open: None,
        spans: spans.into_iter().peekable(),
    };
    let state = replay.state_at(first);
    let mut space = Space::of(&state, replay);
    sweep.rows.begin(&state, replay);
    for range in space.ranges() {
        if let Some(kind) = sweep.rows.kind(&range.range) {
            space.gaps_of(&range.range).for_each(|gap| sweep.rows.gap(kind, None, Some(gap)));
        }
    }
    replay.follow(trace, first, last, &mut space, &mut sweep);
    sweep.settle(u32::MAX);
    sweep.cells
}

/// A column that has begun and has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The index of its first cell.
    start: usize,
    /// Its last position.
    last: u32,
}

struct Sweep<'a, R: Rows, I: Iterator<Item = Option<Span>>> {
    rows: R,
    replay: &'a Replay,
    /// The cells of the state at `position`, as of the last settling.
    now: Vec<R::Cell>,
    /// The position of the changes that were visited last.
    position: u32,
    /// The changes of gaps whose position is not known yet.
    gaps: Vec<(R::Kind, Option<Gap>, Option<Gap>)>,
    cells: Vec<R::Cell>,
    /// The number of columns that have begun.
    column: usize,
    open: Option<Open>,
    spans: Peekable<I>,
}

impl<R: Rows, I: Iterator<Item = Option<Span>>> Sweep<'_, R, I> {
    /// Takes the state at `position`, which is complete and lasts until `next`, into the columns.
    fn settle(&mut self, next: u32) {
        let Self { rows, now, cells, open, .. } = self;
        rows.settle(self.position, |row, cell| {
            if let Some(own) = now.get_mut(row) {
                *own = cell;
            }
            if let Some(own) = open.and_then(|open| cells.get_mut(open.start + row)) {
                own.merge(&cell);
            }
        });
        if self.open.is_some_and(|open| open.last < next) {
            self.open = None;
        }
        let count = self.now.len();
        while let Some(span) = self.spans.next_if(|span| span.is_none_or(|span| span.first < next)) {
            let start = self.column * count;
            self.column += 1;
            let Some(span) = span else { continue };
            if let Some(column) = self.cells.get_mut(start..start + count) {
                column.copy_from_slice(&self.now);
                column.iter_mut().for_each(|cell| cell.set_position(span.first));
            }
            // Of columns that share a position, only the last one goes on.
            self.open = (span.last >= next).then_some(Open { start, last: span.last });
        }
    }
}

impl<R: Rows, I: Iterator<Item = Option<Span>>> SpaceVisitor for Sweep<'_, R, I> {
    fn gap(&mut self, range: &ReservedRange, before: Option<Gap>, after: Option<Gap>) {
        if let Some(kind) = self.rows.kind(range) {
            self.gaps.push((kind, before, after));
        }
    }

    fn change(&mut self, position: u32, change: Change, _: &Space) {
        if position != self.position {
            self.settle(position);
            self.position = position;
        }
        for (kind, before, after) in self.gaps.drain(..) {
            self.rows.gap(kind, before, after);
        }
        self.rows.change(position, change, self.replay);
    }
}
