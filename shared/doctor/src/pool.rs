//! Which pool a failed request was for. Traces record that since torch 2.12; for older ones, it is inferred from the
//! allocations around it, where possible.

use super::Case;
use query::diagnosis::PoolBasis;
use replay::AllocatorState;
use trace::Tag;
use trace::units::PoolId;

/// Allocations of the request's stream that are looked at: those right before the failure. A program enters and leaves a
/// pool for many allocations at once.
const NEIGHBOURS: usize = 8;
/// Allocations that are looked at to find them: other streams may be busier.
const LOOKED_AT: usize = 1_024;

/// Returns the pool of a request that failed right before the position of `state`, and how that is known.
pub(super) fn of_request(case: &Case<'_>, tag: Tag, state: &AllocatorState) -> (PoolId, PoolBasis) {
    if let Some(pool) = tag.pool {
        return (pool, PoolBasis::Recorded);
    }
    if !state.ranges.iter().any(|range| range.pool.is_private()) {
        return (PoolId::default(), PoolBasis::Only);
    }
    let replay = case.replay;
    let before = (0..replay.allocations.made_by(state.position)).rev().take(LOOKED_AT);
    let own = before.filter_map(|number| replay.allocations.get(number)).filter(|allocation| {
        // What was there at the start has no place in the order of events.
        allocation.begin > 0 && case.tags.get(allocation.tag).stream == tag.stream
    });
    let mut pools = own.take(NEIGHBOURS).map(|allocation| replay.pool(&allocation));
    match pools.next() {
        Some(first) if pools.all(|pool| pool == first) => (first, PoolBasis::Neighbours),
        _ => (PoolId::default(), PoolBasis::Unknown),
    }
}

/// Returns what to say about a pool that is not recorded, as a sentence after others; empty if there is nothing to say.
pub(super) fn sentence(pool: PoolId, basis: PoolBasis) -> String {
    match basis {
        PoolBasis::Recorded | PoolBasis::Only => String::new(),
        PoolBasis::Neighbours => {
            let place = if pool.is_private() { format!("pool {pool}") } else { "the default pool".to_owned() };
            format!(
                " The trace does not record which pool the request was for; the allocations right before it were in {place}."
            )
        }
        PoolBasis::Unknown => {
            " The trace does not record which pool the request was for, and the allocations right before \
                               it were in several: the default pool is assumed."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::TestCase;

    /// Two segments of 20 MiB, the second one in a private pool, and then these lines.
    fn found(lines: &str) -> (PoolId, PoolBasis, u64, String) {
        let segments = "segment_alloc 0x10000000 20971520\nsegment_alloc 0x20000000 20971520 pool=1\n";
        let test_case = TestCase::new(&format!("{segments}{lines}"));
        let failed = diagnose(&test_case.case()).ooms.remove(0);
        (failed.pool, failed.pool_basis, failed.largest_servable >> 20, failed.message)
    }

    #[test]
    fn the_pool_of_a_request_is_that_of_its_neighbours() {
        let private = PoolId(0, 1);
        let alloc =
            |base: u64, n: u64| (0..n).map(|i| format!("alloc {} 2097152\n", base + (i << 21))).collect::<String>();
        let (plain, own) = (0x1000_0000, 0x2000_0000);
        let oom = "oom 0 16777216\n";
        let cases = [
            // All of the last eight, or as many as there are.
            (alloc(plain, 1) + &alloc(own, 8) + oom, private, PoolBasis::Neighbours, 4),
            (alloc(own, 1) + &alloc(plain, 8) + oom, PoolId::default(), PoolBasis::Neighbours, 4),
            (alloc(own, 2) + oom, private, PoolBasis::Neighbours, 16),
            (alloc(own, 4) + &alloc(plain, 2) + oom, PoolId::default(), PoolBasis::Unknown, 16),
            (oom.to_owned(), PoolId::default(), PoolBasis::Unknown, 20),
            // Another stream has nothing to do with it.
            (
                alloc(own, 2) + &alloc(plain, 2).replace("2097152\n", "2097152 stream=7\n") + oom,
                private,
                PoolBasis::Neighbours,
                16,
            ),
            (alloc(plain, 2) + "oom 0 16777216 pool=1\n", private, PoolBasis::Recorded, 20),
        ];
        for (lines, pool, basis, servable) in cases {
            let (is, why, has, message) = found(&lines);
            assert_eq!((is, why, has), (pool, basis, servable), "{lines}: {message}");
            let is_said = message.contains("The trace does not record which pool");
            assert_eq!(is_said, matches!(why, PoolBasis::Neighbours | PoolBasis::Unknown), "{message}");
        }
    }

    #[test]
    fn without_private_pools_there_is_one() {
        let test_case = TestCase::new("segment_alloc 0x10000000 20971520\nalloc 0x10000000 1000\noom 0 16777216");
        let failed = diagnose(&test_case.case()).ooms.remove(0);
        assert_eq!((failed.pool, failed.pool_basis), (PoolId::default(), PoolBasis::Only));
        assert!(!failed.message.contains("pool"), "{}", failed.message);
    }
}
