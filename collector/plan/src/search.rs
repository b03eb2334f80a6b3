//! Finds the measures that reach a goal.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use whatif::Edit;

use crate::candidate::{Candidate, Kind};
use crate::cost::Cost;
use crate::goal::Goal;
use crate::survey::Survey;

/// The measures that a plan has at most.
const MOST_MEASURES: usize = 8;
/// What is saved of reserved memory counts up to so many times what is saved of live tensors.
const MOST_IN_PIECES: u64 = 2;
/// Or else as one part in this many.
const IN_PIECES_PART: u64 = 8;
/// What costs up to so many times as much costs about as much.
const ABOUT_AS_MUCH: f64 = 1.1;
/// The measures that are added, or put in the place of others, at most.
const MOST_ROUNDS: usize = 12;
/// What saves less than one part in this many of the reserved memory is no help, unless it saves all that is missing.
const LEAST_PART: u64 = 200;
/// Of what is missing, a measure saves at least one part in this many, if there is one that does: few measures are better than many.
const LARGE_PART: u64 = 4;

/// What the allocator answers to a job's requests where nothing is short. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// The most that was reserved.
    pub reserved: u64,
    /// The most in live allocations.
    pub allocated: u64,
    /// Whether the job fits where it can have what the goal says; `false` without such a goal.
    pub fits: bool,
    /// Whether it is counted up to a request that is served here, and failed in the recording: what follows is not known.
    pub ends_early: bool,
}

/// One measure of a plan, or a candidate by itself.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// What it is.
    pub kind: Kind,
    /// What it is done to, in words.
    pub what: String,
    /// The calls of a forward pass that it is done to; 1 where there are no calls.
    pub calls: u32,
    /// The calls of a forward pass.
    pub of_calls: u32,
    /// The bytes by which less is reserved at the peak, with the measures before it.
    pub saved_reserved: u64,
    /// The bytes by which less is in live allocations at the peak, with the measures before it.
    pub saved_allocated: u64,
    /// What it costs.
    pub cost: Cost,
    /// What it costs, in words.
    pub cost_words: String,
    /// The lines of Python that do it.
    pub paste: Vec<String>,
}

/// What to do.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// What it is to reach.
    pub goal: Goal,
    /// Whether it does.
    pub is_reached: bool,
    /// The bytes by which it doesn't.
    pub missing_bytes: u64,
    /// The job as it was recorded.
    pub before: Trial,
    /// The job as planned.
    pub after: Trial,
    /// What to do, in the order in which it was chosen.
    pub measures: Vec<Measure>,
    /// Each candidate by itself, what saves most first.
    pub candidates: Vec<Measure>,
}

