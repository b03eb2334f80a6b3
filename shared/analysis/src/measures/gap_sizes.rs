//! The sizes of all gaps of one kind of pool, of which only the largest is asked for.

use std::collections::BinaryHeap;

/// The sizes of gaps. A size that is removed stays until it is the largest: most never are, and adding and removing are
/// a few steps each.
#[derive(Clone, Debug, Default)]
pub(super) struct GapSizes {
    all: BinaryHeap<u64>,
    /// Those of `all` that were removed.
    removed: BinaryHeap<u64>,
}

impl GapSizes {
    /// Adds a gap.
    #[inline]
    pub(super) fn add(&mut self, size: u64) {
        self.all.push(size);
    }

    /// Removes a gap of this size, which must have been added.
    #[inline]
    pub(super) fn remove(&mut self, size: u64) {
        self.removed.push(size);
    }

    /// Returns the largest size; 0 if there is no gap.
    #[inline]
    pub(super) fn largest(&mut self) -> u64 {
        while let Some(removed) = self.removed.peek()
            && self.all.peek() == Some(removed)
        {
            self.all.pop();
            self.removed.pop();
        }
        self.all.peek().copied().unwrap_or(0)
    }

    /// Returns how many removed sizes are kept.
    pub(super) fn removed(&self) -> usize {
        self.removed.len()
    }

    /// Forgets all gaps.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.removed.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_largest_is_that_of_a_list(steps in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..20), 0..300)) {
            let (mut sizes, mut list) = (GapSizes::default(), Vec::new());
            for (pick, size) in steps {
                if size < 8 && !list.is_empty() {
                    sizes.remove(list.swap_remove(pick.index(list.len())));
                } else {
                    sizes.add(size);
                    list.push(size);
                }
                prop_assert_eq!(sizes.largest(), list.iter().copied().max().unwrap_or(0));
            }
        }
    }
}
