//! The heatmaps, and what is in their cells. Columns are kept for the next question.

use super::segments::pins;
use super::{Answering, windows};
use crate::caches::Cache;
use crate::caches::Caches;
use crate::context::Context;
use crate::states::States;
use analysis::heatmap::{
    AddressMap, Columns, Division, Extremes, Packing, PoolKind, Requests, Scene, Shares, SizeMap, Timed, Tone, Use,
    class_of, extremes, is_of, is_of_pool, is_waiting_at, peaks, size_of_class,
};
use analysis::lod::{Span, extent};
use analysis::segment_quads::segment_row;
use query::{
    AddressCell, Axis, ColorBy, DeviceSummary, Heatmap, HeatmapCell, HeatmapCellQuery, HeatmapFailure,
    HeatmapFailureQuery, HeatmapGroup, HeatmapNeed, HeatmapPart, HeatmapQuery, HeatmapRow, HeatmapRows, HeatmapThing,
    Packed, SizeCell, Window,
};
use replay::index::RecentCache;
use replay::{Allocation, AllocatorState, Gap};
use trace::limits::{HEATMAP_CELLS, HEATMAP_COLUMNS, HEATMAP_ROWS};
use trace::units::{PoolId, Stream};

/// Maps kept for one device: one is on the screen, one is that which the user switches back to.
const KEPT: usize = 2;
/// The least rows of a group of segments that has room for a label.
const LABEL_ROWS: u64 = 4;

/// What is kept for the heatmaps of one device.
#[derive(Debug, Default)]
struct Heatmaps {
    requests: Requests,
    /// Counts how often a threshold has changed: columns that were made before are outdated.
    version: u32,
    packings: RecentCache<HeatmapPart, Packing, KEPT>,
    maps: RecentCache<Key, Map, KEPT>,
}

/// What the columns of a map depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Key {
    axis: Axis,
    rows: HeatmapRows,
    part: HeatmapPart,
    needed: Option<HeatmapNeed>,
}

#[derive(Debug)]
enum Map {
    Addresses(AddressMap, u32),
    Sizes(SizeMap),
}

impl Cache for Heatmaps {
    fn bytes(&self) -> usize {
        let of = |map: &Map| match map {
            Map::Addresses(map, _) => map.bytes(),
            Map::Sizes(map) => map.bytes(),
        };
        self.requests.bytes() + self.maps.values().map(of).sum::<usize>()
    }

    fn forget_categories(&mut self) {}
}

impl Heatmaps {
    /// Brings requests and addresses up to date. Returns the addresses, which the caller puts back.
    fn prepare(&mut self, context: Context<'_>, part: HeatmapPart) -> Packing {
        let snapshot = context.snapshot;
        if self.requests.extend(context.replay, &snapshot.tags, &snapshot.settings) {
            self.version = self.version.wrapping_add(1);
        }
        let mut packing = self.packings.remove(&part).unwrap_or_default();
        if packing.extend(context.replay, part) {
            // Their columns were made for other offsets.
            self.maps.retain(|key| key.part != part);
        }
        packing
    }
}

/// Returns the addresses of a part that is a single segment.
fn only(part: HeatmapPart, packing: &Packing) -> Option<(u64, u64)> {
    let HeatmapPart::Segment(address) = part else { return None };
    let range = packing.extents().first().map(|extent| extent.range);
    Some(range.map_or((address.0, address.0), |range| (range.address.0, range.end())))
}

