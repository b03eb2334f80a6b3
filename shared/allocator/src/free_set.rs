//! The cached blocks of one pool and stream in the allocator's exact order, found by size in constant time.

use std::collections::BTreeSet;

/// The quantum of sizes; every block's size is a multiple of it.
const QUANTUM_BITS: u32 = 9;
/// The number of size classes in each power of two, as an exponent of two.
const STEP_BITS: u32 = 4;
/// A class with more blocks than this becomes a tree: beyond it, moving the tail of a sorted array costs more.
const SPILL: usize = 384;
/// A tree that shrinks to this many blocks becomes an array again; well below [`SPILL`], to avoid switching back and
/// forth.
const GATHER: usize = 96;

/// A cached block, ordered by size, then by `order`, then by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    /// Size in bytes.
    pub(super) size: u64,
    /// Orders blocks of equal size: the segment's age where the profile says so, otherwise constant.
    pub(super) order: u32,
    /// First address.
    pub(super) address: u64,
    /// The block's number.
    pub(super) block: u32,
}

/// The blocks of one size class.
#[derive(Debug)]
enum Class {
    Few(Vec<Free>),
    Many(BTreeSet<Free>),
}

impl Class {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(tree) => tree.len(),
        }
    }

    /// Returns the first entry at or after `key`.
    #[inline]
    fn from(&self, key: &Free) -> Option<Free> {
        match self {
            Self::Few(list) => list.get(list.partition_point(|free| free < key)).copied(),
            Self::Many(tree) => tree.range(key..).next().copied(),
        }
    }

    /// Returns the last entry before `key`.
    fn before(&self, key: &Free) -> Option<Free> {
        match self {
            Self::Few(list) => list[..list.partition_point(|free| free < key)].last().copied(),
            Self::Many(tree) => tree.range(..key).next_back().copied(),
        }
    }

    #[inline]
    fn first(&self) -> Option<Free> {
        match self {
            Self::Few(list) => list.first().copied(),
            Self::Many(tree) => tree.first().copied(),
        }
    }

    fn last(&self) -> Option<Free> {
        match self {
            Self::Few(list) => list.last().copied(),
            Self::Many(tree) => tree.last().copied(),
        }
    }

    #[inline]
    fn insert(&mut self, free: Free) {
        match self {
            Self::Few(list) if list.len() < SPILL => {
                let at = list.partition_point(|other| *other < free);
                list.insert(at, free);
            }
            Self::Few(list) => {
                let mut tree: BTreeSet<Free> = std::mem::take(list).into_iter().collect();
                tree.insert(free);
                *self = Self::Many(tree);
            }
            Self::Many(tree) => {
                tree.insert(free);
            }
        }
    }

    #[inline]
    fn remove(&mut self, free: &Free) -> bool {
        match self {
            Self::Few(list) => {
                let at = list.partition_point(|other| other < free);
                let found = list.get(at) == Some(free);
                if found {
                    list.remove(at);
                }
                found
            }
            Self::Many(tree) => {
                let found = tree.remove(free);
                if tree.len() <= GATHER {
                    *self = Self::Few(std::mem::take(tree).into_iter().collect());
                }
                found
            }
        }
    }
}

/// Cached blocks, ordered by size, age and address. Size classes (sixteen for each power of two) keep the order exact,
/// since every size of a class is below every size of the next. A bitmap finds the first class that is not empty.
#[derive(Debug, Default)]
pub(super) struct FreeSet {
    classes: Vec<Class>,
    /// One bit for each class that is not empty.
    words: Vec<u64>,
    /// One bit for each word that is not zero.
    summary: u64,
    len: usize,
}

