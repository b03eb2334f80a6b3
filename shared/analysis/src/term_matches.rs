//! The allocations that a search term matches.

use std::ops::Range;
use std::sync::Arc;

use super::category::Categories;
use super::frame_matcher::FrameMatcher;
use super::matches::Matches;
use query::term::{End, Pattern, Pool, Term};
use replay::index::Index;
use replay::{Allocation, Replay};
use trace::Tags;
use trace::frames::{FrameId, StackId, Symbols};
use trace::units::{Address, PoolId};

/// The data that a term is searched in.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Strings, frames and stacks.
    pub symbols: &'a Symbols,
    /// Tags.
    pub tags: &'a Tags,
    /// The device's allocations.
    pub replay: &'a Replay,
    /// The categories of its allocations, for terms that name one.
    pub categories: Option<&'a Categories>,
}

/// The matches of one term. Each extension must be for the same term.
#[derive(Clone, Debug, Default)]
pub struct TermMatches {
    matches: Arc<Matches>,
    /// The position up to which allocations were searched; `None` before the start was.
    until: Option<u32>,
    /// How many allocations were searched.
    allocations: usize,
    stacks: MatchingStacks,
    /// How many of them used the address of a [`Term::Named`].
    uses: u64,
    /// Of a [`Term::Not`], what it leaves out; of a [`Term::All`], the matches of each of its terms.
    parts: Vec<Self>,
}

impl TermMatches {
    /// Returns the allocations that the term matches.
    pub fn matches(&self) -> &Arc<Matches> {
        &self.matches
    }

    /// Returns by frame whether the term, or one of several, is for frames and matches it; `None` if none is for frames.
    pub fn frames(&self, term: &Term) -> Option<Vec<bool>> {
        match term {
            Term::Frame(_) => Some(self.stacks.frames.clone()),
            Term::All(terms) => {
                let parts = self.parts.iter().zip(terms).filter_map(|(part, term)| part.frames(term));
                parts.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| *a || *b).collect())
            }
            _ => None,
        }
    }

    /// Returns the first of several terms that matches nothing by itself.
    pub fn first_empty<'a>(&self, term: &'a Term) -> Option<&'a Term> {
        let Term::All(terms) = term else { return None };
        self.parts.iter().zip(terms).find(|(part, _)| part.matches.count == 0).map(|(_, term)| term)
    }

    /// Returns whether all of `positions` were searched.
    pub fn is_current(&self, positions: u32) -> bool {
        self.until == Some(positions)
    }
}

/// Returns whether later events never change which of the earlier allocations a term matches.
pub fn is_permanent(term: &Term) -> bool {
    match term {
        Term::Live(End::End) | Term::Category(_) => false,
        Term::Not(term) => is_permanent(term),
        Term::All(terms) => terms.iter().all(is_permanent),
        _ => true,
    }
}

