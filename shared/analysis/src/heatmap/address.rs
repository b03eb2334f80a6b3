//! Rows of addresses: the bytes of each use in each row, changed where a block or gap changes.
//!
//! A change costs as many steps as rows that it overlaps. Of a gap that grows or shrinks, only the difference is
//! counted; all of it only when it becomes usable or ceases to be.

use super::cells::{AddressCell, Bytes, Use};
use super::packing::{Packing, is_of, is_of_pool};
use super::requests::{PoolKind, Requests};
use super::sweep::Rows;
use query::{HeatmapNeed, HeatmapPart};
use replay::{Allocation, AllocatorState, Change, Gap, Replay, ReservedRange};
use trace::{TagId, Tags};

/// The input of address rows.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The addresses.
    pub packing: &'a Packing,
    /// The requests, which determine the usable gaps.
    pub requests: &'a Requests,
    /// The part of the memory.
    pub part: HeatmapPart,
    /// The tags of allocations.
    pub tags: &'a Tags,
    /// A failed request, which also determines the usable gaps.
    pub needed: Option<HeatmapNeed>,
}

impl Scene<'_> {
    /// Returns the size of the smallest usable gap: that of [`Requests::threshold`], and no less than a failed request of
    /// that kind.
    pub fn threshold(&self, kind: PoolKind) -> u64 {
        let HeatmapNeed { pool, stream, is_small, size } = self.needed.unwrap_or_default();
        let least = if kind == (PoolKind { pool, stream, is_small }) { size } else { 0 };
        self.requests.threshold(kind).max(least)
    }
}

/// A stretch of offsets, divided into rows of equal size; the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The first offset.
    pub from: u64,
    /// The offset after the last one.
    pub to: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
}

impl Division {
    /// Divides `[from, to)` into at most `rows` rows.
    pub fn new(from: u64, to: u64, rows: u32) -> Self {
        let length = to.saturating_sub(from);
        Self { from, to, row_bytes: length.div_ceil(u64::from(rows.max(1))).max(1) }
    }

    /// Returns the rows that begin before an offset.
    #[must_use]
    pub fn before(self, end: u64) -> Self {
        Self { to: self.to.min(end).max(self.from), ..self }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.to.saturating_sub(self.from).div_ceil(self.row_bytes) as usize
    }

    /// Returns the bytes of a row.
    fn bytes_of(&self, row: usize) -> u64 {
        let start = self.from.saturating_add((row as u64).saturating_mul(self.row_bytes));
        self.to.saturating_sub(start).min(self.row_bytes)
    }
}

/// The bytes of each use in each row.
pub(super) struct AddressRows<'a, C> {
    scene: Scene<'a>,
    division: Division,
    rows: Vec<Row>,
    /// The rows that have changed since the last settling.
    touched: Vec<u32>,
    /// Counts settlings, to recognise rows that are in `touched`.
    round: u32,
    /// The extent of the last address.
    near: usize,
    /// The kind of the last range, since neighbouring changes are often of one range.
    last_kind: Option<(PoolKind, Option<u64>)>,
    cells: std::marker::PhantomData<C>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// By [`Use`], except unmapped ones, which are the rest. Below zero only while the changes of one position are
    /// visited, or in a damaged trace.
    bytes: [i64; 4],
    whole: u64,
    round: u32,
}

impl<'a, C> AddressRows<'a, C> {
    pub(super) fn new(scene: Scene<'a>, division: Division) -> Self {
        let rows = (0..division.rows()).map(|row| Row { whole: division.bytes_of(row), round: 1, ..Row::default() });
        let rows: Vec<Row> = rows.collect();
        // All rows are settled once.
        let touched = (0..rows.len() as u32).collect();
        Self { scene, division, rows, touched, round: 1, near: 0, last_kind: None, cells: std::marker::PhantomData }
    }

    /// Adds bytes of a use at `[address, end)`, or removes them with a negative sign.
    #[inline]
    fn add(&mut self, usage: Use, address: u64, end: u64, sign: i64) {
        if address >= end {
            return;
        }
        let Some((from, to)) = self.scene.packing.place_near(&mut self.near, address, end - address) else { return };
        let Division { from: first, to: last, row_bytes } = self.division;
        let (from, to) = (from.max(first), to.min(last));
        if from >= to {
            return;
        }
        let (from, to) = (from - first, to - first);
        let mut row = from / row_bytes;
        let mut at = from;
        while at < to {
            let edge = (row + 1) * row_bytes;
            let bytes = to.min(edge) - at;
            if let Some(own) = self.rows.get_mut(row as usize) {
                if let Some(sum) = own.bytes.get_mut(usage as usize) {
                    *sum += sign * bytes as i64;
                }
                if own.round != self.round {
                    own.round = self.round;
                    self.touched.push(row as u32);
                }
            }
            at = edge;
            row += 1;
        }
    }

    fn add_gap(&mut self, gap: Gap, threshold: u64, sign: i64) {
        self.add(use_of(gap, threshold), gap.address.0, gap.end(), sign);
    }

