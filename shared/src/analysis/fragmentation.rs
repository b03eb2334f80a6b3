//! How fragmented the cached memory of a device is at one position.

use serde::Serialize;

use crate::totals::Totals;

/// The gaps of a device at one position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Bytes that are reserved and in no active block.
    pub cached_bytes: u64,
    /// Number of gaps that these bytes lie in.
    pub gaps: u32,
    /// Bytes of the largest gap.
    pub largest_gap: u64,
    /// Share of the cached bytes outside the largest gap: 0 for a single gap, close to 1 for many small ones.
    pub share: f64,
}

impl From<Totals> for Fragmentation {
    fn from(totals: Totals) -> Self {
        let Totals { cached, gaps, largest_gap, .. } = totals;
        let share = if cached == 0 { 0.0 } else { 1.0 - largest_gap as f64 / cached as f64 };
        Self { cached_bytes: cached, gaps, largest_gap, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_what_lies_outside_the_largest_gap() {
        let share = |cached, gaps, largest_gap| {
            Fragmentation::from(Totals { cached, gaps, largest_gap, ..Totals::default() }).share
        };
        assert_eq!([share(0, 0, 0), share(8, 1, 8), share(8, 4, 2)], [0.0, 0.0, 0.75]);
    }
}
