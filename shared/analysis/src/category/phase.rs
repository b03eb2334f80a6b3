//! The phase of the program in which each allocation was made, and what its lifetime is compared with.

use rustc_hash::FxHashSet;

use crate::oom;
use crate::stack_traits::{StackTraits, Traits};
use crate::steps::{Steps, TrainingStep, spans_of_phases};
use replay::{Allocation, Replayed};
use trace::frames::{StackId, Symbols};

/// A phase of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Shown by neither stack nor annotation.
    Unknown,
    /// Building or loading a module.
    Setup,
    /// Loading data.
    Loader,
    /// The program's own code, before the forward pass.
    Before,
    /// Within a module's `forward`.
    Forward,
    /// The program's own code, after the forward pass: the loss.
    After,
    /// The forward pass once more, within the backward pass.
    Recompute,
    /// The backward pass.
    Backward,
    /// Within the optimizer.
    Optimizer,
}

impl Phase {
    /// Returns whether two allocations in a row belong to one call of the backward pass, or of the optimizer.
    fn continues(self, other: Self) -> bool {
        let backward = |phase| matches!(phase, Self::Backward | Self::Recompute);
        self == other || backward(self) && backward(other)
    }
}

/// The circumstances in which an allocation was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    pub phase: Phase,
    /// The position at which it was made.
    pub begin: u32,
    /// The position after which it counts as kept: where the next phase begins that would use it. `NEVER` if the trace
    /// ends before.
    pub until: u32,
    /// The end of the step that it was made in, if the trace goes on after it.
    pub step_end: Option<u32>,
    /// The end of the step after that one, or after the one that follows it if it was made between two steps; `None` if
    /// the trace does not go on after it.
    pub next_step_end: Option<u32>,
    /// Whether it is the last one of its pass of inference: the model's result, which the program may keep for long.
    pub is_result: bool,
}

/// The phases of all allocations.
#[derive(Debug)]
pub(super) struct Phases {
    circumstances: Vec<Circumstances>,
    /// Whether the trace has no backward pass and no optimizer.
    pub is_inference: bool,
    /// Whether the trace shows how a module was built, loaded or moved.
    pub has_modules: bool,
    /// Where the first step begins; without steps, the first forward pass.
    pub first_step: u32,
    /// Where the first step ends; without steps, where the first forward pass begins.
    first_step_end: u32,
    /// The sizes of gradients, or, before the first backward pass ended, of parameters.
    gradient_sizes: FxHashSet<u64>,
    /// The positions at which requests failed.
    failures: Vec<u32>,
    /// Whether names of stacks were lost: a phase that no stack shows may have been shown by one of those.
    pub has_lost: bool,
    /// The positions at which something was made of which not even the phase is known, because its stack or the events
    /// around it were lost.
    lost: Vec<u32>,
}

