//! The facts of every request that failed: what it was for, what the driver was asked for, what was free and where.

use std::cell::Cell;

use super::request::{Mappings, Rules, is_small};
use super::{Case, blocking, cause, pool};
use analysis::missing_stack::StackCoverage;
use analysis::peak::held_at;
use analysis::site::label;
use query::diagnosis::{FailedRequest, HeldLine};
use query::line_in_sentence;
use replay::{AllocatorState, Gap, Replay};
use trace::event::Action;
use trace::frames::StackId;
use trace::limits;
use trace::order::SortFew;
use trace::units::{Bytes, counted};

/// The number of lines that are listed with a failure.
const LINES: usize = 8;

/// The failed requests of a trace, and what all of them need to be explained.
pub(super) struct Failures<'a> {
    case: &'a Case<'a>,
    rules: Rules,
    mappings: Mappings,
    coverage: StackCoverage,
    /// The blocks and segments that were looked at.
    looked_at: Cell<usize>,
}

impl<'a> Failures<'a> {
    pub(super) fn of(case: &'a Case<'a>) -> Self {
        let mut coverage = StackCoverage::default();
        coverage.extend(case.trace, case.symbols, case.integrity);
        Self {
            case,
            rules: Rules::of(case.settings),
            mappings: Mappings::of(case.trace, case.tags),
            coverage,
            looked_at: Cell::new(0),
        }
    }

    /// Returns the failures in order, at most [`limits::EXPLAINED_FAILURES`], and fewer if each takes long. The decisive one
    /// is among them.
    pub(super) fn all(&self, failures: &[(u32, u64)], decisive: Option<u32>) -> Vec<FailedRequest> {
        let positions: Vec<u32> = failures.iter().map(|(position, _)| *position).collect();
        let mut explained = positions.get(..limits::EXPLAINED_FAILURES).unwrap_or(&positions).to_vec();
        if let (Some(last), Some(decisive)) = (explained.last_mut(), decisive)
            && *last < decisive
        {
            *last = decisive;
        }
        let is_worth_it =
            |position: &u32| Some(*position) == decisive || self.looked_at.get() < limits::EXPLAINED_BLOCKS;
        explained.into_iter().filter(is_worth_it).filter_map(|position| self.at(position)).collect()
    }

    /// Returns the failure of the event right before a position; `None` if that event is none.
    pub(super) fn at(&self, position: u32) -> Option<FailedRequest> {
        let Case { trace, tags, replay, capacity, .. } = *self.case;
        let index = position.checked_sub(1)?;
        let event = trace.events.get(index as usize).filter(|event| event.action == Action::Oom)?;
        let state = replay.state_at(position);
        self.looked_at.set(self.looked_at.get().saturating_add(state.active.len()).saturating_add(state.ranges.len()));
        let totals = state.totals;
        let tag = tags.get(event.tag);
        let (pool, pool_basis) = pool::of_request(self.case, tag, &state);
        let (stream, is_small) = (tag.stream, is_small(event.size));
        let reach: Vec<usize> = (0..state.ranges.len())
            .filter(|&i| {
                state
                    .ranges
                    .get(i)
                    .is_some_and(|range| (range.stream, range.pool, range.is_small) == (stream, pool, is_small))
            })
            .collect();
        let kind =
            |expandable| reach.iter().filter_map(|&i| state.ranges.get(i)).any(|r| r.is_expandable == expandable);
        let is_expandable = self.rules.grows(pool, kind(true), kind(false));
        // A segment of the other kind can't be used.
        let gaps: Vec<(usize, Gap)> = reach
            .iter()
            .filter(|&&i| is_expandable || state.ranges.get(i).is_some_and(|range| !range.is_expandable))
            .flat_map(|&i| state.gaps_in(i, &replay.allocations).map(move |gap| (i, gap)))
            .collect();
        let nearest = gaps.iter().copied().max_by_key(|(_, gap)| (gap.size, std::cmp::Reverse(gap.address)));
        let driver_free =
            capacity.map_or(event.address.0, |bytes| event.address.0.min(bytes.saturating_sub(totals.reserved)));
        let asked_of_driver = if is_expandable {
            self.asked_of_expandable(&state, &reach, event.size, position)
        } else {
            self.rules.segment(event.size)
        };
        let in_use = totals.reserved.saturating_add(event.address.0);
        let mut failed = FailedRequest {
            event: index,
            requested: event.size,
            asked_of_driver,
            driver_free,
            cached: totals.cached,
            largest_servable: nearest.map_or(0, |(_, gap)| gap.size),
            largest_gap: totals.largest_gap,
            gaps: totals.gaps,
            allocated: totals.allocated,
            active: totals.active,
            reserved: totals.reserved,
            capacity,
            // Where segments may be missing, their memory would count as held by others.
            held_by_others: capacity.filter(|_| trace.losses.is_empty()).and_then(|bytes| bytes.checked_sub(in_use)),
            missing: self.rules.missing(
                event.size,
                is_expandable,
                totals.cached,
                cause::usable(driver_free, asked_of_driver),
            ),
            stack: event.stack.0,
            line: self.line(event.stack),
            no_stack: self.no_stack(event.stack, position),
            stream,
            pool,
            pool_basis,
            is_small,
            is_expandable,
            cached_in_reach: gaps.iter().fold(0, |sum: u64, (_, gap)| sum.saturating_add(gap.size)),
            nearest_gap: nearest.map(|(_, gap)| (gap.address, gap.size)),
            beside_gap: nearest.map(|(i, gap)| blocking::neighbours(self.case, &state, i, gap)).unwrap_or_default(),
            obstacle: blocking::obstacle(self.case, &state, &reach, event.size),
            lines: lines(self.case, replay, position),
            ..FailedRequest::default()
        };
        failed.cause = cause::of(&failed);
        failed.message = message(&failed);
        Some(failed)
    }

