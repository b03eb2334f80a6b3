//! A map from numbers to values, in order of insertion.

use crate::order::SortFew;
use rustc_hash::FxHashMap;

/// Maps numbers to values, created on first use. For numbers from untrusted files: no choice or order of numbers makes
/// it slow.
#[derive(Debug)]
pub struct Numbered<T> {
    places: FxHashMap<u64, u32>,
    things: Vec<(i64, T)>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { places: FxHashMap::default(), things: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// Returns the value with a number, if there is one.
    pub fn get(&self, number: i64) -> Option<&T> {
        let place = self.places.get(&(number as u64))?;
        self.things.get(*place as usize).map(|(_, thing)| thing)
    }

    /// Returns the value with a number for modification, if there is one.
    pub fn get_mut(&mut self, number: i64) -> Option<&mut T> {
        let place = self.places.get(&(number as u64))?;
        self.things.get_mut(*place as usize).map(|(_, thing)| thing)
    }

    /// Iterates over numbers and values in order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        self.things.iter().map(|(number, thing)| (*number, thing))
    }

    /// Iterates over numbers and values for modification, in order of insertion.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i64, &mut T)> {
        self.things.iter_mut().map(|(number, thing)| (*number, thing))
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// Removes all values and returns them, sorted by number.
    pub fn take_sorted(&mut self) -> Vec<(i64, T)> {
        self.places.clear();
        let mut things = std::mem::take(&mut self.things);
        things.sort_few_by_key(|(number, _)| *number);
        things
    }
}

impl<T: Default> Numbered<T> {
    /// Returns the value with a number, created if necessary.
    pub fn entry(&mut self, number: i64) -> &mut T {
        let end = self.things.len();
        let place = *self.places.entry(number as u64).or_insert(end as u32) as usize;
        if place == end {
            self.things.push((number, T::default()));
        }
        &mut self.things[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_by_number() {
        let mut things: Numbered<u32> = Numbered::default();
        for number in [3, -1, 3, i64::MAX, i64::MIN, -1] {
            *things.entry(number) += 1;
        }
        assert_eq!((things.get(3), things.get(4)), (Some(&2), None));
        *things.get_mut(3).unwrap() = 9;
        things.iter_mut().for_each(|(_, thing)| *thing += 1);
        things.iter_mut().for_each(|(_, thing)| *thing -= 1);
        assert_eq!(things.iter().nth(1), Some((-1, &2)));
        assert_eq!(things.take_sorted(), [(i64::MIN, 1), (-1, 2), (3, 9), (i64::MAX, 1)]);
        assert!(things.is_empty() && things.get(3).is_none());
    }
}
