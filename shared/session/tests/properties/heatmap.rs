//! Compares heatmaps with the states of each position, taken one by one.

use std::collections::BTreeMap;

use crate::support::{Op, Run, ops, run};
use allocator::rounding::round_size;
use analysis::heatmap::{
    AddressMap, Columns, Division, Extremes, Packing, Requests, Scene, Shares, SizeMap, Timed, Tone, Use, classes,
    size_of_class,
};
use analysis::lod::extent;
use proptest::prelude::*;
use query::{Answer, Axis, HeatmapPart, HeatmapQuery, HeatmapRows, Query, Window};
use replay::{Allocation, AllocatorState, Replay, ReservedRange};
use session::Session;
use trace::Snapshot;
use trace::units::{Address, PoolId, Stream};

/// A run with all that heatmaps are made from, derived in the most direct way.
struct Truth {
    run: Run,
    replay: Replay,
    states: Vec<AllocatorState>,
    /// The smallest usable gap by stream and kind.
    thresholds: BTreeMap<(i64, bool), u64>,
    largest: u64,
}

/// A part of the memory with its reserved addresses, one after the other.
struct Part {
    part: HeatmapPart,
    /// First address and size.
    extents: Vec<(u64, u64)>,
}

impl Truth {
    fn of(mut run: Run) -> Self {
        let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
        let states = (0..=replay.positions()).map(|position| replay.state_at(position)).collect();
        let mut requests: BTreeMap<(i64, bool), Vec<u64>> = BTreeMap::new();
        for allocation in replay.allocations.iter().filter(|allocation| allocation.begin > 0) {
            let stream = run.tags.get(allocation.tag).stream.0;
            let size = round_size(&run.settings.roundup_power2_divisions, allocation.requested);
            requests.entry((stream, allocation.flags & Allocation::FLAG_SMALL != 0)).or_default().push(size);
        }
        let largest = requests.values().flatten().copied().max().unwrap_or(0);
        let thresholds = requests
            .into_iter()
            .map(|(kind, sizes)| {
                let all: u64 = sizes.iter().sum();
                let holds = |gap: u64| sizes.iter().filter(|size| **size <= gap).sum::<u64>() * 2 >= all;
                (kind, sizes.iter().copied().filter(|size| holds(*size)).min().unwrap())
            })
            .collect();
        Self { run, replay, states, thresholds, largest }
    }

    fn threshold(&self, range: &ReservedRange) -> u64 {
        self.thresholds.get(&(range.stream.0, range.is_small)).copied().unwrap_or(0)
    }

    fn part(&self, part: HeatmapPart) -> Part {
        let is_of = |range: &&ReservedRange| match part {
            HeatmapPart::All | HeatmapPart::Segment(_) => true,
            HeatmapPart::Pool(pool) => range.pool == pool,
            HeatmapPart::Stream(stream) => range.stream == stream,
        };
        let ranges = self.states.iter().flat_map(|state| state.ranges.iter().filter(is_of));
        // The model never takes a smaller segment at the address of another one.
        let extents: BTreeMap<u64, u64> = ranges.map(|range| (range.address.0, range.size)).collect();
        let extents = extents.into_iter().filter(|(address, size)| match part {
            HeatmapPart::Segment(Address(at)) => (*address..address + size).contains(&at),
            _ => true,
        });
        Part { part, extents: extents.collect() }
    }

    /// The positions whose states are current somewhere in `[start, end)`.
    fn positions(&self, axis: Axis, Window { start, end }: Window) -> Vec<usize> {
        let last = self.states.len() - 1;
        let whole = extent(&self.run.trace, &self.replay, axis);
        if end <= whole.start || start >= whole.end {
            return Vec::new();
        }
        let begins = |p: usize| match axis {
            Axis::Event => p as f64,
            Axis::Time if p == 0 => f64::MIN,
            Axis::Time => self.replay.time_at(&self.run.trace, p as u32) as f64,
        };
        let ends = |p: usize| if p == last { f64::MAX } else { begins(p + 1) };
        let is_in = |p: &usize| begins(*p) < end && ends(*p) > start;
        // Of events at one time only the last state lasts, but all of them are drawn.
        (0..=last).filter(|p| is_in(p) || (begins(*p) >= start && begins(*p) < end)).collect()
    }

