//! A session that grew in arbitrary pieces is the one that is built at once.

use proptest::prelude::*;
use shared::import::{Imported, Importer};
use shared::limits::{ImportLimits, LiveLimits};
use shared::query::{
    Answer, Axis, ColorBy, DeviceSummary, EventFilter, FlameQuery, Query, Timeline, TimelineQuery, Window,
};
use shared::session::{Grown, LiveSession, Session};

use crate::stream::{CONFS, Recorded, comparable, ops, record};

fn import(bytes: &[u8]) -> Imported {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes).unwrap();
    importer.finish().unwrap()
}

/// Pushes the bytes in pieces, and refreshes and asks after some of them.
fn grow(bytes: &[u8], pieces: &[usize], limits: LiveLimits) -> (LiveSession, Vec<Grown>) {
    let mut live = LiveSession::new(limits);
    let mut grown = Vec::new();
    let mut rest = bytes;
    for (i, piece) in pieces.iter().cycle().enumerate() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        live.push(now).unwrap();
        if i % 3 != 1 || rest.is_empty() {
            grown.extend(live.refresh());
            assert!(live.refresh().is_none(), "nothing came");
            // What is asked on the way is what answers grow from.
            for device in 0..live.summary().devices.len() {
                let queries = queries(&live.summary().devices[device]);
                queries.iter().skip(i % 2).step_by(2).for_each(|query| drop(live.answer(device, query)));
            }
        }
        if rest.is_empty() {
            return (live, grown);
        }
    }
    (live, grown)
}

fn queries(summary: &DeviceSummary) -> Vec<Query> {
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
fn settled(answer: Answer) -> String {
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
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn grown_in_pieces_equals_built_at_once(
        ops in ops(220, false),
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
        let reserved: u64 = segments[0].iter().map(|segment| segment.size).sum();
        let active = |segment: &shared::trace::Segment| {
            let blocks = segment.blocks.iter().filter(|b| b.state != shared::trace::BlockState::Inactive);
            blocks.map(|block| block.size).sum::<u64>()
        };
        prop_assert_eq!(summary.end.reserved, reserved);
        prop_assert_eq!(summary.end.active, segments[0].iter().map(active).sum::<u64>());
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
    fn after_a_loss_the_next_state_counts(
        ops in ops(220, true),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let Recorded { mut bytes, lost, .. } = record(&ops, 1, conf, 0, false);
        // A state, and one event behind it that changes nothing.
        let mut live = LiveSession::new(LiveLimits::default());
        let (grown, _) = grow(&bytes, &pieces, LiveLimits::default());
        prop_assert_eq!(grown.summary().devices.iter().map(|device| device.lost).sum::<u64>(), lost);
        live.push(&bytes).unwrap();
        live.refresh();
        let device = &live.summary().devices;
        prop_assert_eq!(device, &grown.summary().devices);
        bytes.clear();
    }
}
