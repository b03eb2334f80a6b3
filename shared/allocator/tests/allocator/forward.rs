//! The state that is carried forward from the trace equals the allocator's own.

use allocator::Profile;
use proptest::prelude::*;
use replay::{Forward, Sums};
use trace::frames::StackId;
use trace::units::Address;
use trace::{BlockState, Event, Segment, Settings, TagId};

use super::ops::{Op, operations};
use super::world::World;

const SETTINGS: [&str; 8] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:21",
    "max_split_size_mb:40,expandable_segments:True",
    "max_split_size_mb:30,max_non_split_rounding_mb:21",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,64:16,>:1],garbage_collection_threshold:0.3",
    "large_segment_size_mb:40",
];

/// Returns whether a trace shows the effect of an operation. It shows no changes of settings or pool options, and
/// cannot distinguish adjacent expandable segments, which need a device that shrinks.
fn is_visible_in_trace(op: &Op) -> bool {
    match op {
        Op::Config { .. } | Op::SetPoolOptions { .. } | Op::Capacity { .. } => false,
        Op::CreatePool { options, .. } => !options.no_split && !options.use_on_oom,
        _ => true,
    }
}

/// Returns the allocator's own segments. What free blocks remember of their last use is left out.
fn truth(world: &World) -> Vec<Segment> {
    let mut segments = world.allocator.segments();
    for block in segments.iter_mut().flat_map(|segment| &mut segment.blocks) {
        if block.state == BlockState::Inactive {
            (block.requested, block.stack) = (0, StackId(0));
        }
    }
    segments
}

fn settings(world: &World) -> Settings {
    let config = world.allocator.config();
    Settings {
        max_split_size: (config.max_split_size != u64::MAX).then_some(config.max_split_size),
        roundup_power2_divisions: config.roundup_power2_divisions,
        ..Settings::default()
    }
}

fn follow(world: &mut World, forwards: &mut [Forward]) {
    let entries = world.allocator.sink_mut().clone();
    for entry in entries {
        let event = Event {
            action: entry.action,
            address: Address(entry.address),
            size: entry.size,
            time_us: 0,
            tag: TagId(0),
            stack: entry.stack,
        };
        for forward in &mut *forwards {
            forward.apply(&event, entry.stream, Some(entry.pool));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_state_carried_forward_is_the_allocators(
        release in 0..Profile::ALL.len(),
        conf in prop::sample::select(SETTINGS.to_vec()),
        capacity in prop::sample::select(vec![64_u64 << 20, 200 << 20, 4 << 30]),
        bytes in prop::collection::vec(any::<u8>(), 0..1200),
        late in 0_usize..300,
    ) {
        // There, private pools have segments that are not expandable, but are split as if they were.
        prop_assume!(!Profile::ALL[release].private_segments_are_native || !conf.contains("expandable"));
        let mut world = World::new(Profile::ALL[release], capacity);
        // Some releases do not have some settings; those that they have are in force.
        drop(world.allocator.set_config(conf));
        let settings = settings(&world);
        let mut forwards = vec![Forward::new(&settings)];
        for (i, op) in operations(&bytes).filter(is_visible_in_trace).enumerate() {
            world.step(op);
            follow(&mut world, &mut forwards);
            world.check();
            let want = truth(&world);
            let stats = world.allocator.stats();
            let sums = Sums {
                allocated: stats.allocated_bytes.all.current as u64,
                active: stats.active_bytes.all.current as u64,
                reserved: stats.reserved_bytes.all.current as u64,
                requested: stats.requested_bytes.all.current as u64,
                blocks: stats.active.all.current as u32,
                segments: want.len() as u32,
            };
            for forward in &forwards {
                prop_assert_eq!(forward.sums(), sums);
                prop_assert_eq!(forward.segments(), want.clone());
                prop_assert_eq!(forward.mismatches().total(), 0);
            }
            if i == late {
                // A reader that starts later from the state sees the same.
                let mut second = Forward::new(&settings);
                second.assume_state(&want);
                forwards.push(second);
            }
            // A state that repeats what is known changes nothing.
            forwards[0].assume_state(&want);
        }
    }

    #[test]
    fn a_written_state_replaces_any_earlier_one(first in prop::collection::vec(any::<u8>(), 0..600), second in prop::collection::vec(any::<u8>(), 0..600)) {
        let states = [first, second].map(|bytes| {
            let mut world = World::new(Profile::ALL[0], 4 << 30);
            for op in operations(&bytes).filter(is_visible_in_trace) {
                world.step(op);
                world.check();
            }
            truth(&world)
        });
        let mut forward = Forward::new(&Settings::default());
        for state in [&states[0], &states[1], &states[0]] {
            forward.assume_state(state);
            prop_assert_eq!(&forward.segments(), state);
            let reserved: u64 = state.iter().map(|segment| segment.size).sum();
            let blocks = || state.iter().flat_map(|segment| &segment.blocks);
            let sum = |wanted: &[BlockState]| blocks().filter(|b| wanted.contains(&b.state)).map(|b| b.size).sum::<u64>();
            let sums = forward.sums();
            prop_assert_eq!((sums.reserved, sums.segments as usize), (reserved, state.len()));
            prop_assert_eq!(sums.allocated, sum(&[BlockState::Allocated]));
            prop_assert_eq!(sums.active, sum(&[BlockState::Allocated, BlockState::Pending]));
        }
    }
}
