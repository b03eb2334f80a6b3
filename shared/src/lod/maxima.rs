//! The largest value over any run of buckets, and where it is.

/// How many nodes of a level one of the next level covers.
const FAN: usize = 8;

/// The largest value of each bucket with its position, and levels of eight above.
#[derive(Clone, Debug, Default)]
pub struct Maxima {
    levels: Vec<Vec<(u64, u32)>>,
}

/// The larger of two; the earlier where they are equal.
pub(super) fn larger(a: Option<(u64, u32)>, b: Option<(u64, u32)>) -> Option<(u64, u32)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }),
        (a, b) => a.or(b),
    }
}

impl Maxima {
    /// Builds the levels above the buckets' own.
    pub fn build(buckets: Vec<(u64, u32)>) -> Self {
        let mut levels = vec![buckets];
        while let Some(below) = levels.last().filter(|l| l.len() > 1) {
            let above = below.chunks(FAN).filter_map(|c| c.iter().copied().map(Some).fold(None, larger)).collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// The largest value in buckets `[from, to)` and its position, the earliest where several are equal.
    pub fn over(&self, from: usize, to: usize) -> Option<(u64, u32)> {
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

    proptest! {
        #[test]
        fn any_run_gives_what_a_scan_gives(values in proptest::collection::vec(0_u64..50, 0..700), a in 0_usize..710, b in 0_usize..710) {
            let buckets: Vec<(u64, u32)> = values.iter().zip(0..).map(|(&v, i)| (v, i)).collect();
            let (from, to) = (a.min(b), a.max(b));
            let want = buckets.iter().take(to).skip(from).copied().map(Some).fold(None, larger);
            prop_assert_eq!(Maxima::build(buckets).over(from, to), want);
        }
    }
}
