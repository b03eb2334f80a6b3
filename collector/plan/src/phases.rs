//! The part of a training step in which each allocation was made, and what the backward pass finds.

use analysis::category::{Categories, Rule};
use analysis::oom;
use replay::{Allocation, Replayed};

/// The part of a training step in which an allocation was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The forward pass, and the loss that follows from it.
    Forward,
    /// The backward pass, with what it recomputes.
    Backward,
    /// The optimizer's step.
    Optimizer,
    /// Anything else, and what is not known.
    Other,
}

/// A forward pass with the backward pass that follows.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// The position of its first allocation.
    begin: u32,
    /// Whether the backward pass begins before the trace ends.
    has_backward: bool,
    /// What was kept for the backward pass is freed after this position,
    kept_from: u32,
    /// and not after this one: the optimizer's step begins. [`Allocation::NEVER`] if none is seen.
    kept_to: u32,
}

/// The phases of all allocations.
#[derive(Debug)]
pub(crate) struct Phases {
    of: Vec<Phase>,
    /// By allocation: the number of its pass.
    pass_of: Vec<u32>,
    passes: Vec<Pass>,
}

impl Phases {
    /// Finds the phases. A trace without a backward pass has no passes, unless a program that trains failed before its first one:
    /// one that `is_training` by its names, or that keeps most of its first forward pass until it fails.
    pub(crate) fn of(input: Replayed<'_>, categories: &Categories, is_training: bool, repeats: bool) -> Self {
        let count = input.replay.allocations.len() as u32;
        let phase = |id: u32| categories.rule(id).map_or(Phase::Other, phase_of);
        let mut of: Vec<Phase> = (0..count).map(phase).collect();
        let failures: Vec<u32> = oom::positions(input.trace).into_iter().map(|(position, _)| position).collect();
        let has_backward = of.contains(&Phase::Backward);
        let is_inferred = |id: u32| matches!(categories.rule(id), Ok(Rule::Inferred | Rule::ForwardKept));
        let may_train = |failed: &u32| {
            is_training || !repeats && keeps_most(input, *failed, (0..count).filter(|id| is_inferred(*id)))
        };
        let fails_early = !has_backward && failures.first().is_some_and(may_train);
        if fails_early {
            of.iter_mut().zip(0..).filter(|(_, id)| is_inferred(*id)).for_each(|(phase, _)| *phase = Phase::Forward);
        }
        let (mut passes, mut pass_of) = (Vec::<Pass>::new(), Vec::with_capacity(of.len()));
        let mut is_forward = false;
        for (phase, begin) in of.iter().zip(input.replay.allocations.begin.iter()) {
            match phase {
                Phase::Forward if !is_forward => {
                    is_forward = true;
                    let failed = failures.get(failures.partition_point(|position| *position < begin)).copied();
                    let kept_from = failed.unwrap_or_else(|| input.replay.positions()).saturating_sub(1);
                    passes.push(Pass { begin, has_backward: false, kept_from, kept_to: Allocation::NEVER });
                }
                Phase::Backward if is_forward => {
                    is_forward = false;
                    if let Some(pass) = passes.last_mut() {
                        (pass.has_backward, pass.kept_from) = (true, begin);
                    }
                }
                _ => {}
            }
            pass_of.push((passes.len() as u32).saturating_sub(1));
        }
        if !has_backward && !fails_early {
            passes.clear();
        }
        let mut phases = Self { of, pass_of, passes };
        phases.find_steps(input);
        phases
    }

    /// Finds where the optimizer's steps begin: those that no backward pass follows before the next forward pass. An optimizer may also
    /// run within the backward pass.
    fn find_steps(&mut self, input: Replayed<'_>) {
        let (mut kept_to, mut is_after_backward) = (Allocation::NEVER, true);
        for (id, phase) in self.of.iter().enumerate().rev() {
            let begin = input.replay.allocations.begin.get(id).unwrap_or_default();
            match phase {
                Phase::Forward => is_after_backward = true,
                Phase::Backward => {
                    is_after_backward = false;
                    let pass = self.pass_of.get(id).and_then(|pass| self.passes.get_mut(*pass as usize));
                    // The trace may begin within a backward pass.
                    pass.into_iter().filter(|pass| pass.begin < begin).for_each(|pass| pass.kept_to = kept_to);
                }
                Phase::Optimizer if is_after_backward => kept_to = begin.saturating_sub(1),
                Phase::Optimizer | Phase::Other => {}
            }
        }
    }

    /// Returns the phase of an allocation.
    pub(crate) fn get(&self, id: u32) -> Phase {
        self.of.get(id as usize).copied().unwrap_or(Phase::Other)
    }

    /// Returns the number of forward passes.
    pub(crate) fn passes(&self) -> u32 {
        self.passes.len() as u32
    }

    /// Returns the number of the pass that an allocation of the forward pass was made in.
    pub(crate) fn pass(&self, id: u32) -> u32 {
        self.pass_of.get(id as usize).copied().unwrap_or_default()
    }

    /// Returns the number of forward passes whose backward pass is in the trace.
    pub(crate) fn whole_passes(&self) -> u32 {
        self.passes.iter().filter(|pass| pass.has_backward).count() as u32
    }

    /// Whether an allocation was made in a forward pass and kept for the backward pass: some backward pass frees it. What a forward pass
    /// or the optimizer's step finds is a result that the program still names.
    pub(crate) fn is_saved(&self, id: u32, allocation: &Allocation) -> bool {
        let freed = freed(allocation);
        let begun = self.passes.partition_point(|pass| pass.begin < freed);
        let last = begun.checked_sub(1).and_then(|last| self.passes.get(last));
        self.get(id) == Phase::Forward && last.is_some_and(|pass| pass.kept_from < freed && freed <= pass.kept_to)
    }

    /// Whether the backward pass that frees an allocation is in the trace.
    pub(crate) fn has_backward(&self, id: u32) -> bool {
        self.passes.get(self.pass(id) as usize).is_some_and(|pass| pass.has_backward)
    }
}

/// Returns the position right after an allocation was freed; [`Allocation::NEVER`] if it was not.
pub(crate) fn freed(allocation: &Allocation) -> u32 {
    allocation.freed.min(allocation.end)
}

/// Whether more than half of the bytes of some allocations are live where a request failed.
fn keeps_most(input: Replayed<'_>, failed: u32, ids: impl Iterator<Item = u32>) -> bool {
    let (mut made, mut kept) = (0_u64, 0_u64);
    for of in ids.filter_map(|id| input.replay.allocations.get(id)) {
        made = made.saturating_add(of.requested);
        kept = kept.saturating_add(if freed(&of) > failed { of.requested } else { 0 });
    }
    kept > made / 2
}

/// Returns the phase that a rule of categories shows.
fn phase_of(rule: Rule) -> Phase {
    match rule {
        Rule::Saved | Rule::Interrupted | Rule::ForwardScratch => Phase::Forward,
        Rule::BackwardKept | Rule::BackwardScratch | Rule::BackwardOpen | Rule::Recomputed => Phase::Backward,
        Rule::OptimizerKept | Rule::OptimizerScratch | Rule::OptimizerReplaced => Phase::Optimizer,
        _ => Phase::Other,
    }
}
