//! Recordings of a history that is read now and again: gaps, and states behind them.

use proptest::prelude::*;
use shared::limits::LiveLimits;
use shared::query::{Answer, Axis, Query};
use shared::session::{LiveSession, Session};

use crate::grown::{check_end, grow, import, queries, settled};
use crate::stream::{CONFS, Op, ops, record_reads};

fn totals(live: &mut LiveSession, position: u32) -> shared::query::Totals {
    match live.answer(0, &Query::State { position }) {
        Answer::State(state) => state.totals,
        other => panic!("{other:?}"),
    }
}

#[test]
fn before_the_first_event_statistics_say_what_is_held() {
    let malloc = Op::Malloc { size: 5 << 20, stream: 0, site: 1 };
    let nothing = [(vec![], vec![]), (vec![], vec![])];
    for (reads, held, lost) in [(nothing.to_vec(), 0, 0), (vec![(vec![malloc; 9], vec![])], 60 << 20, 12)] {
        let (recorded, _) = record_reads(&reads, "", false);
        let (mut live, _) = grow(&recorded.bytes, &[700], LiveLimits::default());
        let device = live.summary().devices[0].clone();
        assert_eq!((device.events, device.has_times, device.end.reserved, device.lost), (0, true, held, lost));
        assert_eq!(device.peak_reserved, held);
        for query in queries(&device) {
            live.answer(0, &query);
        }
        assert_eq!(totals(&mut live, 0).reserved, held);
        for axis in [Axis::Time, Axis::Event] {
            let Answer::Overview(overview) = live.answer(0, &Query::Overview { axis, columns: 5 }) else {
                panic!("an overview")
            };
            assert_eq!(overview.reserved[..], [held; 5]);
            let gap = &overview.losses[0];
            assert_eq!((gap.span, gap.events), (overview.window, lost));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn one_read_is_as_the_file_of_it(
        unseen in ops(300, false),
        seen in ops(300, false),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
        has_end in any::<bool>(),
    ) {
        let (recorded, _) = record_reads(&[(unseen, seen)], conf, has_end);
        let (mut live, _) = grow(&recorded.bytes, &pieces, LiveLimits::default());
        let mut built = Session::build(import(&recorded.bytes), &mut |_| {});
        let (a, b) = (live.summary().devices[0].clone(), built.summary().devices[0].clone());
        prop_assert_eq!((a.events, a.losses, a.lost, a.start), (b.events, b.losses, b.lost, b.start));
        prop_assert_eq!((a.peak, a.peak_reserved, a.end), (b.peak, b.peak_reserved, b.end));
        check_end(&a.end, &recorded.segments[0]);
        prop_assert_eq!(&a, &b);
        if has_end && a.events > 0 {
            prop_assert_eq!(&live.summary().findings, &built.summary().findings);
        }
        for query in queries(&b) {
            prop_assert_eq!(settled(live.answer(0, &query)), settled(built.answer(0, &query)));
        }
    }

    #[test]
    fn each_state_counts_from_its_gap(
        reads in prop::collection::vec((ops(80, false), ops(80, false)), 1..6),
        conf in prop::sample::select(CONFS.to_vec()),
        pieces in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let (recorded, truths) = record_reads(&reads, conf, true);
        let (mut live, grown) = grow(&recorded.bytes, &pieces, LiveLimits::default());
        check_end(&live.summary().devices[0].end, &recorded.segments[0]);
        prop_assert_eq!(grown.iter().map(|grown| grown.events).sum::<u64>(), recorded.events[0]);
        // After each read that saw something, what was held is what its state says, whatever was not seen before it.
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
        let (live, _) = grow(&recorded.bytes, &pieces, LiveLimits::default());
        check_end(&live.summary().devices[0].end, &recorded.segments[0]);
    }
}