    /// Returns the address and the end of an allocation's block, if the rows show its pool and stream.
    fn block(&self, number: u32, replay: &Replay) -> Option<(u64, u64)> {
        let (i, allocations) = (number as usize, &replay.allocations);
        if !matches!(self.scene.part, HeatmapPart::All | HeatmapPart::Segment(_)) {
            let pool = allocations.pool.get(i).and_then(|pool| replay.pools.get(usize::from(pool)).copied());
            let stream = self.scene.tags.get(TagId(allocations.tag.get(i)?)).stream;
            if !is_of_pool(self.scene.part, pool.unwrap_or_default(), stream) {
                return None;
            }
        }
        let address = allocations.address.get(i)?;
        Some((address, address.saturating_add(allocations.size.get(i)?)))
    }
}

/// Returns the position from which an allocation waits for a stream, if it does: a block that is free with the event
/// after the request to free it waits for none. Until then it counts as allocated.
fn waits(number: u32, replay: &Replay) -> Option<u32> {
    let (i, allocations) = (number as usize, &replay.allocations);
    let freed = allocations.freed.get(i).filter(|freed| *freed != Allocation::NEVER)?;
    let end = allocations.end.get(i).unwrap_or(Allocation::NEVER);
    (end > freed.saturating_add(1)).then_some(freed)
}

/// Returns whether an active block waits for a stream at a position.
pub const fn is_waiting_at(block: &Allocation, position: u32) -> bool {
    block.freed <= position && block.end > block.freed.saturating_add(1)
}

/// Returns the use of a gap.
pub(super) const fn use_of(gap: Gap, threshold: u64) -> Use {
    if gap.size >= threshold { Use::Usable } else { Use::Unusable }
}

impl<C: AddressCell> Rows for AddressRows<'_, C> {
    type Cell = C;
    /// The size of the smallest usable gap.
    type Kind = u64;

    fn kind(&mut self, range: &ReservedRange) -> Option<u64> {
        let kind = PoolKind::of(range);
        match self.last_kind {
            Some((last, threshold)) if last == kind => threshold,
            _ => {
                let threshold = is_of(self.scene.part, range).then(|| self.scene.threshold(kind));
                self.last_kind = Some((kind, threshold));
                threshold
            }
        }
    }

    fn gap(&mut self, threshold: u64, before: Option<Gap>, after: Option<Gap>) {
        match (before, after) {
            (Some(before), Some(after))
                if use_of(before, threshold) == use_of(after, threshold)
                    && before.address.0 < after.end()
                    && after.address.0 < before.end() =>
            {
                let usage = use_of(after, threshold);
                self.add(usage, before.address.0, after.address.0, -1);
                self.add(usage, after.address.0, before.address.0, 1);
                self.add(usage, before.end(), after.end(), 1);
                self.add(usage, after.end(), before.end(), -1);
            }
            (before, after) => {
                if let Some(before) = before {
                    self.add_gap(before, threshold, -1);
                }
                if let Some(after) = after {
                    self.add_gap(after, threshold, 1);
                }
            }
        }
    }

    fn change(&mut self, position: u32, change: Change, replay: &Replay) {
        let (Change::Begin(number) | Change::Freed(number) | Change::End(number)) = change else { return };
        // Most frees are completed at once.
        if matches!(change, Change::Freed(_)) && waits(number, replay).is_none() {
            return;
        }
        let Some((address, end)) = self.block(number, replay) else { return };
        match change {
            Change::Begin(_) => self.add(Use::Allocated, address, end, 1),
            Change::Freed(_) => {
                self.add(Use::Allocated, address, end, -1);
                self.add(Use::Waiting, address, end, 1);
            }
            Change::End(_) => {
                let is_waiting = waits(number, replay).is_some_and(|freed| freed < position);
                self.add(if is_waiting { Use::Waiting } else { Use::Allocated }, address, end, -1);
            }
            Change::Reserved(_) => {}
        }
    }

    fn begin(&mut self, state: &AllocatorState, replay: &Replay) {
        for &number in &state.active {
            if let (Some((address, end)), Some(block)) = (self.block(number, replay), replay.allocations.get(number)) {
                let is_waiting = is_waiting_at(&block, state.position);
                self.add(if is_waiting { Use::Waiting } else { Use::Allocated }, address, end, 1);
            }
        }
    }

    fn count(&self) -> usize {
        self.rows.len()
    }

    fn settle(&mut self, position: u32, mut update: impl FnMut(usize, C)) {
        for row in self.touched.drain(..) {
            let Some(own) = self.rows.get(row as usize) else { continue };
            let [allocated, waiting, usable, unusable] = own.bytes.map(|bytes| bytes.max(0) as u64);
            let used = allocated.saturating_add(waiting).saturating_add(usable).saturating_add(unusable);
            let bytes: Bytes = [allocated, waiting, usable, unusable, own.whole.saturating_sub(used)];
            update(row as usize, C::at(&bytes, own.whole, position));
        }
        self.round = self.round.wrapping_add(1);
    }
}