/// Returns the class of a size: exact up to sixteen quanta, then sixteen classes for each power of two.
#[inline]
fn class_of(size: u64) -> usize {
    let quanta = size >> QUANTUM_BITS;
    let log = (quanta | 1).ilog2();
    if log < STEP_BITS {
        return quanta as usize;
    }
    let step = (quanta >> (log - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    (((log - STEP_BITS + 1) << STEP_BITS) as usize) + step as usize
}

impl FreeSet {
    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a block.
    #[inline]
    pub(super) fn insert(&mut self, free: Free) {
        let class = class_of(free.size);
        if class >= self.classes.len() {
            self.classes.resize_with(class + 1, || Class::Few(Vec::new()));
            self.words.resize(self.classes.len().div_ceil(64), 0);
        }
        self.classes[class].insert(free);
        self.words[class / 64] |= 1 << (class % 64);
        self.summary |= 1 << (class / 64);
        self.len += 1;
    }

    /// Removes a block; returns whether it was in the set.
    #[inline]
    pub(super) fn remove(&mut self, free: &Free) -> bool {
        let class = class_of(free.size);
        let found = self.classes.get_mut(class).is_some_and(|blocks| blocks.remove(free));
        if found {
            self.after_removal(class);
        }
        found
    }

    /// Updates the counters after a removal, and removes a class that is empty.
    #[inline]
    fn after_removal(&mut self, class: usize) {
        self.len -= 1;
        if self.classes[class].len() == 0 {
            self.words[class / 64] &= !(1 << (class % 64));
            if self.words[class / 64] == 0 {
                self.summary &= !(1 << (class / 64));
            }
        }
    }

    /// Returns whether a block is in the set.
    pub(super) fn contains(&self, free: &Free) -> bool {
        self.from(free) == Some(*free)
    }

    /// Removes and returns the first block of at least `size` bytes, if `is_fit` accepts it.
    #[inline]
    pub(super) fn take_first_fit(&mut self, size: u64, is_fit: impl Fn(&Free) -> bool) -> Option<Free> {
        let key = Free { size, order: 0, address: 0, block: 0 };
        let first_class = class_of(size);
        let in_class = match self.classes.get(first_class) {
            Some(Class::Few(list)) => {
                let at = list.partition_point(|free| *free < key);
                list.get(at).map(|free| (first_class, at, *free))
            }
            Some(Class::Many(tree)) => tree.range(key..).next().map(|free| (first_class, 0, *free)),
            None => None,
        };
        let (class, at, found) = match in_class {
            Some(found) => found,
            None => {
                let class = self.class_above(first_class)?;
                (class, 0, self.classes[class].first()?)
            }
        };
        if !is_fit(&found) {
            return None;
        }
        match &mut self.classes[class] {
            Class::Few(list) => {
                list.remove(at);
            }
            many @ Class::Many(_) => {
                many.remove(&found);
            }
        }
        self.after_removal(class);
        Some(found)
    }

    /// Returns the first block of at least `size` bytes.
    #[inline]
    pub(super) fn first_fit(&self, size: u64) -> Option<Free> {
        self.from(&Free { size, order: 0, address: 0, block: 0 })
    }

    /// Returns the block after `free`, which need not be in the set.
    pub(super) fn after(&self, free: &Free) -> Option<Free> {
        self.from(&Free { block: free.block.saturating_add(1), ..*free })
    }

    /// Returns the block before `key`, which need not be in the set.
    pub(super) fn before(&self, key: &Free) -> Option<Free> {
        let class = class_of(key.size);
        let in_class = self.classes.get(class).and_then(|blocks| blocks.before(key));
        in_class.or_else(|| self.classes[self.class_below(class.min(self.classes.len()))?].last())
    }

    /// Returns all blocks in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Free> + '_ {
        let mut next = self.first_fit(0);
        std::iter::from_fn(move || {
            let this = next?;
            next = self.after(&this);
            Some(this)
        })
    }

    /// Returns the first block at or after `key`.
    #[inline]
    fn from(&self, key: &Free) -> Option<Free> {
        let class = class_of(key.size);
        let in_class = self.classes.get(class).filter(|blocks| blocks.len() > 0).and_then(|blocks| blocks.from(key));
        in_class.or_else(|| self.classes[self.class_above(class)?].first())
    }

    /// Returns the first class above `class` that is not empty.
    #[inline]
    fn class_above(&self, class: usize) -> Option<usize> {
        let at = class + 1;
        let word = self.words.get(at / 64)? & (!0 << (at % 64));
        if word != 0 {
            return Some(at / 64 * 64 + word.trailing_zeros() as usize);
        }
        let summary = self.summary & (!0_u64).checked_shl((at / 64 + 1) as u32).unwrap_or(0);
        if summary == 0 {
            return None;
        }
        let word = summary.trailing_zeros() as usize;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// Returns the last class below `class` that is not empty.
    fn class_below(&self, class: usize) -> Option<usize> {
        (0..class).rev().find(|&class| self.classes[class].len() > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_never_put_a_larger_size_before_a_smaller() {
        let mut last = 0;
        for quanta in 1..100_000_u64 {
            let class = class_of(quanta << QUANTUM_BITS);
            assert!(class >= last, "{quanta}");
            last = class;
        }
        // The summary is one word: it covers 64 words of 64 classes.
        assert!(class_of(u64::MAX) < 64 * 64);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_set_answers_as_an_ordered_set(
            ops in prop::collection::vec((0..4_u8, 1..60_u64, 0..3_u32, 0..40_u64), 1..2500),
        ) {
            let mut set = FreeSet::default();
            let mut model = BTreeSet::new();
            for (kind, quanta, order, address) in ops {
                // Few distinct sizes, so that classes become trees, and some that are far apart.
                let size = if quanta > 40 { 1 << (quanta - 30 + QUANTUM_BITS as u64) } else { (quanta / 20 + 1) << 9 };
                let free = Free { size, order, address: address * 512, block: address as u32 * 3 + order };
                match kind {
                    0..2 => if model.insert(free) { set.insert(free) },
                    2 => prop_assert_eq!(set.remove(&free), model.remove(&free)),
                    _ => {
                        prop_assert_eq!(set.before(&free), model.range(..free).next_back().copied());
                        prop_assert_eq!(set.first_fit(size), model.iter().find(|f| f.size >= size).copied());
                        let fit = model.iter().find(|f| f.size >= size).copied().filter(|f| f.order > 0);
                        prop_assert_eq!(set.take_first_fit(size, |f| f.order > 0), fit);
                        fit.map(|fit| model.remove(&fit));
                        prop_assert_eq!(set.after(&free), model.iter().find(|f| **f > free).copied());
                    }
                }
                prop_assert_eq!(set.len(), model.len());
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
        }

        #[test]
        fn many_blocks_of_one_class_stay_ordered(keys in prop::collection::vec(0..2000_u64, 1500), drop in 0..1500_usize) {
            let mut set = FreeSet::default();
            let mut model = BTreeSet::new();
            for key in keys.iter().chain(&keys[..drop]) {
                let free = Free { size: 512, order: 0, address: *key, block: 0 };
                if model.remove(&free) {
                    prop_assert!(set.remove(&free));
                } else {
                    model.insert(free);
                    set.insert(free);
                }
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
        }
    }
}