    fn asked_of_expandable(&self, state: &AllocatorState, reach: &[usize], requested: u64, position: u32) -> u64 {
        let ranges: Vec<((u64, u64), Vec<Gap>)> = reach
            .iter()
            .filter_map(|&i| state.ranges.get(i).map(|range| (i, range)))
            .filter(|(_, range)| range.is_expandable)
            .map(|(i, range)| {
                ((range.address.0, range.end()), state.gaps_in(i, &self.case.replay.allocations).collect())
            })
            .collect();
        let Some(first) = reach.iter().find_map(|&i| state.ranges.get(i)) else {
            return self.rules.pages(requested, is_small(requested));
        };
        let mut mapped = self.mappings.until(position, first.stream, first.pool, first.is_small);
        // Without recorded pools, mappings of other pools are among them: those that overlap the other pools' ranges
        // are removed.
        let is_own = |i: usize| reach.binary_search(&i).is_ok();
        let others: Vec<_> = (0..).zip(&state.ranges).filter(|(i, _)| !is_own(*i)).map(|(_, range)| range).collect();
        mapped.retain(|(start, end)| others.iter().all(|range| range.end() <= *start || *end <= range.address.0));
        self.rules.asked_of_expandable(requested, &ranges, &mapped)
    }

    /// Returns the line of a stack; empty if none was recorded.
    fn line(&self, stack: StackId) -> String {
        if stack.0 == 0 { String::new() } else { label(self.case.symbols, self.case.best_frames, stack) }
    }

    /// Returns why an event right before a position has no stack; empty if it has one.
    fn no_stack(&self, stack: StackId, position: u32) -> String {
        let why = self.coverage.of_range(self.case.symbols, stack, position);
        why.map_or_else(String::new, |why| why.short().to_owned())
    }

    /// Returns the share of the device that the settings allow, if they limit it.
    pub(super) fn fraction(&self) -> Option<f64> {
        self.rules.fraction
    }
}

/// Returns the lines that hold most at a position, the largest first.
pub(super) fn lines(case: &Case<'_>, replay: &Replay, position: u32) -> Vec<HeldLine> {
    let mut lines: Vec<HeldLine> = Vec::new();
    let mut numbers = rustc_hash::FxHashMap::default();
    for held in held_at(replay, position) {
        let line = label(case.symbols, case.best_frames, held.stack);
        let next = lines.len();
        let number = *numbers.entry(line.clone()).or_insert(next);
        match lines.get_mut(number) {
            Some(known) => {
                known.bytes = known.bytes.saturating_add(held.bytes);
                known.count = known.count.saturating_add(held.count);
            }
            None => lines.push(HeldLine { line, stack: held.stack.0, bytes: held.bytes, count: held.count }),
        }
    }
    lines.sort_few_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.line.cmp(&b.line)));
    lines.truncate(LINES);
    lines
}

/// Returns whether the driver was asked for visibly more than the request.
pub(super) fn takes_more(failed: &FailedRequest) -> bool {
    Bytes(failed.requested).to_string() != Bytes(failed.asked_of_driver).to_string()
}

/// Returns what the driver was asked for.
pub(super) fn asked(failed: &FailedRequest) -> String {
    let bytes = Bytes(failed.asked_of_driver);
    if failed.is_expandable {
        format!("{bytes} in pages of an expandable segment")
    } else {
        format!("a segment of {bytes}")
    }
}

/// Returns the facts in one or two sentences. They name no cause: the same facts belong to several.
fn message(failed: &FailedRequest) -> String {
    let FailedRequest { requested, driver_free, cached, gaps, allocated, .. } = *failed;
    let need = if takes_more(failed) {
        format!(", for which the driver was asked for {}", asked(failed))
    } else {
        String::new()
    };
    let cache = if cached == 0 {
        "nothing was cached".to_owned()
    } else {
        format!(
            "{} was free in {}{}",
            Bytes(cached),
            counted(gaps.into(), "gap"),
            match failed.largest_servable {
                0 => ", none of which this request could use".to_owned(),
                bytes => format!("; the largest gap for it was {}", Bytes(bytes)),
            }
        )
    };
    let asker = match failed.line.as_str() {
        "" => "Asked".to_owned(),
        line => format!("{} asked", line_in_sentence(line)),
    };
    format!(
        "{asker} for {}{need}; the driver had {} free. Live tensors held {} of {}, and {cache}.{}",
        Bytes(requested),
        Bytes(driver_free),
        Bytes(allocated),
        Bytes(failed.whole()),
        pool::sentence(failed.pool, failed.pool_basis)
    )
}
