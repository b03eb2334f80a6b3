//! What could be done in a job, and what it costs.

use analysis::roles::Roles;
use analysis::stack_traits::{StackTraits, Traits};
use analysis::steps::Steps;
use replay::Replayed;
use replay::index::Index;
use trace::frames::{StackId, Symbols};
use whatif::Edit;

use crate::call::bytes;
use crate::candidate::{Candidate, Kind};
use crate::cost::Cost;
use crate::earlier::{Late, late};
use crate::missing::Missing;
use crate::paste;
use crate::phases::{Phase, Phases};
use crate::scope::Scope;
use crate::scopes::scopes;
use crate::state::State;

/// What could be done in a job.
#[derive(Debug)]
pub struct Survey<'a> {
    input: Replayed<'a>,
    scopes: Vec<Scope>,
    late: Vec<Late>,
    state: Option<State>,
    /// What the recording lacks.
    pub missing: Vec<Missing>,
    /// The bytes that all forward passes ask for.
    forward_bytes: u64,
    /// The forward passes of a step: more than one where gradients are accumulated.
    passes_per_step: u64,
    /// The microseconds of a typical step, if the recording tells.
    pub step_us: Option<u64>,
}

impl<'a> Survey<'a> {
    /// Looks for what could be done.
    pub fn of(input: Replayed<'a>, symbols: &Symbols) -> Self {
        let roles = Roles::default();
        let categories = roles.categories(input, symbols);
        let steps = roles.steps(input, symbols);
        let phases = Phases::of(input, categories, roles.is_training(symbols), steps.is_some());
        let forward = (0..input.replay.allocations.len() as u32).filter(|id| phases.get(*id) == Phase::Forward);
        let count = steps.map_or(0, |steps| steps.steps.len()).max(1) as u64;
        let scopes = scopes(input, symbols, &phases);
        Self {
            input,
            late: steps.map(|steps| late(input, symbols, (categories, &phases), steps)).unwrap_or_default(),
            state: State::of(input, categories, &phases),
            missing: missing(input, symbols, (&phases, &scopes), steps),
            scopes,
            forward_bytes: bytes(input, forward),
            passes_per_step: (u64::from(phases.passes()) / count).max(1),
            step_us: steps.and_then(|steps| step_us(input, steps)),
        }
    }

    /// Returns all candidates, each as far as it goes.
    pub fn candidates(&self) -> Vec<Candidate> {
        let late = (0..self.late.len()).map(|of| Candidate { kind: Kind::FreeEarlier, of, calls: 1 });
        let of_scopes = self.scopes.iter().enumerate().flat_map(|(of, scope)| {
            let of_kind = move |kind| Candidate { kind, of, calls: scope.calls() };
            [Kind::Checkpoint, Kind::OffloadActivations].map(of_kind)
        });
        let state = self.state.iter().map(|_| Candidate { kind: Kind::OffloadOptimizer, of: 0, calls: 1 });
        late.chain(of_scopes).chain(state).collect()
    }

    /// Returns the edits of the job's requests that a candidate comes to.
    pub fn edits(&self, candidate: Candidate) -> Vec<Edit> {
        let Candidate { kind, of, calls } = candidate;
        let input = self.input;
        let edits = match kind {
            Kind::FreeEarlier => self.late.get(of).map(Late::edits),
            Kind::Checkpoint => self.scopes.get(of).map(|scope| scope.checkpoint(input, calls)),
            Kind::OffloadActivations => self.scopes.get(of).map(|scope| scope.offload(input, calls)),
            Kind::OffloadOptimizer => self.state.as_ref().map(|state| state.offload(input)),
        };
        edits.unwrap_or_default()
    }

    /// Returns what a candidate costs.
    pub fn cost(&self, candidate: Candidate) -> Cost {
        let Candidate { kind, of, calls } = candidate;
        let scope = self.scopes.get(of);
        match kind {
            Kind::FreeEarlier => Cost::default(),
            Kind::Checkpoint => {
                let made = scope.map_or(0, |scope| scope.made_bytes(self.input, calls));
                let recomputed_share = made as f64 / self.forward_bytes.max(1) as f64;
                Cost { recomputed_share, moved_bytes: 0 }
            }
            Kind::OffloadActivations => {
                let bytes = scope.map_or(0, |scope| scope.moved_bytes(self.input, calls));
                Cost { moved_bytes: bytes.saturating_mul(self.passes_per_step), recomputed_share: 0.0 }
            }
            Kind::OffloadOptimizer => {
                let bytes = self.state.as_ref().map_or(0, |state| state.bytes(self.input));
                Cost { moved_bytes: bytes, recomputed_share: 0.0 }
            }
        }
    }

