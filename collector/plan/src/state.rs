//! The optimizer's state outside of the optimizer's step, where nothing needs it.

use analysis::category::{Categories, Category};
use replay::Replayed;
use whatif::{Edit, EditAct};

use crate::call::bytes;
use crate::phases::{Phase, Phases, freed};

/// The most allocations, times the steps of the optimizer, that are looked at: about as many edits follow.
const MOST_MOVES: usize = 1 << 22;

/// The optimizer's state, and where the optimizer needs it.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The allocations that hold it.
    ids: Vec<u32>,
    /// The positions between which the optimizer runs, in order.
    spans: Vec<(u32, u32)>,
}

impl State {
    /// Finds the state; `None` if there is none, or if the trace doesn't show when the optimizer runs: one that makes no memory
    /// leaves no trace of its steps.
    pub(crate) fn of(input: Replayed<'_>, categories: &Categories, phases: &Phases) -> Option<Self> {
        let allocations = &input.replay.allocations;
        let ids: Vec<u32> =
            (0..allocations.len() as u32).filter(|id| categories.get(*id) == Category::OptimizerState).collect();
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let mut is_open = false;
        for (id, begin) in (0..).zip(allocations.begin.iter()) {
            let before = begin.saturating_sub(1);
            match (phases.get(id) == Phase::Optimizer, is_open) {
                (true, false) => spans.push((before, input.replay.positions())),
                (false, true) => {
                    if let Some(last) = spans.last_mut() {
                        last.1 = before;
                    }
                }
                _ => {}
            }
            is_open = phases.get(id) == Phase::Optimizer;
        }
        // Each backward pass that ended is followed by a step.
        let is_seen = spans.len() > 1 || phases.whole_passes() <= 1;
        let moves = ids.len().saturating_mul(spans.len());
        ((1..=MOST_MOVES).contains(&moves) && is_seen).then_some(Self { ids, spans })
    }

    /// Returns the bytes of it that are there at once, at most: all that is never freed, or was made last.
    pub(crate) fn bytes(&self, input: Replayed<'_>) -> u64 {
        let last = self.spans.last().map_or(0, |(_, to)| *to);
        let is_live =
            |id: &u32| input.replay.allocations.get(*id).is_some_and(|of| of.begin <= last && freed(&of) > last);
        bytes(input, self.ids.iter().copied().filter(is_live))
    }

    /// Returns the edits that free it wherever the optimizer doesn't run.
    pub(crate) fn offload(&self, input: Replayed<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        for id in &self.ids {
            let Some(of) = input.replay.allocations.get(*id) else { continue };
            let freed = freed(&of);
            // What is older than the trace is away from its start on.
            let mut away_from = (of.begin == 0).then_some(0);
            let first = self.spans.partition_point(|(_, to)| *to < of.begin);
            for (from, to) in self.spans.iter().skip(first).copied().take_while(|(from, _)| *from < freed) {
                if let Some(position) = away_from.filter(|away| *away < from) {
                    edits.push(Edit { position, act: EditAct::Free(*id) });
                    edits.push(Edit { position: from, act: EditAct::Again(*id) });
                }
                away_from = Some(to);
            }
            let position = away_from.filter(|away| *away < freed);
            edits.extend(position.map(|position| Edit { position, act: EditAct::Free(*id) }));
        }
        edits
    }
}
