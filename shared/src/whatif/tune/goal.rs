//! What a search is for.

use serde::{Deserialize, Serialize};

use crate::whatif::Outcome;

/// What a search is for. In all of them, a run that fails is worse than any that doesn't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The least reserved memory at the peak.
    #[default]
    Reserved,
    /// The fewest calls of the driver, each of which costs time.
    Calls,
    /// No request that fails or has to be repeated on the device, with the fewest options. Where a request failed in the
    /// recording, a few repetitions don't count, but how much of the device is left does.
    Fit,
}

/// Retries below this number are no reason to prefer other settings for a run that failed: each waits for the device once.
const FEW_RETRIES: u64 = 5;

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Calls, Self::Fit];

    /// Returns what the goal is about: bytes, calls or retries. `has_failed` is whether the recorded run did.
    pub(super) fn amount(self, outcome: &Outcome, has_failed: bool) -> u64 {
        match self {
            Self::Reserved => outcome.peak_reserved,
            Self::Calls => outcome.driver_calls(),
            Self::Fit if has_failed && outcome.retries < FEW_RETRIES => 0,
            Self::Fit => outcome.retries,
        }
    }

    /// Returns the rank of an outcome that `options` options lead to: the least is the best. `has_failed` is whether the
    /// recorded run did.
    pub(in crate::whatif) fn rank(self, outcome: &Outcome, options: usize, has_failed: bool) -> [u64; 5] {
        let Outcome { retries, peak_reserved, .. } = *outcome;
        let amount = self.amount(outcome, has_failed);
        let fails = u64::from(outcome.fails());
        let (calls, options) = (outcome.driver_calls(), options as u64);
        match self {
            Self::Reserved => [fails, peak_reserved, calls, retries, options],
            Self::Calls => [fails, calls, peak_reserved, retries, options],
            Self::Fit => [fails, amount, options, peak_reserved, calls],
        }
    }
}