impl Phases {
    pub(super) fn of(input: Replayed<'_>, symbols: &Symbols, traits: &StackTraits, steps: Option<&Steps>) -> Self {
        let allocations = &input.replay.allocations;
        let has_any = |some| allocations.stack.iter().any(|stack| traits.of(StackId(stack)).has(some));
        // Where frames of C++ were recorded, a thread without Python has some, too: what has none was not recorded.
        let (has_python, has_cpp) = (has_any(Traits::PYTHON), has_any(Traits::CPP));
        let has_lost = traits.all().has(Traits::LOST);
        let mut lost: Vec<u32> = input.trace.losses.iter().map(|loss| loss.position).collect();
        // Whether something was lost since a stack last showed the phase.
        let mut is_unsure = false;
        let mut losses = input.trace.losses.iter().map(|loss| loss.position).peekable();
        let spans = spans_of_phases(input, symbols);
        let mut spans = spans.iter().peekable();
        let mut open: Option<(u32, Traits)> = None;
        let mut circumstances = Vec::with_capacity(allocations.len());
        let all_steps = steps.map_or(&[][..], |steps| &steps.steps);
        let mut step = 0;
        let end_of = |step: Option<&TrainingStep>| step.map(|step| step.to).filter(|to| *to < input.replay.positions());
        // Whether a module's `forward` was seen in this step, since the last backward pass or call of the optimizer.
        let mut is_after_forward = false;
        let lives = allocations.begin.iter().zip(allocations.end.iter());
        for (id, (stack, (begin, end))) in (0..).zip(allocations.stack.iter().zip(lives)) {
            let is_unseen = input.replay.is_unseen(id);
            // The stack of what is older than the trace or made where events are missing, and freed in the trace, is that of
            // the free.
            let stack = if (begin == 0 || is_unseen) && end != Allocation::NEVER { 0 } else { stack };
            while losses.next_if(|position| *position < begin).is_some() {
                is_unsure = true;
            }
            // A step and a span include the events after their start.
            while all_steps.get(step).is_some_and(|step| step.to < begin) {
                step += 1;
                // Where stacks were lost, the steps may be shifted.
                (is_after_forward, is_unsure) = (false, is_unsure && has_lost);
            }
            let step_end = end_of(all_steps.get(step).filter(|step| step.from < begin));
            let next_step_end = end_of(all_steps.get(step + 1));
            while let Some((_, to, marked)) = spans.next_if(|(from, ..)| *from < begin) {
                open = Some((*to, *marked));
            }
            let marked = open.filter(|(to, _)| begin <= *to).map_or(Traits::default(), |(_, marked)| marked);
            let own = traits.of(StackId(stack));
            // Missing data proves nothing.
            let is_lost = own.has(Traits::LOST) || is_unseen && stack == 0;
            let phase = match phase_of(own, marked, has_python && !has_cpp && begin > 0) {
                _ if is_lost => Phase::Unknown,
                Phase::Before if is_unsure => Phase::Unknown,
                Phase::Before if is_after_forward => Phase::After,
                phase => phase,
            };
            if is_lost {
                (is_unsure, _) = (true, lost.push(begin));
            }
            match phase {
                Phase::Forward => (is_after_forward, is_unsure) = (true, false),
                Phase::Backward | Phase::Optimizer => (is_after_forward, is_unsure) = (false, false),
                _ => {}
            }
            circumstances.push(Circumstances {
                phase,
                begin,
                until: Allocation::NEVER,
                step_end,
                next_step_end,
                is_result: false,
            });
        }
        let is_training = |made: &Circumstances| matches!(made.phase, Phase::Backward | Phase::Optimizer);
        let is_inference = !has_lost && !circumstances.iter().any(is_training);
        set_until(&mut circumstances, is_inference);
        let first_pass = circumstances.iter().find(|made| made.phase == Phase::Forward).map(|made| made.begin);
        let first = steps.and_then(|steps| steps.steps.first());
        let first_step = first.map(|step| step.from).or(first_pass).unwrap_or(Allocation::NEVER);
        let first_step_end = first.map(|step| step.to).or(first_pass).unwrap_or(Allocation::NEVER);
        let has_modules = circumstances.iter().any(|made| made.phase == Phase::Setup);
        let mut new = Self {
            circumstances,
            is_inference,
            has_modules,
            first_step,
            first_step_end,
            gradient_sizes: FxHashSet::default(),
            failures: oom::positions(input.trace).into_iter().map(|(position, _)| position).collect(),
            has_lost,
            lost,
        };
        new.lost.sort_unstable();
        new.gradient_sizes = new.sizes_of_gradients(input);
        new
    }

    pub(super) fn get(&self, id: u32) -> Option<Circumstances> {
        self.circumstances.get(id as usize).copied()
    }

    /// Returns whether an allocation that ends at a position outlives the first step.
    pub(super) fn outlives_first_step(&self, freed_at: u32) -> bool {
        freed_at > self.first_step_end
    }

    /// Returns whether a request failed between two positions.
    pub(super) fn fails_within(&self, begin: u32, freed_at: u32) -> bool {
        let from = self.failures.partition_point(|position| *position < begin);
        self.failures.get(from).is_some_and(|position| *position < freed_at)
    }

    /// Returns whether something was lost between two positions: the phase that begins then may be another one.
    pub(super) fn loses_within(&self, begin: u32, freed_at: u32) -> bool {
        let from = self.lost.partition_point(|position| *position <= begin);
        self.lost.get(from).is_some_and(|position| *position < freed_at)
    }

