//! Where a device's stacks are, for what has none.

use super::caches::{Cache, Caches};
use super::context::Context;
use analysis::missing_stack::StackCoverage;
use query::MissingText;

impl Cache for StackCoverage {
    fn bytes(&self) -> usize {
        0
    }

    fn forget_categories(&mut self) {}
}

/// Returns where the stacks of a device are.
pub(super) fn coverage(context: Context<'_>, caches: &mut Caches) -> StackCoverage {
    let coverage = caches.of::<StackCoverage>();
    coverage.extend(context.trace, context.symbols(), context.integrity);
    *coverage
}

/// Returns why most of the bytes of some allocations have no stack, if they have none.
pub(super) fn missing_of(
    context: Context<'_>,
    caches: &mut Caches,
    ids: impl Iterator<Item = u32>,
) -> Option<MissingText> {
    let sums = coverage(context, caches).sums(context.symbols(), context.replay, ids);
    sums.first().map(|(why, ..)| context.missing_text(*why))
}
