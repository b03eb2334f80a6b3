//! Recordings of a history that is read at intervals: gaps, and states behind them.

use proptest::prelude::*;
use query::{Answer, Axis, ColorBy, OverviewQuery, Query, StateQuery, TimelineQuery, Window};
use session::{LiveSession, Session, examples};
use trace::limits::LiveLimits;

use crate::live::pieces::{check_end, differences, import, push_pieces};
use crate::live::stream::{CONFS, Op, Recorded, Recorder, ops, record_reads};

fn totals(live: &mut LiveSession, position: u32) -> trace::totals::Totals {
    match live.answer(0, &Query::State(StateQuery { position })) {
        Answer::State(state) => state.totals,
        other => panic!("{other:?}"),
    }
}

#[test]
fn statistics_are_the_state_before_the_first_event() {
    let malloc = Op::Malloc { size: 5 << 20, stream: 0, site: 1 };
    let nothing = [(vec![], vec![]), (vec![], vec![])];
    for (reads, held, lost) in [(nothing.to_vec(), 0, 0), (vec![(vec![malloc; 9], vec![])], 60 << 20, 12)] {
        let (recorded, _) = record_reads(&reads, "", false);
        let (mut live, _) = push_pieces(&recorded.bytes, &[700], LiveLimits::default());
        let device = live.summary().devices[0].clone();
        assert_eq!((device.events, device.has_times, device.end.reserved, device.lost), (0, true, held, lost));
        assert_eq!(device.peak_reserved, held);
        for query in examples(&device) {
            live.answer(0, &query);
        }
        assert_eq!(totals(&mut live, 0).reserved, held);
        for axis in [Axis::Time, Axis::Event] {
            let Answer::Overview(overview) = live.answer(0, &Query::Overview(OverviewQuery { axis, columns: 5 }))
            else {
                panic!("an overview")
            };
            assert_eq!(overview.reserved[..], [held; 5]);
            let gap = &overview.losses[0];
            assert_eq!((gap.span, gap.events), (overview.window, lost));
        }
    }
}

#[test]
fn statistics_are_drawn_where_events_are_missing() {
    let malloc = Op::Malloc { size: 30 << 20, stream: 0, site: 1 };
    let grow_unseen = |recorder: &mut Recorder| {
        for number in 0..3 {
            recorder.step(number, malloc);
            recorder.sample();
        }
    };
    for is_told in [true, false] {
        let mut recorder = Recorder::new(1, "");
        recorder.begin_late();
        recorder.sample();
        grow_unseen(&mut recorder);
        if is_told {
            recorder.flush(0, usize::MAX);
            recorder.state(0);
        } else {
            recorder.begin_late();
        }
        (0..2).for_each(|number| recorder.step(number, malloc));
        recorder.flush(0, 0);
        grow_unseen(&mut recorder);
        recorder.forget(0);
        let Recorded { bytes, lost, .. } = recorder.finish(false);

        let (mut live, _) = push_pieces(&bytes, &[700], LiveLimits::default());
        let mut file = Session::build(import(&bytes), &mut |_| {});
        let device = live.summary().devices[0].clone();
        assert_eq!(device, file.summary().devices[0]);
        let found = differences(&device, false, |query| live.answer(0, query), |query| file.answer(0, query));
        assert!(found.is_empty(), "{}", found.join("\n"));
        let mut overview = |axis| match file.answer(0, &Query::Overview(OverviewQuery { axis, columns: 50 })) {
            Answer::Overview(overview) => overview,
            other => panic!("{other:?}"),
        };
        let by_event = overview(Axis::Event);
        let by_time = overview(Axis::Time);
        let gaps: Vec<_> = by_time.losses.iter().map(|gap| (gap.position, gap.events)).collect();
        assert_eq!(gaps, [(0, lost), (device.events, 0)]);
        // It begins with the statistics, which are shown up to the first event and from the last one on.
        let xs = |gap: usize| by_time.losses[gap].samples.iter().map(|sample| sample.x).collect::<Vec<_>>();
        let first_us = if is_told { 4.0 * 7.0 + 7.0 * lost as f64 } else { 7.0 * 10.0 };
        assert!(device.span_us as f64 > first_us && first_us > 0.0);
        assert_eq!((xs(0).len(), xs(0)[0], xs(1).len()), (4, 0.0, 3));
        assert_eq!(by_time.losses[0].span.start, 0.0);
        assert_eq!(by_time.losses[1].span.end, by_time.window.end);
        assert_eq!(xs(1)[2], device.span_us as f64);
        let reserved: Vec<u64> = by_time.losses[0].samples.iter().map(|sample| sample.reserved).collect();
        assert!(reserved.is_sorted() && reserved[0] == 0 && reserved[3] > 0, "{reserved:?}");
        // On the event axis nothing lies between two events.
        assert_eq!(by_event.losses.len(), usize::from(is_told));
        assert_eq!(by_event.window.end, f64::from(device.events) + 1.0);

        // A height that fits the columns shows all samples.
        let gap = by_time.losses[1].span;
        let query = TimelineQuery {
            axis: Axis::Time,
            window: gap,
            columns: 40,
            bytes: Window { start: 0.0, end: device.peak_reserved as f64 },
            rows: 100,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
        };
        let Answer::Timeline(timeline) = file.answer(0, &Query::Timeline(query)) else { panic!("a timeline") };
        let most = by_time.losses[1].samples[2].reserved;
        assert_eq!((timeline.reserved[39], device.peak_reserved), (most, most));
        assert!(timeline.reserved[0] < most);
    }
}