    /// Returns whether it is unknown if the program trains: no backward pass was seen, but names were lost.
    pub(super) fn may_train(&self) -> bool {
        let is_training = |made: &Circumstances| matches!(made.phase, Phase::Backward | Phase::Optimizer);
        self.has_lost && !self.circumstances.iter().any(is_training)
    }

    /// Returns whether a gradient has this size; if no backward pass ended, whether a parameter has.
    pub(super) fn is_gradient_size(&self, bytes: u64) -> bool {
        self.gradient_sizes.contains(&bytes)
    }

    fn sizes_of_gradients(&self, input: Replayed<'_>) -> FxHashSet<u64> {
        let allocations = &input.replay.allocations;
        let sizes_of = |wanted: Phase| -> FxHashSet<u64> {
            let lives = allocations.freed.iter().zip(allocations.end.iter()).zip(allocations.requested.iter());
            let kept = self.circumstances.iter().zip(lives).filter(|(made, ((freed, end), _))| {
                made.phase == wanted && made.until != Allocation::NEVER && *freed.min(end) > made.until
            });
            kept.map(|(_, (_, bytes))| bytes).collect()
        };
        let sizes = sizes_of(Phase::Backward);
        if sizes.is_empty() { sizes_of(Phase::Setup) } else { sizes }
    }
}

/// Returns the phase that a stack shows, or, if it shows none, an annotation around the allocation.
fn phase_of(own: Traits, marked: Traits, has_only_python: bool) -> Phase {
    let shown = if own.has(Traits::PYTHON) || own.has(Traits::BACKWARD) { own } else { own.and(marked) };
    if shown.has(Traits::RECOMPUTE) {
        return Phase::Recompute;
    }
    if shown.has(Traits::BACKWARD) {
        return Phase::Backward;
    }
    if shown.has(Traits::OPTIMIZER) {
        return Phase::Optimizer;
    }
    if shown.has(Traits::FORWARD) {
        return Phase::Forward;
    }
    if shown.has(Traits::LOADER) {
        return Phase::Loader;
    }
    if shown.has(Traits::SETUP) {
        return Phase::Setup;
    }
    match own.has(Traits::PYTHON) {
        true => Phase::Before,
        // The threads of the backward pass have no Python frames.
        false if has_only_python && !own.has(Traits::CPP) => Phase::Backward,
        false => Phase::Unknown,
    }
}

/// Sets what each lifetime is compared with, from the end back.
fn set_until(circumstances: &mut [Circumstances], is_inference: bool) {
    // Where the phases begin that come next.
    let (mut next, mut next_pass, mut next_backward) = (None::<(Phase, u32)>, Allocation::NEVER, Allocation::NEVER);
    // Where the present call of the backward pass or of the optimizer ends, and where the present forward pass begins.
    let (mut call_end, mut pass_start) = (Allocation::NEVER, Allocation::NEVER);
    for made in circumstances.iter_mut().rev() {
        let Circumstances { phase, begin, .. } = *made;
        if let Some((_, at)) = next.filter(|(after, _)| !phase.continues(*after)) {
            call_end = at;
        }
        made.until = match phase {
            Phase::Backward | Phase::Recompute | Phase::Optimizer => call_end,
            Phase::Forward | Phase::After if !is_inference => next_backward,
            // Between two passes, the program's own code chooses a token.
            Phase::Forward => {
                if next.is_none_or(|(after, _)| after != Phase::Forward) {
                    (next_pass, made.is_result) = (pass_start, true);
                }
                pass_start = begin;
                next_pass
            }
            Phase::Setup | Phase::Before | Phase::Loader => pass_start,
            _ => Allocation::NEVER,
        };
        match phase {
            Phase::Forward => pass_start = begin,
            Phase::Backward => (next_backward, pass_start) = (begin, begin),
            _ => {}
        }
        // Unknown allocations say nothing about where the program is.
        if phase != Phase::Unknown {
            next = Some((phase, begin));
        }
    }
}
