//! The stack of active allocations as a tree of sums, which finds the visible ones without visiting those too small to
//! see.
//!
//! Allocations have fixed places, bottom to top. An active one adds its bytes at its place; the height of a place is
//! the sum below it. Changing an allocation and finding a visible one both cost the tree's depth, so a whole timeline
//! costs O((events + shapes) log n), however many are active.

use super::strips::{Part, Piece};

/// Sums over places, in a complete binary tree.
pub(super) struct Stack {
    /// Node `i` is the sum of nodes `2 i` and `2 i + 1`; places are the leaves from `leaves` on.
    sums: Vec<u64>,
    leaves: usize,
    places: usize,
}

impl Stack {
    /// Creates an empty stack with this many places.
    pub(super) fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two().max(1);
        Self { sums: vec![0; 2 * leaves], leaves, places }
    }

    /// Sets the bytes at a place.
    #[inline(never)]
    pub(super) fn set(&mut self, place: usize, bytes: u64) {
        let mut node = self.leaves + place;
        let Some(leaf) = self.sums.get_mut(node) else { return };
        *leaf = bytes;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node].saturating_add(self.sums[2 * node + 1]);
        }
    }

    /// Finds the visible pieces between heights `from` and `to`, from the bottom up: each place of at least `least`
    /// bytes is a piece, and the smaller ones between them are summed, by class where the sum of a class is that high.
    /// `class_of` returns a place's class; the places of one class are adjacent.
    #[inline(never)]
    pub(super) fn visible(
        &self,
        (from, to): (u64, u64),
        least: u64,
        class_of: impl Fn(usize) -> Option<u8>,
        pieces: &mut Vec<Piece>,
    ) {
        pieces.clear();
        // Nodes to visit, each with its bottom, its first place and its number of places; the lowest last.
        let mut open = vec![(1_usize, 0_u64, 0_usize, self.leaves)];
        while let Some((node, bottom, first, width)) = open.pop() {
            let sum = self.sums[node];
            let top = bottom.saturating_add(sum);
            if sum == 0 || top <= from || bottom >= to {
                continue;
            }
            if width == 1 && sum >= least {
                pieces.push(Piece { bottom, top, part: Part::Place(first) });
            } else if width == 1 || sum < least {
                // Leaves beyond the last place are empty.
                let last = (first + width - 1).min(self.places.saturating_sub(1));
                let part = match (class_of(first), class_of(last)) {
                    (Some(class), Some(other)) if class == other => Part::Class(class),
                    _ => Part::Mixed,
                };
                match pieces.last_mut().filter(|p| p.part == part && p.top == bottom) {
                    Some(last) => last.top = top,
                    None => pieces.push(Piece { bottom, top, part }),
                }
            } else {
                let (left, half) = (self.sums[2 * node], width / 2);
                open.push((2 * node + 1, bottom.saturating_add(left), first + half, half));
                open.push((2 * node, bottom, first, half));
            }
        }
        merge_low(pieces, least);
    }
}

/// Merges adjacent sums that are each too low to see.
fn merge_low(pieces: &mut Vec<Piece>, least: u64) {
    let is_low = |p: &Piece| !matches!(p.part, Part::Place(_)) && p.top - p.bottom < least;
    pieces.dedup_by(|next, last| {
        let joins = is_low(next) && (is_low(last) || last.part == Part::Mixed) && last.top == next.bottom;
        if joins {
            (last.top, last.part) = (next.top, Part::Mixed);
        }
        joins
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_node_beyond_the_last_place_is_mixed() {
        // Places 0 to 3 and 5 have no bytes, 4 is of class 0 and 6 of class 1; place 7 does not exist.
        let mut stack = Stack::new(7);
        stack.set(4, 2);
        stack.set(6, 3);
        let mut pieces = Vec::new();
        stack.visible((0, 100), 9, |place| Some(u8::from(place > 5)), &mut pieces);
        assert_eq!(pieces, [Piece { bottom: 0, top: 5, part: Part::Mixed }]);
    }

    proptest! {
        #[test]
        fn visible_pieces_equal_those_of_a_plain_stack(
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
            let class_of = |place: usize| (place < bytes.len()).then_some((place / 7) as u8);
            stack.visible((from, to), least, class_of, &mut pieces);
            // Every large place in view is a piece of its own, at its height.
            let mut bottom = 0;
            for (place, &b) in bytes.iter().enumerate() {
                let top = bottom + b;
                let want = (b >= least && top > from && bottom < to).then_some(Piece { bottom, top, part: Part::Place(place) });
                prop_assert_eq!(pieces.iter().copied().find(|p| p.part == Part::Place(place)), want);
                bottom = top;
            }
            // Small places keep their class where their sum can be seen.
            for p in &pieces {
                if let Part::Class(class) = p.part {
                    let below: u64 = bytes.iter().take(usize::from(class) * 7).sum();
                    let through: u64 = bytes.iter().take((usize::from(class) + 1) * 7).sum();
                    prop_assert!(below <= p.bottom && p.top <= through);
                }
            }
            // The pieces are in order and cover everything in view.
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