    fn timed(&self, axis: Axis) -> Timed<'_> {
        Timed { trace: &self.run.trace, replay: &self.replay, axis }
    }
}

impl Part {
    fn total(&self) -> u64 {
        self.extents.iter().map(|(_, size)| size).sum()
    }

    /// The bytes of `[address, address + size)` in each row.
    fn rows_of(&self, address: u64, size: u64, rows: Division, mut add: impl FnMut(usize, u64)) {
        let mut offset = 0;
        for &(start, length) in &self.extents {
            let (from, to) = (address.max(start), (address + size).min(start + length));
            if from < to {
                let (from, to) = (offset + from - start, offset + to - start);
                for row in 0..rows.rows() {
                    let first = rows.from + row as u64 * rows.row_bytes;
                    let end = (first + rows.row_bytes).min(rows.to);
                    let inside = to.min(end).saturating_sub(from.max(first));
                    if inside > 0 {
                        add(row, inside);
                    }
                }
            }
            offset += length;
        }
    }

    fn holds(&self, range: &ReservedRange) -> bool {
        let is_of = match self.part {
            HeatmapPart::Stream(stream) => range.stream == stream,
            HeatmapPart::Pool(pool) => range.pool == pool,
            HeatmapPart::All | HeatmapPart::Segment(_) => true,
        };
        is_of && self.extents.iter().any(|(address, size)| (*address..address + size).contains(&range.address.0))
    }
}

/// The share of each use in each row of one state.
fn shares(truth: &Truth, part: &Part, state: &AllocatorState, rows: Division) -> Vec<[u8; 5]> {
    let mut bytes = vec![[0_u64; 4]; rows.rows()];
    let allocations = &truth.replay.allocations;
    for (i, range) in state.ranges.iter().enumerate().filter(|(_, range)| part.holds(range)) {
        for &number in state.active_in(i) {
            let block = allocations.get(number).unwrap();
            // What is free with the next event waits for no stream.
            let waits = !block.is_allocated_at(state.position) && block.end != block.freed + 1;
            let of = if waits { Use::Waiting } else { Use::Allocated };
            part.rows_of(block.address.0, block.size, rows, |row, n| bytes[row][of as usize] += n);
        }
        for gap in state.gaps_in(i, allocations) {
            let of = if gap.size >= truth.threshold(range) { Use::Usable } else { Use::Unusable };
            part.rows_of(gap.address.0, gap.size, rows, |row, n| bytes[row][of as usize] += n);
        }
    }
    let mut left = rows.to - rows.from;
    bytes
        .into_iter()
        .map(|[a, w, u, x]| {
            let whole = left.min(rows.row_bytes);
            left -= whole;
            [a, w, u, x, whole - a - w - u - x].map(|n| (n * 255).div_ceil(whole) as u8)
        })
        .collect()
}

/// The free bytes and gaps that could serve each size class.
fn free(truth: &Truth, part: &Part, state: &AllocatorState) -> Vec<(u64, u32)> {
    (0..classes(truth.largest))
        .map(|class| {
            let size = size_of_class(class);
            let serves = |range: &ReservedRange| part.holds(range) && range.is_small == (size <= 1 << 20);
            let ranges = state.ranges.iter().enumerate().filter(|(_, range)| serves(range));
            let gaps = ranges.flat_map(|(i, _)| state.gaps_in(i, &truth.replay.allocations).collect::<Vec<_>>());
            let fits: Vec<u64> = gaps.map(|gap| gap.size).filter(|gap| *gap >= size).collect();
            (fits.iter().sum(), fits.len() as u32)
        })
        .collect()
}

/// The cells of addresses, by the definition.
fn want_addresses(truth: &Truth, part: &Part, of: (Axis, Columns), rows: Division) -> Vec<Shares> {
    let by_column = windows(of.1).map(|window| {
        let mut most = vec![Shares::default(); rows.rows()];
        for p in truth.positions(of.0, window) {
            for (own, new) in most.iter_mut().zip(shares(truth, part, &truth.states[p], rows)) {
                own.0.iter_mut().zip(new).for_each(|(own, new)| *own = (*own).max(new));
            }
        }
        most
    });
    by_column.flatten().collect()
}

