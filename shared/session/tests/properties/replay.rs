//! Compares the replay with a model that keeps the whole state after every event.

use crate::common::{fixtures, import};
use crate::support::{Op, Piece, Run, ops, run};
use proptest::prelude::*;
use replay::{Allocation, Change, Gap, Mismatches, Replay, ReservedRange, Space, SpaceVisitor};
use trace::totals::Totals;
use trace::{BlockState, Loss, Snapshot};

fn replay(run: &mut Run) -> Replay {
    Replay::build(&run.trace, &mut run.tags, &run.settings)
}

fn check(mut run: Run) {
    let replay = replay(&mut run);
    assert_eq!(replay.mismatches, Mismatches::default());
    let a = &replay.allocations;
    for (position, moment) in run.moments.iter().enumerate() {
        let state = replay.state_at(position as u32);
        let ranges: Vec<_> = state.ranges.iter().map(|r| (r.address.0, r.size, r.stream.0, r.is_small)).collect();
        let want: Vec<_> = moment.segments.iter().map(|s| (s.address, s.size, s.stream, s.is_small)).collect();
        assert_eq!(ranges, want, "segments at {position}");
        let numbers = state.active.iter().map(|&n| a.get(n).unwrap());
        // Allocations that were made before the first event and freed before the end, next to free space that no event
        // separates.
        let mut is_open = false;
        let active: Vec<Piece> = numbers
            .zip(moment.active())
            .map(|(a, truth)| {
                let (size, may_differ) = (a.size, a.begin == 0 && a.flags & Allocation::FLAG_SIZE_WRITTEN == 0);
                let differs = may_differ && size < truth.size && truth.size - size <= 1 << 20;
                is_open |= differs;
                let is_allocated = a.is_allocated_at(position as u32);
                Piece {
                    address: a.address.0,
                    size: if differs { truth.size } else { size },
                    requested: a.requested,
                    is_allocated,
                }
            })
            .collect();
        assert_eq!(active, moment.active(), "active blocks at {position}");
        assert_eq!(state.active.len(), active.len());
        if is_open {
            continue;
        }
        let gaps: Vec<_> = (0..state.ranges.len())
            .flat_map(|i| state.gaps_in(i, a).map(|g| (g.address.0, g.size)).collect::<Vec<_>>())
            .collect();
        assert_eq!(gaps, moment.gaps(), "gaps at {position}");
        let t = state.totals;
        assert_eq!(t.requested, moment.requested());
        assert_eq!(t.reserved, moment.reserved());
        assert_eq!(t.active, active.iter().map(|p| p.size).sum::<u64>());
        assert_eq!(t.allocated, active.iter().filter(|p| p.is_allocated).map(|p| p.size).sum::<u64>());
        assert_eq!(t.largest_gap, gaps.iter().map(|g| g.1).max().unwrap_or(0));
        assert_eq!((t.segments as usize, t.blocks as usize, t.gaps as usize), (ranges.len(), active.len(), gaps.len()));
    }
}

/// The gaps as they follow from the visited changes alone.
#[derive(Default)]
struct Visited(Vec<Gap>);

impl SpaceVisitor for Visited {
    fn gap(&mut self, range: &ReservedRange, before: Option<Gap>, after: Option<Gap>) {
        if let Some(before) = before {
            let at = self.0.iter().position(|gap| *gap == before).expect("a gap that changes was there");
            self.0.swap_remove(at);
        }
        self.0.extend(after);
        assert!(before.into_iter().chain(after).all(|gap| gap.size > 0 && range.holds(gap.address.0)));
    }

    fn change(&mut self, _: u32, _: Change, _: &Space) {}
}

