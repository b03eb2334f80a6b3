//! The measures of a trace, followed from position to position.

use super::{GapSizes, Measures};
use replay::{Change, Gap, Replay, ReservedRange, Space, SpaceVisitor};
use trace::DeviceTrace;

/// The measures at one position, with what is needed to go on to the next.
#[derive(Clone, Debug, Default)]
pub struct Measuring {
    position: u32,
    space: Space,
    sizes: Sizes,
    now: Measures,
}

/// Removed sizes that are always kept: few enough for the processor's cache.
const LEAST_REMOVED: usize = 256;

/// The sizes of all gaps.
#[derive(Clone, Debug, Default)]
struct Sizes {
    small: GapSizes,
    large: GapSizes,
    square_sum: u128,
}

impl Sizes {
    fn of(&mut self, range: &ReservedRange) -> &mut GapSizes {
        if range.is_small { &mut self.small } else { &mut self.large }
    }

    fn add(&mut self, range: &ReservedRange, size: u64) {
        self.square_sum = self.square_sum.wrapping_add(square(size));
        self.of(range).add(size);
    }

    fn remove(&mut self, range: &ReservedRange, size: u64) {
        self.square_sum = self.square_sum.wrapping_sub(square(size));
        self.of(range).remove(size);
    }

    /// Drops what was removed, once it is more than what is there.
    #[inline]
    fn drop_removed(&mut self, space: &Space) {
        if self.small.removed() + self.large.removed() > 2 * space.gap_count() + LEAST_REMOVED {
            self.rebuild(space);
        }
    }

    #[cold]
    fn rebuild(&mut self, space: &Space) {
        self.small.clear();
        self.large.clear();
        for own in space.ranges() {
            let sizes = self.of(&own.range);
            space.gaps_of(&own.range).for_each(|gap| sizes.add(gap.size));
        }
    }
}

fn square(size: u64) -> u128 {
    u128::from(size) * u128::from(size)
}

impl Measuring {
    /// Begins at a position. This costs as much as the state there.
    pub fn at(replay: &Replay, position: u32) -> Self {
        let position = position.min(replay.positions());
        let state = replay.state_at(position);
        let space = Space::of(&state, replay);
        let mut sizes = Sizes::default();
        for own in space.ranges() {
            space.gaps_of(&own.range).for_each(|gap| sizes.add(&own.range, gap.size));
        }
        let totals = state.totals;
        let mut now = Measures {
            requested: totals.requested,
            allocated: totals.allocated,
            active: totals.active,
            reserved: totals.reserved,
            ..Measures::default()
        };
        settle(&mut now, &space, &mut sizes);
        Self { position, space, sizes, now }
    }

    /// Returns the position.
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Returns the measures at the position.
    pub fn now(&self) -> Measures {
        self.now
    }

    /// Goes on to position `to`, and visits every position on the way, `to` included, with its measures. `replay` must be
    /// the one that it began with, or an extension of it.
    pub fn advance(&mut self, trace: &DeviceTrace, replay: &Replay, to: u32, visit: impl FnMut(u32, &Measures)) {
        let to = to.min(replay.positions());
        let Self { position, space, sizes, now } = self;
        if to <= *position {
            return;
        }
        let mut visitor = Visitor { replay, sizes, now, next: *position + 1, visit };
        replay.follow(trace, *position, to, space, &mut visitor);
        visitor.reach(to + 1);
        *position = to;
    }
}

/// Takes over what follows from the gaps.
fn settle(now: &mut Measures, space: &Space, sizes: &mut Sizes) {
    sizes.drop_removed(space);
    now.cached_whole = space.cached_whole();
    now.inactive_split = space.cached().saturating_sub(space.cached_whole());
    now.largest_small_gap = sizes.small.largest();
    now.largest_large_gap = sizes.large.largest();
    now.gaps = space.gap_count() as u32;
    now.square_sum = sizes.square_sum;
}

struct Visitor<'a, F> {
    replay: &'a Replay,
    sizes: &'a mut Sizes,
    /// The measures after the last change.
    now: &'a mut Measures,
    /// The first position that was not visited.
    next: u32,
    visit: F,
}

impl<F: FnMut(u32, &Measures)> Visitor<'_, F> {
    /// Visits the positions before `position`: no change is left for them.
    fn reach(&mut self, position: u32) {
        for before in self.next..position {
            (self.visit)(before, self.now);
        }
        self.next = self.next.max(position);
    }
}

impl<F: FnMut(u32, &Measures)> SpaceVisitor for Visitor<'_, F> {
    fn gap(&mut self, range: &ReservedRange, before: Option<Gap>, after: Option<Gap>) {
        if let Some(gap) = before {
            self.sizes.remove(range, gap.size);
        }
        if let Some(gap) = after {
            self.sizes.add(range, gap.size);
        }
    }

    fn change(&mut self, position: u32, change: Change, space: &Space) {
        self.reach(position);
        let Self { replay, now, sizes, .. } = self;
        now.add(replay, change);
        // A free changes no gap.
        if !matches!(change, Change::Freed(_)) {
            settle(now, space, sizes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_visited_once_with_its_measures() {
        let mut snapshot = trace::testing::snapshot(
            "segment_alloc 0x2000000 20971520
             alloc 0x2000000 4194304
             alloc 0x2400000 4194304
             oom 0 99999999
             free 0x2000000
             alloc 0x2000000 2097153",
        );
        let trace = snapshot.devices.remove(0);
        let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
        let mut measuring = Measuring::at(&replay, 0);
        assert_eq!(measuring.now(), Measures::default());
        let mut seen = Vec::new();
        measuring.advance(&trace, &replay, 3, |position, now| seen.push((position, *now)));
        measuring.advance(&trace, &replay, u32::MAX, |position, now| seen.push((position, *now)));
        assert!(seen.iter().map(|(position, _)| *position).eq(1..=7));
        for (position, now) in &seen {
            assert_eq!(Measuring::at(&replay, *position).now(), *now, "{position}");
        }
        let (_, end) = seen[6];
        let mib = 1 << 20;
        assert_eq!((end.requested, end.active, end.reserved), (6 * mib + 1, 6 * mib + 512, 20 * mib));
        assert_eq!((end.rounding(), end.gaps, end.largest_gap()), (511, 2, 12 * mib));
        assert_eq!((end.inactive_split, end.cached_whole), (14 * mib - 512, 0));
        assert_eq!((end.largest_servable_small(), end.largest_servable_large()), (0, 12 * mib));
        assert_eq!(seen[0].1.cached_whole, 20 * mib);
        assert_eq!(seen[0].1.inactive_split, 0);
    }

    #[test]
    fn shares_are_those_of_their_formulas() {
        let of = |gaps: &[u64]| Measures {
            inactive_split: gaps.iter().sum(),
            largest_large_gap: gaps.iter().copied().max().unwrap_or(0),
            square_sum: gaps.iter().map(|&gap| square(gap)).sum(),
            ..Measures::default()
        };
        let shares = |gaps: &[u64]| (of(gaps).unusable_share(), of(gaps).fragmentation_index());
        let mib = 1 << 20;
        assert_eq!(shares(&[]), (0.0, 0.0));
        assert_eq!(shares(&[8 * mib]), (0.0, 0.0));
        assert_eq!(shares(&[2 * mib; 4]), (0.75, 0.75));
        assert_eq!(shares(&[6 * mib, 2 * mib]), (0.25, 0.375));
    }
}