fn windows(columns: Columns) -> impl Iterator<Item = Window> {
    let width = (1_u64 << columns.level) as f64;
    (columns.from..columns.to).map(move |c| Window { start: c as f64 * width, end: (c + 1) as f64 * width })
}

fn check_addresses(truth: &Truth, asked: &[Asked]) {
    for part in [HeatmapPart::All, HeatmapPart::Stream(Stream(7)), middle(truth)] {
        let part = truth.part(part);
        let mut packing = Packing::default();
        packing.extend(&truth.replay, part.part);
        assert_eq!(packing.total(), part.total(), "{:?}", part.part);
        let mut requests = Requests::default();
        requests.extend(&truth.replay, &truth.run.tags, &truth.run.settings);
        let scene =
            Scene { packing: &packing, requests: &requests, part: part.part, tags: &truth.run.tags, needed: None };
        for axis in [Axis::Event, Axis::Time] {
            let division = asked.first().map_or(Division::new(0, packing.total(), 10), |asked| {
                let (from, to) = asked.offsets(&part);
                Division::new(from, to, asked.rows).before(packing.total())
            });
            let mut map = AddressMap::new(division);
            for asked in asked {
                let columns = asked.columns(truth, axis);
                let got = map.cells(truth.timed(axis), scene, columns).to_vec();
                let want = want_addresses(truth, &part, (axis, columns), division);
                assert_eq!(got, want, "{:?} {axis:?} {columns:?} {division:?}", part.part);
            }
        }
    }
}

