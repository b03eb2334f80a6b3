//! Bytes that several active blocks claim, which occur only where events are missing or a file is damaged.

use std::collections::BTreeMap;

/// How many blocks beyond the first claim each byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Overlaps {
    /// Disjoint spans by their first address: the address after them, and the number of blocks.
    spans: BTreeMap<u64, (u64, u32)>,
}

impl Overlaps {
    /// Returns the number of spans from `from` to before `to`, but no more than `most`.
    pub(super) fn count(&self, from: u64, to: u64, most: usize) -> usize {
        self.spans.range(from..to.max(from)).take(most).count()
    }

    /// Returns whether no byte has a second claim.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Makes an address the border of a span, if it lies in one.
    fn split(&mut self, at: u64) {
        if let Some((_, span)) = self.spans.range_mut(..at).next_back()
            && span.0 > at
        {
            let (end, count) = *span;
            span.0 = at;
            self.spans.insert(at, (end, count));
        }
    }

    /// Returns the parts between spans from `from` to before `to`.
    fn holes(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut holes = Vec::new();
        let mut at = from;
        for (&start, &(end, _)) in self.spans.range(from..to) {
            holes.push((at, start));
            at = end;
        }
        holes.push((at, to));
        holes.retain(|(start, end)| start < end);
        holes
    }

    /// Adds a claim to the bytes from `from` to before `to`.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        self.split(from);
        self.split(to);
        let holes = self.holes(from, to);
        self.spans.range_mut(from..to).for_each(|(_, (_, count))| *count += 1);
        self.spans.extend(holes.into_iter().map(|(start, end)| (start, (end, 1))));
    }

    /// Removes a claim to the bytes from `from` to before `to`. Returns the parts that no block claims any more.
    pub(super) fn remove(&mut self, from: u64, to: u64) -> Vec<(u64, u64)> {
        self.split(from);
        self.split(to);
        let holes = self.holes(from, to);
        let spans: Vec<u64> = self.spans.range(from..to).map(|(&start, _)| start).collect();
        for start in spans {
            if let Some((_, count)) = self.spans.get_mut(&start) {
                *count -= 1;
                if *count == 0 {
                    self.spans.remove(&start);
                }
            }
        }
        holes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn claims_are_counted_for_each_byte(steps in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 0_u64..60, 1_u64..30), 0..60)) {
            let mut claims = [0_u32; 100];
            let mut overlaps = Overlaps::default();
            let mut blocks: Vec<(u64, u64)> = Vec::new();
            for (pick, is_removed, from, length) in steps {
                if is_removed && !blocks.is_empty() {
                    let (from, to) = blocks.swap_remove(pick.index(blocks.len()));
                    let mut free = overlaps.remove(from, to).into_iter().flat_map(|(start, end)| start..end);
                    for byte in from..to {
                        claims[byte as usize] -= 1;
                        if claims[byte as usize] == 0 {
                            prop_assert_eq!(free.next(), Some(byte));
                        }
                    }
                    prop_assert_eq!(free.next(), None);
                } else {
                    let to = from + length;
                    blocks.push((from, to));
                    for byte in from..to {
                        claims[byte as usize] += 1;
                        if claims[byte as usize] > 1 {
                            overlaps.add(byte, byte + 1);
                        }
                    }
                }
                prop_assert_eq!(overlaps.is_empty(), claims.iter().all(|claims| *claims < 2));
            }
        }
    }
}
