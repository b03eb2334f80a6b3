//! A hash table that is iterated in the order of the tables in PyTorch's allocator.
//!
//! PyTorch keeps some of its bookkeeping in `ska::flat_hash_map` and walks it from the first slot to the last. If two
//! streams finish at once, or two pools are released, the order of the slots is the order in the trace. That order
//! follows from the keys and the history of insertions alone, so it is reproduced here. The number of slots is a power
//! of two. A key's own slot is the high bits of its hash times 2^64 divided by the golden ratio. A key whose slot is
//! occupied moves on and displaces keys that are nearer to their own slots. At most half the slots are occupied.
//! Removing a key moves its followers back.

use trace::units::PoolId;

/// 2^64 divided by the golden ratio.
const FIBONACCI: u64 = 11_400_714_819_323_198_485;
/// A key may move on at least this far before the table grows.
const MIN_LOOKUPS: u32 = 4;

/// A key of a table.
pub(super) trait Key: Copy + PartialEq {
    /// Returns PyTorch's hash of the key. Two keys may have the same hash.
    fn hash(&self) -> u64;
}

/// A stream by its `StreamId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamKey(pub(super) u64);

impl Key for StreamKey {
    /// Returns kind and number of the device and the stream's id in one word (`c10::Stream::hash`).
    fn hash(&self) -> u64 {
        const CUDA: u64 = 1 << 56;
        CUDA | (self.0 & ((1 << 48) - 1))
    }
}

impl Key for PoolId {
    /// Returns the half of the id that is not zero (`MempoolIdHash`).
    fn hash(&self) -> u64 {
        if self.0 == 0 { self.1 } else { self.0 }
    }
}

/// A key with its value and its distance from its own slot.
#[derive(Debug)]
struct Slot<K, V> {
    distance: u32,
    key: K,
    value: V,
}

/// Values by key, in slot order.
#[derive(Debug)]
pub(super) struct SlotTable<K, V> {
    /// One slot for each bucket, and room for keys that move on beyond the last.
    slots: Vec<Option<Slot<K, V>>>,
    /// Number of own slots: 0 or a power of two.
    buckets: usize,
    len: usize,
}

impl<K, V> Default for SlotTable<K, V> {
    fn default() -> Self {
        Self { slots: Vec::new(), buckets: 0, len: 0 }
    }
}

