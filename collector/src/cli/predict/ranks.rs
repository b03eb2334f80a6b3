//! The ranks that a program is run as: those that are listed, or one of each class of ranks that need other memory.

use std::collections::BTreeSet;
use std::str::FromStr;

/// The most ranks that are run of all classes.
const MOST: usize = 32;

/// What stands for one rank of each class.
const CLASSES: &str = "all-classes";

/// How much the memory of two ranks of one class may differ: a hundredth. Shards that don't divide evenly differ by a few bytes.
const ALIKE: u64 = 100;

/// The value of `--rank`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ranks {
    /// These ranks.
    Listed(Vec<u64>),
    /// One of each class.
    Classes,
}

impl Default for Ranks {
    fn default() -> Self {
        Self::Listed(vec![0])
    }
}

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == CLASSES {
            return Ok(Self::Classes);
        }
        let ranks = text.split(',').map(|rank| rank.trim().parse()).collect::<Result<_, _>>();
        ranks.map(Self::Listed).map_err(|_| format!("write ranks such as 0 or 0,7,63, or {CLASSES}"))
    }
}

/// PyTorch's counters of the devices of one rank, in bytes: allocated and reserved at the peak.
pub(super) type Peaks = Vec<(u64, u64)>;

/// Finds ranks of all classes among `world`. `peaks` runs the program as a rank; `None` if it failed. Returns them in ascending
/// order, rank 0 alone if that fails: in a pipeline, a rank needs what the one before it has sent.
///
/// Programs arrange ranks in a grid: data times pipeline times tensor parallelism, say. What its dimensions are is not known, but
/// each is a product of factors of `world`. So the grid with a dimension for each prime factor is a finer one, and a step along
/// one of its dimensions is a step along one of the program's. Where such a step makes a difference to rank 0, all ranks along that
/// dimension are taken. The last rank is taken too.
pub(super) fn classes<E>(world: u64, mut peaks: impl FnMut(u64) -> Result<Option<Peaks>, E>) -> Result<Vec<u64>, E> {
    // What fails as rank 0 tells why when it is run as that rank.
    let Some(first) = peaks(0)? else { return Ok(vec![0]) };
    let mut different = Vec::new();
    for dimension in dimensions(world) {
        if !peaks(dimension.stride)?.is_some_and(|other| are_alike(&first, &other)) {
            different.push(dimension);
        }
    }
    let mut ranks = BTreeSet::from([0]);
    for Dimension { stride, length } in different {
        ranks = ranks.iter().flat_map(|rank| (0..length).map(move |place| rank + place * stride)).collect();
    }
    let all: Vec<u64> = ranks.into_iter().collect();
    let every = all.len().div_ceil(MOST - 1);
    let mut some: Vec<u64> = all.into_iter().step_by(every).collect();
    if some.last() != Some(&(world - 1)) {
        some.push(world - 1);
    }
    Ok(some)
}

/// A dimension of a grid of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension {
    /// The ranks from one place to the next.
    stride: u64,
    /// The number of places.
    length: u64,
}

/// Returns the dimensions of the finest grid: one for each prime factor, the innermost first.
fn dimensions(world: u64) -> Vec<Dimension> {
    let (mut found, mut stride) = (Vec::new(), 1);
    let mut length = 2;
    while stride < world {
        let left = world / stride;
        if length * length > left {
            length = left;
        }
        if left.is_multiple_of(length) {
            found.push(Dimension { stride, length });
            stride *= length;
        } else {
            length += 1;
        }
    }
    found
}

fn are_alike(one: &Peaks, other: &Peaks) -> bool {
    let alike = |a: u64, b: u64| a.abs_diff(b) <= a.max(b) / ALIKE;
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| alike(a.0, b.0) && alike(a.1, b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_or_of_all_classes() {
        let listed = |ranks: &[u64]| Ok(Ranks::Listed(ranks.to_vec()));
        for (text, want) in [
            ("0", listed(&[0])),
            ("0,7,63", listed(&[0, 7, 63])),
            ("all-classes", Ok(Ranks::Classes)),
            ("all", Err("write ranks such as 0 or 0,7,63, or all-classes".to_owned())),
        ] {
            assert_eq!(text.parse(), want);
        }
    }

    #[test]
    fn a_dimension_for_each_prime_factor() {
        for (world, want) in [
            (1, vec![]),
            (2, vec![(1, 2)]),
            (8, vec![(1, 2), (2, 2), (4, 2)]),
            (12, vec![(1, 2), (2, 2), (4, 3)]),
            (7, vec![(1, 7)]),
            (1_000_003, vec![(1, 1_000_003)]),
        ] {
            let found: Vec<_> =
                dimensions(world).into_iter().map(|dimension| (dimension.stride, dimension.length)).collect();
            assert_eq!(found, want, "{world}");
        }
    }

    /// Which ranks are run of a world, if what a rank needs follows from its number.
    fn found(world: u64, needs: impl Fn(u64) -> u64) -> (Vec<u64>, Vec<u64>) {
        let mut tried = Vec::new();
        let ranks = classes(world, |rank| {
            tried.push(rank);
            Ok::<_, ()>(Some(vec![(needs(rank), needs(rank))]))
        });
        (tried, ranks.unwrap())
    }

    #[test]
    fn each_stage_of_a_pipeline_is_run_and_of_equal_ranks_two() {
        // All alike, but for some bytes.
        assert_eq!(found(64, |rank| 10_000 + rank), (vec![0, 1, 2, 4, 8, 16, 32], vec![0, 63]));
        // Four stages of 16 ranks, of which the first has more, and the last most.
        assert_eq!(found(64, |rank| [30, 20, 20, 50][rank as usize / 16]).1, [0, 16, 32, 48, 63]);
        // Four stages, the innermost dimension.
        assert_eq!(found(16, |rank| [30, 20, 20, 50][rank as usize % 4]).1, [0, 1, 2, 3, 15]);
        // Three stages of eight.
        assert_eq!(found(24, |rank| [30, 20, 50][rank as usize / 8]).1, [0, 8, 16, 23]);
        // All different: some, from the first to the last.
        let all = found(256, |rank| 1 << (rank % 61)).1;
        assert!(all.len() <= MOST && all[0] == 0 && all.last() == Some(&255), "{all:?}");
    }

    #[test]
    fn a_rank_that_fails_is_of_another_class() {
        let ranks = classes(4, |rank| Ok::<_, ()>((rank != 2).then(|| vec![(5, 5)])));
        assert_eq!(ranks, Ok(vec![0, 2, 3]));
        assert_eq!(classes(4, |rank| Ok::<_, ()>((rank != 0).then(|| vec![(5, 5)]))), Ok(vec![0]));
        assert_eq!(classes(4, |_| Err("stopped")), Err("stopped"));
    }
}