/// Compares the space that is followed event by event with the state of each position.
fn check_space(mut run: Run) {
    let replay = replay(&mut run);
    let mut space = replay.space_at(0);
    let mut visited = Visited(space.gaps().collect());
    for position in 0..=replay.positions() {
        replay.follow(&run.trace, position.saturating_sub(1), position, &mut space, &mut visited);
        let state = replay.state_at(position);
        let ranges: Vec<_> = space.ranges().map(|own| own.range).collect();
        assert_eq!(ranges, state.ranges, "ranges at {position}");
        let gaps = |i| state.gaps_in(i, &replay.allocations).collect::<Vec<_>>();
        let want: Vec<Gap> = (0..ranges.len()).flat_map(gaps).collect();
        assert_eq!(space.gaps().collect::<Vec<_>>(), want, "gaps at {position}");
        visited.0.sort_by_key(|gap| gap.address);
        assert_eq!(visited.0, want, "visited gaps at {position}");
        assert_eq!((space.cached(), space.gap_count()), (state.totals.cached, state.totals.gaps as usize));
        let whole = (0..ranges.len()).filter(|&i| state.active_in(i).is_empty()).map(|i| ranges[i].size);
        assert_eq!(space.cached_whole(), whole.sum::<u64>(), "whole ranges at {position}");
    }
}

/// Removes some events of a run, and records their loss. Its moments are valid up to there.
fn with_gap(mut run: Run, at: usize, missing: usize) -> Run {
    let rest = run.trace.events.split_off(at.min(run.trace.events.len()));
    let missing = missing.min(rest.len());
    let position = run.trace.events.len() as u32;
    rest.iter_from(missing).for_each(|event| run.trace.events.push(event));
    if missing > 0 {
        run.trace.losses.push(Loss { position, events: missing as u64, ..Loss::default() });
    }
    run
}

/// Makes every block of the snapshot wait for a stream, which no event records.
fn make_pending(run: &mut Run) {
    for block in run.trace.segments.iter_mut().flat_map(|segment| &mut segment.blocks) {
        if block.state == BlockState::Allocated {
            block.state = BlockState::Pending;
        }
    }
}

/// Removes the events that `drop` names in turn, without recording a loss.
fn without_some(mut run: Run, drop: &[bool]) -> Run {
    let mut kept = trace::Events::default();
    for (event, drop) in run.trace.events.iter().zip(drop.iter().cycle()) {
        if !drop {
            kept.push(event);
        }
    }
    run.trace.events = kept;
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_state_is_exact_at_every_position(ops in ops(120), lost in 0_usize..80) {
        check(run(&ops, lost));
    }

    #[test]
    fn followed_gaps_are_those_of_each_state(ops in ops(120), lost in 0_usize..80) {
        check_space(run(&ops, lost));
    }

    #[test]
    fn followed_gaps_are_those_of_each_state_behind_a_loss(
        ops in ops(120), lost in 0_usize..40, at in 0_usize..90, missing in 1_usize..40,
    ) {
        check_space(with_gap(run(&ops, lost), at, missing));
    }

    #[test]
    fn followed_gaps_are_those_of_each_state_in_a_damaged_trace(
        ops in ops(120), drop in proptest::collection::vec(any::<bool>(), 60), pending in any::<bool>(),
    ) {
        let mut run = without_some(run(&ops, 0), &drop);
        if pending {
            make_pending(&mut run);
        }
        check_space(run);
    }

    #[test]
    fn the_state_is_exact_up_to_a_loss(ops in ops(120), at in 0_usize..90, missing in 1_usize..40) {
        let mut run = with_gap(run(&ops, 0), at, missing);
        let Some(gap) = run.trace.losses.first().copied() else { return Ok(()) };
        let replay = replay(&mut run);
        prop_assert!(replay.allocations.begin.iter().is_sorted());
        for position in 0..gap.position {
            let active: Vec<_> = replay.active_at(position).into_iter().map(|n| replay.allocations.get(n).unwrap()).collect();
            let mut got: Vec<_> =
                active.iter().map(|a| (a.address.0, a.requested, a.is_allocated_at(position))).collect();
            got.sort_unstable();
            let truth = run.moments[position as usize].active();
            let want: Vec<_> = truth.iter().map(|p| (p.address, p.requested, p.is_allocated)).collect();
            prop_assert_eq!(got, want, "at {} of a gap at {}", position, gap.position);
        }
        // Every event belongs to the allocation that it names.
        for (i, number) in replay.event_allocation.iter().enumerate() {
            if let (Some(event), Some(a)) = (run.trace.events.get(i), replay.allocations.get(number)) {
                prop_assert_eq!(event.address, a.address);
            }
        }
    }

    #[test]
    fn changes_lead_from_each_state_to_the_next(
        ops in ops(120), lost in 0_usize..40, at in 0_usize..90, missing in 0_usize..40, pending in any::<bool>(),
    ) {
        let mut run = with_gap(run(&ops, lost), at, missing);
        if pending {
            make_pending(&mut run);
        }
        let replay = replay(&mut run);
        let mut active = replay.active_at(0);
        let mut reserved = replay.totals_at_start().reserved as i64;
        let mut allocated = replay.totals_at_start().allocated as i64;
        let size = |n: u32| replay.allocations.size.get(n as usize).unwrap_or_default() as i64;
        for position in 1..=replay.positions() {
            replay.changes(&run.trace, position - 1, position, |at, change| {
                assert_eq!(at, position);
                match change {
                    Change::Begin(n) => {
                        active.push(n);
                        allocated += size(n);
                    }
                    Change::End(n) => active.retain(|&m| m != n),
                    Change::Reserved(bytes) => reserved += bytes,
                    Change::Freed(n) => allocated -= size(n),
                }
            });
            prop_assert_eq!(allocated as u64, replay.state_at(position).totals.allocated);
            // The order of allocations that begin at one position is not defined.
            active.sort_unstable();
            prop_assert_eq!(&active, &replay.active_at(position));
            prop_assert_eq!(reserved as u64, replay.state_at(position).totals.reserved);
        }
    }

    #[test]
    fn no_trace_makes_replay_panic(ops in ops(60), lost in 0_usize..40, drop in proptest::collection::vec(any::<bool>(), 60)) {
        // Events are missing at random, as with `skip_actions` or a damaged file.
        let mut run = without_some(run(&ops, lost), &drop);
        let replay = replay(&mut run);
        let end: u64 = run.trace.segments.iter().map(|s| s.size).sum();
        prop_assert_eq!(replay.state_at(u32::MAX).totals.reserved, end);
        for position in 0..=replay.positions() {
            replay.state_at(position);
        }
    }
}

