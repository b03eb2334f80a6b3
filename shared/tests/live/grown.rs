//! A session that grew in arbitrary pieces is the one that is built at once.

use proptest::prelude::*;
use shared::finding::FindingCode;
use shared::import::{Imported, Importer};
use shared::limits::{ImportLimits, LiveLimits};
use shared::query::{
    Answer, Axis, ColorBy, DeviceSummary, EventFilter, FlameQuery, Query, Summary, Timeline, TimelineQuery, Window,
};
use shared::session::{LiveSession, Session, Update};
use shared::totals::Totals;
use shared::trace::{Block, BlockState, Segment};

use crate::stream::{CONFS, Op, Recorded, ops, record};

pub(crate) fn import(bytes: &[u8]) -> Imported {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes).unwrap();
    importer.finish().unwrap()
}

/// Pushes the bytes in pieces, and refreshes and asks after some of them.
pub(crate) fn grow(bytes: &[u8], pieces: &[usize], limits: LiveLimits) -> (LiveSession, Vec<Update>) {
    let mut live = LiveSession::new(limits);
    let mut grown = Vec::new();
    let mut rest = bytes;
    for (i, piece) in pieces.iter().cycle().enumerate() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        live.push(now).unwrap();
        if i % 4 == 0 || rest.is_empty() {
            grown.extend(live.refresh());
            assert!(live.refresh().is_none(), "nothing came");
            // What is asked on the way is what answers grow from.
            for device in 0..live.summary().devices.len() {
                let queries = queries(&live.summary().devices[device]);
                queries.iter().skip(i / 4 % 5).step_by(5).for_each(|query| drop(live.answer(device, query)));
            }
        }
        if rest.is_empty() {
            return (live, grown);
        }
    }
    (live, grown)
}

pub(crate) fn queries(summary: &DeviceSummary) -> Vec<Query> {
    let bytes = Window { start: 0.0, end: summary.peak_reserved as f64 + 1.0 };
    let mut queries = Vec::new();
    for (axis, window) in [(Axis::Time, summary.time), (Axis::Event, summary.event)] {
        queries.push(Query::Overview { axis, columns: 37 });
        for color_by in [ColorBy::Site, ColorBy::Size, ColorBy::Stream, ColorBy::Pool, ColorBy::Lifetime] {
            for (filter, highlight) in [
                (vec![], None),
                (vec![">4KiB".to_owned()], Some("layer1".to_owned())),
                (vec!["live:end".to_owned()], None),
            ] {
                queries.push(Query::Timeline(TimelineQuery {
                    axis,
                    window,
                    columns: 23,
                    bytes,
                    rows: 100,
                    color_by,
                    filter,
                    highlight,
                }));
            }
        }
    }
    for term in ["layer1", ">100KiB", "live:end", "live:start"] {
        queries.push(Query::Search { term: term.to_owned() });
    }
    for filter in [
        EventFilter::default(),
        EventFilter { actions: vec!["alloc".to_owned()], ..EventFilter::default() },
        EventFilter { terms: vec!["layer2".to_owned()], ..EventFilter::default() },
    ] {
        queries.push(Query::Events { filter, first: 0, count: 500, locate: summary.events / 2 });
    }
    let flame = FlameQuery {
        position: summary.events,
        bottom_up: false,
        hide_internal: false,
        zoom: vec![],
        width: 900.0,
        filter: vec![],
        highlight: None,
    };
    queries.push(Query::Flame(flame));
    for position in [0, summary.events / 3, summary.events / 2, summary.events] {
        queries.push(Query::State { position });
    }
    queries
}