impl<K: Key, V> SlotTable<K, V> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of a key, which is created if necessary.
    pub(super) fn entry(&mut self, key: K, make: impl Fn() -> V) -> &mut V {
        let at = match self.find(key) {
            Ok(at) => at,
            Err(_) => self.insert(key, make()),
        };
        // The slot is occupied, so the closure is never called.
        &mut self.slots[at].get_or_insert_with(|| Slot { distance: 0, key, value: make() }).value
    }

    /// Returns the place of the first value at or after `place`, in slot order.
    pub(super) fn next(&self, place: usize) -> Option<usize> {
        (place..self.slots.len()).find(|&at| self.slots[at].is_some())
    }

    /// Returns the value at a place.
    pub(super) fn at(&mut self, place: usize) -> Option<&mut V> {
        self.slots.get_mut(place)?.as_mut().map(|slot| &mut slot.value)
    }

    /// Returns all values in slot order, consuming the table.
    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.slots.into_iter().flatten().map(|slot| slot.value)
    }

    /// Returns all values in slot order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.slots.iter().flatten().map(|slot| &slot.value)
    }

    /// Returns the key at a place.
    pub(super) fn key_at(&self, place: usize) -> Option<K> {
        self.slots.get(place)?.as_ref().map(|slot| slot.key)
    }

    /// Returns all keys in slot order.
    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.slots.iter().flatten().map(|slot| slot.key)
    }

    /// Removes and returns the value of a key.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        self.find(key).ok().and_then(|at| self.remove_at(at))
    }

    /// Removes and returns the value at a place. A later value may move there.
    pub(super) fn remove_at(&mut self, place: usize) -> Option<V> {
        let removed = self.slots.get_mut(place)?.take()?;
        self.len -= 1;
        let mut at = place + 1;
        while let Some(mut next) = self.slots.get_mut(at).and_then(|slot| slot.take_if(|slot| slot.distance > 0)) {
            next.distance -= 1;
            self.slots[at - 1] = Some(next);
            at += 1;
        }
        Some(removed.value)
    }

    fn own_slot(&self, key: K) -> usize {
        (FIBONACCI.wrapping_mul(key.hash()) >> (64 - self.buckets.ilog2())) as usize
    }

    fn max_lookups(&self) -> u32 {
        self.buckets.checked_ilog2().unwrap_or(0).max(MIN_LOOKUPS)
    }

    /// Returns the place of a key, or else the distance and place at which it would be inserted.
    fn find(&self, key: K) -> Result<usize, (u32, usize)> {
        if self.buckets == 0 {
            return Err((0, 0));
        }
        let mut at = self.own_slot(key);
        let mut distance = 0;
        while let Some(Some(slot)) = self.slots.get(at)
            && slot.distance >= distance
        {
            if slot.key == key {
                return Ok(at);
            }
            at += 1;
            distance += 1;
        }
        Err((distance, at))
    }

    /// Inserts a key that is not in the table and returns its place.
    fn insert(&mut self, key: K, value: V) -> usize {
        let Err((distance, at)) = self.find(key) else { return 0 };
        let is_full = self.buckets == 0 || distance == self.max_lookups() || 2 * (self.len + 1) > self.buckets;
        if is_full {
            self.grow();
            return self.insert(key, value);
        }
        let mut carried = Slot { distance, key, value };
        let mut to = at;
        loop {
            match &mut self.slots[to] {
                empty @ None => {
                    *empty = Some(carried);
                    self.len += 1;
                    return at;
                }
                Some(slot) if slot.distance < carried.distance || to == at => {
                    std::mem::swap(slot, &mut carried);
                }
                Some(_) => {}
            }
            to += 1;
            carried.distance += 1;
            if carried.distance == self.max_lookups() {
                // If a displaced key finds no room, it goes where the new key went, and all keys are inserted again.
                if let Some(slot) = &mut self.slots[at] {
                    std::mem::swap(&mut slot.key, &mut carried.key);
                    std::mem::swap(&mut slot.value, &mut carried.value);
                }
                self.grow();
                return self.insert(carried.key, carried.value);
            }
        }
    }

    fn grow(&mut self) {
        self.buckets = (2 * self.buckets).max(4);
        self.len = 0;
        let size = self.buckets + self.max_lookups() as usize;
        let old = std::mem::replace(&mut self.slots, std::iter::repeat_with(|| None).take(size).collect());
        for slot in old.into_iter().flatten() {
            self.insert(slot.key, slot.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_holds_what_a_map_holds(ops in prop::collection::vec((0..3_u8, 0..40_u64), 1..400)) {
            let mut table = SlotTable::default();
            let mut map = BTreeMap::new();
            for (step, (kind, key)) in ops.into_iter().enumerate() {
                let key = StreamKey(if key == 0 { 0 } else { key * 32 + 3 });
                if kind == 0 {
                    prop_assert_eq!(table.remove(key), map.remove(&key.0));
                } else {
                    prop_assert_eq!(*table.entry(key, || step), *map.entry(key.0).or_insert(step));
                }
                prop_assert_eq!(table.is_empty(), map.is_empty());
                let mut values: Vec<usize> = table.values().copied().collect();
                values.sort_unstable();
                let mut wanted: Vec<usize> = map.values().copied().collect();
                wanted.sort_unstable();
                prop_assert_eq!(values, wanted);
            }
        }
    }

    #[test]
    fn keys_lie_in_the_order_of_their_slots() {
        let mut table = SlotTable::default();
        for key in 0..6_u64 {
            table.entry(PoolId(0, key), || key);
        }
        let order = |table: &SlotTable<PoolId, u64>| table.values().copied().collect::<Vec<_>>();
        let mut wanted: Vec<u64> = (0..6).collect();
        wanted.sort_by_key(|key| FIBONACCI.wrapping_mul(*key));
        assert_eq!(order(&table), wanted);
        // Iterating while removing visits each key once.
        let (mut place, mut seen) = (0, Vec::new());
        while let Some(at) = table.next(place) {
            if let Some(value) = table.remove_at(at) {
                seen.push(value);
            }
            place = at;
        }
        assert_eq!(seen, wanted);
    }
}
