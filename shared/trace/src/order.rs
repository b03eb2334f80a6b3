//! Bounds and orders that the standard library doesn't have.

use std::cmp::Ordering;

/// Bounds a number without ever panicking.
pub trait Within: PartialOrd + Sized {
    /// Returns the number, or the bound that it exceeds; the lower bound if the bounds cross. `f64::clamp` panics in that
    /// case, and if a bound is NaN.
    fn within(self, low: Self, high: Self) -> Self {
        if self > high && high >= low {
            high
        } else if self < low || self > high {
            low
        } else {
            self
        }
    }
}

impl<T: PartialOrd> Within for T {}

/// Sorts indices by a key, and by index where keys are equal. Computes each key once: for millions of indices, looking
/// the keys up in each comparison would miss the cache every time.
pub fn sort_numbers_by_key(numbers: &mut [u32], key: impl Fn(u32) -> u64) {
    let mut keyed: Vec<(u64, u32)> = numbers.iter().map(|&number| (key(number), number)).collect();
    keyed.sort_unstable();
    for (number, (_, sorted)) in numbers.iter_mut().zip(keyed) {
        *number = sorted;
    }
}

/// Sorts without being compiled anew for each type, which the sorts of the standard library are: a fifth of a crate that sorts
/// tables for people was made of them. For up to some thousands of items, since each comparison goes through a pointer.
pub trait SortFew<T> {
    /// Sorts as [`slice::sort_by`] does.
    fn sort_few_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// Sorts as [`slice::sort_by_key`] does.
    fn sort_few_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.sort_few_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> SortFew<T> for [T] {
    fn sort_few_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let mut sources = sorted_places(self.len(), &|a, b| compare(&self[a], &self[b]));
        // Each cycle of places is walked once, carrying its first item along until its place is reached.
        for first in 0..sources.len() {
            let mut place = first;
            loop {
                let source = std::mem::replace(&mut sources[place], place);
                if source == first || source == place {
                    break;
                }
                self.swap(place, source);
                place = source;
            }
        }
    }
}

/// Returns the places of `len` items in sorted order; `compare` is asked about places.
#[inline(never)]
fn sorted_places(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|&a, &b| compare(a, b));
    places
}

/// Sorts pairs by their keys and merges pairs with equal keys: `add` adds a value to the first one's.
pub fn merge<K: Ord, V>(pairs: &mut Vec<(K, V)>, mut add: impl FnMut(&mut V, &V)) {
    pairs.sort_few_by(|a, b| a.0.cmp(&b.0));
    pairs.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            add(&mut kept.1, &later.1);
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_with_equal_keys_are_merged() {
        let mut pairs = vec![("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)];
        merge(&mut pairs, |sum, value| *sum += value);
        assert_eq!(pairs, [("a", 7), ("b", 4), ("c", 4)]);
    }

    proptest! {
        #[test]
        fn few_items_are_sorted_as_the_standard_library_sorts_them(things in proptest::collection::vec(0_u8..9, 0..60)) {
            let mut want: Vec<(u8, usize)> = things.into_iter().zip(0..).collect();
            let mut got = want.clone();
            want.sort_by_key(|thing| std::cmp::Reverse(thing.0));
            got.sort_few_by_key(|thing| std::cmp::Reverse(thing.0));
            prop_assert_eq!(got, want);
        }

        #[test]
        fn indices_are_sorted_as_the_standard_library_sorts_them(things in proptest::collection::vec(0_u8..9, 0..200)) {
            let key = |n: u32| u64::from(things[n as usize]);
            let mut want: Vec<u32> = (0..things.len() as u32).rev().collect();
            let mut got = want.clone();
            want.sort_by_key(|&n| (key(n), n));
            sort_numbers_by_key(&mut got, key);
            prop_assert_eq!(got, want);
        }
    }
}
