//! The measures of every position against a slow and obvious count over all blocks.

mod curves;
mod examples;
#[path = "../../../../allocator/tests/allocator/ops.rs"]
#[allow(dead_code, reason = "each test binary uses its own part")]
mod ops;
mod simulated;

use crate::support::{Held, ops as programs, run};
use analysis::measures::{Measures, Measuring, servable};
use proptest::prelude::*;
use replay::Replay;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, DeviceTrace, Segment};

/// Counts the measures over all blocks of all segments.
fn counted(segments: &[Segment]) -> Measures {
    let mut now = Measures::default();
    for segment in segments {
        let mut free = 0;
        for block in &segment.blocks {
            match block.state {
                BlockState::Inactive => {
                    free += block.size;
                    now.gaps += 1;
                    now.square_sum += u128::from(block.size).pow(2);
                    let largest =
                        if segment.is_small { &mut now.largest_small_gap } else { &mut now.largest_large_gap };
                    *largest = block.size.max(*largest);
                }
                BlockState::Allocated | BlockState::Pending => {
                    now.requested += block.requested;
                    now.active += block.size;
                    now.allocated += if block.state == BlockState::Allocated { block.size } else { 0 };
                }
            }
        }
        now.reserved += segment.size;
        *(if free == segment.size { &mut now.cached_whole } else { &mut now.inactive_split }) += free;
    }
    assert_eq!(now.inactive_split + now.cached_whole, now.reserved - now.active);
    now
}

/// Counts the bytes that each pool and stream has free, and the largest of its free blocks.
fn counted_by_pool(segments: &[Segment]) -> Vec<(PoolId, Stream, bool, u64, u64)> {
    let mut found: Vec<(PoolId, Stream, bool, u64, u64)> = Vec::new();
    for segment in segments {
        let key = (segment.pool, segment.stream, !segment.is_small);
        let free = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive).map(|block| block.size);
        let (sum, most) = (free.clone().sum::<u64>(), free.max().unwrap_or(0));
        match found.iter_mut().find(|known| (known.0, known.1, known.2) == key) {
            Some(known) => (known.3, known.4) = (known.3 + sum, known.4.max(most)),
            None => found.push((key.0, key.1, key.2, sum, most)),
        }
    }
    found.sort_unstable();
    found
}

/// Returns the measures of every position, from the one at which they begin.
fn followed(trace: &DeviceTrace, replay: &Replay, from: u32) -> Vec<Measures> {
    let mut measuring = Measuring::at(replay, from);
    let mut all = vec![measuring.now()];
    measuring.advance(trace, replay, u32::MAX, |position, now| {
        assert_eq!(position, from + all.len() as u32);
        all.push(*now);
    });
    assert_eq!(all.last().copied(), Some(measuring.now()));
    assert_eq!(all.len() as u32, replay.positions() - from + 1);
    all
}

fn check_pools(replay: &Replay, position: u32, segments: &[Segment]) {
    let found = servable(&replay.space_at(position));
    let facts: Vec<_> =
        found.iter().map(|own| (own.pool, own.stream, !own.is_small, own.cached, own.largest_gap)).collect();
    assert_eq!(facts, counted_by_pool(segments), "pools at {position}");
}

/// Returns a segment of the model.
fn segment(held: &Held) -> Segment {
    let block = |&(address, size, piece): &(u64, u64, Option<crate::support::Piece>)| Block {
        address: Address(address),
        size,
        requested: piece.map_or(0, |piece| piece.requested),
        state: match piece {
            None => BlockState::Inactive,
            Some(piece) if piece.is_allocated => BlockState::Allocated,
            Some(_) => BlockState::Pending,
        },
        stack: StackId(0),
    };
    Segment {
        address: Address(held.address),
        size: held.size,
        stream: Stream(held.stream),
        is_small: held.is_small,
        is_expandable: false,
        pool: PoolId::default(),
        stack: StackId(0),
        blocks: held.blocks.iter().map(block).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_measures_of_every_event_are_those_of_the_model(ops in programs(150), begin in any::<prop::sample::Index>()) {
        let mut run = run(&ops, 0);
        let replay = Replay::build(&run.trace, &mut run.tags, &run.settings);
        let measures = followed(&run.trace, &replay, 0);
        for (position, (moment, now)) in run.moments.iter().zip(&measures).enumerate() {
            let segments: Vec<Segment> = moment.segments.iter().map(segment).collect();
            prop_assert_eq!(now, &counted(&segments), "at {}", position);
            check_pools(&replay, position as u32, &segments);
        }
        // Where one begins makes no difference.
        let begin = begin.index(measures.len());
        prop_assert_eq!(&followed(&run.trace, &replay, begin as u32), &measures[begin..]);
    }
}