    /// Returns the most calls in a forward pass of what a candidate is done to; 1 where there are no calls.
    pub fn most_calls(&self, candidate: Candidate) -> u32 {
        match candidate.kind {
            Kind::Checkpoint | Kind::OffloadActivations => self.scopes.get(candidate.of).map_or(1, Scope::calls),
            Kind::FreeEarlier | Kind::OffloadOptimizer => 1,
        }
    }

    /// Returns what a candidate is done to, in words.
    pub fn what(&self, candidate: Candidate) -> String {
        match candidate.kind {
            Kind::Checkpoint | Kind::OffloadActivations => {
                let place = self.scopes.get(candidate.of).map_or("", |scope| &scope.place);
                match (candidate.calls, self.most_calls(candidate)) {
                    (_, 1) => format!("the call at {place}"),
                    (calls, most) if calls >= most => format!("all {most} calls at {place}"),
                    (1, most) => format!("the first of {most} calls at {place}"),
                    (calls, most) => format!("the first {calls} of {most} calls at {place}"),
                }
            }
            Kind::OffloadOptimizer => "the optimizer's state, between its steps".to_owned(),
            Kind::FreeEarlier => match self.late.get(candidate.of).and_then(|late| late.place.as_ref()) {
                Some(place) => format!("results of {place}, at the end of their step"),
                None => "gradients, right after the optimizer's step".to_owned(),
            },
        }
    }

    /// Returns the lines of Python to paste for a candidate.
    pub fn paste(&self, candidate: Candidate) -> Vec<String> {
        let scope = self.scopes.get(candidate.of);
        match candidate.kind {
            Kind::Checkpoint => scope.map(|scope| paste::checkpoint(scope, candidate.calls)).unwrap_or_default(),
            Kind::OffloadActivations => scope.map(|scope| paste::offload(scope, candidate.calls)).unwrap_or_default(),
            Kind::OffloadOptimizer => paste::offload_optimizer(),
            Kind::FreeEarlier => self.late.get(candidate.of).map(paste::free_earlier).unwrap_or_default(),
        }
    }
}

/// Returns what the recording lacks, what matters most first.
fn missing(
    input: Replayed<'_>,
    symbols: &Symbols,
    (phases, scopes): (&Phases, &[Scope]),
    steps: Option<&Steps>,
) -> Vec<Missing> {
    let mut missing = Vec::new();
    let allocations = &input.replay.allocations;
    let traits = StackTraits::build(symbols);
    if allocations.stack.iter().all(|stack| stack == 0) {
        missing.push(Missing::Stacks);
    } else if !allocations.stack.iter().any(|stack| traits.of(StackId(stack)).has(Traits::PYTHON)) {
        missing.push(Missing::PythonLines);
    }
    if phases.passes() == 0 {
        missing.push(Missing::Backward);
    } else if phases.whole_passes() == 0 {
        missing.push(Missing::FirstBackward);
    } else if scopes.iter().any(|scope| !scope.is_whole()) {
        missing.push(Missing::LastBackward);
    }
    if steps.is_none() {
        missing.push(Missing::Steps);
    }
    missing
}

/// Returns the median duration of whole steps, if there are two.
fn step_us(input: Replayed<'_>, steps: &Steps) -> Option<u64> {
    let times = &input.trace.events.time_us;
    let slots = steps.slots(input.replay.positions());
    let of = |from: u32, to: u32| times.get(to as usize - 1)?.checked_sub(times.get(from as usize)?);
    let mut durations: Vec<u64> = slots
        .iter()
        .filter(|step| step.from < step.to)
        .filter_map(|step| of(step.from, step.to).and_then(|us| u64::try_from(us).ok()))
        .filter(|us| *us > 0)
        .collect();
    durations.sort_unstable();
    if durations.len() < 2 { None } else { durations.get(durations.len() / 2).copied() }
}
