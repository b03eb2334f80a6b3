//! Compares answers with brute force, on random runs of the model allocator.

use crate::support::{Run, ops, run};
use proptest::prelude::*;
use query::finding::FindingCode;
use query::{
    AllocationQuery, Answer, ColorBy, EventColumn, EventFilter, EventOrder, EventTextQuery, EventsQuery, FindQuery,
    Flame, FlameQuery, LineStepQuery, ListStart, NextHitQuery, Paint, Quads, Query, SearchQuery, SearchResult,
    SegmentLayout, SegmentQuery, Segments, SegmentsQuery, SiteQuery, StateQuery, StepEventQuery, Window,
};
use replay::{Allocation, Replay};
use session::Session;
use trace::Snapshot;
use trace::frames::StackId;

/// Opens a run as a file of one device.
fn open(run: Run) -> Session {
    let Run { trace, tags, symbols, settings, .. } = run;
    let snapshot = Snapshot { devices: vec![trace], symbols, tags, settings, ..Snapshot::default() };
    Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {})
}

fn allocations(run: &mut Run) -> Vec<Allocation> {
    Replay::build(&run.trace, &mut run.tags, &run.settings).allocations.iter().collect()
}

macro_rules! ask {
    ($session:expr, $query:expr => $variant:ident) => {
        match $session.answer(0, &$query) {
            Answer::$variant(answer) => answer,
            other => panic!("asked {:?}, got {other:?}", $query),
        }
    };
}

fn flame(position: u32, bottom_up: bool, width: f32, filter: Vec<String>) -> Query {
    Query::Flame(FlameQuery {
        position,
        since: None,
        bottom_up,
        folds: false,
        by_category: false,
        zoom: vec![],
        width,
        filter,
        highlight: None,
        ..FlameQuery::default()
    })
}

/// Checks that each box's children are within it, and have at most its bytes.
fn check_boxes(flame: &Flame) {
    let root = &flame.boxes[0];
    assert_eq!((root.depth, root.x0, root.x1, root.bytes), (0, 0.0, 1.0, flame.total));
    for parent in &flame.boxes {
        let inside = |b: &&query::FlameBox| b.depth == parent.depth + 1 && b.x0 >= parent.x0 && b.x1 <= parent.x1;
        let below: u64 = flame.boxes.iter().filter(inside).map(|b| b.bytes).sum();
        if parent.depth == 0 {
            assert_eq!(below, flame.total, "every allocation is in a box below the root");
        } else if parent.frame != Quads::NONE && parent.x1 - parent.x0 > 1e-3 {
            assert!(below <= parent.bytes);
        }
    }
}

fn matching(allocations: &[Allocation], term: &str) -> Vec<u32> {
    let is_hit = |a: &Allocation| match term {
        "layer3" => a.stack == StackId(4),
        "/^layer[12]$/" => matches!(a.stack.0, 2 | 3),
        ">=64KiB" => a.requested >= 65_536,
        "stream:7" => false,
        "live:end" => a.end == Allocation::NEVER,
        "live:start" => a.begin == 0,
        "pool:small" => a.flags & Allocation::FLAG_SMALL != 0,
        "0x7f0000000400" => (a.address.0..a.address.0 + a.size).contains(&0x7f00_0000_0400),
        _ => panic!("{term}"),
    };
    (0..).zip(allocations).filter(|(_, a)| is_hit(a)).map(|(i, _)| i).collect()
}

const TERMS: [&str; 7] =
    ["layer3", "/^layer[12]$/", ">=64KiB", "live:end", "live:start", "pool:small", "0x7f0000000400"];

