//! How good an outcome is for a goal.

use query::whatif::{Goal, Outcome};

/// Retries below this number are no reason to prefer other settings for a run that failed: each waits for the device once.
const FEW_RETRIES: u64 = 5;

/// Returns what the goal is about: bytes, calls or retries. `has_failed` is whether the recorded run did.
pub(super) fn amount(goal: Goal, outcome: &Outcome, has_failed: bool) -> u64 {
    match goal {
        Goal::Reserved => outcome.peak_reserved,
        Goal::Calls => outcome.driver_calls(),
        Goal::Fit if has_failed && outcome.retries < FEW_RETRIES => 0,
        Goal::Fit => outcome.retries,
    }
}

/// Returns the rank of an outcome that `options` options lead to: the least is the best. `has_failed` is whether the
/// recorded run did.
pub(crate) fn rank(goal: Goal, outcome: &Outcome, options: usize, has_failed: bool) -> [u64; 5] {
    let Outcome { retries, peak_reserved, .. } = *outcome;
    let amount = amount(goal, outcome, has_failed);
    let fails = u64::from(outcome.fails());
    let (calls, options) = (outcome.driver_calls(), options as u64);
    match goal {
        Goal::Reserved => [fails, peak_reserved, calls, retries, options],
        Goal::Calls => [fails, calls, peak_reserved, retries, options],
        Goal::Fit => [fails, amount, options, peak_reserved, calls],
    }
}
