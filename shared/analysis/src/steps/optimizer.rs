//! Steps from the calls of an optimizer: each call of `optimizer.step` (or `zero_grad`) ends a step.

use rustc_hash::FxHashMap;

use super::{TrainingStep, is_alloc};
use crate::stack_traits::{StackTraits, Traits};
use replay::Replayed;
use trace::frames::{FrameId, StackId, Symbols};

/// A caller with at least this many of a hundred calls of the busiest one counts as equally busy.
const PERCENT_AS_BUSY: usize = 90;

/// One place that calls the optimizer.
#[derive(Debug, Default)]
struct Caller {
    /// Where each call ends.
    ends: Vec<u32>,
    /// Whether the last call may go on: nothing else was allocated since.
    is_open: bool,
}

/// Returns the steps that end with the calls of a function that has the trait `wanted`.
///
/// A program may have several optimizers, which are called one after another (a generator's and a discriminator's). The
/// place that calls most often counts; of those that call equally often, the last one in a step.
pub(super) fn steps(
    input: Replayed<'_>,
    symbols: &Symbols,
    traits: &StackTraits,
    wanted: Traits,
) -> Option<Vec<TrainingStep>> {
    let mut of_stack: FxHashMap<u32, usize> = FxHashMap::default();
    let mut numbers: FxHashMap<&[FrameId], usize> = FxHashMap::default();
    let mut callers: Vec<Caller> = Vec::new();
    let events = &input.trace.events;
    for ((action, stack), end) in events.action.iter().zip(events.stack.iter()).zip(1..) {
        if !traits.of(StackId(stack)).has(wanted) {
            if is_alloc(action) {
                callers.iter_mut().for_each(|caller| caller.is_open = false);
            }
            continue;
        }
        let number = *of_stack.entry(stack).or_insert_with(|| {
            let next = numbers.len();
            *numbers.entry(calling(symbols.stack(StackId(stack)), traits, wanted)).or_insert(next)
        });
        if callers.len() <= number {
            callers.resize_with(number + 1, Caller::default);
        }
        let Some(caller) = callers.get_mut(number) else { continue };
        match caller.ends.last_mut().filter(|_| caller.is_open) {
            Some(last) => *last = end,
            None => caller.ends.push(end),
        }
        caller.is_open = true;
    }
    let most = callers.iter().map(|caller| caller.ends.len()).max()?;
    let busy = callers.iter().filter(|caller| caller.ends.len() * 100 >= most * PERCENT_AS_BUSY);
    let last = busy.max_by_key(|caller| caller.ends.last().copied())?;
    super::ending_at(input, &last.ends)
}

/// Returns the frames outside the call: those that call it.
fn calling<'a>(stack: &'a [FrameId], traits: &StackTraits, wanted: Traits) -> &'a [FrameId] {
    let inside = stack.iter().rposition(|frame| traits.of_frame(*frame).has(wanted)).map_or(0, |last| last + 1);
    stack.get(inside..).unwrap_or_default()
}
