//! The sizes of all gaps of one kind of pool, of which only the largest is asked for.

use std::collections::BTreeMap;

/// The sizes of gaps, and how many have each.
#[derive(Clone, Debug, Default)]
pub(super) struct GapSizes {
    counts: BTreeMap<u64, u32>,
}

impl GapSizes {
    /// Adds a gap.
    pub(super) fn add(&mut self, size: u64) {
        *self.counts.entry(size).or_default() += 1;
    }

    /// Removes a gap of this size.
    pub(super) fn remove(&mut self, size: u64) {
        if let Some(count) = self.counts.get_mut(&size) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&size);
            }
        }
    }

    /// Returns the largest size; 0 if there is no gap.
    pub(super) fn largest(&self) -> u64 {
        self.counts.last_key_value().map_or(0, |(size, _)| *size)
    }
}
