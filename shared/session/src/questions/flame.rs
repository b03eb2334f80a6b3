//! The flame graph of a position, or of the allocations there that match a filter.

use rustc_hash::FxHashMap;

use super::lines::matching;
use super::{Answering, searches};
use crate::caches::Caches;
use crate::context::Context;
use crate::coverage::coverage;
use crate::states::States;
use crate::terms::Terms;
use analysis::flame::{Leaf, Picture, Shape, box_name, difference, picture, transform_name};
use analysis::lines::{LineMemory, by_stack};
use analysis::missing_stack::MissingStack;
use query::category::Category;
use query::{DeviceSummary, Flame, FlameQuery, Sealed};
use replay::AllocatorState;
use trace::frames::StackId;
use trace::limits::FLAME_TRANSFORMS;

impl Answering for FlameQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<Flame>, String> {
        let filter = caches.of::<Terms>().all(context, &self.filter);
        let highlight = caches.of::<Terms>().highlight(context, self.highlight.as_deref());
        let (filter, highlight) = match (filter, highlight) {
            (Ok(filter), Ok(highlight)) => (filter, highlight),
            (Err(sentence), _) | (_, Err(sentence)) => return Err(sentence),
        };
        let frames = self.highlight.as_deref().and_then(|term| caches.of::<Terms>().frames(context, term));
        let state = caches.of::<States>().at(context.replay, self.position);
        let before = self.since.map(|since| caches.of::<States>().at(context.replay, since));
        let told = context.categories.filter(|_| self.by_category);
        let groups = match told {
            Some(_) => &Category::ALL.map(Some)[..],
            None => &[None],
        };
        // The stacks of a state, or their growth since an earlier one.
        let leaves_of = |state: &AllocatorState, earlier: Option<&AllocatorState>| {
            let mut leaves: Vec<Leaf> = Vec::new();
            for &category in groups {
                let is_own = |id: &u32| told.is_none_or(|told| Some(told.get(*id)) == category);
                let now = || matching(state, filter.as_deref()).filter(is_own);
                let then = || earlier.map(|state| matching(state, filter.as_deref()).filter(is_own));
                let lit: Option<FxHashMap<StackId, u64>> = highlight.as_ref().map(|matches| {
                    let is_hit = |id: &u32| matches.contains(*id);
                    let then = then().map(|then| then.filter(is_hit));
                    let lit = by_stack(context.replay, context.sites, now().filter(is_hit), then);
                    lit.into_iter().map(|of| (of.stack, u64::try_from(of.memory.growth()).unwrap_or(0))).collect()
                });
                let stacks = by_stack(context.replay, context.sites, now(), then());
                // With an earlier position, stacks that shrank have no width.
                leaves.extend(stacks.into_iter().filter_map(|LineMemory { stack, memory, .. }| {
                    let bytes = u64::try_from(memory.growth()).ok().filter(|bytes| earlier.is_none() || *bytes > 0)?;
                    let count = u32::try_from(memory.count_growth()).unwrap_or(0);
                    let hit = lit.as_ref().map(|lit| lit.get(&stack));
                    let matched = hit.flatten().copied().unwrap_or(0);
                    let is_lit = hit.is_none_or(|hit| hit.is_some());
                    Some(Leaf { stack, bytes, before: 0, count, is_lit, matched, category })
                }));
            }
            leaves
        };
        let leaves = match before.as_deref() {
            Some(before) if self.differs => difference(&leaves_of(before, None), &leaves_of(&state, None)),
            before => leaves_of(&state, before),
        };
        let live = || matching(&state, filter.as_deref());
        let sums = coverage(context, caches).sums(context.symbols(), context.replay, live());
        // A stack that was lost has a box of its own.
        let missing = sums.iter().filter(|(why, ..)| *why != MissingStack::Lost);
        let reasons: Vec<&str> = missing.map(|(why, ..)| why.short()).collect();
        let shape = Shape {
            bottom_up: self.bottom_up,
            folds: self.folds,
            transforms: self.transforms.get(..self.transforms.len().min(FLAME_TRANSFORMS)).unwrap_or_default(),
            sandwich: self.sandwich,
            hits: frames.as_deref(),
            zoom: &self.zoom,
            width: self.width,
            no_stack: &reasons.join("; "),
        };
        let Picture { boxes, total, matched } = picture(context.symbols(), context.sites, &leaves, shape);
        let (symbols, sites) = (context.symbols(), context.sites);
        let names = self.transforms.iter().map(|transform| transform_name(symbols, sites, transform));
        let names = names.chain(self.sandwich.map(|sandwich| box_name(symbols, sites, sandwich.frame))).collect();
        let matched = highlight.map(|_| matched);
        Ok(Sealed::new(&Flame { query: self.clone(), boxes, total, matched, names }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let plain = Self { position: device.events, width: 900.0, ..Self::default() };
        let mut all = vec![plain.clone()];
        for bottom_up in [false, true] {
            let since = Some(device.events / 3);
            all.push(Self { bottom_up, folds: true, ..plain.clone() });
            all.push(Self { bottom_up, since, ..plain.clone() });
            all.push(Self { bottom_up, since, differs: true, by_category: true, ..plain.clone() });
        }
        for (filter, highlight) in searches() {
            all.push(Self { position: device.peak_position, filter, highlight, ..plain.clone() });
        }
        all
    }
}