impl Answering for HeatmapQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Heatmap, String> {
        let HeatmapQuery { axis, window, rows, part, needed, .. } = *self;
        if !(window.length().is_finite() && window.length() > 0.0) {
            return Err("A heatmap needs a part of the axis to show.".to_owned());
        }
        let most_columns = self.columns.clamp(1, HEATMAP_COLUMNS);
        let most_rows = match rows {
            HeatmapRows::Addresses { rows, .. } => rows.clamp(1, HEATMAP_ROWS.min(HEATMAP_CELLS / most_columns)),
            HeatmapRows::Sizes => 1,
        };
        let largest_failed = largest_failed(context);
        let Heatmaps { requests, version, packings, maps } = {
            let packing = caches.of::<Heatmaps>().prepare(context, part);
            caches.of::<Heatmaps>().packings.insert(part, packing);
            caches.of::<Heatmaps>()
        };
        let Some((_, packing)) = packings.last() else {
            return Err("This trace has no heatmap.".to_owned());
        };
        let of = Timed { trace: context.trace, replay: context.replay, axis };
        let columns = Columns::of(window, extent(context.trace, context.replay, axis), most_columns);
        let key = Key { axis, rows, part, needed };
        let kept = maps.remove(&key);
        let (map, row_count, cells) = match rows {
            HeatmapRows::Addresses { offsets, .. } => {
                let total = packing.total();
                let (from, to) = offsets.filter(|(from, to)| from < to && *from < total).unwrap_or((0, total));
                let division = Division::new(from, to, most_rows).before(total);
                let mut map = match kept {
                    Some(Map::Addresses(map, made)) if made == *version && map.division() == division => map,
                    _ => AddressMap::new(division),
                };
                let scene = Scene { packing, requests, part, tags: &context.snapshot.tags, needed };
                let mut last = (Shares::default(), Tone::default());
                let tone = |shares: &Shares| {
                    if last.0 != *shares {
                        last = (*shares, Tone::of(*shares));
                    }
                    last.1.0
                };
                let cells = by_row(map.cells(of, scene, columns), division.rows(), tone);
                (Map::Addresses(map, *version), division.rows(), cells)
            }
            HeatmapRows::Sizes => {
                let fresh = SizeMap::new(requests.largest().max(largest_failed));
                let mut map = match kept {
                    Some(Map::Sizes(map)) if map.rows() == fresh.rows() => map,
                    _ => fresh,
                };
                let only = only(part, packing);
                let rows = map.rows();
                let cells = by_row(map.cells(of, part, only, columns), rows, Extremes::code);
                (Map::Sizes(map), rows, cells)
            }
        };
        let division = match &map {
            Map::Addresses(map, _) => Some(map.division()),
            Map::Sizes(_) => None,
        };
        maps.insert(key, map);
        Ok(Heatmap {
            query: *self,
            window: columns.window(),
            columns: columns.count() as u32,
            rows: row_count as u32,
            cells,
            from: division.map_or(0, |division| division.from),
            row_bytes: division.map_or(0, |division| division.row_bytes),
            total: division.map_or(0, |_| packing.total()),
            groups: division.map_or_else(Vec::new, |division| groups(packing, division)),
        })
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let zoomed = HeatmapRows::Addresses { rows: 31, offsets: Some((1 << 20, 9 << 20)) };
        let rows = [HeatmapRows::Addresses { rows: 31, offsets: None }, zoomed, HeatmapRows::Sizes];
        let (part, needed) = (HeatmapPart::All, None);
        let of = |(axis, window)| rows.map(|rows| Self { axis, window, columns: 41, rows, part, needed });
        windows(device).into_iter().flat_map(of).collect()
    }
}

/// Returns the codes of cells row by row, from cells that are column by column.
fn by_row<C>(cells: &[C], rows: usize, mut code: impl FnMut(&C) -> u16) -> Packed<u16> {
    /// Columns that are turned together: their cells stay in the cache.
    const BLOCK: usize = 32;
    let columns = cells.len().checked_div(rows).unwrap_or(0);
    let mut codes = vec![0; rows * columns];
    for first in (0..columns).step_by(BLOCK) {
        let last = (first + BLOCK).min(columns);
        for row in 0..rows {
            let places = codes.get_mut(row * columns + first..row * columns + last).unwrap_or(&mut []);
            let column = cells.get(first * rows + row..).unwrap_or(&[]).iter().step_by(rows);
            for (place, cell) in places.iter_mut().zip(column) {
                *place = code(cell);
            }
        }
    }
    Packed(codes)
}

/// Returns the size of the largest request that failed.
fn largest_failed(context: Context<'_>) -> u64 {
    context.summary.ooms.iter().map(|(_, size)| *size).max().unwrap_or(0)
}

impl Answering for HeatmapFailureQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Option<HeatmapFailure>, String> {
        let HeatmapFailureQuery { part, requested, pool, stream, gap } = *self;
        let packing = caches.of::<Heatmaps>().prepare(context, part);
        let place = gap.map(|(address, size)| packing.place(address.0, size));
        let is_shown = match part {
            HeatmapPart::Segment(_) => place.flatten().is_some(),
            _ => is_of_pool(part, pool, stream),
        };
        let found = is_shown.then(|| HeatmapFailure {
            query: *self,
            gap: place.flatten(),
            total: packing.total(),
            class: class_of(requested) as u32,
        });
        caches.of::<Heatmaps>().packings.insert(part, packing);
        Ok(found)
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let (part, pool, stream) = (HeatmapPart::All, PoolId::default(), Stream::default());
        let requested = device.ooms.first().map_or(1 << 20, |(_, bytes)| *bytes);
        vec![Self { part, requested, pool, stream, gap: None }]
    }
}

