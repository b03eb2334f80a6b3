//! Values by address, in chunks: a sorted list in which a change moves few of its values, however many there are.
//!
//! Up to [`CHUNK`] values are one short vector, which is enough for almost every trace. Searching is binary, among the
//! chunks and then in one of them.

/// The most values in a chunk.
const CHUNK: usize = 512;

/// The place of a value. A change of the list makes it invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SortedIndex {
    chunk: usize,
    i: usize,
}

#[derive(Clone, Debug)]
struct Chunk<T> {
    /// The address of each value, close together: they are searched at every change.
    keys: Vec<u64>,
    values: Vec<T>,
}

/// Values by distinct addresses.
#[derive(Clone, Debug)]
pub(super) struct Sorted<T> {
    /// None of them is empty.
    chunks: Vec<Chunk<T>>,
    len: usize,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Sorted<T> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the values in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.chunks.iter().flat_map(|chunk| &chunk.values)
    }

    /// Returns the last value at an address or before it.
    #[inline]
    pub(super) fn at_or_before(&self, key: u64) -> Option<SortedIndex> {
        // Most lists are one chunk.
        let chunk = match self.chunks.as_slice() {
            [_] => 0,
            chunks => {
                chunks.partition_point(|chunk| chunk.keys.first().is_some_and(|first| *first <= key)).checked_sub(1)?
            }
        };
        let i = self.chunks.get(chunk)?.keys.partition_point(|own| *own <= key).checked_sub(1)?;
        Some(SortedIndex { chunk, i })
    }

    /// Returns what [`Self::at_or_before`] returns, at once if it is at `hint`, which becomes that place.
    #[inline]
    pub(super) fn near(&self, key: u64, hint: &mut SortedIndex) -> Option<SortedIndex> {
        let is_before = |place: SortedIndex| self.key(place).is_some_and(|own| own <= key);
        if !is_before(*hint) || self.next(*hint).is_some_and(is_before) {
            *hint = self.at_or_before(key)?;
        }
        Some(*hint)
    }

    /// Returns the value at exactly this address.
    pub(super) fn at(&self, key: u64) -> Option<SortedIndex> {
        self.at_or_before(key).filter(|place| self.key(*place) == Some(key))
    }

    /// Returns the first value after an address.
    pub(super) fn after(&self, key: u64) -> Option<SortedIndex> {
        self.following(self.at_or_before(key))
    }

    /// Returns the value after a place; the first one after none.
    pub(super) fn following(&self, place: Option<SortedIndex>) -> Option<SortedIndex> {
        match place {
            Some(place) => self.next(place),
            None => (self.len > 0).then_some(SortedIndex { chunk: 0, i: 0 }),
        }
    }

    pub(super) fn next(&self, SortedIndex { chunk, i }: SortedIndex) -> Option<SortedIndex> {
        if i + 1 < self.chunks.get(chunk)?.keys.len() {
            return Some(SortedIndex { chunk, i: i + 1 });
        }
        (chunk + 1 < self.chunks.len()).then_some(SortedIndex { chunk: chunk + 1, i: 0 })
    }

    pub(super) fn previous(&self, SortedIndex { chunk, i }: SortedIndex) -> Option<SortedIndex> {
        if let Some(i) = i.checked_sub(1) {
            return Some(SortedIndex { chunk, i });
        }
        let chunk = chunk.checked_sub(1)?;
        Some(SortedIndex { chunk, i: self.chunks.get(chunk)?.keys.len().checked_sub(1)? })
    }

    fn key(&self, SortedIndex { chunk, i }: SortedIndex) -> Option<u64> {
        self.chunks.get(chunk)?.keys.get(i).copied()
    }

    #[inline]
    pub(super) fn get(&self, SortedIndex { chunk, i }: SortedIndex) -> Option<&T> {
        self.chunks.get(chunk)?.values.get(i)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, SortedIndex { chunk, i }: SortedIndex) -> Option<&mut T> {
        self.chunks.get_mut(chunk)?.values.get_mut(i)
    }

    /// Inserts a value, in place of the one at the same address. Returns where it is.
    pub(super) fn insert(&mut self, key: u64, value: T) -> SortedIndex {
        self.insert_at(self.at_or_before(key), key, value)
    }

    /// Inserts a value, where `before` is what [`Self::at_or_before`] returns for its address.
    pub(super) fn insert_at(&mut self, before: Option<SortedIndex>, key: u64, value: T) -> SortedIndex {
        if let Some(place) = before.filter(|place| self.key(*place) == Some(key)) {
            if let Some(own) = self.get_mut(place) {
                *own = value;
            }
            return place;
        }
        self.len += 1;
        let SortedIndex { chunk, i } =
            before.map_or(SortedIndex { chunk: 0, i: 0 }, |place| SortedIndex { i: place.i + 1, ..place });
        let Some(own) = self.chunks.get_mut(chunk) else {
            self.chunks.push(Chunk { keys: vec![key], values: vec![value] });
            return SortedIndex { chunk, i };
        };
        own.keys.insert(i, key);
        own.values.insert(i, value);
        if own.keys.len() <= CHUNK {
            return SortedIndex { chunk, i };
        }
        // Values often come in order: what is full at its end stays full.
        let at = if i + 1 == own.keys.len() { i } else { CHUNK / 2 };
        let second = Chunk { keys: own.keys.split_off(at), values: own.values.split_off(at) };
        self.chunks.insert(chunk + 1, second);
        if i < at { SortedIndex { chunk, i } } else { SortedIndex { chunk: chunk + 1, i: i - at } }
    }

    /// Removes a value.
    pub(super) fn remove(&mut self, SortedIndex { chunk, i }: SortedIndex) -> Option<T> {
        let own = self.chunks.get_mut(chunk).filter(|own| i < own.keys.len())?;
        own.keys.remove(i);
        let removed = own.values.remove(i);
        if own.keys.is_empty() {
            self.chunks.remove(chunk);
        }
        self.len -= 1;
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_the_values_of_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u64..3_000), 0..4_000), is_rising in any::<bool>()) {
            let (mut map, mut list) = (BTreeMap::new(), Sorted::default());
            for (number, (is_inserted, key)) in steps.into_iter().enumerate() {
                let key = if is_rising && is_inserted { number as u64 } else { key };
                if is_inserted {
                    map.insert(key, number);
                    let place = list.insert(key, number);
                    prop_assert_eq!(list.get(place), Some(&number));
                } else {
                    prop_assert_eq!(list.at(key).and_then(|place| list.remove(place)), map.remove(&key));
                }
                let value = |place: Option<SortedIndex>| place.and_then(|place| list.get(place)).copied();
                let before = list.at_or_before(key);
                prop_assert_eq!(value(before), map.range(..=key).next_back().map(|(_, value)| *value));
                prop_assert_eq!(value(list.after(key)), map.range(key + 1..).next().map(|(_, value)| *value));
                if let Some(place) = before {
                    prop_assert_eq!(list.previous(place).is_some(), map.range(..=key).count() > 1);
                }
            }
            prop_assert_eq!(list.len(), map.len());
            prop_assert!(list.iter().eq(map.values()));
        }
    }

    #[test]
    fn a_change_moves_few_values_however_many_there_are() {
        for keys in [(0..100_000).collect::<Vec<u64>>(), (0..100_000).rev().collect()] {
            let mut list = Sorted::default();
            keys.iter().for_each(|key| {
                list.insert(*key, ());
            });
            assert!(list.chunks.iter().all(|chunk| chunk.keys.len() <= CHUNK));
            assert!(list.chunks.len() <= 2 * 100_000 / CHUNK + 1, "{}", list.chunks.len());
        }
    }
}