#[test]
fn statistics_equal_to_the_state_are_not_a_loss() {
    let mut recorder = Recorder::new(1, "");
    recorder.step(0, Op::Malloc { size: 5 << 20, stream: 0, site: 1 });
    recorder.begin_late();
    (0..3).for_each(|_| recorder.sample());
    recorder.step(0, Op::Malloc { size: 30 << 20, stream: 0, site: 1 });
    recorder.flush(0, 0);
    (0..3).for_each(|_| recorder.sample());
    let Recorded { bytes, .. } = recorder.finish(false);
    let (mut live, _) = push_pieces(&bytes, &[700], LiveLimits::default());
    let Answer::Overview(overview) = live.answer(0, &Query::Overview(OverviewQuery { axis: Axis::Time, columns: 50 }))
    else {
        panic!("an overview")
    };
    assert_eq!(overview.losses, []);
    // The job did nothing while time passed.
    assert!(overview.window.end > 5.0 * 7.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn one_read_equals_its_file(
        unseen in ops(300, false),
        seen in ops(300, false),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
        has_end in any::<bool>(),
    ) {
        let (recorded, _) = record_reads(&[(unseen, seen)], conf, has_end);
        let (mut live, _) = push_pieces(&recorded.bytes, &pieces, LiveLimits::default());
        let mut built = Session::build(import(&recorded.bytes), &mut |_| {});
        let (a, b) = (live.summary().devices[0].clone(), built.summary().devices[0].clone());
        prop_assert_eq!((a.events, a.losses, a.lost, a.start), (b.events, b.losses, b.lost, b.start));
        prop_assert_eq!((a.peak, a.peak_reserved, a.end), (b.peak, b.peak_reserved, b.end));
        check_end(&a.end, &recorded.segments[0]);
        prop_assert_eq!(&a, &b);
        if has_end && a.events > 0 {
            prop_assert_eq!(&live.summary().findings, &built.summary().findings);
        }
        let found = differences(&b, has_end, |query| live.answer(0, query), |query| built.answer(0, query));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn each_state_takes_effect_at_its_gap(
        reads in prop::collection::vec((ops(80, false), ops(80, false)), 1..6),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let (recorded, truths) = record_reads(&reads, conf, true);
        let (mut live, updates) = push_pieces(&recorded.bytes, &pieces, LiveLimits::default());
        check_end(&live.summary().devices[0].end, &recorded.segments[0]);
        prop_assert_eq!(updates.iter().map(|update| update.events).sum::<u64>(), recorded.events[0]);
        // After each read with events, the state is the recorded one, whatever was missed before.
        let events = live.summary().devices[0].events;
        for (position, truth) in truths.into_iter().filter(|(position, _)| *position < events) {
            let held = totals(&mut live, position);
            prop_assert_eq!(held.reserved, truth.iter().map(|segment| segment.size).sum::<u64>());
        }
    }

    #[test]
    fn a_state_behind_the_last_gap_is_the_end(
        before in ops(120, false),
        unseen in ops(80, false),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let (recorded, _) = record_reads(&[(vec![], before), (unseen, vec![])], conf, true);
        let (live, _) = push_pieces(&recorded.bytes, &pieces, LiveLimits::default());
        check_end(&live.summary().devices[0].end, &recorded.segments[0]);
    }
}