#[test]
fn many_allocations_cross_checkpoints() {
    let ops: Vec<Op> = (0..30_000)
        .map(|i| if i % 3 == 2 { Op::Free(i * 7919) } else { Op::Alloc { size: 512 * (1 + i as u64 % 9), stream: 0 } })
        .take(9_000)
        .collect();
    let mut run = run(&ops, 100);
    let replay = replay(&mut run);
    for position in [0, 1, 4_000, 8_191, 8_192, 8_193, replay.positions()] {
        let want: Vec<u32> = (0..replay.allocations.len() as u32)
            .filter(|&n| replay.allocations.get(n).is_some_and(|a: Allocation| a.is_active_at(position)))
            .collect();
        assert_eq!(replay.active_at(position), want);
    }
}

#[test]
fn falling_times_do_not_move_the_clock_back() {
    let mut run = run(&[Op::Alloc { size: 1, stream: 0 }, Op::Alloc { size: 2, stream: 0 }, Op::Free(0)], 0);
    let times = [100, 90, 120, 110, 130];
    run.trace.events.time_us = times.into_iter().collect();
    let replay = replay(&mut run);
    let at: Vec<i64> = (0..=5).map(|p| replay.time_at(&run.trace, p)).collect();
    assert_eq!(at, [0, 0, 0, 20, 20, 30]);
    assert_eq!([-1.0, 0.0, 19.0, 20.0, 29.5, 99.0].map(|t| replay.position_at_time(&run.trace, t)), [0, 2, 2, 4, 4, 5]);
}

#[test]
fn no_more_is_requested_than_active_blocks_hold() {
    for fixture in fixtures() {
        let Snapshot { devices, mut tags, settings, .. } = import(&fixture.bytes).unwrap().snapshot;
        for trace in &devices {
            let replay = Replay::build(trace, &mut tags, &settings);
            for position in (0..=replay.positions()).step_by(1 + trace.events.len() / 2000) {
                let Totals { requested, active, .. } = replay.state_at(position).totals;
                assert!(requested <= active, "{}: {requested} of {active} at {position}", fixture.name);
            }
        }
    }
}
