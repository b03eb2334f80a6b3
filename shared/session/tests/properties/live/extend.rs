//! A replay that was built at once can be extended.

use proptest::prelude::*;
use replay::Replay;
use replay::index::{Index, IndexInput};
use trace::DeviceTrace;

use crate::live::pieces::import;
use crate::live::stream::{CONFS, Recorded as Recording, ops, record};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn building_a_part_and_extending_it_equals_building_the_whole(
        ops in ops(300, false),
        conf in prop::sample::select(CONFS.to_vec()),
        cut in any::<prop::sample::Index>(),
    ) {
        let Recording { bytes, .. } = record(&ops, 1, conf, 0, true);
        let mut snapshot = import(&bytes).snapshot;
        let Some(trace) = snapshot.devices.pop() else { return Ok(()) };
        let (tags, settings) = (&mut snapshot.tags, &snapshot.settings);
        let whole = Replay::build(&trace, tags, settings);
        let cut = cut.index(trace.events.len() + 1);
        let mut part = DeviceTrace { segments: whole.segments_at(cut as u32), ..DeviceTrace::default() };
        trace.events.iter().take(cut).for_each(|event| part.events.push(event));
        let mut extended = Replay::build(&part, tags, settings);
        extended.extend(IndexInput { trace: &trace, tags, settings, states: Vec::new() });
        prop_assert_eq!(extended.positions(), whole.positions());
        prop_assert_eq!(extended.mismatches, whole.mismatches);
        for position in 0..=whole.positions() {
            prop_assert_eq!(extended.state_at(position).totals, whole.state_at(position).totals, "at {}", position);
            prop_assert_eq!(extended.time_at(&trace, position), whole.time_at(&trace, position));
        }
        prop_assert_eq!(extended.segments_at(u32::MAX), whole.segments_at(u32::MAX));
    }
}
