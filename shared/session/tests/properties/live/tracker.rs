//! A tracker agrees with the decoder and with the allocator.

use format::ChunkReader;
use format::recording::Decoder;
use proptest::prelude::*;
use replay::Replay;
use trace::limits::ImportLimits;
use tracker::Tracker;

use crate::live::stream::{CONFS, Recorded, comparable, ops, record};

fn track(bytes: &[u8]) -> Tracker {
    let limits = ImportLimits::default();
    let mut tracker = Tracker::new(limits);
    ChunkReader::at_start(&limits).push(bytes, &mut |chunk| tracker.add(chunk)).unwrap();
    tracker
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_tracker_agrees_with_the_decoder(
        ops in ops(150, true),
        devices in 1_usize..3,
        conf in prop::sample::select(CONFS.to_vec()),
        late in 0_usize..40,
        has_end in any::<bool>(),
    ) {
        let Recorded { bytes, lost, events, .. } = record(&ops, devices, conf, late, has_end);
        let tracker = track(&bytes);
        let mut decoder = Decoder::new(ImportLimits::default());
        decoder.push(&bytes).unwrap();
        prop_assert_eq!(tracker.malformed, 0);
        prop_assert_eq!(tracker.end, decoder.recording().end);
        prop_assert_eq!(tracker.end.is_some(), has_end);
        prop_assert_eq!(&tracker.header, &decoder.recording().header);
        let mut lost_in_all = 0;
        for (number, device) in tracker.devices.iter() {
            let track = decoder.recording().devices.get(number).unwrap();
            prop_assert_eq!(device.events, events[number as usize]);
            prop_assert_eq!(device.events, track.trace.events.len() as u64);
            prop_assert_eq!(device.lost, track.lost.iter().map(|m| m.lost.to - m.lost.from).sum::<u64>());
            let times = || track.trace.events.time_us.iter();
            prop_assert_eq!(device.span_us, times().min().zip(times().max()));
            lost_in_all += device.lost;
        }
        prop_assert_eq!(lost_in_all, lost);
    }

    #[test]
    fn a_tracker_agrees_with_the_allocator(
        ops in ops(200, false),
        devices in 1_usize..3,
        conf in prop::sample::select(CONFS.to_vec()),
        late in 0_usize..40,
        has_end in any::<bool>(),
    ) {
        let Recorded { bytes, segments, .. } = record(&ops, devices, conf, late, has_end);
        let tracker = track(&bytes);
        for (number, device) in tracker.devices.iter() {
            prop_assert_eq!(&comparable(device.now.segments()), &segments[number as usize]);
            prop_assert_eq!((device.lost, device.now.mismatches().total()), (0, 0));
        }
    }

    #[test]
    fn a_trackers_peaks_are_those_of_every_event(
        ops in ops(200, false),
        devices in 1_usize..3,
        conf in prop::sample::select(CONFS.to_vec()),
        late in 0_usize..40,
    ) {
        let Recorded { bytes, .. } = record(&ops, devices, conf, late, true);
        let tracker = track(&bytes);
        let mut decoder = Decoder::new(ImportLimits::default());
        decoder.push(&bytes).unwrap();
        let (mut snapshot, ..) = decoder.finish().unwrap();
        for trace in &snapshot.devices {
            let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
            let states: Vec<_> = (0..=replay.positions()).map(|position| replay.state_at(position).totals).collect();
            let device = tracker.devices.get(trace.device).unwrap();
            let most = |of: &dyn Fn(&trace::totals::Totals) -> u64| states.iter().map(of).max().unwrap();
            // What a late recording frees was made before it, and its size is recorded in the state at its beginning alone.
            // The tracker has that state; the trace is led back from its end, where such a block is gone, and takes the
            // least size for the request. The block may have been larger: a remainder that is too small is not split off.
            let is_exact = late == 0;
            let (allocated, active) = (most(&|totals| totals.allocated), most(&|totals| totals.active));
            if is_exact {
                prop_assert_eq!((device.peak.allocated, device.peak.active), (allocated, active));
            } else {
                prop_assert!(device.peak.allocated >= allocated && device.peak.active >= active);
            }
            prop_assert_eq!(device.peak.reserved, most(&|totals| totals.reserved));
            prop_assert_eq!(device.peak.requested, most(&|totals| totals.requested));

            // Each point has the maximum over its span, from its time to that of the next point.
            let points = &device.course.points;
            for (i, (from_us, most)) in points.iter().enumerate() {
                let to_us = points.get(i + 1).map_or(i64::MAX, |(time_us, _)| *time_us);
                let mut want = [0; 3];
                for (event, totals) in trace.events.iter().zip(&states[1..]) {
                    if (*from_us..to_us).contains(&event.time_us) {
                        let sums = [totals.allocated, totals.active, totals.reserved];
                        want.iter_mut().zip(sums).for_each(|(want, sum)| *want = sum.max(*want));
                    }
                }
                let compared = if is_exact { 0 } else { 2 };
                prop_assert_eq!(&most[compared..], &want[compared..], "{}", i);
            }
            prop_assert_eq!(points.first().map(|point| point.0), trace.events.get(0).map(|event| event.time_us));
        }
    }

    #[test]
    fn the_next_state_corrects_a_loss(ops in ops(200, true), conf in prop::sample::select(CONFS.to_vec())) {
        // The end records the state.
        let Recorded { bytes, segments, .. } = record(&ops, 1, conf, 0, true);
        let tracker = track(&bytes);
        prop_assert_eq!(&comparable(tracker.devices.get(0).unwrap().now.segments()), &segments[0]);
    }

    #[test]
    fn chunks_in_any_order_do_not_panic(ops in ops(100, true), order in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let Recorded { bytes, chunks, .. } = record(&ops, 2, "", 0, true);
        let mut tracker = Tracker::new(ImportLimits::default());
        let mut frames = ChunkReader::at_start(&ImportLimits::default());
        frames.push(&bytes[..12], &mut |_| {}).unwrap();
        for index in order {
            let at = index.index(chunks.len());
            let end = chunks.get(at + 1).copied().unwrap_or(bytes.len());
            frames.push(&bytes[chunks[at]..end], &mut |chunk| tracker.add(chunk)).unwrap();
        }
        for (_, device) in tracker.devices.iter() {
            let segments = device.now.segments();
            prop_assert_eq!(segments.iter().map(|s| s.size).sum::<u64>(), device.now.sums().reserved);
        }
        prop_assert!(tracker.bytes() < 1 << 20);
    }
}
