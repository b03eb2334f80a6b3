//! A live session that was pushed in arbitrary pieces equals a session that was built at once.

use format::import::{Imported, Importer};
use proptest::prelude::*;
use query::finding::FindingCode;
use query::{
    AllocationDetail, Answer, Axis, Classes, ColorBy, DeviceSummary, HeatmapPart, HeatmapQuery, HeatmapRows, Memory,
    OverviewQuery, Query, StateQuery, Summary, Timeline, Window,
};
use session::{LiveSession, Session, Update, examples};
use trace::limits::{ImportLimits, LiveLimits};
use trace::totals::Totals;
use trace::{Block, BlockState, Segment};

use crate::live::stream::{CONFS, Op, Recorded, ops, record};

pub(crate) fn import(bytes: &[u8]) -> Imported {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes).unwrap();
    importer.finish().unwrap()
}

/// Pushes the bytes in pieces, and refreshes and queries after some of them.
pub(crate) fn push_pieces(bytes: &[u8], pieces: &[usize], limits: LiveLimits) -> (LiveSession, Vec<Update>) {
    let mut live = LiveSession::new(limits);
    let mut updates = Vec::new();
    let mut rest = bytes;
    for (i, piece) in pieces.iter().cycle().enumerate() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        live.push(now).unwrap();
        if i % 4 == 0 || rest.is_empty() {
            updates.extend(live.refresh());
            assert!(live.refresh().is_none(), "nothing came");
            // Later answers are extended from the indexes that these queries build.
            for device in 0..live.summary().devices.len() {
                ask_some(&mut live, device, i / 4);
            }
        }
        if rest.is_empty() {
            return (live, updates);
        }
    }
    (live, updates)
}

/// Asks some of the examples of all questions: other ones for each `turn`.
fn ask_some(live: &mut LiveSession, device: usize, turn: usize) {
    let queries = examples(&live.summary().devices[device]);
    queries.iter().skip(turn % 23).step_by(23).for_each(|query| drop(live.answer(device, query)));
}

/// Formats an answer without what depends on when it was first asked for: which call sites have a class of their own.
pub(crate) fn settled(answer: Answer) -> String {
    match answer {
        Answer::Timeline(Timeline { query, top, position, active, reserved, allocations, classes, quads, .. }) => {
            let by_site = query.color_by == ColorBy::Site;
            let shapes = (!by_site).then_some((classes, quads));
            format!("{query:?} {top:?} {position:?} {active:?} {reserved:?} {allocations} {shapes:?}")
        }
        Answer::Classes(Classes { query, memory, .. }) if query.color_by == ColorBy::Site => {
            let sum = |of: fn(&Memory) -> u64| memory.iter().map(of).sum::<u64>();
            format!("{query:?} {} {}", sum(|memory| memory.now.bytes), sum(|memory| memory.before.bytes))
        }
        // A file has the state after its last event, with the sizes of all blocks.
        Answer::Allocation(detail) => format!("{:?}", AllocationDetail { size_is_exact: false, ..*detail }),
        other => format!("{other:?}"),
    }
}

/// Returns how the answers of two sessions about a device differ, over the examples of all questions. Without its end a file is
/// truncated, which its diagnosis and its profile say; a stream may go on.
pub(crate) fn differences(
    device: &DeviceSummary,
    has_end: bool,
    mut one: impl FnMut(&Query) -> Answer,
    mut other: impl FnMut(&Query) -> Answer,
) -> Vec<String> {
    let mut found = Vec::new();
    let is_of_end = |query: &Query| matches!(query, Query::Diagnosis(_) | Query::RunProfile(_));
    for query in examples(device).into_iter().filter(|query| has_end || !is_of_end(query)) {
        let (one, other) = (settled(one(&query)), settled(other(&query)));
        if one != other {
            // What both begin with says little.
            let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
            let part = |text: &str| text.chars().skip(same).take(200).collect::<String>();
            found.push(format!("{query:?}\n  {}\n  {}", part(&one), part(&other)));
        }
    }
    found
}

