//! The flame graph of a position, or of the allocations there that match a filter.

use rustc_hash::FxHashSet;

use super::context::Context;
use super::device::Caches;
use super::lines::matching;
use crate::analysis::flame::{Leaf, Shape, boxes};
use crate::analysis::lines::{LineMemory, by_stack};
use crate::category::Category;
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
    let mut leaves: Vec<Leaf> = Vec::new();
    let told = context.categories.filter(|_| query.by_category);
    let groups = match told {
        Some(_) => &Category::ALL.map(Some)[..],
        None => &[None],
    };
    for &category in groups {
        let is_own = |id: &u32| told.is_none_or(|told| Some(told.get(*id)) == category);
        let before = before.as_ref().map(|state| matching(state, filter.as_deref()).filter(is_own));
        let stacks = by_stack(context.replay, context.sites, live().filter(is_own), before);
        // With an earlier position, stacks that shrank have no width.
        leaves.extend(stacks.into_iter().filter_map(|LineMemory { stack, memory, .. }| {
            let bytes = u64::try_from(memory.growth()).ok().filter(|bytes| query.since.is_none() || *bytes > 0)?;
            let count = u32::try_from(memory.count_growth()).unwrap_or(0);
            let is_lit = lit.as_ref().is_none_or(|lit| lit.contains(&stack.0));
            Some(Leaf { stack, bytes, count, is_lit, category })
        }));
    }
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
