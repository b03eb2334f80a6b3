//! The stack of live allocations as a tree of sums, so that what is visible of it is found without looking at what
//! is too small to see.
//!
//! Allocations have fixed places, bottom to top. A live one adds its bytes at its place; the height of any place is
//! the sum below it. Changing one and finding the visible ones both cost the tree's depth, so a whole timeline costs
//! O((events + shapes) log n), however many are live.

use super::strips::Piece;

/// Sums over places, in a complete binary tree.
pub(super) struct Stack {
    /// Node `i` sums `2 i` and `2 i + 1`; places are the leaves from `leaves` on.
    sums: Vec<u64>,
    leaves: usize,
}

impl Stack {
    /// An empty stack with this many places.
    pub(super) fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two().max(1);
        Self { sums: vec![0; 2 * leaves], leaves }
    }

    /// Puts bytes at a place, instead of what was there.
    pub(super) fn set(&mut self, place: usize, bytes: u64) {
        let mut node = self.leaves + place;
        let Some(leaf) = self.sums.get_mut(node) else { return };
        *leaf = bytes;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node].saturating_add(self.sums[2 * node + 1]);
        }
    }

    /// What can be seen between heights `from` and `to`, from the bottom up: each place of at least `least` bytes by
    /// itself, and between them the sums of what is smaller.
    pub(super) fn visible(&self, from: u64, to: u64, least: u64, pieces: &mut Vec<Piece>) {
        pieces.clear();
        // Nodes to look at, with the height at which each begins; the lowest last.
        let mut open = vec![(1_usize, 0_u64)];
        while let Some((node, bottom)) = open.pop() {
            let sum = self.sums[node];
            let top = bottom.saturating_add(sum);
            if sum == 0 || top <= from || bottom >= to {
                continue;
            }
            if node >= self.leaves && sum >= least {
                pieces.push(Piece { bottom, top, place: Some(node - self.leaves) });
            } else if sum < least || node >= self.leaves {
                match pieces.last_mut().filter(|p| p.place.is_none() && p.top == bottom) {
                    Some(last) => last.top = top,
                    None => pieces.push(Piece { bottom, top, place: None }),
                }
            } else {
                let left = self.sums[2 * node];
                open.push((2 * node + 1, bottom.saturating_add(left)));
                open.push((2 * node, bottom));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_visible_is_what_a_plain_stack_shows(
            bytes in proptest::collection::vec(0_u64..40, 0..60), from in 0_u64..500, height in 1_u64..500, least in 1_u64..30,
        ) {
            let mut stack = Stack::new(bytes.len());
            for (place, &b) in bytes.iter().enumerate() {
                stack.set(place, 7);
                stack.set(place, b);
            }
            prop_assert_eq!(stack.sums[1], bytes.iter().sum::<u64>());
            let to = from + height;
            let mut pieces = Vec::new();
            stack.visible(from, to, least, &mut pieces);
            // Every large place in sight is there by itself, at its height.
            let mut bottom = 0;
            for (place, &b) in bytes.iter().enumerate() {
                let top = bottom + b;
                let want = (b >= least && top > from && bottom < to).then_some(Piece { bottom, top, place: Some(place) });
                prop_assert_eq!(pieces.iter().copied().find(|p| p.place == Some(place)), want);
                bottom = top;
            }
            // The pieces are in order, and together they leave out nothing in sight.
            for pair in pieces.windows(2) {
                prop_assert_eq!(pair[0].top, pair[1].bottom);
            }
            if let (Some(first), Some(last)) = (pieces.first(), pieces.last()) {
                prop_assert!(first.bottom <= from || first.bottom == 0);
                prop_assert!(last.top >= to.min(bottom));
            } else {
                prop_assert!(bottom <= from);
            }
        }
    }
}