/// Checks that quads tile each row from `left` to `right`.
fn check_tiling(map: &Segments, left: f32, right: f32) {
    let rows = |quads: &Quads| {
        let mut rows: Vec<(f32, f32, f32)> =
            (0..quads.len()).map(|i| (quads.y0[i], quads.x0[i], quads.x1[i])).collect();
        rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
        rows
    };
    let outlines = rows(&map.outlines);
    let mut blocks = rows(&map.blocks).into_iter().peekable();
    for (y, x0, x1) in outlines {
        assert!(x0 >= left && x1 <= right);
        let mut at = x0;
        while let Some((_, from, to)) = blocks.next_if(|b| b.0 == y && b.1 < x1) {
            assert_eq!(from, at, "blocks leave no space and do not overlap");
            at = to;
        }
        assert_eq!(at, x1, "blocks fill their segment");
    }
    assert_eq!(blocks.next(), None, "no block lies outside of its segment");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn flame_graphs_sum_to_the_totals(ops in ops(120), lost in 0_usize..60, at in 0.0..1.0, width in 1_f32..2_000.0) {
        let run = run(&ops, lost);
        let position = (run.moments.len() as f64 * at) as u32;
        let truth = run.moments[position as usize].requested();
        let mut session = open(run);
        for bottom_up in [false, true] {
            let flame = ask!(session, flame(position, bottom_up, width, vec![]) => Flame);
            prop_assert_eq!(flame.total, truth);
            check_boxes(&flame);
        }
        let state = ask!(session, Query::State(StateQuery { position }) => State);
        prop_assert_eq!(state.totals.requested, truth);
    }

    #[test]
    fn searches_find_what_brute_force_finds(ops in ops(120), lost in 0_usize..60) {
        let mut run = run(&ops, lost);
        let all = allocations(&mut run);
        let positions = run.moments.len() as u32;
        let mut session = open(run);
        for term in TERMS {
            let want = matching(&all, term);
            let sum = |ids: &mut dyn Iterator<Item = &u32>| ids.map(|&i| all[i as usize].requested).sum::<u64>();
            let live = |p: u32| sum(&mut want.iter().filter(|&&i| all[i as usize].is_active_at(p)));
            let got = ask!(session, Query::Search(SearchQuery { term: term.to_owned() }) => Search);
            prop_assert_eq!(got.none.is_some(), want.is_empty());
            prop_assert!(!got.understood.is_empty());
            prop_assert_eq!(got.clone(), SearchResult {
                understood: got.understood,
                none: got.none,
                term: term.to_owned(),
                count: want.len() as u32,
                bytes: sum(&mut want.iter()),
                peak_bytes: (0..positions).map(live).max().unwrap_or(0),
                error: None,
            });
            // Steps from hit to hit and around the end, in both directions.
            for forward in [true, false] {
                let mut order = want.clone();
                if !forward {
                    order.reverse();
                }
                order.extend(order.first().copied());
                let mut from = None;
                for id in order {
                    let position = if forward { 0 } else { u32::MAX };
                    let query = Query::NextHit(NextHitQuery { term: term.to_owned(), from, position, forward });
                    let hit = ask!(session, query => NextHit).unwrap();
                    prop_assert_eq!((hit.allocation, hit.of as usize), (id, want.len()));
                    prop_assert_eq!(want[hit.number as usize - 1], id);
                    prop_assert_eq!(hit.position, all[id as usize].begin);
                    from = Some(id);
                }
            }
            // What the term does not match.
            let hidden = ask!(session, Query::Search(SearchQuery { term: format!("-{term}") }) => Search);
            let whole: u64 = all.iter().map(|a| a.requested).sum();
            prop_assert_eq!(hidden.count as usize, all.len() - want.len());
            prop_assert_eq!(hidden.bytes, whole - sum(&mut want.iter()));
            let last = positions - 1;
            let flame = ask!(session, flame(last, false, 800.0, vec![term.to_owned()]) => Flame);
            prop_assert_eq!(flame.total, live(last));
        }
    }

    #[test]
    fn blocks_tile_their_segments(
        ops in ops(120),
        lost in 0_usize..60,
        at in 0.0..1.0,
        width in 150_f32..1_500.0,
        zoom in prop_oneof![Just(1.0_f32), 1_f32..200.0],
        scroll in prop_oneof![Just(0.0), 0.0..2_000.0],
    ) {
        let run = run(&ops, lost);
        let position = (run.moments.len() as f64 * at) as u32;
        let segments = run.moments[position as usize].segments.len();
        let mut session = open(run);
        for layout in [SegmentLayout::Packed, SegmentLayout::ToScale] {
            let query = Query::Segments(SegmentsQuery {
                position,
                layout,
                width,
                height: 900.0, visible: Window { start: scroll, end: scroll + 900.0 },
                zoom,
                color_by: ColorBy::Site,
                filter: Vec::new(),
                highlight: None,
                line: None, ..SegmentsQuery::default() });
            let map = ask!(session, query => Segments);
            let left = if layout == SegmentLayout::Packed { 148.0 } else { 0.0 };
            check_tiling(&map, left, width.max(left + 1.0));
            // Rows are cut only by the view.
            if scroll == 0.0 && map.height <= 900.0 {
                prop_assert_eq!(map.segments.len(), segments);
                let bottom = map.blocks.y1.iter().copied().fold(0.0, f32::max);
                prop_assert_eq!(bottom, map.height);
            }
        }
    }

    #[test]
    fn the_event_list_is_the_trace_filtered(ops in ops(100), lost in 0_usize..40, locate in 0_u32..200) {
        let run = run(&ops, lost);
        let events: Vec<_> = run.trace.events.iter().collect();
        let mut session = open(run);
        for actions in [vec![], vec!["alloc"], vec!["oom", "segment_alloc"]] {
            let filter = EventFilter { actions: actions.iter().map(|a| (*a).to_owned()).collect(), terms: vec![] };
            let want: Vec<u32> = (0..)
                .zip(&events)
                .filter(|(_, e)| actions.is_empty() || actions.contains(&e.action.name()))
                .map(|(i, _)| i)
                .collect();
            let query = Query::Events(EventsQuery { order: EventOrder::default(), filter: filter.clone(), first: 0, count: 1_000, locate });
            let list = ask!(session, query => Events);
            prop_assert_eq!(list.rows.iter().filter_map(|row| Some(row.event()?.index)).collect::<Vec<_>>(), want.clone());
            let before = want.iter().filter(|&&i| i < locate).count() as u32;
            prop_assert_eq!(list.located, before.checked_sub(1));
            // Steps visit the positions that these events lead to.
            let mut position = 0;
            for &index in &want {
                let query = Query::StepEvent(StepEventQuery { filter: filter.clone(), position, forward: true });
                position = ask!(session, query => StepEvent).unwrap();
                prop_assert_eq!(position, index + 1);
            }
            let query = Query::StepEvent(StepEventQuery { filter: filter.clone(), position, forward: true });
            prop_assert_eq!(ask!(session, query => StepEvent), None);
            for &index in want.iter().rev().skip(1) {
                let query = Query::StepEvent(StepEventQuery { filter: filter.clone(), position, forward: false });
                position = ask!(session, query => StepEvent).unwrap();
                prop_assert_eq!(position, index + 1);
            }
        }
    }

    #[test]
    fn sites_and_allocations_add_up(ops in ops(100), lost in 0_usize..40) {
        let mut run = run(&ops, lost);
        let all = allocations(&mut run);
        let end = run.moments.len() as u32 - 1;
        let peak = run.moments.iter().map(crate::support::Moment::requested).max().unwrap();
        let mut session = open(run);
        prop_assert_eq!(session.summary().devices[0].peak.requested, peak);
        for stack in 0..6 {
            let site = ask!(session, Query::Site(SiteQuery { stack, position: end }) => Site);
            let own: Vec<&Allocation> = all.iter().filter(|a| a.stack == StackId(stack)).collect();
            let live = |p: u32| own.iter().filter(|a| a.is_active_at(p)).map(|a| a.requested).sum::<u64>();
            prop_assert_eq!(site.count as usize, own.len());
            prop_assert_eq!(site.bytes, own.iter().map(|a| a.requested).sum::<u64>());
            prop_assert_eq!(site.peak.0, (0..=end).map(live).max().unwrap());
            prop_assert_eq!(live(site.peak.1), site.peak.0);
            prop_assert_eq!(site.live.0, live(end));
            prop_assert_eq!(site.live, site.live_at_end);
        }
        for (id, a) in (0..).zip(&all) {
            let detail = ask!(session, Query::Allocation(AllocationQuery { id }) => Allocation);
            let before = all[..id as usize].iter().filter(|b| b.address == a.address).count();
            prop_assert_eq!(&detail.name, &format!("b{:x}_{before}", a.address.0));
            prop_assert_eq!((detail.requested, detail.size), (a.requested, a.size));
            prop_assert_eq!(detail.allocated_at.unwrap_or(0), a.begin);
            prop_assert_eq!(detail.free_completed_at.unwrap_or(Allocation::NEVER), a.end);
            let segment = ask!(session, Query::Segment(SegmentQuery { address: a.address, position: a.begin }) => Segment);
            prop_assert!(segment.unwrap().row.active >= a.size);
        }
    }

    #[test]
    fn an_allocation_is_found_by_its_name(ops in ops(80), lost in 0_usize..40) {
        let mut run = run(&ops, lost);
        let all = allocations(&mut run);
        let mut session = open(run);
        for id in 0..all.len() as u32 {
            let detail = ask!(session, Query::Allocation(AllocationQuery { id }) => Allocation);
            let hit = ask!(session, Query::NextHit(NextHitQuery { term: detail.name.clone(), from: None, position: 0, forward: true }) => NextHit).unwrap();
            prop_assert_eq!((hit.allocation, hit.of), (id, 1));
            // The first digits find it too, among others.
            let term = format!("0x{:x}", detail.address.0 >> 16);
            let found = ask!(session, Query::Search(SearchQuery { term: term.clone() }) => Search);
            let want = all.iter().filter(|a| a.address.0 >> 16 == detail.address.0 >> 16).count();
            prop_assert_eq!(found.count as usize, want);
        }
    }

    #[test]
    fn no_query_panics(
        ops in ops(40),
        position in any::<u32>(),
        width in any::<f32>(),
        zoom in any::<f32>(),
        (start, end) in (any::<f64>(), any::<f64>()),
        term in ".{0,12}",
        id in any::<u32>(),
    ) {
        let mut session = open(run(&ops, 7));
        let highlight = Some(term.clone());
        let filter = EventFilter { actions: vec![term.clone()], terms: vec![term.clone()] };
        let segments = |layout| SegmentsQuery {
            position, layout, width, height: (end - start) as f32, visible: Window { start, end }, zoom, color_by: ColorBy::Lifetime,
            filter: Vec::new(),
            highlight: highlight.clone(),
            line: None, ..SegmentsQuery::default() };
        let queries = [
            Query::State(StateQuery { position }),
            Query::Segments(segments(SegmentLayout::ToScale)),
            Query::Segments(segments(SegmentLayout::Packed)),
            Query::Events(EventsQuery { order: EventOrder::default(), filter: filter.clone(), first: position, count: id, locate: id }),
            Query::Events(EventsQuery { order: EventOrder::default(), filter: EventFilter::default(), first: position, count: id, locate: id }),
            Query::StepEvent(StepEventQuery { filter, position, forward: true }),
            Query::StepEvent(StepEventQuery { filter: EventFilter::default(), position, forward: false }),
            Query::Search(SearchQuery { term: term.clone() }),
            Query::Find(FindQuery { term: term.clone(), position, start: ListStart::At(id), rows: id }),
            Query::Find(FindQuery { term: term.clone(), position, start: ListStart::BeforeNext(Some(id)), rows: id }),
            Query::EventText(EventTextQuery { index: position }),
            Query::Events(EventsQuery {
                filter: EventFilter::default(),
                order: EventOrder { by: EventColumn::ALL[id as usize % EventColumn::ALL.len()], is_falling: id % 3 == 0 },
                first: position, count: id, locate: id,
            }),
            Query::NextHit(NextHitQuery { term, from: (id % 2 == 0).then_some(id), position, forward: true }),
            Query::Allocation(AllocationQuery { id }),
            Query::LineStep(LineStepQuery { stack: id % 7, from: Some(position), position, forward: true }),
            Query::LineStep(LineStepQuery { stack: id, from: None, position, forward: false }),
            Query::Site(SiteQuery { stack: id, position }),
            Query::Segment(SegmentQuery { address: trace::units::Address(start as u64), position }),
            Query::Flame(FlameQuery {
                position, since: Some(id), bottom_up: true, folds: true, by_category: false, zoom: vec![id, 0], width, filter: vec![], highlight, ..FlameQuery::default() }),
        ];
        for query in queries {
            session.answer(0, &query);
            session.answer(1, &query);
        }
    }
}

