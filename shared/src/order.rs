//! Bounds, and sorting with one copy of the machinery for all types: the standard library's comes anew with each type and
//! comparison, and some twenty of them were a sixteenth of the page's WebAssembly.

use std::cmp::Ordering;

/// Numbers that are held within bounds.
pub trait Within: PartialOrd + Sized {
    /// The number, or the bound that it lies beyond; the lower one where bounds cross. The standard library's `clamp` of
    /// floating point ends the program there, and brings what prints such numbers to tell of it.
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

/// Sorts by a comparison; what is equal stays in its order. For hundreds of things, not for millions: each comparison is
/// a call, and each thing is moved twice.
pub fn sort_by<T>(things: &mut Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order: Vec<u32> = (0..things.len() as u32).collect();
    sort_numbers(&mut order, &mut |a, b| {
        let pair = things.get(a as usize).zip(things.get(b as usize));
        pair.map_or(Ordering::Equal, |(a, b)| compare(a, b))
    });
    let mut taken: Vec<Option<T>> = things.drain(..).map(Some).collect();
    things.extend(order.iter().filter_map(|&i| taken.get_mut(i as usize)?.take()));
}

/// Sorts by a key; what has equal keys stays in its order. For hundreds of things, like [`sort_by`].
pub fn sort_by_key<T, K: Ord>(things: &mut Vec<T>, mut key: impl FnMut(&T) -> K) {
    sort_by(things, |a, b| key(a).cmp(&key(b)));
}

/// Sorts numbers of things by a key, and by number where keys are equal. For millions.
pub fn sort_numbers_by_key(numbers: &mut [u32], key: impl Fn(u32) -> u64) {
    let mut keyed: Vec<(u64, u32)> = numbers.iter().map(|&number| (key(number), number)).collect();
    keyed.sort_unstable();
    for (number, (_, sorted)) in numbers.iter_mut().zip(keyed) {
        *number = sorted;
    }
}

/// Sorts pairs by their keys, and makes one of those that have the same: `add` adds a value to the first one's. For
/// hundreds of things, like [`sort_by`].
pub fn merge<K: Ord, V>(pairs: &mut Vec<(K, V)>, mut add: impl FnMut(&mut V, &V)) {
    sort_by(pairs, |a, b| a.0.cmp(&b.0));
    pairs.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            add(&mut kept.1, &later.1);
        }
        is_same
    });
}

#[inline(never)]
fn sort_numbers(numbers: &mut [u32], compare: &mut dyn FnMut(u32, u32) -> Ordering) {
    numbers.sort_by(|a, b| compare(*a, *b));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_with_the_same_key_become_one() {
        let mut pairs = vec![("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)];
        merge(&mut pairs, |sum, value| *sum += value);
        assert_eq!(pairs, [("a", 7), ("b", 4), ("c", 4)]);
    }

    proptest! {
        #[test]
        fn everything_is_sorted_as_the_standard_library_sorts_it(things in proptest::collection::vec((0_u8..9, any::<u16>()), 0..200)) {
            let mut want = things.clone();
            want.sort_by_key(|a| a.0);
            let mut got = things.clone();
            sort_by_key(&mut got, |a| a.0);
            prop_assert_eq!(got, want);

            let key = |n: u32| u64::from(things[n as usize].0);
            let mut want: Vec<u32> = (0..things.len() as u32).rev().collect();
            let mut got = want.clone();
            want.sort_by_key(|&n| (key(n), n));
            sort_numbers_by_key(&mut got, key);
            prop_assert_eq!(got, want);
        }
    }
}
