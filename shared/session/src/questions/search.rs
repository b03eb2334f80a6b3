//! The matches of a search term: their sums, steps from hit to hit, and lists of them.

use std::fmt::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Answering;
use crate::caches::Cache;
use crate::caches::Caches;
use crate::categories::CategoryCache;
use crate::context::Context;
use crate::states::States;
use crate::terms::Terms;
use analysis::frame_matcher::FrameMatcher;
use analysis::lines::{LineMemory, by_line};
use analysis::matches::Matches;
use analysis::segment_quads::segment_row;
use analysis::steps::named_spans;
use query::term::{Comparison, Pool, Term};
use query::{
    ColorBy, DeviceSummary, FindQuery, Found, FoundAllocation, FoundLine, FoundMark, Hit, ListStart, Memory,
    NextHitQuery, SearchQuery, SearchResult, SegmentRow,
};
use replay::ReservedRange;
use replay::index::RecentCache;
use trace::frames::StackId;
use trace::limits::FOUND_ROWS;
use trace::totals::Amount;
use trace::units::Bytes;

/// Terms whose lines and annotations are kept: the one on the screen, and the one before.
const KEPT: usize = 2;
/// The most streams that a message names if a term matches none.
const NAMED: usize = 8;

/// The parts of lists of matches that do not depend on the cursor, by term and number of positions.
#[derive(Debug, Default)]
struct Lists(RecentCache<(String, u32), Arc<Listed>, KEPT>);

#[derive(Debug)]
struct Listed {
    lines: Vec<LineMemory>,
    marks: Vec<FoundMark>,
}

impl Cache for Lists {
    fn bytes(&self) -> usize {
        let of = |listed: &Arc<Listed>| size_of_val(&*listed.lines) + listed.marks.len() * 2 * size_of::<FoundMark>();
        self.0.values().map(of).sum()
    }

    fn forget_categories(&mut self) {
        *self = Self::default();
    }
}

impl Answering for SearchQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<SearchResult, String> {
        let term = self.term.clone();
        let found = caches
            .of::<Terms>()
            .matches(context, &term)
            .and_then(|m| Ok((m, caches.of::<Terms>().peak_bytes(context, &term)?)));
        Ok(match found.and_then(|found| Ok((found, Term::parse(&term)?))) {
            Ok(((matches, peak_bytes), parsed)) => {
                let understood = parsed.understood();
                let none = (matches.count == 0).then(|| {
                    let fact = match (&parsed, caches.of::<Terms>().first_empty(context, &term)) {
                        (_, Some(empty)) => nearest(context, &empty),
                        (Term::All(_), None) => {
                            "Each of these matches something, but nothing matches all of them.".to_owned()
                        }
                        _ => nearest(context, &parsed),
                    };
                    let written = term.trim();
                    let mut said = format!("{} ({written}).", parsed.nothing());
                    if !fact.is_empty() {
                        let _ = write!(said, " {fact}");
                    }
                    said
                });
                let (count, bytes) = (matches.count, matches.bytes);
                SearchResult { term, count, bytes, peak_bytes, error: None, understood, none }
            }
            Err(sentence) => SearchResult {
                term,
                count: 0,
                bytes: 0,
                peak_bytes: 0,
                error: Some(sentence),
                understood: String::new(),
                none: None,
            },
        })
    }

    fn examples(_: &DeviceSummary) -> Vec<Self> {
        terms().map(|term| Self { term: term.to_owned() }).into()
    }
}

/// Returns terms of several kinds, the last of which can't be parsed.
fn terms() -> [&'static str; 6] {
    ["layer1", ">100KiB", "live:end", "live:start", "category:activations", "size>"]
}

/// Returns what the trace has instead of what a term looks for, as a sentence; empty if there is nothing to say.
fn nearest(context: Context<'_>, term: &Term) -> String {
    let requested = &context.replay.allocations.requested;
    let has = |what: &str, size: Option<u64>| size.map(|size| format!("The {what} is {}.", Bytes(size)));
    let near = |to: u64| has("nearest", requested.iter().min_by_key(|size| size.abs_diff(to)));
    let said = match term {
        _ if requested.is_empty() => Some("The trace has no allocations.".to_owned()),
        Term::Size(Comparison::More | Comparison::AtLeast, _) => has("largest", requested.iter().max()),
        Term::Size(Comparison::Less | Comparison::AtMost, _) => has("smallest", requested.iter().min()),
        Term::Size(Comparison::Equal, size) => near(*size),
        Term::About(about) => near(about.middle),
        Term::Frame(_) if context.symbols().stack_count() <= 1 => Some("The trace has no stacks.".to_owned()),
        Term::Stream(_) => {
            let streams = context.summary.streams.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>();
            (!streams.is_empty()).then(|| format!("The trace has these streams: {}.", streams.join(", ")))
        }
        _ => None,
    };
    said.unwrap_or_default()
}