#[test]
fn a_recording_that_ended_without_events_has_the_finding_of_its_file() {
    let Recorded { bytes, .. } = record(&[], 1, CONFS[0], 0, true);
    let (live, _) = push_pieces(&bytes, &[usize::MAX], LiveLimits::default());
    let built = Session::build(import(&bytes), &mut |_| {});
    assert_eq!(live.summary().findings, built.summary().findings);
    assert_eq!(built.summary().findings[0].code, FindingCode::NoHistory);
}

#[test]
fn a_part_of_the_heatmap_moves_with_the_memory_reserved_below_it() {
    let flush = Op::Flush { lose: 0, state: false };
    // The small pool's segment, which was first, grows below the large pool's.
    let sizes = [1_u64 << 20, 3 << 20].into_iter().chain([1 << 20; 5]);
    let ops: Vec<Op> = sizes.flat_map(|size| [Op::Malloc { size, stream: 0, site: 1 }, flush]).collect();
    let Recorded { bytes, .. } = record(&ops, 1, "expandable_segments:True", 0, false);
    let query = |events: u32| {
        let rows = HeatmapRows::Addresses { rows: 31, offsets: Some((1 << 20, 9 << 20)) };
        let window = Window { start: 0.0, end: f64::from(events) };
        Query::Heatmap(HeatmapQuery {
            axis: Axis::Event,
            window,
            columns: 200,
            rows,
            part: HeatmapPart::All,
            needed: None,
        })
    };
    let mut live = LiveSession::new(LiveLimits::default());
    for piece in bytes.chunks(200) {
        live.push(piece).unwrap();
        live.refresh();
        if let Some(device) = live.summary().devices.first() {
            let query = query(device.events);
            drop(live.answer(0, &query));
        }
    }
    let mut built = Session::build(import(&bytes), &mut |_| {});
    let query = query(built.summary().devices[0].events);
    assert_eq!(settled(live.answer(0, &query)), settled(built.answer(0, &query)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pushing_in_pieces_equals_building_at_once(
        ops in ops(500, false),
        conf in prop::sample::select(CONFS.to_vec()),
        devices in 1_usize..3,
        has_end in any::<bool>(),
        has_prelude in any::<bool>(),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, .. } = record(&ops, devices, conf, 0, has_end);
        let pushed = if has_prelude { &bytes[..] } else { &bytes[12..] };
        let (mut live, updates) = push_pieces(pushed, &pieces, LiveLimits::default());
        let mut built = Session::build(import(&bytes), &mut |_| {});
        let events: u64 = built.summary().devices.iter().map(|device| u64::from(device.events)).sum();
        prop_assert_eq!(updates.iter().map(|update| update.events).sum::<u64>(), events);
        prop_assert!(updates.iter().all(|update| update.trimmed.is_empty()));
        prop_assert_eq!(updates.last().is_some_and(|update| update.has_ended), has_end);
        if has_end && devices == 1 {
            prop_assert_eq!(&live.summary().findings, &built.summary().findings);
        }
        prop_assert_eq!(&live.summary().origin, &built.summary().origin);
        for device in built.summary().devices.clone() {
            let place = live.summary().devices.iter().position(|other| other.device == device.device).unwrap();
            let place_built = built.summary().devices.iter().position(|other| other.device == device.device).unwrap();
            prop_assert_eq!(&live.summary().devices[place], &device);
            let answer = |query: &Query| live.answer(place, query);
            let found = differences(&device, has_end, answer, |query| built.answer(place_built, query));
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
        prop_assert!(live.bytes() > 0);
    }

    #[test]
    fn a_held_session_tells_of_nothing_later(
        ops in ops(300, false),
        conf in prop::sample::select(CONFS.to_vec()),
        share in 0.2_f64..0.8,
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, .. } = record(&ops, 1, conf, 0, true);
        // With so low a limit, data would be added at once if the session were not held.
        let limits = || LiveLimits { pending_bytes: 1_000, ..LiveLimits::default() };
        let (first, later) = bytes.split_at((bytes.len() as f64 * share) as usize);
        let (mut live, _) = push_pieces(first, &pieces, limits());
        let asked = live.summary().devices.first().map(examples).unwrap_or_default();
        let answers = |live: &mut LiveSession| asked.iter().map(|query| settled(live.answer(0, query))).collect::<Vec<_>>();
        let held = (live.summary().clone(), answers(&mut live));
        live.hold(true);
        later.chunks(97).for_each(|piece| live.push(piece).unwrap());
        prop_assert_eq!(&held, &(live.summary().clone(), answers(&mut live)));
        live.hold(false);
        live.refresh();
        let (mut whole, _) = push_pieces(&bytes, &pieces, limits());
        prop_assert_eq!(live.summary(), whole.summary());
        if let Some(device) = whole.summary().devices.first().cloned() {
            let found = differences(&device, true, |query| live.answer(0, query), |query| whole.answer(0, query));
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }

    #[test]
    fn a_stream_can_begin_with_a_state(
        ops in ops(220, false),
        conf in prop::sample::select(CONFS.to_vec()),
        late in 1_usize..100,
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, segments, .. } = record(&ops, 1, conf, late, false);
        let (mut live, _) = push_pieces(&bytes, &pieces, LiveLimits::default());
        let summary = live.summary().devices[0].clone();
        check_end(&summary.end, &segments[0]);
        // Reading the file derives the states from the end. Reserved and requested bytes are equal everywhere.
        let mut built = Session::build(import(&bytes), &mut |_| {});
        for position in 0..=summary.events {
            let query = Query::State(StateQuery { position });
            let (Answer::State(a), Answer::State(b)) = (live.answer(0, &query), built.answer(0, &query)) else {
                panic!("a state")
            };
            prop_assert_eq!((a.totals.reserved, a.totals.requested, a.totals.blocks), (b.totals.reserved, b.totals.requested, b.totals.blocks));
        }
    }

    #[test]
    fn repeated_events_count_once(
        ops in ops(220, true),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, lost, .. } = record(&ops, 1, conf, 0, false);
        let (mut live, _) = push_pieces(&bytes, &pieces, LiveLimits::default());
        let once = live.summary().clone();
        prop_assert_eq!(once.devices.iter().map(|device| device.lost).sum::<u64>(), lost);
        // After a lost connection everything is sent again.
        live.push(&bytes).unwrap();
        live.refresh();
        let events = |summary: &Summary| summary.devices.iter().map(|d| (d.events, d.lost, d.end)).collect::<Vec<_>>();
        prop_assert_eq!(events(live.summary()), events(&once));
    }

    #[test]
    fn the_next_state_corrects_a_loss(
        ops in ops(300, true),
        more in ops(100, false),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        // A state follows the loss, so that everything is known again after one more event.
        let mut all = ops;
        all.push(Op::Flush { lose: 0, state: true });
        all.extend(more);
        all.push(Op::Malloc { size: 1_000, stream: 0, site: 3 });
        let Recorded { bytes, segments, .. } = record(&all, 1, conf, 0, true);
        let (mut live, _) = push_pieces(&bytes, &pieces, LiveLimits::default());
        let summary = live.summary().devices[0].clone();
        check_end(&summary.end, &segments[0]);
        // The overview ends with the same totals.
        let Answer::Overview(overview) = live.answer(0, &Query::Overview(OverviewQuery { axis: Axis::Event, columns: summary.events + 1 }))
        else {
            panic!("an overview")
        };
        prop_assert_eq!(overview.reserved[summary.events as usize], summary.end.reserved);
        prop_assert_eq!(overview.active[summary.events as usize], summary.end.active);
        prop_assert_eq!(overview.allocated[summary.events as usize], summary.end.allocated);
    }

    #[test]
    fn chunks_in_any_order_do_not_panic(
        ops in ops(150, true),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
        events in 1_usize..200,
    ) {
        let Recorded { bytes, chunks, .. } = record(&ops, 2, "", 0, true);
        let mut live = LiveSession::new(LiveLimits { events, ..LiveLimits::default() });
        for (i, (index, refreshes)) in order.into_iter().enumerate() {
            let at = index.index(chunks.len());
            let end = chunks.get(at + 1).copied().unwrap_or(bytes.len());
            live.push(&bytes[chunks[at]..end]).unwrap();
            if refreshes {
                live.refresh();
                for device in 0..live.summary().devices.len() {
                    ask_some(&mut live, device, i);
                }
            }
        }
    }

    #[test]
    fn trimming_keeps_the_newest_events(
        ops in ops(700, false),
        conf in prop::sample::select(CONFS.to_vec()),
        devices in 1_usize..3,
        late in 0_usize..30,
        events in 40_usize..600,
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { bytes, segments, .. } = record(&ops, devices, conf, late, false);
        let limits = LiveLimits { events, ..LiveLimits::default() };
        let (mut tail, updates) = push_pieces(&bytes, &pieces, limits);
        let (mut whole, _) = push_pieces(&bytes, &pieces, LiveLimits::default());
        let held: u32 = tail.summary().devices.iter().map(|device| device.events).sum();
        prop_assert!(held as usize <= events);
        for device in 0..whole.summary().devices.len() {
            let [kept, all] = [&tail, &whole].map(|live| live.summary().devices[device].clone());
            let trimmed = || updates.iter().flat_map(|update| &update.trimmed).filter(|trimmed| trimmed.device == device);
            let cut: u32 = trimmed().map(|trimmed| trimmed.events).sum();
            prop_assert_eq!(kept.events + cut, all.events);
            prop_assert_eq!(kept.start_us, all.start_us + trimmed().map(|trimmed| trimmed.span_us).sum::<i64>());
            check_end(&kept.end, &segments[kept.device as usize]);
            for position in 0..=kept.events {
                let state = |live: &mut LiveSession, position| match live.answer(device, &Query::State(StateQuery { position })) {
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
fn a_late_viewer_gets_no_finding_about_the_start() {
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
fn room_counts_down_and_an_out_of_memory_is_explained() {
    let malloc = |size| Op::Malloc { size, stream: 0, site: 1 };
    let ops: Vec<Op> = (0..30).map(|i| malloc(if i == 20 { 3 << 40 } else { 700 })).collect();
    let Recorded { bytes, .. } = record(&ops, 1, "", 0, false);
    let mut live = LiveSession::new(LiveLimits { events: 1_000, ..LiveLimits::default() });
    assert_eq!(live.room(), 1_000);
    live.push(&bytes).unwrap();
    let update = live.refresh().unwrap();
    assert_eq!(live.room() as u64, 1_000 - update.events);
    let (device, position) = update.oom.unwrap();
    assert!(
        live.why_out_of_memory(device, position).starts_with("Full: one request was for 3.00 TiB, and the device has ")
    );
    assert_eq!(live.why_out_of_memory(device, position + 1), "");
    assert_eq!(live.why_out_of_memory(7, position), "");
}

#[test]
fn a_free_in_a_state_and_in_the_next_event_counts_once() {
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
    let (mut live, _) = push_pieces(&bytes, &[bytes.len()], LiveLimits::default());
    let DeviceSummary { events, end, .. } = live.summary().devices[0].clone();
    check_end(&end, &segments[0]);
    let Answer::Overview(overview) =
        live.answer(0, &Query::Overview(OverviewQuery { axis: Axis::Event, columns: events + 1 }))
    else {
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
