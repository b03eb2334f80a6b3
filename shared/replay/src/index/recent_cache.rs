//! A cache of the most recently used values.

/// At most `MOST` values by key, the most recently used last. A value that is removed and not inserted again is
/// dropped.
#[derive(Debug)]
pub struct RecentCache<K, V, const MOST: usize> {
    entries: Vec<(K, V)>,
}

impl<K, V, const MOST: usize> Default for RecentCache<K, V, MOST> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K, V, const MOST: usize> RecentCache<K, V, MOST> {
    /// Removes and returns the value of a key.
    pub fn remove<Q: ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: PartialEq<Q>,
    {
        let i = self.entries.iter().position(|(known, _)| known == key)?;
        Some(self.entries.remove(i).1)
    }

    /// Inserts a value, which must not be there, in place of the one that was not used for longest.
    pub fn insert(&mut self, key: K, value: V) -> &mut V {
        if self.entries.len() >= MOST {
            self.entries.remove(0);
        }
        self.entries.push((key, value));
        let last = self.entries.len() - 1;
        &mut self.entries[last].1
    }

    /// Forgets the values whose key `is_kept` refuses.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K) -> bool) {
        self.entries.retain(|(key, _)| is_kept(key));
    }

    /// Returns the key and value used last.
    pub fn last(&self) -> Option<(&K, &V)> {
        self.entries.last().map(|(key, value)| (key, value))
    }

    /// Returns all values, the one used last at the end.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_not_used_for_longest_is_dropped() {
        let mut kept: RecentCache<String, u32, 2> = RecentCache::default();
        kept.insert("a".to_owned(), 1);
        kept.insert("b".to_owned(), 2);
        let used = kept.remove("a").unwrap();
        kept.insert("a".to_owned(), used);
        kept.insert("c".to_owned(), 3);
        assert_eq!(kept.values().copied().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(kept.remove("b"), None);
        assert_eq!(kept.last(), Some((&"c".to_owned(), &3)));
        kept.retain(|key| key != "c");
        assert_eq!(kept.last(), Some((&"a".to_owned(), &1)));
    }
}