/// Finds the measures that reach a goal, or that come nearest to it. `try_all` runs the job's requests with each of several lists of
/// edits through the allocator.
///
/// # Errors
/// Those of `try_all`.
pub fn plan<E>(
    survey: &Survey<'_>,
    goal: Goal,
    try_all: &mut dyn FnMut(Vec<Vec<Edit>>) -> Result<Vec<Trial>, E>,
) -> Result<Plan, E> {
    let all = survey.candidates();
    let conflicts = conflicts(survey, &all);
    let mut search = Search { survey, try_all };
    let before = search.try_one(&[])?;
    let mut trials = search.try_each(&all.iter().map(|candidate| vec![*candidate]).collect::<Vec<_>>())?;
    let singles = all.iter().zip(&trials).map(|(candidate, trial)| search.measure(*candidate, &before, trial));
    let mut candidates: Vec<Measure> = singles.filter(|measure| measure.saved_reserved > 0).collect();
    candidates.sort_by_key(|measure| (std::cmp::Reverse(measure.saved_reserved), measure.kind));
    // The chosen ones, and by candidate what would be chosen with it: it takes the place of those that it can't be combined with.
    let (mut chosen, mut after): (Vec<Candidate>, Trial) = (Vec::new(), before);
    let mut sets: Vec<Vec<Candidate>> = all.iter().map(|candidate| vec![*candidate]).collect();
    for _ in 0..MOST_ROUNDS {
        let is_reached = goal.is_reached(&before, &after);
        let missing = goal.missing(&before, &after);
        let best = search.best(&chosen, (&sets, &trials), &after, missing).filter(|_| !is_reached);
        let is_enough = |trial: &Trial| match is_reached {
            true => goal.is_reached(&before, trial),
            false => trial.reserved <= after.reserved.saturating_add(after.reserved / LEAST_PART),
        };
        // What comes to the same in one measure less takes the place of the others.
        let simpler = || search.simpler(&chosen, (&sets, &trials), is_enough);
        let Some((best, trial)) = best.or_else(simpler) else { break };
        (chosen, after) = (best, trial);
        if chosen.len() == 1 && goal.is_reached(&before, &after) {
            break;
        }
        let kept = |candidate: &Candidate| {
            let conflict = |known: &&Candidate| !conflicts.contains(&(**known, *candidate)) && *known != candidate;
            chosen.iter().filter(conflict).copied().chain([*candidate]).collect()
        };
        sets = all.iter().filter(|candidate| !chosen.contains(candidate)).map(kept).collect();
        sets.retain(|set: &Vec<Candidate>| set.len() <= MOST_MEASURES);
        trials = search.try_each(&sets)?;
    }
    if goal.is_reached(&before, &after) {
        search.trim(&mut chosen, goal, &before)?;
    }
    let parts: Vec<Vec<Candidate>> =
        (1..=chosen.len()).map(|count| chosen.iter().take(count).copied().collect()).collect();
    let mut measures = Vec::new();
    let mut after = before;
    for (candidate, trial) in chosen.iter().zip(search.try_each(&parts)?) {
        measures.push(search.measure(*candidate, &after, &trial));
        after = trial;
    }
    let (is_reached, missing_bytes) = (goal.is_reached(&before, &after), goal.missing(&before, &after));
    Ok(Plan { goal, is_reached, missing_bytes, before, after, measures, candidates })
}

/// Returns the pairs of candidates that concern the same allocations, and so can't be combined.
fn conflicts(survey: &Survey<'_>, all: &[Candidate]) -> FxHashSet<(Candidate, Candidate)> {
    // By allocation, one bit for each candidate: there are never more of them.
    let mut concerned: FxHashMap<u32, u64> = FxHashMap::default();
    for (number, candidate) in (0..u64::BITS).zip(all) {
        for edit in survey.edits(*candidate) {
            *concerned.entry(edit.act.allocation()).or_default() |= 1 << number;
        }
    }
    let together: FxHashSet<u64> = concerned.into_values().collect();
    let of = |bits: u64| (0..u64::BITS).zip(all).filter(move |(number, _)| bits >> number & 1 == 1);
    let pairs = |bits: &u64| {
        let bits = *bits;
        of(bits).flat_map(move |(_, one)| of(bits).map(move |(_, other)| (*one, *other)))
    };
    together.iter().flat_map(pairs).collect()
}

/// A search under way.
struct Search<'s, 'a, E> {
    survey: &'s Survey<'a>,
    try_all: &'s mut dyn FnMut(Vec<Vec<Edit>>) -> Result<Vec<Trial>, E>,
}

impl<E> Search<'_, '_, E> {
    fn edits(&self, candidates: &[Candidate]) -> Vec<Edit> {
        candidates.iter().flat_map(|candidate| self.survey.edits(*candidate)).collect()
    }

    fn try_one(&mut self, candidates: &[Candidate]) -> Result<Trial, E> {
        let edits = self.edits(candidates);
        Ok((self.try_all)(vec![edits])?.first().copied().unwrap_or_default())
    }

    /// Tries several sets of candidates.
    fn try_each(&mut self, sets: &[Vec<Candidate>]) -> Result<Vec<Trial>, E> {
        let lists = sets.iter().map(|set| self.edits(set)).collect();
        (self.try_all)(lists)
    }

    /// Returns the microseconds by which candidates make a step longer.
    fn us(&self, candidates: &[Candidate]) -> f64 {
        candidates.iter().map(|candidate| self.survey.cost(*candidate).us(self.survey.step_us)).sum()
    }