/// Returns the groups of neighbouring segments of one kind that have room for a label in the rows.
fn groups(packing: &Packing, rows: Division) -> Vec<HeatmapGroup> {
    let least = rows.row_bytes.saturating_mul(LABEL_ROWS);
    let mut groups: Vec<HeatmapGroup> = Vec::new();
    for extent in packing.extents() {
        let range = &extent.range;
        let same = groups
            .last_mut()
            .filter(|last| (last.stream, last.pool, last.is_small) == (range.stream, range.pool, range.is_small));
        match same {
            Some(last) => {
                last.size = last.size.saturating_add(range.size);
                last.segments += 1;
            }
            None => groups.push(HeatmapGroup {
                offset: extent.offset,
                size: range.size,
                segments: 1,
                address: range.address,
                stream: range.stream,
                pool: range.pool,
                is_small: range.is_small,
            }),
        }
    }
    groups.retain(|group| {
        let (from, to) = (group.offset.max(rows.from), group.offset.saturating_add(group.size).min(rows.to));
        to.saturating_sub(from) >= least
    });
    groups
}

impl Answering for HeatmapCellQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Option<HeatmapCell>, String> {
        let HeatmapCellQuery { axis, window, row, part, .. } = *self;
        let of = Timed { trace: context.trace, replay: context.replay, axis };
        let Some(span) = of.spans_of(window, 1).next().flatten() else {
            return Ok(None);
        };
        let packing = caches.of::<Heatmaps>().prepare(context, part);
        let found = match row {
            HeatmapRow::Addresses { from, to } => {
                let (from, to) = (from.min(packing.total()), to.min(packing.total()));
                caches.with(|heatmaps: &mut Heatmaps, caches| {
                    let scene = Scene {
                        packing: &packing,
                        requests: &heatmaps.requests,
                        part,
                        tags: &context.snapshot.tags,
                        needed: self.needed,
                    };
                    let states = caches.of::<States>();
                    (from < to).then(|| address_cell(context, states, self, (scene, from, to), (of, span)))
                })
            }
            HeatmapRow::Size(class) => {
                let requests = &caches.of::<Heatmaps>().requests;
                let largest = requests.largest().max(largest_failed(context));
                let found = extremes(of, part, (largest, only(part, &packing)), span);
                found.get(class as usize).map(|Extremes { most, least }| {
                    HeatmapCell::Size(SizeCell {
                        query: *self,
                        positions: (span.first, span.last),
                        size: size_of_class(class as usize),
                        most: (most.bytes, most.gaps, most.position),
                        least: (least.bytes, least.gaps, least.position),
                    })
                })
            }
        };
        caches.of::<Heatmaps>().packings.insert(part, packing);
        Ok(found)
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let (part, needed) = (HeatmapPart::All, None);
        let rows = [HeatmapRow::Addresses { from: 0, to: 4 << 20 }, HeatmapRow::Size(3)];
        let of = |(axis, whole): (Axis, Window)| {
            let window = Window { start: whole.start, end: whole.start + whole.length() / 4.0 };
            rows.map(|row| Self { axis, window, row, part, needed })
        };
        windows(device).into_iter().flat_map(of).collect()
    }
}

