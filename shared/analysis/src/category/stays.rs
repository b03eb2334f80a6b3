//! Classifies what the program's own code made last, whose lifetime the trace does not show, by what the same stack
//! made before.

use rustc_hash::FxHashMap;

use super::Rule;
use super::phase::{Phase, Phases};
use replay::{Allocation, Replayed};

/// The rules that guess from a lifetime that the end of the trace cuts off.
const GUESSES: [Rule; 3] = [Rule::Input, Rule::Saved, Rule::Inferred];

/// Leaves unknown what looks like the newest batch or result, if most of what its stack made before stayed for longer
/// than a batch: a line that fills a growing list does not hold three kinds of memory.
pub(super) fn classify(input: Replayed<'_>, rules: &mut [u8], phases: &Phases) {
    let allocations = &input.replay.allocations;
    let is_own = |id: u32| phases.get(id).is_some_and(|place| matches!(place.phase, Phase::Before | Phase::After));
    // By stack: how many more stayed than did not.
    let mut stayed: FxHashMap<u32, i64> = FxHashMap::default();
    for ((rule, stack), id) in rules.iter().zip(allocations.stack.iter()).zip(0..) {
        if stack != 0 && is_own(id) {
            *stayed.entry(stack).or_default() += if *rule == Rule::Unknown as u8 { 1 } else { -1 };
        }
    }
    stayed.retain(|_, votes| *votes > 0);
    if stayed.is_empty() {
        return;
    }
    let lives = allocations.stack.iter().zip(allocations.end.iter());
    for ((rule, (stack, end)), id) in rules.iter_mut().zip(lives).zip(0..) {
        let is_guess = GUESSES.iter().any(|guess| *rule == *guess as u8);
        if is_guess && end == Allocation::NEVER && stayed.contains_key(&stack) && is_own(id) {
            *rule = Rule::Unknown as u8;
        }
    }
}
