//! The allocations that a search term matches, as one bit each.

use std::cell::Cell;

use crate::frames::{FrameId, StackId, Symbols};
use crate::query::term::{End, Pattern, Pool, Term};
use crate::replay::{Allocation, Change, Replay};
use crate::trace::{Column, DeviceTrace, Tags};
use crate::units::PoolId;

/// A set of a device's allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    bits: Vec<u64>,
    /// How many there are.
    pub count: u32,
    /// Their requested bytes, all added up.
    pub bytes: u64,
}

/// Where a term is looked for: all that the rules need of a device.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Tags.
    pub tags: &'a Tags,
    /// The device's allocations.
    pub replay: &'a Replay,
}

impl Matches {
    /// What a term matches.
    pub fn of(term: &Term, field: Field<'_>) -> Self {
        let a = &field.replay.allocations;
        match term {
            Term::Frame(pattern) => {
                let stacks = matching_stacks(pattern, field.symbols);
                let hit = |stack: u32| stacks.get(stack as usize).copied().unwrap_or(false);
                Self::collect(a.stack.iter().map(hit), &a.requested)
            }
            Term::Size(comparison, bound) => {
                Self::collect(a.requested.iter().map(|size| comparison.holds(size, *bound)), &a.requested)
            }
            Term::Address(at) => {
                let holds = |(start, size): (u64, u64)| start <= *at && (*at - start < size || *at == start);
                let begins = |start: u64| {
                    let digits = (u64::BITS - start.leading_zeros()).div_ceil(4);
                    let typed = (u64::BITS - at.leading_zeros()).div_ceil(4);
                    *at > 0 && typed < digits && start >> (4 * (digits - typed)) == *at
                };
                let hits = a.address.iter().zip(a.size.iter()).map(|block| holds(block) || begins(block.0));
                Self::collect(hits, &a.requested)
            }
            Term::Named(address, version) => {
                let mut uses = 0;
                let hit = |at: u64| {
                    uses += u32::from(at == *address);
                    at == *address && uses == version.saturating_add(1)
                };
                Self::collect(a.address.iter().map(hit), &a.requested)
            }
            Term::Stream(stream) => {
                let tags: Vec<bool> = field.tags.iter().map(|tag| tag.stream == *stream).collect();
                let hit = |tag: u32| tags.get(tag as usize).copied().unwrap_or(false);
                Self::collect(a.tag.iter().map(hit), &a.requested)
            }
            Term::Pool(Pool::Small) => {
                Self::collect(a.flags.iter().map(|f| f & Allocation::FLAG_SMALL != 0), &a.requested)
            }
            Term::Pool(Pool::Large) => {
                Self::collect(a.flags.iter().map(|f| f & Allocation::FLAG_SMALL == 0), &a.requested)
            }
            Term::Pool(Pool::Private) => Self::in_pools(field.replay, PoolId::is_private),
            Term::Pool(Pool::Id(id)) => Self::in_pools(field.replay, |pool| pool == *id),
            Term::Live(End::Start) => Self::collect(a.begin.iter().map(|p| p == 0), &a.requested),
            Term::Live(End::End) => Self::collect(a.end.iter().map(|p| p == Allocation::NEVER), &a.requested),
        }
    }

    /// The allocations of the pools that `is_wanted` says.
    fn in_pools(replay: &Replay, is_wanted: impl Fn(PoolId) -> bool) -> Self {
        let pools: Vec<bool> = replay.pools.iter().map(|pool| is_wanted(*pool)).collect();
        let hit = |pool: u8| pools.get(usize::from(pool)).copied().unwrap_or(false);
        Self::collect(replay.allocations.pool.iter().map(hit), &replay.allocations.requested)
    }

    /// The set whose members have `true`, by number.
    fn collect(hits: impl Iterator<Item = bool>, requested: &Column<u64>) -> Self {
        let mut matches = Self { bits: vec![0; requested.len().div_ceil(64)], count: 0, bytes: 0 };
        for (i, (hit, bytes)) in hits.zip(requested.iter()).enumerate() {
            if hit {
                matches.insert(i, bytes);
            }
        }
        matches
    }

