//! A map of few entries, such as one for each open file. A hash map would be no faster for so few, and is more code, which a page
//! has to download.

/// A map in which nothing is sorted or hashed.
#[derive(Clone, Debug)]
pub struct FewMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for FewMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> FewMap<K, V> {
    fn place(&self, key: &K) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == key)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.get(self.place(key)?).map(|(_, value)| value)
    }

    /// Returns the value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key)?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.remove(&key);
        self.0.push((key, value));
        before
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Returns the values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the values in no order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_a_hash_map_does(steps in prop::collection::vec((0..6_u8, prop::option::of(any::<u8>())), 0..40)) {
            let (mut few, mut hashed) = (FewMap::default(), HashMap::new());
            for (key, value) in steps {
                match value {
                    Some(value) => prop_assert_eq!(few.insert(key, value), hashed.insert(key, value)),
                    None => prop_assert_eq!(few.remove(&key), hashed.remove(&key)),
                }
                prop_assert_eq!(few.get(&key), hashed.get(&key));
                few.values_mut().for_each(|value| *value = value.wrapping_add(1));
                hashed.values_mut().for_each(|value| *value = value.wrapping_add(1));
                let sum = |values: &mut dyn Iterator<Item = &u8>| values.map(|value| u32::from(*value)).sum::<u32>();
                prop_assert_eq!(sum(&mut few.values()), sum(&mut hashed.values()));
                prop_assert_eq!(few.get_mut(&key), hashed.get_mut(&key));
            }
        }
    }
}