/// An answer without what depends on when it was asked for first: colours, and the order of call sites.
pub(crate) fn settled(answer: Answer) -> String {
    let text = match answer {
        Answer::Timeline(Timeline { query, top, position, active, reserved, allocations, classes, quads, .. }) => {
            let by_site = query.color_by == ColorBy::Site;
            let shapes = (!by_site).then_some((classes, quads));
            format!("{query:?} {top:?} {position:?} {active:?} {reserved:?} {allocations} {shapes:?}")
        }
        other => format!("{other:?}"),
    };
    let mut out = String::new();
    let mut rest = &text[..];
    while let Some(at) = rest.find("Paint(") {
        let end = rest[at..].find(')').unwrap() + at;
        out.push_str(&rest[..at]);
        rest = &rest[end..];
    }
    out + rest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn grown_in_pieces_equals_built_at_once(
        ops in ops(500, false),
        conf in prop::sample::select(CONFS.to_vec()),
        devices in 1_usize..3,
        has_end in any::<bool>(),
        has_prelude in any::<bool>(),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, .. } = record(&ops, devices, conf, 0, has_end);
        let pushed = if has_prelude { &bytes[..] } else { &bytes[12..] };
        let (mut live, grown) = grow(pushed, &pieces, LiveLimits::default());
        let mut built = Session::build(import(&bytes), &mut |_| {});
        let events: u64 = built.summary().devices.iter().map(|device| u64::from(device.events)).sum();
        prop_assert_eq!(grown.iter().map(|grown| grown.events).sum::<u64>(), events);
        prop_assert!(grown.iter().all(|grown| grown.trimmed.is_empty()));
        prop_assert_eq!(grown.last().is_some_and(|grown| grown.has_ended), has_end);
        if has_end && devices == 1 {
            prop_assert_eq!(&live.summary().findings, &built.summary().findings);
        }
        prop_assert_eq!(&live.summary().origin, &built.summary().origin);
        for device in built.summary().devices.clone() {
            let place = live.summary().devices.iter().position(|other| other.device == device.device).unwrap();
            let place_built = built.summary().devices.iter().position(|other| other.device == device.device).unwrap();
            prop_assert_eq!(&live.summary().devices[place], &device);
            for query in queries(&device) {
                prop_assert_eq!(settled(live.answer(place, &query)), settled(built.answer(place_built, &query)));
            }
        }
        prop_assert!(live.bytes() > 0);
    }

    #[test]
    fn the_start_may_be_a_state(
        ops in ops(220, false),
        conf in prop::sample::select(CONFS.to_vec()),
        late in 1_usize..100,
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, segments, .. } = record(&ops, 1, conf, late, false);
        let (mut live, _) = grow(&bytes, &pieces, LiveLimits::default());
        let summary = live.summary().devices[0].clone();
        check_end(&summary.end, &segments[0]);
        // Held against what a file's reader finds from behind: what is reserved and requested is the same throughout.
        let mut built = Session::build(import(&bytes), &mut |_| {});
        for position in 0..=summary.events {
            let query = Query::State { position };
            let (Answer::State(a), Answer::State(b)) = (live.answer(0, &query), built.answer(0, &query)) else {
                panic!("a state")
            };
            prop_assert_eq!((a.totals.reserved, a.totals.requested, a.totals.blocks), (b.totals.reserved, b.totals.requested, b.totals.blocks));
        }
    }

    #[test]
    fn events_that_come_twice_count_once(
        ops in ops(220, true),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, lost, .. } = record(&ops, 1, conf, 0, false);
        let (mut live, _) = grow(&bytes, &pieces, LiveLimits::default());
        let once = live.summary().clone();
        prop_assert_eq!(once.devices.iter().map(|device| device.lost).sum::<u64>(), lost);
        // The connection was lost, and everything is sent again.
        live.push(&bytes).unwrap();
        live.refresh();
        let events = |summary: &Summary| summary.devices.iter().map(|d| (d.events, d.lost, d.end)).collect::<Vec<_>>();
        prop_assert_eq!(events(live.summary()), events(&once));
    }

    #[test]
    fn after_a_loss_the_next_state_counts(
        ops in ops(300, true),
        more in ops(100, false),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        // What is lost is told by a state, and all is known again once one more event has come.
        let mut all = ops;
        all.push(Op::Flush { lose: 0, state: true });
        all.extend(more);
        all.push(Op::Malloc { size: 1_000, stream: 0, site: 3 });
        let Recorded { bytes, segments, .. } = record(&all, 1, conf, 0, true);
        let (mut live, _) = grow(&bytes, &pieces, LiveLimits::default());
        let summary = live.summary().devices[0].clone();
        check_end(&summary.end, &segments[0]);
        // What was drawn on the way adds up to the same.
        let Answer::Overview(overview) = live.answer(0, &Query::Overview { axis: Axis::Event, columns: summary.events + 1 })
        else {
            panic!("an overview")
        };
        prop_assert_eq!(overview.reserved[summary.events as usize], summary.end.reserved);
        prop_assert_eq!(overview.active[summary.events as usize], summary.end.active);
        prop_assert_eq!(overview.allocated[summary.events as usize], summary.end.allocated);
    }

    #[test]
    fn chunks_in_any_order_break_nothing(
        ops in ops(150, true),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
        events in 1_usize..200,
    ) {
        let Recorded { bytes, chunks, .. } = record(&ops, 2, "", 0, true);
        let mut live = LiveSession::new(LiveLimits { events, ..LiveLimits::default() });
        for (index, refreshes) in order {
            let at = index.index(chunks.len());
            let end = chunks.get(at + 1).copied().unwrap_or(bytes.len());
            live.push(&bytes[chunks[at]..end]).unwrap();
            if refreshes {
                live.refresh();
                for device in 0..live.summary().devices.len() {
                    let queries = queries(&live.summary().devices[device]);
                    queries.iter().for_each(|query| drop(live.answer(device, query)));
                }
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_long_job_is_its_tail(
        ops in ops(700, false),
        conf in prop::sample::select(CONFS.to_vec()),
        devices in 1_usize..3,
        late in 0_usize..30,
        events in 40_usize..600,
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, segments, .. } = record(&ops, devices, conf, late, false);
        let limits = LiveLimits { events, ..LiveLimits::default() };
        let (mut tail, grown) = grow(&bytes, &pieces, limits);
        let (mut whole, _) = grow(&bytes, &pieces, LiveLimits::default());
        let held: u32 = tail.summary().devices.iter().map(|device| device.events).sum();
        prop_assert!(held as usize <= events);
        for device in 0..whole.summary().devices.len() {
            let [kept, all] = [&tail, &whole].map(|live| live.summary().devices[device].clone());
            let trimmed = || grown.iter().flat_map(|grown| &grown.trimmed).filter(|trimmed| trimmed.device == device);
            let cut: u32 = trimmed().map(|trimmed| trimmed.events).sum();
            prop_assert_eq!(kept.events + cut, all.events);
            prop_assert_eq!(kept.start_us, all.start_us + trimmed().map(|trimmed| trimmed.span_us).sum::<i64>());
            check_end(&kept.end, &segments[kept.device as usize]);
            for position in 0..=kept.events {
                let state = |live: &mut LiveSession, position| match live.answer(device, &Query::State { position }) {
                    Answer::State(state) => state.totals,
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(state(&mut tail, position), state(&mut whole, position + cut));
            }
            let ooms: Vec<(u32, u64)> = all.ooms.iter().filter(|oom| oom.0 > cut).map(|&(p, b)| (p - cut, b)).collect();
            prop_assert_eq!(kept.ooms, ooms);
        }
    }
}

#[test]
fn that_only_the_end_of_a_session_is_sent_is_no_fault_of_its_recording() {
    let ops: Vec<Op> = (0..40).map(|site| Op::Malloc { size: 3_000_000, stream: 0, site }).collect();
    let Recorded { bytes, .. } = record(&ops, 1, "", 20, false);
    for (is_late, want) in [(false, vec![FindingCode::RingOverflow]), (true, vec![])] {
        let mut live = LiveSession::new(LiveLimits::default());
        if is_late {
            live.begin_late();
        }
        live.push(&bytes).unwrap();
        live.refresh();
        assert!(live.summary().devices[0].start.reserved > 0);
        let codes: Vec<FindingCode> = live.summary().findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, want);
    }
}

#[test]
fn there_is_room_until_there_is_none_and_an_out_of_memory_says_why() {
    let malloc = |size| Op::Malloc { size, stream: 0, site: 1 };
    let ops: Vec<Op> = (0..30).map(|i| malloc(if i == 20 { 3 << 40 } else { 700 })).collect();
    let Recorded { bytes, .. } = record(&ops, 1, "", 0, false);
    let mut live = LiveSession::new(LiveLimits { events: 1_000, ..LiveLimits::default() });
    assert_eq!(live.room(), 1_000);
    live.push(&bytes).unwrap();
    let grown = live.refresh().unwrap();
    assert_eq!(live.room() as u64, 1_000 - grown.events);
    let (device, position) = grown.oom.unwrap();
    assert!(live.why_out_of_memory(device, position).starts_with("Asked for 3.00 TiB; the driver had "));
    assert_eq!(live.why_out_of_memory(device, position + 1), "");
    assert_eq!(live.why_out_of_memory(7, position), "");
}

#[test]
fn what_a_state_told_as_freed_and_the_next_event_ends_counts_once() {
    let malloc = |size, site| Op::Malloc { size, stream: 0, site };
    let ops = [
        malloc(503, 1),
        malloc(1_581, 2),
        Op::Flush { lose: 0, state: false },
        Op::FreeLater { pick: 0 },
        Op::Flush { lose: 4, state: true },
        Op::Synchronize,
        malloc(9_000_000, 3),
    ];
    let Recorded { bytes, segments, .. } = record(&ops, 1, "", 0, true);
    let (mut live, _) = grow(&bytes, &[bytes.len()], LiveLimits::default());
    let DeviceSummary { events, end, .. } = live.summary().devices[0].clone();
    check_end(&end, &segments[0]);
    let Answer::Overview(overview) = live.answer(0, &Query::Overview { axis: Axis::Event, columns: events + 1 }) else {
        panic!("an overview")
    };
    assert_eq!(overview.active[events as usize], end.active);
}

pub(crate) fn check_end(end: &Totals, truth: &[Segment]) {
    let sum = |of: &dyn Fn(&Block) -> bool| {
        truth.iter().flat_map(|segment| &segment.blocks).filter(|b| of(b)).map(|block| block.size).sum::<u64>()
    };
    assert_eq!(end.reserved, truth.iter().map(|segment| segment.size).sum::<u64>());
    assert_eq!(end.active, sum(&|block| block.state != BlockState::Inactive));
    assert_eq!(end.allocated, sum(&|block| block.state == BlockState::Allocated));
}