fn address_cell(
    context: Context<'_>,
    states: &mut States,
    query: &HeatmapCellQuery,
    (scene, from, to): (Scene<'_>, u64, u64),
    (of, span): (Timed<'_>, Span),
) -> HeatmapCell {
    let peaks = peaks(of, scene, (from, to), span).0;
    let most = peaks.map(|(bytes, _)| bytes);
    let of_use = |of: Use| peaks.get(of as usize).copied().filter(|(bytes, _)| *bytes > 0);
    let (shown, position) = Use::PRECEDENCE
        .into_iter()
        .find_map(|of| of_use(of).map(|(_, position)| (of, position)))
        .unwrap_or((Use::Unmapped, span.first));
    let state = states.at(context.replay, position);
    let place = scene
        .packing
        .addresses(from, to)
        .filter_map(|addresses| largest(context, &state, scene, addresses, shown))
        .max_by_key(|(bytes, ..)| *bytes);
    let painter = context.painter(ColorBy::Site);
    let range = place.and_then(|(_, i, _)| Some((i, state.ranges.get(i)?)));
    HeatmapCell::Address(Box::new(AddressCell {
        query: *query,
        positions: (span.first, span.last),
        most,
        position,
        time_us: context.time_us(position),
        thing: place.map_or(HeatmapThing::Unmapped, |(.., thing)| thing),
        segment: range.map(|(i, range)| segment_row(&state, i, range, &painter)),
        blocks: range.map_or(0, |(i, _)| state.active_in(i).len() as u32),
        pins: range.map_or_else(Vec::new, |(i, _)| pins(context, &state, i)),
    }))
}

/// Returns what has most bytes of a use within addresses: the bytes, the index of its range, and what it is.
fn largest(
    context: Context<'_>,
    state: &AllocatorState,
    scene: Scene<'_>,
    (from, to): (u64, u64),
    shown: Use,
) -> Option<(u64, usize, HeatmapThing)> {
    let overlap = |address: u64, end: u64| end.min(to).saturating_sub(address.max(from));
    let first = state.ranges.partition_point(|range| range.end() <= from);
    let ranges = state.ranges.iter().enumerate().skip(first).take_while(|(_, range)| range.address.0 < to);
    let mut best: Option<(u64, usize, HeatmapThing)> = None;
    let mut offer = |bytes: u64, i: usize, thing: HeatmapThing| {
        if bytes > 0 && best.is_none_or(|best| bytes > best.0) {
            best = Some((bytes, i, thing));
        }
    };
    for (i, range) in ranges.filter(|(_, range)| is_of(scene.part, range)) {
        let threshold = scene.threshold(PoolKind::of(range));
        match shown {
            Use::Unmapped => {}
            Use::Usable | Use::Unusable => {
                let is_shown = |gap: &Gap| (gap.size >= threshold) == (shown == Use::Usable);
                for gap in state.gaps_in(i, &context.replay.allocations).filter(is_shown) {
                    let thing = HeatmapThing::Gap { address: gap.address, size: gap.size, threshold };
                    offer(overlap(gap.address.0, gap.end()), i, thing);
                }
            }
            Use::Allocated | Use::Waiting => {
                let blocks =
                    state.active_in(i).iter().filter_map(|&id| Some((id, context.replay.allocations.get(id)?)));
                let is_shown = |block: &Allocation| is_waiting_at(block, state.position) == (shown == Use::Waiting);
                for (id, block) in blocks.filter(|(_, block)| is_shown(block)) {
                    let thing = HeatmapThing::Block { id, size: block.size, is_waiting: shown == Use::Waiting };
                    offer(overlap(block.address.0, block.address.0.saturating_add(block.size)), i, thing);
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use crate::Session;
    use analysis::heatmap::Use;
    use query::diagnosis::DiagnosisQuery;
    use query::{
        Answer, Axis, HeatmapCell, HeatmapCellQuery, HeatmapFailureQuery, HeatmapNeed, HeatmapPart, HeatmapQuery,
        HeatmapRow, HeatmapRows, Query, Window,
    };
    use trace::units::{Address, PoolId, Stream};

    const MIB: u64 = 1 << 20;
    /// Stream 7 has a larger gap than the default stream, for which the last request is.
    const STORY: &str = "segment_alloc 0x9000000 20971520
        segment_alloc 0x1000000 20971520 stream=7
        alloc 0x9000000 5242880
        alloc 0x1000000 2097152 stream=7
        oom 0x0 104857600";

    fn open(lines: &str) -> Session {
        Session::new(trace::testing::snapshot(lines), "pickle".to_owned(), Vec::new(), &mut |_| {})
    }

    /// The gap, the end of all addresses, and the size class.
    type Place = (Option<(u64, u64)>, u64, u32);

    /// Returns where the last failed request goes.
    fn place(session: &mut Session, part: HeatmapPart) -> Option<Place> {
        let Answer::Diagnosis(diagnosis) = session.answer(0, &Query::Diagnosis(DiagnosisQuery)) else {
            panic!("no diagnosis")
        };
        let failed = diagnosis.ooms.last().unwrap();
        let (requested, pool, stream, gap) = (failed.requested, failed.pool, failed.stream, failed.nearest_gap);
        let query = HeatmapFailureQuery { part, requested, pool, stream, gap };
        match session.answer(0, &Query::HeatmapFailure(query)) {
            Answer::HeatmapFailure(found) => found.map(|found| (found.gap, found.total, found.class)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_request_goes_to_the_gap_that_came_closest() {
        let mut session = open(STORY);
        let class = 18;
        assert_eq!(place(&mut session, HeatmapPart::All), Some((Some((25 * MIB, 40 * MIB)), 40 * MIB, class)));
        let own = HeatmapPart::Stream(Stream(0));
        assert_eq!(place(&mut session, own), Some((Some((5 * MIB, 20 * MIB)), 20 * MIB, class)));
        let segment = HeatmapPart::Segment(Address(0x900_0000));
        assert_eq!(place(&mut session, segment), Some((Some((5 * MIB, 20 * MIB)), 20 * MIB, class)));
        for part in [HeatmapPart::Stream(Stream(7)), HeatmapPart::Segment(Address(0x100_0000))] {
            assert_eq!(place(&mut session, part), None, "{part:?} is not of its stream");
        }
    }

    #[test]
    fn without_a_gap_it_goes_behind_all_addresses() {
        let mut session = open("segment_alloc 0x9000000 20971520\nalloc 0x9000000 20971520\noom 0x0 104857600");
        assert_eq!(place(&mut session, HeatmapPart::All), Some((None, 20 * MIB, 18)));
    }

    #[test]
    fn the_size_that_failed_has_a_row_without_free_memory() {
        let mut session = open(STORY);
        let (axis, window) = (Axis::Event, Window { start: 5.0, end: 6.0 });
        let part = HeatmapPart::All;
        let query = HeatmapQuery { axis, window, columns: 1, rows: HeatmapRows::Sizes, part, needed: None };
        let Answer::Heatmap(map) = session.answer(0, &Query::Heatmap(query)) else { panic!("no heatmap") };
        assert_eq!(map.rows, 19);
        let cell = HeatmapCellQuery { axis, window, row: HeatmapRow::Size(18), part, needed: None };
        match session.answer(0, &Query::HeatmapCell(cell)) {
            Answer::HeatmapCell(Some(HeatmapCell::Size(cell))) => {
                assert_eq!((cell.size, cell.most.0, cell.least.0), (128 * MIB, 0, 0));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_request_makes_smaller_gaps_of_its_kind_too_small() {
        let mut session = open(STORY);
        let mut unusable = |needed| {
            let window = Window { start: 5.0, end: 6.0 };
            let row = HeatmapRow::Addresses { from: 0, to: u64::MAX };
            let query = HeatmapCellQuery { axis: Axis::Event, window, row, part: HeatmapPart::All, needed };
            match session.answer(0, &Query::HeatmapCell(query)) {
                Answer::HeatmapCell(Some(HeatmapCell::Address(cell))) => cell.most[Use::Unusable as usize],
                other => panic!("{other:?}"),
            }
        };
        let of =
            |stream, is_small| HeatmapNeed { pool: PoolId(0, 0), stream: Stream(stream), is_small, size: 100 * MIB };
        assert_eq!(unusable(None), 0);
        assert_eq!(unusable(Some(of(0, false))), 15 * MIB);
        assert_eq!(unusable(Some(of(7, false))), 18 * MIB);
        assert_eq!(unusable(Some(of(0, true))), 0);
        assert_eq!(unusable(Some(HeatmapNeed { size: 15 * MIB, ..of(0, false) })), 0, "it fits exactly");
    }

    #[test]
    fn rows_can_divide_a_part_of_the_addresses() {
        let mut session = open(STORY);
        let mut map = |offsets| {
            let (axis, window) = (Axis::Event, Window { start: 0.0, end: 6.0 });
            let rows = HeatmapRows::Addresses { rows: 40, offsets };
            let query = HeatmapQuery { axis, window, columns: 6, rows, part: HeatmapPart::All, needed: None };
            let Answer::Heatmap(map) = session.answer(0, &Query::Heatmap(query)) else { panic!("no heatmap") };
            (map.from, map.row_bytes, map.rows, map.total, map.groups.len())
        };
        assert_eq!(map(None), (0, MIB, 40, 40 * MIB, 2));
        assert_eq!(map(Some((24 * MIB, 34 * MIB))), (24 * MIB, MIB / 4, 40, 40 * MIB, 1));
        assert_eq!(map(Some((30 * MIB, 50 * MIB))), (30 * MIB, MIB / 2, 20, 40 * MIB, 1), "what is behind is left out");
        assert_eq!(map(Some((50 * MIB, 60 * MIB))), (0, MIB, 40, 40 * MIB, 2), "nothing is there: all of it");
        assert_eq!(map(Some((9, 9))).0, 0);
    }
}
