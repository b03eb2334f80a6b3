//! Values by number, with reuse of numbers.

/// Values with small numbers. A value keeps its number until it is removed.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    len: usize,
    /// The first vacant slot, or [`NONE`].
    vacant: u32,
}

/// Marks the absence of a slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum Slot<T> {
    Occupied(T),
    /// The next vacant slot, or [`NONE`].
    Vacant(u32),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), len: 0, vacant: NONE }
    }
}

impl<T> Slab<T> {
    /// Adds a value and returns its number.
    #[inline]
    pub(super) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        let number = self.vacant;
        match self.slots.get_mut(number as usize) {
            Some(slot) => {
                if let Slot::Vacant(next) = *slot {
                    self.vacant = next;
                }
                *slot = Slot::Occupied(value);
                number
            }
            None => {
                self.slots.push(Slot::Occupied(value));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Removes and returns a value.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let slot = self.slots.get_mut(number as usize)?;
        if matches!(slot, Slot::Vacant(_)) {
            return None;
        }
        self.len -= 1;
        let old = std::mem::replace(slot, Slot::Vacant(self.vacant));
        self.vacant = number;
        match old {
            Slot::Occupied(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    /// Returns whether there are no values.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of a number, if there is one.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        match self.slots.get(number as usize) {
            Some(Slot::Occupied(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns all values with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(number, slot)| match slot {
            Slot::Occupied(value) => Some((number as u32, value)),
            Slot::Vacant(_) => None,
        })
    }

    /// Returns the bytes that the slots occupy.
    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>()
    }
}

/// Returns the value of a number.
///
/// Panics if there is none. No link between blocks leads to a vacant slot; if one did, any other answer could hand out
/// memory that is in use. The job's allocator refuses all further work after a panic.
impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        match &self.slots[number as usize] {
            Slot::Occupied(value) => value,
            Slot::Vacant(_) => vacant(number),
        }
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        match &mut self.slots[number as usize] {
            Slot::Occupied(value) => value,
            Slot::Vacant(_) => vacant(number),
        }
    }
}

#[cold]
fn vacant(number: u32) -> ! {
    unreachable!("slot {number} is vacant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_never_twice() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..4).map(|value| slab.insert(value)).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!((slab.remove(1), slab.remove(1), slab.remove(3), slab.remove(9)), (Some(1), None, Some(3), None));
        assert_eq!((slab.insert(10), slab.insert(11), slab.insert(12)), (3, 1, 4));
        let all: Vec<(u32, i32)> = slab.iter().map(|(number, &value)| (number, value)).collect();
        assert_eq!(all, [(0, 0), (1, 11), (2, 2), (3, 10), (4, 12)]);
        assert_eq!((slab.get(2), slab.get(7)), (Some(&2), None));
    }
}
