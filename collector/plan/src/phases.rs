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
    /// The position at which the backward pass begins; `None` if the trace ends before.
    backward: Option<u32>,
    /// What is freed after this position was kept for the backward pass.
    kept_from: u32,
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
        let failures = oom::positions(input.trace);
        let has_backward = of.contains(&Phase::Backward);
        let is_inferred = |id: u32| matches!(categories.rule(id), Ok(Rule::Inferred | Rule::ForwardKept));
        let may_train = || is_training || !repeats && keeps_most(input, (0..count).filter(|id| is_inferred(*id)));
        let fails_early = !has_backward && !failures.is_empty() && may_train();
        if fails_early {
            of.iter_mut().zip(0..).filter(|(_, id)| is_inferred(*id)).for_each(|(phase, _)| *phase = Phase::Forward);
        }
        let (mut passes, mut pass_of) = (Vec::new(), Vec::with_capacity(of.len()));
        let mut is_forward = false;
        for (phase, begin) in of.iter().zip(input.replay.allocations.begin.iter()) {
            match phase {
                Phase::Forward if !is_forward => {
                    is_forward = true;
                    let failed = failures.iter().map(|(position, _)| *position).find(|position| *position >= begin);
                    let kept_from = failed.unwrap_or_else(|| input.replay.positions());
                    passes.push(Pass { backward: None, kept_from: kept_from.saturating_sub(1) });
                }
                Phase::Backward if is_forward => {
                    is_forward = false;
                    // Before the event that made the allocation.
                    let at = begin.saturating_sub(1);
                    if let Some(pass) = passes.last_mut() {
                        *pass = Pass { backward: Some(at), kept_from: begin };
                    }
                }
                _ => {}
            }
            pass_of.push((passes.len() as u32).saturating_sub(1));
        }
        if !has_backward && !fails_early {
            passes.clear();
        }
        Self { of, pass_of, passes }
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
        self.passes.iter().filter(|pass| pass.backward.is_some()).count() as u32
    }

    /// Whether an allocation was made in a forward pass and kept for the backward pass.
    pub(crate) fn is_saved(&self, id: u32, allocation: &Allocation) -> bool {
        let pass = self.passes.get(self.pass(id) as usize);
        self.get(id) == Phase::Forward && pass.is_some_and(|pass| freed(allocation) > pass.kept_from)
    }

    /// Whether the backward pass that frees an allocation is in the trace.
    pub(crate) fn has_backward(&self, id: u32) -> bool {
        self.passes.get(self.pass(id) as usize).is_some_and(|pass| pass.backward.is_some())
    }
}

/// Returns the position right after an allocation was freed; [`Allocation::NEVER`] if it was not.
pub(crate) fn freed(allocation: &Allocation) -> u32 {
    allocation.freed.min(allocation.end)
}

/// Whether more than half of the bytes of some allocations are live where the first request failed.
fn keeps_most(input: Replayed<'_>, ids: impl Iterator<Item = u32>) -> bool {
    let failed = oom::positions(input.trace).first().map_or(Allocation::NEVER, |(position, _)| *position);
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
