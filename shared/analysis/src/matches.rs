//! A set of allocations, one bit each.

use std::cell::Cell;

use replay::{Change, Replay};
use trace::{Column, DeviceTrace};

/// A set of a device's allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    bits: Vec<u64>,
    /// The number of members.
    pub count: u32,
    /// The sum of their requested bytes.
    pub bytes: u64,
}

impl Matches {
    /// Adds the allocations from number `first` on whose hit is `true`.
    pub(super) fn append(&mut self, first: usize, hits: impl Iterator<Item = bool>, requested: &Column<u64>) {
        self.bits.resize(requested.len().div_ceil(64), 0);
        let bytes = requested.range(first..requested.len());
        for (i, (hit, bytes)) in (first..).zip(hits.zip(bytes)) {
            if hit {
                self.insert(i, bytes);
            }
        }
    }

    /// Returns a set of some allocations.
    pub fn of(ids: impl Iterator<Item = u32>, replay: &Replay) -> Self {
        let requested = &replay.allocations.requested;
        let mut matches = Self { bits: vec![0; requested.len().div_ceil(64)], ..Self::default() };
        for id in ids.map(|id| id as usize) {
            matches.insert(id, requested.get(id).unwrap_or(0));
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

    /// Returns the memory use in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(self.bits.as_slice())
    }

    /// Returns whether an allocation is in the set.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Returns the allocations that are in both sets.
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

    /// Returns the members by number.
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

    /// Returns the members in rising order, without the first `rank` ones.
    pub fn from_rank(&self, rank: u32) -> impl Iterator<Item = u32> + '_ {
        let (mut word, mut skipped) = (0, 0);
        while let Some(bits) = self.bits.get(word).filter(|bits| skipped + bits.count_ones() <= rank) {
            skipped += bits.count_ones();
            word += 1;
        }
        let rest = rank.saturating_sub(skipped) as usize;
        std::iter::successors(self.first_from((word * 64) as u32), |id| self.first_from(id + 1)).skip(rest)
    }

    /// Returns the first member from `id` on.
    pub fn first_from(&self, id: u32) -> Option<u32> {
        let first = id as usize / 64;
        self.bits.iter().enumerate().skip(first).find_map(|(i, &word)| {
            let word = if i == first { word & (u64::MAX << (id % 64)) } else { word };
            (word != 0).then(|| i as u32 * 64 + word.trailing_zeros())
        })
    }

    /// Returns the last member before `id`.
    pub fn last_before(&self, id: u32) -> Option<u32> {
        let last = id as usize / 64;
        let words = self.bits.iter().enumerate().take(last + 1).rev();
        words.into_iter().find_map(|(i, &word)| {
            let word = if i == last { word & !(u64::MAX << (id % 64)) } else { word };
            (word != 0).then(|| i as u32 * 64 + 63 - word.leading_zeros())
        })
    }

    /// Returns the number of members before `id`.
    pub fn rank(&self, id: u32) -> u32 {
        let word = id as usize / 64;
        let whole: u32 = self.bits.iter().take(word).map(|w| w.count_ones()).sum();
        whole + self.bits.get(word).map_or(0, |w| (w & !(u64::MAX << (id % 64))).count_ones())
    }

    /// Returns the largest sum of the members' requested bytes that was active at once.
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