    fn insert(&mut self, i: usize, bytes: u64) {
        if let Some(word) = self.bits.get_mut(i / 64) {
            *word |= 1 << (i % 64);
            self.count += 1;
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        size_of_val(self.bits.as_slice())
    }

    /// Whether an allocation is in the set.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// The allocations that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self, replay: &Replay) -> Self {
        let bits: Vec<u64> = self.bits.iter().zip(&other.bits).map(|(a, b)| a & b).collect();
        let mut both = Self { bits, count: 0, bytes: 0 };
        let (count, bytes) = both.iter().fold((0, 0u64), |(count, bytes), id| {
            (count + 1, bytes.saturating_add(replay.allocations.requested.get(id as usize).unwrap_or(0)))
        });
        (both.count, both.bytes) = (count, bytes);
        both
    }

    /// The members by number.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter().enumerate().flat_map(|(i, &word)| {
            let rest = Cell::new(word);
            std::iter::from_fn(move || {
                let word = rest.get();
                rest.set(word & word.wrapping_sub(1));
                (word != 0).then(|| i as u32 * 64 + word.trailing_zeros())
            })
        })
    }

    /// The first member from `id` on.
    pub fn first_from(&self, id: u32) -> Option<u32> {
        let first = id as usize / 64;
        self.bits.iter().enumerate().skip(first).find_map(|(i, &word)| {
            let word = if i == first { word & (u64::MAX << (id % 64)) } else { word };
            (word != 0).then(|| i as u32 * 64 + word.trailing_zeros())
        })
    }

    /// The last member before `id`.
    pub fn last_before(&self, id: u32) -> Option<u32> {
        let last = id as usize / 64;
        let words = self.bits.iter().enumerate().take(last + 1).rev();
        words.into_iter().find_map(|(i, &word)| {
            let word = if i == last { word & !(u64::MAX << (id % 64)) } else { word };
            (word != 0).then(|| i as u32 * 64 + 63 - word.leading_zeros())
        })
    }

    /// How many members have a smaller number.
    pub fn rank(&self, id: u32) -> u32 {
        let word = id as usize / 64;
        let whole: u32 = self.bits.iter().take(word).map(|w| w.count_ones()).sum();
        whole + self.bits.get(word).map_or(0, |w| (w & !(u64::MAX << (id % 64))).count_ones())
    }

    /// The largest sum of requested bytes of members that was active at once.
    pub fn peak_bytes(&self, trace: &DeviceTrace, replay: &Replay) -> u64 {
        let requested = |id: u32| {
            let bytes = if self.contains(id) { replay.allocations.requested.get(id as usize) } else { None };
            bytes.unwrap_or(0)
        };
        let at_start = (0..).zip(replay.allocations.begin.iter()).take_while(|(_, begin)| *begin == 0);
        let mut live = at_start.fold(0u64, |sum, (id, _)| sum.saturating_add(requested(id)));
        let mut peak = live;
        replay.changes(trace, 0, u32::MAX, |_, change| match change {
            Change::Begin(id) => {
                live = live.saturating_add(requested(id));
                peak = peak.max(live);
            }
            Change::End(id) => live = live.saturating_sub(requested(id)),
            Change::Freed(_) | Change::Reserved(_) => {}
        });
        peak
    }
}

/// By stack: whether one of its frames fits. Each distinct frame is looked at once, however many stacks it is in.
fn matching_stacks(pattern: &Pattern, symbols: &Symbols) -> Vec<bool> {
    let frames: Vec<bool> =
        (0..symbols.frame_count() as u32).map(|i| pattern.fits_frame(symbols, symbols.frame(FrameId(i)))).collect();
    let hit = |frame: &FrameId| frames.get(frame.0 as usize).copied().unwrap_or(false);
    (0..symbols.stack_count() as u32).map(|i| symbols.stack(StackId(i)).iter().any(hit)).collect()
}