#[test]
fn blocks_that_a_search_does_not_match_are_painted_faint() {
    let alloc = |size| crate::support::Op::Alloc { size, stream: 0 };
    let mut session = open(run(&[alloc(3 << 20), alloc(700), alloc(2 << 20)], 0));
    let query = Query::Segments(SegmentsQuery {
        position: u32::MAX,
        layout: SegmentLayout::Packed,
        width: 1_148.0,
        height: 500.0,
        visible: Window { start: 0.0, end: 500.0 },
        zoom: 1.0,
        color_by: ColorBy::Size,
        filter: Vec::new(),
        highlight: Some(">2.5MiB".to_owned()),
        line: None,
        ..SegmentsQuery::default()
    });
    let map = ask!(session, query => Segments);
    let faint: Vec<(u32, bool)> = (0..map.blocks.len())
        .filter(|&i| map.blocks.id[i] != Quads::NONE)
        .map(|i| (map.blocks.id[i], Paint(map.blocks.paint[i]).has(Paint::DIM)))
        .collect();
    // By address. The 700 bytes are narrower than a pixel, but have no neighbour with which to be summed.
    assert_eq!(faint, [(0, false), (2, true), (1, true)]);
}

#[test]
fn a_late_start_and_an_out_of_memory_are_findings() {
    let alloc = |size| crate::support::Op::Alloc { size, stream: 0 };
    let codes = |session: &Session| session.summary().findings.iter().map(|f| f.code).collect::<Vec<_>>();
    assert_eq!(codes(&open(run(&[alloc(100), alloc(200)], 0))), []);
    let late = open(run(&[alloc(100), alloc(200), alloc(300), alloc(400)], 2));
    assert_eq!(codes(&late), [FindingCode::RingOverflow]);
    let failed = open(run(&[alloc(100), crate::support::Op::Oom(1 << 30)], 0));
    assert_eq!(codes(&failed), [FindingCode::OutOfMemory]);
    let finding = &failed.summary().findings[0];
    assert_eq!((finding.device, finding.position), (Some(0), Some(3)));
    assert!(finding.message.contains("sked for 1.00 GiB; the driver had 12.0 MiB free."), "{}", finding.message);
}
