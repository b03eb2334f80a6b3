//! The flame graph of a position, or of the allocations there that match a filter.

use rustc_hash::FxHashSet;

use super::context::Context;
use super::device::Caches;
use super::lines::matching;
use crate::analysis::flame::{Leaf, Shape, boxes};
use crate::analysis::lines::{LineMemory, by_stack};
use crate::query::{Answer, Flame, FlameQuery};

/// Answers [`Query::Flame`](crate::query::Query::Flame).
pub(super) fn answer(context: Context<'_>, caches: &mut Caches, query: &FlameQuery) -> Answer {
    let filter = caches.terms.all(context, &query.filter);
    let highlight = caches.terms.highlight(context, query.highlight.as_deref());
    let (filter, highlight) = match (filter, highlight) {
        (Ok(filter), Ok(highlight)) => (filter, highlight),
        (Err(sentence), _) | (_, Err(sentence)) => return Answer::Refused(sentence),
    };
    let state = caches.states.at(context.replay, query.position);
    let live = || matching(&state, filter.as_deref());
    let lit: Option<FxHashSet<u32>> = highlight.map(|matches| {
        let hits = live().filter(|id| matches.contains(*id));
        hits.filter_map(|id| context.replay.allocations.stack.get(id as usize)).collect()
    });
    let before = query.since.map(|since| caches.states.at(context.replay, since));
    let before = before.as_ref().map(|state| matching(state, filter.as_deref()));
    let leaves: Vec<Leaf> = by_stack(context.replay, context.sites, live(), before)
        .into_iter()
        // With an earlier position, stacks that shrank have no width.
        .filter_map(|LineMemory { stack, memory, .. }| {
            let bytes = u64::try_from(memory.growth()).ok().filter(|bytes| query.since.is_none() || *bytes > 0)?;
            let count = u32::try_from(memory.count_growth()).unwrap_or(0);
            Some(Leaf { stack, bytes, count, is_lit: lit.as_ref().is_none_or(|lit| lit.contains(&stack.0)) })
        })
        .collect();
    let sums = caches.coverage(context).sums(context.replay, live());
    let reasons: Vec<&str> = sums.iter().map(|(why, ..)| why.short()).collect();
    let shape = Shape {
        bottom_up: query.bottom_up,
        folds: query.folds,
        zoom: &query.zoom,
        width: query.width,
        no_stack: &reasons.join("; "),
    };
    Answer::Flame(Flame {
        query: query.clone(),
        boxes: boxes(context.symbols(), context.sites, &leaves, shape),
        total: leaves.iter().fold(0, |sum, leaf| sum.saturating_add(leaf.bytes)),
    })
}
