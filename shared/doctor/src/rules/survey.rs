//! Facts for several rules, found in one sweep over the changes of a trace.

use rustc_hash::FxHashMap;

use super::waiting::Waiting;
use crate::Case;
use replay::{Change, Gap, Replay, ReservedRange, Space, SpaceVisitor};
use trace::units::{PoolId, Stream};

/// The maximum number of combinations of pool, stream and kind that are tracked separately. A program has a few; all
/// others are tracked as one.
const CLASSES: usize = 256;

/// A request for which the allocator took memory from the driver: no cached memory served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miss {
    /// The position right before the driver was asked.
    pub(super) position: u32,
    /// The allocation that was made then.
    pub(super) allocation: u32,
    /// Bytes taken from the driver.
    pub(super) taken: u64,
}

/// Misses while another stream or pool had a gap that was large enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stuck {
    /// A lower bound of their number: gaps are grouped by powers of two.
    pub(super) count: u32,
    /// Bytes taken from the driver for them.
    pub(super) taken: u64,
    /// The one for which most was taken.
    pub(super) largest: Option<Miss>,
}

/// The results of the sweep.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The miss that led to the largest reserved memory.
    pub(super) peak: Option<Miss>,
    /// The miss with most bytes in gaps of segments that are partly in use, in the stream and pool of its request.
    pub(super) worst: Option<Miss>,
    /// The largest sum of reserved bytes.
    pub(super) reserved: u64,
    /// The largest sum of active bytes.
    pub(super) active: u64,
    pub(super) stuck: Stuck,
    pub(super) waiting: Waiting,
    /// The position from which on gaps are not followed, because the trace contradicts itself too often.
    pub(super) lost_at: Option<u32>,
}

impl Survey {
    /// Sweeps over the whole trace.
    pub(super) fn of(case: &Case<'_>) -> Self {
        let Case { trace, replay, .. } = *case;
        let start = replay.state_at(0);
        let mut space = Space::of(&start, replay);
        let mut sweep = Sweep::new(case, start.totals.reserved, start.totals.active);
        for own in space.ranges() {
            for gap in space.gaps_of(&own.range) {
                sweep.gap(&own.range, None, Some(gap));
            }
        }
        replay.follow(trace, 0, replay.positions(), &mut space, &mut sweep);
        sweep.found
    }
}

/// Memory that a request of one kind can use: that of its stream, its pool, and its kind of size.
type Class = (PoolId, Stream, bool);

/// The gaps of a class, or of all classes.
#[derive(Clone, Copy)]
struct Gaps {
    free: u64,
    /// Bytes of segments without a block in use, which the allocator can release.
    whole: u64,
    /// The number of gaps by the power of two that they reach.
    by_size: [u32; 64],
}

impl Gaps {
    const NONE: Self = Self { free: 0, whole: 0, by_size: [0; 64] };

    fn change(&mut self, range: &ReservedRange, gap: Gap, is_there: bool) {
        let whole = if gap.size == range.size && !range.is_expandable { gap.size } else { 0 };
        let count = self.by_size.get_mut(power(gap.size));
        if is_there {
            self.free = self.free.saturating_add(gap.size);
            self.whole = self.whole.saturating_add(whole);
            count.into_iter().for_each(|count| *count += 1);
        } else {
            self.free = self.free.saturating_sub(gap.size);
            self.whole = self.whole.saturating_sub(whole);
            count.into_iter().for_each(|count| *count = count.saturating_sub(1));
        }
    }

    /// Returns bytes in segments that are partly in use.
    const fn split(&self) -> u64 {
        self.free.saturating_sub(self.whole)
    }
}

/// Returns the power of two that a size reaches.
fn power(size: u64) -> usize {
    size.checked_ilog2().unwrap_or(0) as usize
}

/// Memory that was taken from the driver, before the allocation is made for which it was taken.
#[derive(Clone, Copy)]
struct Taken {
    position: u32,
    bytes: u64,
    range: ReservedRange,
    class: usize,
    /// Bytes in gaps of segments that were partly in use.
    split: u64,
}

struct Sweep<'a> {
    replay: &'a Replay,
    case: &'a Case<'a>,
    found: Survey,
    numbers: FxHashMap<Class, usize>,
    classes: Vec<Gaps>,
    /// All classes together, of small and of large requests.
    all: [Gaps; 2],
    /// The range and class of the gap that changed last.
    last: Option<(ReservedRange, usize)>,
    taken: Option<Taken>,
    reserved: u64,
    active: u64,
    worst_split: u64,
}

