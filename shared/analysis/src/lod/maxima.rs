//! The largest value over any span of buckets, and its position.

use super::BUCKET;
use super::columns::Span;

/// How many nodes of a level one of the next level covers.
const FAN: usize = 8;

/// The largest value of each bucket with its position, and levels of eight above.
#[derive(Clone, Debug, Default)]
pub(super) struct Maxima {
    levels: Vec<Vec<(u64, u32)>>,
}

/// Returns the larger of two; the earlier one if they are equal.
pub(super) fn larger(a: Option<(u64, u32)>, b: Option<(u64, u32)>) -> Option<(u64, u32)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }),
        (a, b) => a.or(b),
    }
}

impl Maxima {
    /// Replaces the buckets from `from` on. There must be at least `from` buckets.
    pub(super) fn replace_from(&mut self, mut from: usize, buckets: &[(u64, u32)]) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        if let Some(own) = self.levels.first_mut() {
            own.truncate(from);
            own.extend_from_slice(buckets);
        }
        let mut level = 0;
        while let Some(below) = self.levels.get(level).filter(|l| l.len() > 1) {
            // Nodes that cover only unchanged buckets are unchanged.
            from /= FAN;
            let changed = below.get(from * FAN..).unwrap_or(&[]).chunks(FAN);
            let changed: Vec<(u64, u32)> =
                changed.filter_map(|c| c.iter().copied().map(Some).fold(None, larger)).collect();
            level += 1;
            match self.levels.get_mut(level) {
                Some(above) => {
                    above.truncate(from);
                    above.extend(changed);
                }
                None => self.levels.push(changed),
            }
        }
        self.levels.truncate(level + 1);
    }

    /// Raises `best` to the largest value of a bucket at an end of a span, if the bucket's own maximum settles it: the
    /// maximum lies in the span, or it does not exceed `best` (and, if equal, is not earlier). Returns `false` if the
    /// bucket must be walked.
    pub(super) fn settle(&self, bucket: u32, span: Span, best: &mut Option<(u64, u32)>) -> bool {
        let Some(&own) = self.levels.first().and_then(|buckets| buckets.get(bucket as usize)) else { return false };
        if span.first <= own.1 && own.1 <= span.last {
            *best = larger(*best, Some(own));
            return true;
        }
        best.is_some_and(|best| own.0 < best.0 || (own.0 == best.0 && best.1 < bucket * BUCKET))
    }

    /// Returns the largest value in buckets `[from, to)` and its position, the earliest of equal ones.
    pub(super) fn over(&self, from: usize, to: usize) -> Option<(u64, u32)> {
        let mut best = None;
        let (mut from, mut to) = (from, to.min(self.levels.first().map_or(0, Vec::len)));
        for level in &self.levels {
            if from >= to {
                break;
            }
            let last = to - to % FAN;
            let first = from.next_multiple_of(FAN);
            if first >= last {
                return level[from..to].iter().copied().map(Some).fold(best, larger);
            }
            best = level[from..first].iter().chain(&level[last..to]).copied().map(Some).fold(best, larger);
            (from, to) = (first / FAN, last / FAN);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Maxima {
        fn build(buckets: &[(u64, u32)]) -> Self {
            let mut new = Self::default();
            new.replace_from(0, buckets);
            new
        }
    }

    proptest! {
        #[test]
        fn any_span_gives_what_a_scan_gives(values in proptest::collection::vec(0_u64..50, 0..700), a in 0_usize..710, b in 0_usize..710) {
            let buckets: Vec<(u64, u32)> = values.iter().zip(0..).map(|(&v, i)| (v, i)).collect();
            let (from, to) = (a.min(b), a.max(b));
            let want = buckets.iter().take(to).skip(from).copied().map(Some).fold(None, larger);
            prop_assert_eq!(Maxima::build(&buckets).over(from, to), want);
        }

        #[test]
        fn extending_equals_building_at_once(
            values in proptest::collection::vec((0_u64..50, 1_usize..200), 0..12),
        ) {
            let mut extended = Maxima::default();
            let mut all: Vec<(u64, u32)> = Vec::new();
            for (value, count) in values {
                // The last bucket may have been incomplete.
                all.truncate(all.len().saturating_sub(1));
                let from = all.len();
                all.extend((0..count as u64).map(|i| (value * 31 % (i + 7), (from as u64 + i) as u32)));
                extended.replace_from(from, &all[from..]);
                prop_assert_eq!(&extended.levels, &Maxima::build(&all).levels);
            }
        }
    }
}