    /// Returns the set that saves most for what it costs, among those that save much of what is missing.
    fn best(
        &self,
        chosen: &[Candidate],
        (sets, trials): (&[Vec<Candidate>], &[Trial]),
        now: &Trial,
        missing: u64,
    ) -> Option<(Vec<Candidate>, Trial)> {
        let saved = |trial: &Trial| now.reserved.saturating_sub(trial.reserved);
        let most = trials.iter().map(saved).max()?;
        let least = (most.min(missing) / LARGE_PART).max(now.reserved / LEAST_PART);
        let least = if missing > 0 { least.min(missing) } else { least.max(1) };
        let worth = |set: &[Candidate], trial: &Trial| {
            // What only memory in pieces saves depends on the order of a few requests.
            let live = now.allocated.saturating_sub(trial.allocated).saturating_mul(MOST_IN_PIECES);
            let counted = saved(trial).min(live.max(saved(trial) / IN_PIECES_PART));
            let useful = counted.min(missing.max(1)) as f64;
            // Of a measure that goes further than needed, a part is enough.
            let part = useful / saved(trial).max(1) as f64;
            useful / ((self.us(set) - self.us(chosen)) * part).max(1.0)
        };
        let tried = sets.iter().zip(trials).filter(|(_, trial)| saved(trial) >= least);
        let best = tried.max_by(|(one, a), (other, b)| worth(one, a).total_cmp(&worth(other, b)));
        best.map(|(set, trial)| (set.clone(), *trial))
    }

    /// Returns a set of fewer measures that costs about as much and is enough.
    fn simpler(
        &self,
        chosen: &[Candidate],
        (sets, trials): (&[Vec<Candidate>], &[Trial]),
        is_enough: impl Fn(&Trial) -> bool,
    ) -> Option<(Vec<Candidate>, Trial)> {
        let most_us = self.us(chosen) * ABOUT_AS_MUCH;
        let fewer = sets.iter().zip(trials).filter(|(set, _)| set.len() < chosen.len() && self.us(set) <= most_us);
        let best = fewer.filter(|(_, trial)| is_enough(trial)).min_by_key(|(set, trial)| (set.len(), trial.reserved));
        best.map(|(set, trial)| (set.clone(), *trial))
    }

    /// Takes back what isn't needed: whole measures, those that cost most first, and then calls.
    fn trim(&mut self, chosen: &mut Vec<Candidate>, goal: Goal, before: &Trial) -> Result<(), E> {
        let mut order: Vec<Candidate> = chosen.clone();
        order.sort_by(|one, other| self.us(&[*other]).total_cmp(&self.us(&[*one])));
        for candidate in &order {
            let without: Vec<Candidate> = chosen.iter().copied().filter(|known| known != candidate).collect();
            if !without.is_empty() && goal.is_reached(before, &self.try_one(&without)?) {
                *chosen = without;
            }
        }
        for candidate in order {
            let Some(place) = chosen.iter().position(|known| *known == candidate) else { continue };
            // So many calls are enough, and so many are not.
            let (mut enough, mut short) = (candidate.calls, 0);
            while enough - short > 1 {
                let calls = short + (enough - short) / 2;
                let mut fewer = chosen.clone();
                if let Some(known) = fewer.get_mut(place) {
                    *known = candidate.with_calls(calls);
                }
                match goal.is_reached(before, &self.try_one(&fewer)?) {
                    true => enough = calls,
                    false => short = calls,
                }
            }
            if let Some(known) = chosen.get_mut(place) {
                *known = candidate.with_calls(enough);
            }
        }
        Ok(())
    }

    /// Returns a candidate with what it saves and costs.
    fn measure(&self, candidate: Candidate, before: &Trial, after: &Trial) -> Measure {
        let cost = self.survey.cost(candidate);
        Measure {
            kind: candidate.kind,
            what: self.survey.what(candidate),
            calls: candidate.calls,
            of_calls: self.survey.most_calls(candidate),
            saved_reserved: before.reserved.saturating_sub(after.reserved),
            saved_allocated: before.allocated.saturating_sub(after.allocated),
            cost,
            cost_words: cost.words(),
            paste: self.survey.paste(candidate),
        }
    }
}