fn check_sizes(truth: &Truth, asked: &[Asked]) {
    for part in [HeatmapPart::All, HeatmapPart::Stream(Stream(7)), middle(truth)] {
        let part = truth.part(part);
        let segment = part.extents.first().map_or((0, 0), |(address, size)| (*address, address + size));
        let only = matches!(part.part, HeatmapPart::Segment(_)).then_some(segment);
        for axis in [Axis::Event, Axis::Time] {
            let mut map = SizeMap::new(truth.largest);
            for asked in asked {
                let columns = asked.columns(truth, axis);
                let got = map.cells(truth.timed(axis), part.part, only, columns).to_vec();
                let rows = classes(truth.largest);
                for (column, window) in windows(columns).enumerate() {
                    let positions = truth.positions(axis, window);
                    let all: Vec<_> = positions.iter().map(|&p| free(truth, &part, &truth.states[p])).collect();
                    for row in 0..rows {
                        let Extremes { most, least } = got[column * rows + row];
                        let of = |at: u32| all[positions.iter().position(|p| *p == at as usize).unwrap()][row];
                        let most_bytes = all.iter().map(|free| free[row].0).max();
                        let least_bytes = all.iter().map(|free| free[row].0).min();
                        let case = format!("{:?} {axis:?} {window:?} row {row}", part.part);
                        assert_eq!(got[column * rows + row].is_known(), !all.is_empty(), "{case}");
                        if let (Some(most_bytes), Some(least_bytes)) = (most_bytes, least_bytes) {
                            assert_eq!((most.bytes, least.bytes), (most_bytes, least_bytes), "{case}");
                            assert_eq!(
                                (of(most.position), of(least.position)),
                                ((most.bytes, most.gaps), (least.bytes, least.gaps)),
                                "{case}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A segment in the middle of those at the end.
fn middle(truth: &Truth) -> HeatmapPart {
    let ranges = &truth.states.last().unwrap().ranges;
    HeatmapPart::Segment(ranges.get(ranges.len() / 2).map_or(Address(1), |range| Address(range.address.0 + 5)))
}

/// A picture, with its window in shares of the axis.
#[derive(Clone, Copy, Debug)]
struct Asked {
    start: f64,
    length: f64,
    columns: u32,
    rows: u32,
    /// The first offset and the length of what the rows divide, in shares of all addresses.
    tall: (f64, f64),
}

impl Asked {
    /// The offsets that the rows divide; they may end behind all addresses.
    fn offsets(self, part: &Part) -> (u64, u64) {
        let total = part.total() as f64;
        let from = (total * self.tall.0) as u64;
        (from, from + (total * self.tall.1) as u64 + 1)
    }

    fn window(self, truth: &Truth, axis: Axis) -> Window {
        let whole = extent(&truth.run.trace, &truth.replay, axis);
        let start = whole.start + whole.length() * self.start;
        Window { start, end: start + (whole.length() * self.length).max(1.0) }
    }

    fn columns(self, truth: &Truth, axis: Axis) -> Columns {
        Columns::of(self.window(truth, axis), extent(&truth.run.trace, &truth.replay, axis), self.columns)
    }
}

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    let tall = prop_oneof![Just((0.0, 1.0)), (0.0..0.99, 0.001..0.5)];
    let one = (0.0..0.9, prop_oneof![Just(1.0), 0.01..0.5], 1_u32..40, 1_u32..40, tall);
    let one = one.prop_map(|(start, length, columns, rows, tall)| Asked { start, length, columns, rows, tall });
    proptest::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn each_cell_has_the_largest_share_of_its_positions(ops in ops(60), lost in 0_usize..20, asked in asked()) {
        check_addresses(&Truth::of(run(&ops, lost)), &asked);
    }

    #[test]
    fn each_size_has_the_most_and_the_least_of_its_positions(ops in ops(60), lost in 0_usize..20, asked in asked()) {
        check_sizes(&Truth::of(run(&ops, lost)), &asked);
    }

    #[test]
    fn an_answer_has_the_cells_row_by_row(ops in ops(60), asked in asked()) {
        let truth = Truth::of(run(&ops, 0));
        let part = truth.part(HeatmapPart::Pool(PoolId::default()));
        let mut session = open(run(&ops, 0));
        for asked in asked {
            let offsets = Some(asked.offsets(&part));
            let (rows, axis) = (HeatmapRows::Addresses { rows: asked.rows, offsets }, Axis::Event);
            let window = asked.window(&truth, axis);
            let query = HeatmapQuery { axis, window, columns: asked.columns, rows, part: part.part, needed: None };
            let Answer::Heatmap(map) = session.answer(0, &Query::Heatmap(query)) else { panic!("no heatmap") };
            let columns = asked.columns(&truth, axis);
            prop_assert_eq!(map.window, columns.window());
            prop_assert!(u64::from(map.columns) == columns.count() && map.columns <= asked.columns + 2);
            prop_assert_eq!(map.total, part.total());
            if map.total == 0 {
                continue;
            }
            let (from, to) = asked.offsets(&part);
            let division = Division { from: map.from, to: to.min(map.total), row_bytes: map.row_bytes };
            prop_assert_eq!((map.from, map.row_bytes, map.rows as usize),
                (from, (to - from).div_ceil(asked.rows.into()), division.rows()));
            let want = want_addresses(&truth, &part, (axis, columns), division);
            for (i, code) in map.cells.iter().enumerate() {
                let (row, column) = (i / map.columns as usize, i % map.columns as usize);
                prop_assert_eq!(*code, Tone::of(want[column * map.rows as usize + row]).0);
            }
        }
    }
}

fn open(run: Run) -> Session {
    let Run { trace, tags, symbols, settings, .. } = run;
    let snapshot = Snapshot { devices: vec![trace], symbols, tags, settings, ..Snapshot::default() };
    Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {})
}

#[test]
fn a_gap_of_one_event_is_seen_at_every_zoom() {
    // One segment of a large pool, full but for one moment.
    let mut ops = vec![Op::Alloc { size: (20 << 20) - 300, stream: 0 }; 3];
    ops.push(Op::Free(1));
    ops.push(Op::Alloc { size: (20 << 20) - 300, stream: 0 });
    ops.extend(vec![Op::Alloc { size: 1000, stream: 7 }; 400]);
    let mut session = open(run(&ops, 0));
    let end = f64::from(session.summary().devices[0].events) + 1.0;
    for columns in [1, 2, 3, 50, 1000] {
        let query = HeatmapQuery {
            axis: Axis::Event,
            window: Window { start: 0.0, end },
            columns,
            rows: HeatmapRows::Addresses { rows: 100, offsets: None },
            part: HeatmapPart::Stream(Stream(0)),
            needed: None,
        };
        let Answer::Heatmap(map) = session.answer(0, &Query::Heatmap(query)) else { panic!("no heatmap") };
        let usable = map.cells.iter().any(|code| Tone(*code).weight(Use::Usable) == 15);
        assert!(usable, "{columns} columns");
    }
}
