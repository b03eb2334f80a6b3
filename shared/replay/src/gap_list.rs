//! The gaps of one range, by address.
//!
//! Most ranges have a few gaps, which are one short vector. An expandable segment can have many thousands: its list is
//! divided into chunks, so that a change moves few of them.

use super::state::Gap;
use trace::units::Address;

/// The most gaps in a chunk.
const CHUNK: usize = 64;

/// A gap from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GapSpan {
    start: u64,
    end: u64,
}

impl GapSpan {
    fn gap(self) -> Gap {
        gap(self.start, self.end)
    }
}

/// Returns the gap from `start` to before `end`.
pub(super) fn gap(start: u64, end: u64) -> Gap {
    Gap { address: Address(start), size: end.saturating_sub(start) }
}

/// Disjoint gaps by address, none of which touch.
#[derive(Clone, Debug, Default)]
pub(super) struct GapList {
    /// None of them is empty, except that a list may consist of one empty chunk.
    chunks: Vec<Vec<GapSpan>>,
}

impl GapList {
    /// Returns the gaps in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Gap> + '_ {
        self.chunks.iter().flatten().map(|span| span.gap())
    }

    /// Returns whether one gap holds all bytes from `from` to before `to`.
    pub(super) fn holds(&self, from: u64, to: u64) -> bool {
        self.at(from.saturating_add(1)).is_some_and(|(_, span)| span.start <= from && to <= span.end)
    }

    /// Returns the first gap that ends at an address or after it, and where it is.
    #[inline]
    fn at(&self, address: u64) -> Option<((usize, usize), GapSpan)> {
        // Most lists are one chunk.
        let chunk = match self.chunks.as_slice() {
            [_] => 0,
            chunks => chunks.partition_point(|chunk| chunk.last().is_some_and(|span| span.end < address)),
        };
        let spans = self.chunks.get(chunk)?;
        let i = spans.partition_point(|span| span.end < address);
        spans.get(i).map(|span| ((chunk, i), *span))
    }

    /// Takes the bytes from `from` to before `to` out of the gaps. Visits each gap that shrinks, with what is left of
    /// it before and after the bytes. Returns how many bytes were free.
    #[inline]
    pub(super) fn take(&mut self, from: u64, to: u64, mut visit: impl FnMut(Gap, Option<Gap>, Option<Gap>)) -> u64 {
        let mut taken = 0;
        let mut address = from;
        while let Some((place, span)) = self.at(address.saturating_add(1)).filter(|(_, span)| span.start < to) {
            let (left, right) = (span.start.max(from), span.end.min(to));
            taken += right - left;
            let head = (span.start < left).then_some(GapSpan { start: span.start, end: left });
            let tail = (right < span.end).then_some(GapSpan { start: right, end: span.end });
            match (head, tail) {
                (None, None) => self.remove(place),
                (Some(kept), None) | (None, Some(kept)) => self.set(place, kept),
                (Some(head), Some(tail)) => {
                    self.set(place, tail);
                    self.insert(place, head);
                }
            }
            visit(span.gap(), head.map(GapSpan::gap), tail.map(GapSpan::gap));
            address = span.end;
            if address >= to {
                break;
            }
        }
        taken
    }

    /// Adds the bytes from `from` to before `to`, none of which are in a gap. Visits the gap that they are part of: first
    /// the neighbours that it replaces, the second of which is visited alone.
    #[inline]
    pub(super) fn give(&mut self, from: u64, to: u64, mut visit: impl FnMut(Option<Gap>, Option<Gap>)) {
        let Some((place, first)) = self.at(from) else {
            self.push(GapSpan { start: from, end: to });
            return visit(None, Some(gap(from, to)));
        };
        let (chunk, i) = place;
        if first.end == from {
            // It grows to the right, up to the next gap or over it.
            let next = match self.chunks.get(chunk).and_then(|spans| spans.get(i + 1)) {
                Some(next) => Some(((chunk, i + 1), *next)),
                None => self.chunks.get(chunk + 1).and_then(|spans| spans.first()).map(|next| ((chunk + 1, 0), *next)),
            };
            let mut grown = GapSpan { start: first.start, end: to };
            match next.filter(|(_, next)| next.start == to) {
                Some((after, next)) => {
                    grown.end = next.end;
                    visit(Some(next.gap()), None);
                    self.set(place, grown);
                    self.remove(after);
                }
                None => self.set(place, grown),
            }
            visit(Some(first.gap()), Some(grown.gap()));
        } else if first.start == to {
            let grown = GapSpan { start: from, end: first.end };
            self.set(place, grown);
            visit(Some(first.gap()), Some(grown.gap()));
        } else {
            self.insert(place, GapSpan { start: from, end: to });
            visit(None, Some(gap(from, to)));
        }
    }

    #[inline]
    fn set(&mut self, (chunk, i): (usize, usize), span: GapSpan) {
        if let Some(own) = self.chunks.get_mut(chunk).and_then(|spans| spans.get_mut(i)) {
            *own = span;
        }
    }

    #[inline]
    fn remove(&mut self, (chunk, i): (usize, usize)) {
        let Some(spans) = self.chunks.get_mut(chunk).filter(|spans| i < spans.len()) else { return };
        spans.remove(i);
        // A list keeps its last chunk, so that it need not be allocated again and again.
        if spans.is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(chunk);
        }
    }

    #[inline]
    fn insert(&mut self, (chunk, i): (usize, usize), span: GapSpan) {
        let Some(spans) = self.chunks.get_mut(chunk) else { return };
        spans.insert(i.min(spans.len()), span);
        if spans.len() > CHUNK {
            let second = spans.split_off(CHUNK / 2);
            self.chunks.insert(chunk + 1, second);
        }
    }

    /// Adds a gap after all others.
    fn push(&mut self, span: GapSpan) {
        match self.chunks.last_mut() {
            Some(spans) => {
                let after = spans.len();
                self.insert((self.chunks.len() - 1, after), span);
            }
            None => self.chunks.push(vec![span]),
        }
    }

    /// Adds the gaps of the range after this one.
    pub(super) fn append(&mut self, mut after: Self) {
        // A list may consist of one empty chunk.
        if self.chunks.last().is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
        if after.chunks.first().is_some_and(|spans| !spans.is_empty()) {
            self.chunks.append(&mut after.chunks);
        }
    }

    /// Splits the list at an address that lies in no gap: keeps the gaps before it, and returns those after it.
    pub(super) fn split_off(&mut self, address: u64) -> Self {
        // The first chunk with a gap after the address may have others before it.
        let cut = self.chunks.partition_point(|chunk| chunk.last().is_none_or(|span| span.end <= address));
        let mut after = Self { chunks: self.chunks.split_off(cut) };
        if let Some(first) = after.chunks.first_mut() {
            let tail = first.split_off(first.partition_point(|span| span.end <= address));
            let kept = std::mem::replace(first, tail);
            if !kept.is_empty() {
                self.chunks.push(kept);
            }
        }
        after
    }

    /// Returns about how many gaps it has.
    pub(super) fn weight(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Returns the bytes of all gaps.
    pub(super) fn bytes(&self) -> u64 {
        self.iter().fold(0, |sum: u64, gap| sum.saturating_add(gap.size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The gaps between the units that are not free.
    fn gaps_of(free: &[bool]) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        for (i, _) in free.iter().enumerate().filter(|(_, is_free)| **is_free) {
            match gaps.last_mut().filter(|last| last.end() == i as u64) {
                Some(last) => last.size += 1,
                None => gaps.push(gap(i as u64, i as u64 + 1)),
            }
        }
        gaps
    }

    proptest! {
        #[test]
        fn it_has_the_gaps_of_a_map_of_bytes(steps in proptest::collection::vec((any::<bool>(), 0_usize..900, 1_usize..40), 0..900), cut in 0_usize..1_000) {
            let mut free = vec![false; 1_000];
            let mut list = GapList::default();
            let mut visited: Vec<Gap> = Vec::new();
            let change = |visited: &mut Vec<Gap>, before: Option<Gap>, after: &[Option<Gap>]| {
                if let Some(before) = before {
                    let at = visited.iter().position(|known| *known == before).expect("a gap that changes was there");
                    visited.swap_remove(at);
                }
                visited.extend(after.iter().flatten());
            };
            for (is_given, from, length) in steps {
                let to = from + length;
                if is_given && !free[from..to].contains(&true) {
                    list.give(from as u64, to as u64, |before, after| change(&mut visited, before, &[after]));
                    free[from..to].fill(true);
                } else if !is_given {
                    let want = free[from..to].iter().filter(|is_free| **is_free).count();
                    let taken = list.take(from as u64, to as u64, |before, head, tail| {
                        change(&mut visited, Some(before), &[head, tail]);
                    });
                    prop_assert_eq!(taken, want as u64);
                    free[from..to].fill(false);
                }
                prop_assert_eq!(list.holds(from as u64, to as u64), !free[from..to].contains(&false));
            }
            let want = gaps_of(&free);
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), want.clone());
            visited.sort_by_key(|gap| gap.address);
            prop_assert_eq!(visited, want);
            // A cut through a gap is not asked for.
            list.take(cut as u64, cut as u64 + 1, |_, _, _| ());
            free[cut] = false;
            let tail = list.split_off(cut as u64);
            prop_assert_eq!(list.iter().chain(tail.iter()).collect::<Vec<_>>(), gaps_of(&free));
            prop_assert!(list.iter().all(|gap| gap.end() <= cut as u64));
            list.append(tail);
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), gaps_of(&free));
        }
    }
}