impl Answering for NextHitQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Option<Hit>, String> {
        let matches = caches.of::<Terms>().matches(context, &self.term)?;
        let found = next_match(context, &matches, (self.from, self.position), self.forward);
        Ok(found.map(|allocation| Hit {
            allocation,
            position: context.replay.allocations.begin.get(allocation as usize).unwrap_or(0),
            number: matches.rank(allocation) + 1,
            of: matches.count,
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let position = device.events / 2;
        let of = |term: &str| {
            [(None, false), (None, true), (Some(3), false), (Some(3), true)].map(|(from, forward)| Self {
                term: term.to_owned(),
                from,
                position,
                forward,
            })
        };
        terms().into_iter().flat_map(of).collect()
    }
}

/// Returns the match after or before an allocation, or else a position.
fn next_match(
    context: Context<'_>,
    matches: &Matches,
    (from, position): (Option<u32>, u32),
    forward: bool,
) -> Option<u32> {
    match (from, forward) {
        (Some(id), true) => id.checked_add(1).and_then(|id| matches.first_from(id)).or_else(|| matches.first_from(0)),
        (Some(id), false) => matches.last_before(id).or_else(|| matches.last_before(u32::MAX)),
        (None, _) => {
            let first = first_after(context, position);
            let (later, earlier) = (matches.first_from(first), matches.last_before(first));
            if forward { later.or(earlier) } else { earlier.or(later) }
        }
    }
}

/// Returns the number of the first allocation that was made at a position or after it. They are numbered in that order.
fn first_after(context: Context<'_>, position: u32) -> u32 {
    let begin = &context.replay.allocations.begin;
    let (mut low, mut high) = (0, begin.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if begin.get(middle).is_some_and(|begin| begin < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    u32::try_from(low).unwrap_or(u32::MAX)
}

impl Answering for FindQuery {
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Box<Found>, String> {
        let parsed =
            Term::parse(&self.term).and_then(|term| Ok((caches.of::<Terms>().matches(context, &self.term)?, term)));
        let (matches, term) = parsed?;
        let rows = self.rows.min(FOUND_ROWS);
        let key = (self.term.clone(), context.replay.positions());
        let listed = match caches.of::<Lists>().0.remove(&key) {
            Some(listed) => listed,
            None => Arc::new(Listed { lines: lines(context, &matches), marks: marks(context, caches, &term) }),
        };
        caches.of::<Lists>().0.insert(key, Arc::clone(&listed));
        let next = match self.start {
            ListStart::At(_) => None,
            ListStart::BeforeNext(from) => {
                next_match(context, &matches, (from, self.position), true).map(|found| matches.rank(found))
            }
        };
        let first = match self.start {
            ListStart::At(first) => first.min(matches.count),
            ListStart::BeforeNext(_) => next.map_or(0, |next| ListStart::before(next, rows)),
        };
        let hit = |allocation: u32| {
            let found = context.replay.allocations.get(allocation)?;
            Some(FoundAllocation {
                allocation,
                position: found.begin,
                time_us: context.time_us(found.begin),
                bytes: found.requested,
                site: context.sites.label(found.stack).to_owned(),
                paint: context.sites.paint(found.stack),
            })
        };
        let line = |line: &LineMemory| FoundLine {
            stack: line.stack.0,
            label: context.sites.label(line.stack).to_owned(),
            paint: context.sites.paint(line.stack),
            count: line.memory.now.count,
            bytes: line.memory.now.bytes,
        };
        let (segments, by_size) = segments(context, caches, &term, self.position, rows as usize);
        Ok(Box::new(Found {
            allocations: (matches.count, matches.bytes),
            hits: matches.from_rank(first).take(rows as usize).filter_map(hit).collect(),
            lines: u32::try_from(listed.lines.len()).unwrap_or(u32::MAX),
            by_line: listed.lines.iter().take(rows as usize).map(line).collect(),
            segments,
            by_size,
            marks: u32::try_from(listed.marks.len()).unwrap_or(u32::MAX),
            first_marks: listed.marks.iter().take(rows as usize).cloned().collect(),
            query: FindQuery { rows, ..self.clone() },
            first,
            next,
        }))
    }

    fn examples(device: &DeviceSummary) -> Vec<Self> {
        let of = |term: &str| {
            [ListStart::At(0), ListStart::BeforeNext(None)].map(|start| Self {
                term: term.to_owned(),
                position: device.events / 2,
                start,
                rows: 20,
            })
        };
        terms().into_iter().flat_map(of).collect()
    }
}

/// Returns the lines of the matching allocations with the bytes that those requested, the largest first.
fn lines(context: Context<'_>, matches: &Matches) -> Vec<LineMemory> {
    let allocations = &context.replay.allocations;
    let (mut stacks, mut sizes) = (allocations.stack.reader(), allocations.requested.reader());
    let mut sums: FxHashMap<u32, Amount> = FxHashMap::default();
    for id in matches.iter().map(|id| id as usize) {
        if let (Some(stack), Some(bytes)) = (stacks.get(id), sizes.get(id)) {
            sums.entry(stack).or_default().add(bytes);
        }
    }
    let of =
        |(stack, now)| LineMemory { stack: StackId(stack), stacks: 1, memory: Memory { now, ..Memory::default() } };
    by_line(&sums.into_iter().map(of).collect::<Vec<_>>(), context.sites)
}

/// Returns what looks for a term that is text or a regular expression.
fn matcher_of(term: &Term) -> Option<FrameMatcher> {
    match term {
        Term::Frame(pattern) => FrameMatcher::new(pattern).ok(),
        _ => None,
    }
}

/// Returns the annotations and steps whose name fits, by time.
fn marks(context: Context<'_>, caches: &mut Caches, term: &Term) -> Vec<FoundMark> {
    let matchers: Option<Vec<FrameMatcher>> = match term {
        Term::All(terms) => terms.iter().map(matcher_of).collect(),
        term => matcher_of(term).map(|matcher| vec![matcher]),
    };
    let Some(matchers) = matchers else { return Vec::new() };
    let is_fit = |text: &str| matchers.iter().all(|matcher| matcher.fits(text));
    let mark = |name: String, from: u32, to: u32| FoundMark { name, from, to, time_us: context.time_us(from) };
    let mut fitting: FxHashMap<trace::frames::StrId, Option<String>> = FxHashMap::default();
    let mut found = Vec::new();
    for (name, from, to) in named_spans(context.replayed()) {
        let fits = || Some(context.symbols().text(name).into_owned()).filter(|text| is_fit(text));
        if let Some(text) = fitting.entry(name).or_insert_with(fits) {
            found.push(mark(text.clone(), from, to));
        }
    }
    found.extend(steps(context, caches, is_fit).into_iter().map(|(name, from, to)| mark(name, from, to)));
    found.sort_by(|a, b| a.from.cmp(&b.from).then(b.to.cmp(&a.to)));
    found
}

/// Returns the steps that are not annotations, under the names that the page gives them.
fn steps(context: Context<'_>, caches: &mut Caches, is_fit: impl Fn(&str) -> bool) -> Vec<(String, u32, u32)> {
    let steps = caches.of::<CategoryCache>().known_steps(context).filter(|steps| !steps.are_annotated());
    let of_all = steps.iter().flat_map(|steps| &steps.steps);
    let named = of_all.map(|step| (format!("step {}", step.number), step.from, step.to));
    named.filter(|(name, ..)| is_fit(name)).collect()
}

/// Returns the number of segments at a position that a term matches, the sum of their sizes, and the largest of them.
fn segments(
    context: Context<'_>,
    caches: &mut Caches,
    term: &Term,
    position: u32,
    rows: usize,
) -> ((u32, u64), Vec<SegmentRow>) {
    let is_it = |range: &ReservedRange| is_matched(term, range) == Some(true);
    let state = caches.of::<States>().at(context.replay, position);
    let mut found: Vec<(usize, &ReservedRange)> =
        state.ranges.iter().enumerate().filter(|(_, range)| is_it(range)).collect();
    let bytes = found.iter().fold(0_u64, |sum, (_, range)| sum.saturating_add(range.size));
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    found.sort_by(|(_, a), (_, b)| b.size.cmp(&a.size).then(a.address.cmp(&b.address)));
    let painter = context.painter(ColorBy::Site);
    let row = |(i, range): &(usize, &ReservedRange)| segment_row(&state, *i, range, &painter);
    ((count, bytes), found.iter().take(rows).map(row).collect())
}

/// Returns whether a term matches a segment; `None` if it does not apply to segments.
fn is_matched(term: &Term, range: &ReservedRange) -> Option<bool> {
    Some(match term {
        Term::Size(comparison, bound) => comparison.holds(range.size, *bound),
        Term::About(about) => about.holds(range.size),
        Term::Address(at) => range.holds(*at) || range.address.begins_with(*at),
        Term::Named(at, _) => range.holds(*at),
        Term::Stream(stream) => range.stream == *stream,
        Term::Pool(Pool::Small) => range.is_small,
        Term::Pool(Pool::Large) => !range.is_small,
        Term::Pool(Pool::Private) => range.pool.is_private(),
        Term::Pool(Pool::Id(id)) => range.pool == *id,
        Term::Not(other) => !is_matched(other, range)?,
        Term::All(terms) => {
            let said: Option<Vec<bool>> = terms.iter().map(|term| is_matched(term, range)).collect();
            said?.into_iter().all(|is| is)
        }
        Term::Frame(_) | Term::Live(_) | Term::Category(_) => return None,
    })
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
