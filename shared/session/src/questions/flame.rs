//! The flame graph of a position, or of the allocations there that match a filter.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lines::matching;
use super::{Answering, searches};
use crate::caches::{Cache, Caches};
use crate::context::Context;
use crate::coverage::coverage;
use crate::states::States;
use crate::terms::Terms;
use analysis::category::Categories;
use analysis::flame::{Leaf, Picture, Shape, box_name, difference, picture, transform_name};
use analysis::lines::{LineMemory, by_stack};
use analysis::matches::Matches;
use analysis::missing_stack::MissingStack;
use compare::{MergedStacks, run_stacks};
use query::category::Category;
use query::run_stacks::{RunStacks, RunStacksQuery};
use query::{DeviceSummary, Flame, FlameQuery, Sealed};
use replay::AllocatorState;
use replay::index::RecentCache;
use trace::frames::StackId;
use trace::limits::{COMPARED_STACKS, FLAME_TRANSFORMS};
use trace::units::Count;

/// Allocations of which a flame graph is made.
struct Chosen<'a> {
    context: Context<'a>,
    filter: Option<Arc<Matches>>,
    highlight: Option<Arc<Matches>>,
    /// The categories, if they are apart.
    categories: Option<&'a Categories>,
}

impl Chosen<'_> {
    /// Returns the stacks of a state, or their growth since an earlier one.
    fn leaves(&self, state: &AllocatorState, earlier: Option<&AllocatorState>) -> Vec<Leaf> {
        let Chosen { context, categories, .. } = *self;
        let groups = match categories {
            Some(_) => &Category::ALL.map(Some)[..],
            None => &[None],
        };
        let mut leaves: Vec<Leaf> = Vec::new();
        for &category in groups {
            let is_own = |id: &u32| categories.is_none_or(|categories| Some(categories.get(*id)) == category);
            let now = || matching(state, self.filter.as_deref()).filter(is_own);
            let then = || earlier.map(|state| matching(state, self.filter.as_deref()).filter(is_own));
            let lit: Option<FxHashMap<StackId, u64>> = self.highlight.as_ref().map(|matches| {
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
    }
}

/// The stacks of another run that were merged last, by those stacks, the position, and the number of the session's own.
#[derive(Debug, Default)]
struct Merged(RecentCache<(Sealed<RunStacks>, u32, usize), Arc<MergedStacks>, 1>);

impl Cache for Merged {
    fn bytes(&self) -> usize {
        self.0.values().map(|merged| merged.bytes()).sum()
    }

    fn forget_categories(&mut self) {}
}

/// Merges the stacks of another run into those of a session.
fn merged(
    context: Context<'_>,
    caches: &mut Caches,
    base: &Sealed<RunStacks>,
    state: &AllocatorState,
) -> Arc<MergedStacks> {
    let symbols = context.symbols();
    let key = (base.clone(), state.position, symbols.stack_count());
    let kept = &mut caches.of::<Merged>().0;
    let merged = kept.remove(&key).unwrap_or_else(|| {
        let all = Chosen { context, filter: None, highlight: None, categories: None };
        Arc::new(MergedStacks::new(symbols, context.sites, &all.leaves(state, None), base))
    });
    Arc::clone(kept.insert(key, merged))
}

impl Answering for FlameQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<Flame>, String> {
        let filter = caches.of::<Terms>().all(context, &self.filter)?;
        let highlight = caches.of::<Terms>().highlight(context, self.highlight.as_deref())?;
        let frames = self.highlight.as_deref().and_then(|term| caches.of::<Terms>().frames(context, term));
        let state = caches.of::<States>().at(context.replay, self.position);
        let before = self.since.map(|since| caches.of::<States>().at(context.replay, since));
        let categories = context.categories.filter(|_| self.by_category);
        let chosen = Chosen { context, filter: filter.clone(), highlight: highlight.clone(), categories };
        let other = self.base.as_ref().map(|base| merged(context, caches, base, &state));
        let leaves = match (other.as_deref(), before.as_deref()) {
            (Some(other), _) => {
                // What the search matches is known of the session's own allocations only.
                let own = chosen.leaves(&state, None);
                let is_lit = highlight.is_none();
                let base: Vec<Leaf> = other.base.iter().map(|leaf| Leaf { is_lit, ..*leaf }).collect();
                difference(&base, &own)
            }
            (None, Some(before)) if self.differs => {
                difference(&chosen.leaves(before, None), &chosen.leaves(&state, None))
            }
            (None, before) => chosen.leaves(&state, before),
        };
        let (symbols, sites) =
            other.as_deref().map_or((context.symbols(), context.sites), |other| (&other.symbols, &other.sites));
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
        let Picture { mut boxes, total, matched } = picture(symbols, sites, &leaves, shape);
        for flame_box in &mut boxes {
            // A stack of the other run alone is none that the session knows.
            flame_box.stack = flame_box.stack.filter(|stack| (*stack as usize) < context.symbols().stack_count());
        }
        let names = self.transforms.iter().map(|transform| transform_name(symbols, sites, transform));
        let names = names.chain(self.sandwich.map(|sandwich| box_name(symbols, sites, sandwich.frame))).collect();
        let matched = highlight.map(|_| matched);
        let query = Self { base: None, ..self.clone() };
        Ok(Sealed::new(&Flame { query, boxes, total, matched, names }))
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
        let base = Some(Sealed::new(&RunStacks::default()));
        all.push(Self { position: device.peak_position, differs: true, base, ..plain });
        all
    }
}

impl Answering for RunStacksQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Sealed<RunStacks>, String> {
        let Self(flame) = self;
        let filter = caches.of::<Terms>().all(context, &flame.filter)?;
        let state = caches.of::<States>().at(context.replay, flame.position);
        let categories = context.categories.filter(|_| flame.by_category);
        let leaves = Chosen { context, filter, highlight: None, categories }.leaves(&state, None);
        if leaves.len() > COMPARED_STACKS {
            let most = Count(COMPARED_STACKS as u64);
            return Err(format!("A flame graph of the difference can't have more than {most} stacks. Filter them."));
        }
        Ok(Sealed::new(&run_stacks(context.symbols(), &leaves)))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let [of_all, of_some] = [(false, Vec::new()), (true, vec![">4KiB".to_owned()])];
        [of_all, of_some]
            .map(|(by_category, filter)| {
                let position = device.peak_position;
                Self(FlameQuery { position, by_category, filter, ..FlameQuery::default() })
            })
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    const MIB: u64 = 1 << 20;

    /// A run that allocates one tensor a stack, of so many MiB.
    fn session(stacks: &[(&str, u64)]) -> Session {
        let mut lines = "segment_alloc 0x40000000 4294967296".to_owned();
        let mut address = 0x4000_0000;
        for (frames, size) in stacks {
            lines += &format!("\nalloc {address} {} {frames}", size * MIB);
            address += size * MIB;
        }
        Session::new(trace::testing::snapshot(&lines), "pickle".to_owned(), Vec::new(), &mut |_| {})
    }

    fn difference(a: &mut Session, b: &mut Session, filter: &[&str]) -> Sealed<Flame> {
        let filter: Vec<String> = filter.iter().map(|term| (*term).to_owned()).collect();
        let end = |session: &Session| session.summary().devices[0].events;
        let stacks = RunStacksQuery(FlameQuery { position: end(a), filter: filter.clone(), ..FlameQuery::default() });
        let base = Some(a.ask(0, &stacks).unwrap());
        let (position, differs, width) = (end(b), true, 900.0);
        b.ask(0, &FlameQuery { position, differs, base, width, filter, ..FlameQuery::default() }).unwrap()
    }

    /// Returns the boxes below the root: `f@m.py:3 2 > 5`, in MiB, and whether the second run knows the stack.
    fn boxes(flame: &Flame) -> Vec<(String, bool)> {
        let row = |b: &query::FlameBox| {
            (format!("{}@{} {} > {}", b.name, b.location, b.before / MIB, b.bytes / MIB), b.stack.is_some())
        };
        flame.boxes.iter().filter(|b| b.depth > 0).map(row).collect()
    }

    #[test]
    fn stacks_of_another_run_are_drawn_with_those_of_this_one() {
        let mut a = session(&[("f@m.py:3", 2), ("g@m.py:8", 4)]);
        let mut b = session(&[("f@m.py:5", 7), ("h@m.py:9", 1)]);
        let flame = difference(&mut a, &mut b, &[]);
        assert_eq!((flame.boxes[0].before / MIB, flame.boxes[0].bytes / MIB, flame.total / MIB), (6, 8, 12));
        assert_eq!(flame.query.base, None, "what is already known is not sent back");
        let want = [("f@m.py:5 2 > 7", true), ("g@m.py:8 4 > 0", false), ("h@m.py:9 0 > 1", true)];
        assert_eq!(boxes(&flame), want.map(|(row, is_known)| (row.to_owned(), is_known)));
        // Both sides are filtered.
        let large = difference(&mut a, &mut b, &[">3MiB"]);
        assert_eq!((large.boxes[0].before / MIB, large.boxes[0].bytes / MIB), (4, 7));
    }

    #[test]
    fn a_run_has_no_difference_from_itself() {
        let stacks = [("f@m.py:3", 2), ("f@m.py:3 main@t.py:9", 4)];
        let flame = difference(&mut session(&stacks), &mut session(&stacks), &[]);
        assert!(flame.boxes.iter().all(|b| b.before == b.bytes), "{:?}", boxes(&flame));
        assert_eq!(flame.total, 6 * MIB);
    }
}