impl Index<(&Term, Field<'_>)> for TermMatches {
    fn extend(&mut self, (term, field): (&Term, Field<'_>)) {
        let positions = field.replay.positions();
        if self.is_current(positions) {
            return;
        }
        if !is_permanent(term) {
            *self = Self::default();
        }
        let a = &field.replay.allocations;
        let new = self.allocations..a.len();
        (self.until, self.allocations) = (Some(positions), a.len());
        let Self { matches, stacks, uses, parts, .. } = self;
        let first = new.start;
        let matches = Arc::make_mut(matches);
        match term {
            Term::Frame(pattern) => {
                stacks.extend(pattern, field.symbols);
                matches.append(first, a.stack.range(new).map(|stack| stacks.contains(stack)), &a.requested);
            }
            Term::Size(comparison, bound) => {
                let hits = a.requested.range(new).map(|size| comparison.holds(size, *bound));
                matches.append(first, hits, &a.requested);
            }
            Term::About(about) => {
                matches.append(first, a.requested.range(new).map(|size| about.holds(size)), &a.requested);
            }
            Term::Address(at) => {
                let holds = |(start, size): (u64, u64)| start <= *at && (*at - start < size || *at == start);
                let blocks = a.address.range(new.clone()).zip(a.size.range(new));
                matches.append(
                    first,
                    blocks.map(|block| holds(block) || Address(block.0).begins_with(*at)),
                    &a.requested,
                );
            }
            Term::Named(address, version) => {
                let hit = |at: u64| {
                    *uses += u64::from(at == *address);
                    at == *address && *uses == u64::from(*version) + 1
                };
                matches.append(first, a.address.range(new).map(hit), &a.requested);
            }
            Term::Stream(stream) => {
                let tags: Vec<bool> = field.tags.iter().map(|tag| tag.stream == *stream).collect();
                let hit = |tag: u32| tags.get(tag as usize).copied().unwrap_or(false);
                matches.append(first, a.tag.range(new).map(hit), &a.requested);
            }
            Term::Pool(Pool::Small) => {
                let hits = a.flags.range(new).map(|flags| flags & Allocation::FLAG_SMALL != 0);
                matches.append(first, hits, &a.requested);
            }
            Term::Pool(Pool::Large) => {
                let hits = a.flags.range(new).map(|flags| flags & Allocation::FLAG_SMALL == 0);
                matches.append(first, hits, &a.requested);
            }
            Term::Pool(Pool::Private) => in_pools(matches, new, field.replay, PoolId::is_private),
            Term::Pool(Pool::Id(id)) => in_pools(matches, new, field.replay, |pool| pool == *id),
            Term::Live(End::Start) => {
                matches.append(first, a.begin.range(new).map(|begin| begin == 0), &a.requested);
            }
            Term::Category(category) => {
                let category_of = |id: usize| field.categories.map(|categories| categories.get(id as u32));
                matches.append(first, new.map(|id| category_of(id) == Some(*category)), &a.requested);
            }
            Term::Not(term) => {
                parts.resize_with(1, Self::default);
                parts.iter_mut().for_each(|part| part.extend((term, field)));
                let hit = |id: usize| !parts.iter().any(|part| part.matches.contains(id as u32));
                matches.append(first, new.map(hit), &a.requested);
            }
            Term::All(terms) => {
                parts.resize_with(terms.len(), Self::default);
                parts.iter_mut().zip(terms).for_each(|(part, term)| part.extend((term, field)));
                let hit = |id: usize| parts.iter().all(|part| part.matches.contains(id as u32));
                matches.append(first, new.map(hit), &a.requested);
            }
            Term::Live(End::End) => {
                matches.append(first, a.end.range(new).map(|end| end == Allocation::NEVER), &a.requested);
            }
        }
    }

    fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(Index::bytes).sum();
        self.matches.memory() + self.stacks.frames.capacity() + self.stacks.stacks.capacity() + parts
    }
}

/// Adds the new allocations in the pools that `is_wanted` accepts.
fn in_pools(matches: &mut Matches, new: Range<usize>, replay: &Replay, is_wanted: impl Fn(PoolId) -> bool) {
    let pools: Vec<bool> = replay.pools.iter().map(|pool| is_wanted(*pool)).collect();
    let hit = |pool: u8| pools.get(usize::from(pool)).copied().unwrap_or(false);
    matches.append(new.start, replay.allocations.pool.range(new).map(hit), &replay.allocations.requested);
}

/// Which stacks have a frame that fits a pattern. Each distinct frame is matched once, however many stacks have it.
#[derive(Clone, Debug, Default)]
struct MatchingStacks {
    /// Compiled when it is first needed. Nothing matches what can't be compiled: [`check`](super::frame_matcher::check) says why.
    matcher: Option<FrameMatcher>,
    frames: Vec<bool>,
    stacks: Vec<bool>,
}

impl MatchingStacks {
    fn extend(&mut self, pattern: &Pattern, symbols: &Symbols) {
        let Self { matcher, frames, stacks } = self;
        *matcher = matcher.take().or_else(|| FrameMatcher::new(pattern).ok());
        let fits = |i| matcher.as_ref().is_some_and(|matcher| matcher.fits_frame(symbols, symbols.frame(FrameId(i))));
        let new = frames.len() as u32..symbols.frame_count() as u32;
        frames.extend(new.map(fits));
        let new = stacks.len() as u32..symbols.stack_count() as u32;
        let hit = |frame: &FrameId| frames.get(frame.0 as usize).copied().unwrap_or(false);
        stacks.extend(new.map(|i| symbols.stack(StackId(i)).iter().any(hit)));
    }

    fn contains(&self, stack: u32) -> bool {
        self.stacks.get(stack as usize).copied().unwrap_or(false)
    }
}
