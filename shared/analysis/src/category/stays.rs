//! Classifies what the program's own code made last, whose lifetime the trace does not show, by what the same stack
//! made before.

use rustc_hash::FxHashMap;

use super::Rule;
use super::phase::{Phase, Phases};
use replay::{Allocation, Replayed};

/// The rules that guess from a lifetime that the end of the trace cuts off.
const GUESSES: [Rule; 4] = [Rule::Input, Rule::Saved, Rule::Inferred, Rule::WorkspaceBySize];

/// Leaves unknown what looks like the newest batch or result, if most of what its stack made before stayed for longer
/// than a batch: a line that fills a growing list does not hold three kinds of memory. A workspace is made once, so a line that made
/// three or more keeps tensors of its size; two are cuBLAS's and cuBLASLt's.
pub(super) fn classify(input: Replayed<'_>, rules: &mut [u8], phases: &Phases) {
    let allocations = &input.replay.allocations;
    let is_own = |id: u32| phases.get(id).is_some_and(|place| matches!(place.phase, Phase::Before | Phase::After));
    let is_workspace = |rule: u8| rule == Rule::WorkspaceBySize as u8;
    // By stack: four times how many more stayed than did not. A workspace counts one, so three of them are enough.
    let mut stayed: FxHashMap<u32, i64> = FxHashMap::default();
    for ((rule, stack), id) in rules.iter().zip(allocations.stack.iter()).zip(0..) {
        let vote = match *rule {
            rule if is_workspace(rule) => 1,
            _ if !is_own(id) => 0,
            rule if rule == Rule::Unknown as u8 => 4,
            _ => -4,
        };
        if stack != 0 && vote != 0 {
            *stayed.entry(stack).or_default() += vote;
        }
    }
    stayed.retain(|_, votes| *votes > 2);
    if stayed.is_empty() {
        return;
    }
    let lives = allocations.stack.iter().zip(allocations.end.iter());
    for ((rule, (stack, end)), id) in rules.iter_mut().zip(lives).zip(0..) {
        let is_guess = GUESSES.iter().any(|guess| *rule == *guess as u8);
        if is_guess && end == Allocation::NEVER && stayed.contains_key(&stack) && (is_workspace(*rule) || is_own(id)) {
            *rule = Rule::Unknown as u8;
        }
    }
}