impl<'a> Sweep<'a> {
    fn new(case: &'a Case<'a>, reserved: u64, active: u64) -> Self {
        Self {
            replay: case.replay,
            case,
            found: Survey { reserved, active, ..Survey::default() },
            numbers: FxHashMap::default(),
            classes: Vec::new(),
            all: [Gaps::NONE; 2],
            last: None,
            taken: None,
            reserved,
            active,
            worst_split: 0,
        }
    }

    fn class(&mut self, range: &ReservedRange) -> usize {
        let class = (range.pool, range.stream, range.is_small);
        if let Some((last, number)) = self.last
            && class == (last.pool, last.stream, last.is_small)
        {
            return number;
        }
        let next = self.classes.len();
        let number = *self.numbers.entry(class).or_insert(next.min(CLASSES));
        if number == next {
            self.classes.push(Gaps::NONE);
        }
        // More classes than anyone uses: their keys are not kept either.
        if self.numbers.len() > CLASSES + 1 {
            self.numbers.remove(&class);
        }
        number
    }

    fn take(&mut self, position: u32, bytes: u64) {
        let Some((range, class)) = self.last else { return };
        let joined = if range.is_expandable { bytes } else { 0 };
        let split = self.classes.get(class).map_or(0, |gaps| gaps.split().saturating_sub(joined));
        self.taken = Some(match self.taken {
            // An expandable segment may grow by several ranges for one request.
            Some(before) if before.class == class && range.is_expandable => {
                Taken { bytes: before.bytes.saturating_add(bytes), range, ..before }
            }
            _ => Taken { position: position - 1, bytes, range, class, split },
        });
    }

    fn begin(&mut self, allocation: u32, size: u64) {
        let Some(taken) = self.taken.take() else { return };
        let address = self.replay.allocations.address.get(allocation as usize).unwrap_or(0);
        if !taken.range.holds(address) {
            return;
        }
        let miss = Miss { position: taken.position, allocation, taken: taken.bytes };
        if self.reserved > self.found.reserved {
            self.found.peak = Some(miss);
        }
        if taken.split > self.worst_split {
            self.worst_split = taken.split;
            self.found.worst = Some(miss);
        }
        if self.has_larger_elsewhere(taken, size) {
            let stuck = &mut self.found.stuck;
            stuck.count += 1;
            stuck.taken = stuck.taken.saturating_add(taken.bytes);
            if stuck.largest.is_none_or(|largest| largest.taken < taken.bytes) {
                stuck.largest = Some(miss);
            }
        }
    }

    /// Returns whether a class other than that of the taken memory has a gap for a block of `size`.
    fn has_larger_elsewhere(&self, taken: Taken, size: u64) -> bool {
        let (Some(own), Some(all)) = (self.classes.get(taken.class), self.all.get(usize::from(taken.range.is_small)))
        else {
            return false;
        };
        all.by_size.iter().zip(&own.by_size).skip(power(size) + 1).any(|(all, own)| all > own)
    }
}

impl SpaceVisitor for Sweep<'_> {
    fn gap(&mut self, range: &ReservedRange, before: Option<Gap>, after: Option<Gap>) {
        let class = self.class(range);
        self.last = Some((*range, class));
        let changes = [before.map(|gap| (gap, false)), after.map(|gap| (gap, true))];
        for (gap, is_there) in changes.into_iter().flatten() {
            for gaps in
                [self.classes.get_mut(class), self.all.get_mut(usize::from(range.is_small))].into_iter().flatten()
            {
                gaps.change(range, gap, is_there);
            }
        }
    }

    fn change(&mut self, position: u32, change: Change, space: &Space) {
        if space.is_lost() {
            self.found.lost_at.get_or_insert(position);
        }
        let size = |number: u32| self.replay.allocations.size.get(number as usize).unwrap_or(0);
        match change {
            Change::Begin(number) => {
                let size = size(number);
                self.active = self.active.saturating_add(size);
                self.found.active = self.found.active.max(self.active);
                if self.taken.is_some() {
                    self.begin(number, size);
                }
                self.found.reserved = self.found.reserved.max(self.reserved);
            }
            Change::Freed(number) => self.found.waiting.freed(self.case, position, number),
            Change::End(number) => {
                self.active = self.active.saturating_sub(size(number));
                self.found.waiting.ended(self.case, number);
            }
            Change::Reserved(bytes) => {
                self.reserved = self.reserved.saturating_add_signed(bytes);
                if bytes > 0 {
                    self.take(position, bytes.unsigned_abs());
                }
            }
        }
    }
}
