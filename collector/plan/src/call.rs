//! One call of a part of a model in the forward pass: what it makes, what it keeps for the backward pass, and what it returns.

use replay::{Allocation, Replayed};
use whatif::{Edit, EditAct};

use crate::phases::{Phases, freed};

/// The part of the backward pass that belongs to a call, in positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Backward {
    /// Where it begins: what the call kept is needed from here on.
    from: u32,
    /// Where the last of what the call kept has been freed.
    to: u32,
}

/// One call. Allocations are numbers of the trace.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What was made in it, in order.
    made: Vec<u32>,
    /// The position at which it has returned.
    end: u32,
    /// What it kept for the backward pass, without its result, in order.
    pub(crate) saved: Vec<u32>,
    /// Its result, if the backward pass finds it.
    result: Option<u32>,
    /// Its results that the backward pass doesn't find, since nothing needs them.
    passed_on: Vec<u32>,
    /// Its backward pass; `None` if the trace ends before.
    backward: Option<Backward>,
}

impl Call {
    /// Returns a call that made some allocations; `None` if it keeps nothing for the backward pass. Its backward pass is known once
    /// it is [placed](place_backward).
    pub(crate) fn of(input: Replayed<'_>, phases: &Phases, made: Vec<u32>) -> Option<Self> {
        let get = |id: u32| input.replay.allocations.get(id);
        let last = *made.last()?;
        // Until the next allocation, what was only needed within the call is freed. What the backward pass frees comes after it.
        let next =
            get(last.saturating_add(1)).map_or_else(|| input.replay.positions(), |next| next.begin.saturating_sub(1));
        let saved = made.iter().filter_map(|id| get(*id).filter(|of| phases.is_saved(*id, of)));
        let first_free = saved.map(|of| freed(&of).saturating_sub(1)).min()?;
        let end = next.min(first_free);
        let is_live = |id: &u32| get(*id).is_some_and(|of| freed(&of) > end);
        let is_saved = |id: &u32| get(*id).is_some_and(|of| phases.is_saved(*id, &of));
        let (mut saved, passed_on): (Vec<u32>, Vec<u32>) = made.iter().copied().filter(is_live).partition(is_saved);
        if saved.is_empty() {
            return None;
        }
        // Of those that are freed at once or never, the one that was made last.
        let first_freed = saved.iter().copied().rev().min_by_key(|id| freed_at(input, *id));
        let result = first_freed.filter(|_| passed_on.is_empty());
        saved.retain(|id| Some(*id) != result);
        Some(Self { made, end, saved, result, passed_on, backward: None })
    }

    /// Whether its backward pass is in the trace.
    pub(crate) fn is_whole(&self) -> bool {
        self.backward.is_some()
    }

    /// Returns the bytes that it made.
    pub(crate) fn made_bytes(&self, input: Replayed<'_>) -> u64 {
        bytes(input, self.made.iter().copied())
    }

    /// Returns the bytes that it kept for the backward pass, without its result.
    pub(crate) fn saved_bytes(&self, input: Replayed<'_>) -> u64 {
        bytes(input, self.saved.iter().copied())
    }

    /// Adds the edits that checkpoint the call. `next` is the call after it, if that is checkpointed as well: it takes the result
    /// of this one, which then stays until it has been recomputed.
    pub(crate) fn checkpoint(&self, input: Replayed<'_>, next: Option<&Self>, edits: &mut Vec<Edit>) {
        let end = self.end;
        edits.extend(self.saved.iter().map(|id| Edit { position: end, act: EditAct::Free(*id) }));
        if let Some(next) = next {
            // What lives longer than that stays as it is.
            let to = next.backward.map_or(Allocation::NEVER, |of| of.to);
            for id in self.passed_on.iter().filter(|id| freed_at(input, **id) < to) {
                edits.push(Edit { position: end, act: EditAct::Keep(*id) });
                edits.extend(next.backward.map(|of| Edit { position: of.to, act: EditAct::Free(*id) }));
            }
        }
        if let Some(backward) = self.backward {
            let acts = self.recomputed(input).into_iter();
            edits.extend(acts.map(|act| Edit { position: backward.from, act }));
        }
    }

    /// Returns what offloading the call moves, each with the call whose backward pass needs it first: what it kept, and its result if
    /// `next` is the call after it.
    fn offloaded<'c>(&'c self, next: Option<&'c Self>) -> impl Iterator<Item = (u32, &'c Self)> {
        self.saved.iter().map(move |id| (*id, self)).chain(self.result.zip(next))
    }

    /// Returns the bytes that offloading the call moves out.
    pub(crate) fn moved_bytes(&self, input: Replayed<'_>, next: Option<&Self>) -> u64 {
        bytes(input, self.offloaded(next).map(|(id, _)| id))
    }

    /// Adds the edits that offload the call. `next` is the call after it, if that is offloaded as well.
    pub(crate) fn offload(&self, input: Replayed<'_>, next: Option<&Self>, edits: &mut Vec<Edit>) {
        for (id, user) in self.offloaded(next) {
            edits.push(Edit { position: self.end, act: EditAct::Free(id) });
            if let Some(needed) = user.backward {
                let position = needed.from.min(freed_at(input, id).saturating_sub(1));
                edits.push(Edit { position, act: EditAct::Again(id) });
            }
        }
    }

    /// Returns what recomputing it asks for and frees, in the order in which the call did.
    fn recomputed(&self, input: Replayed<'_>) -> Vec<EditAct> {
        // Frees of a position come before what is asked for there.
        let mut acts: Vec<(u32, bool, EditAct)> = Vec::new();
        for id in &self.made {
            let Some(of) = input.replay.allocations.get(*id) else { continue };
            if self.saved.binary_search(id).is_ok() {
                acts.push((of.begin, true, EditAct::Again(*id)));
                continue;
            }
            acts.push((of.begin, true, EditAct::Copy(*id)));
            acts.push((freed(&of).min(self.end.saturating_add(1)), false, EditAct::FreeCopy(*id)));
        }
        acts.sort_by_key(|(position, is_asked, _)| (*position, *is_asked));
        acts.into_iter().map(|(_, _, act)| act).collect()
    }
}

/// Finds the backward pass of each call of one forward pass: from the last call back, each begins where the one after it has ended.
pub(crate) fn place_backward(input: Replayed<'_>, phases: &Phases, calls: &mut [Call]) {
    let mut after: Option<Backward> = None;
    for call in calls.iter_mut().rev() {
        // One that kept nothing but its result has that.
        let kept = call.saved.iter().chain(call.result.iter().filter(|_| call.saved.is_empty()));
        let ends = kept.map(|id| freed_at(input, *id)).filter(|at| *at != Allocation::NEVER);
        let is_known = call.made.first().is_some_and(|id| phases.has_backward(*id));
        let (Some(first), Some(to)) = (ends.clone().min().filter(|_| is_known), ends.max()) else { continue };
        // Before the event that frees the first of them.
        let latest = first.saturating_sub(1);
        let after_result = call.result.map(|id| freed_at(input, id)).filter(|at| *at <= latest);
        let after_next = after.map(|next| next.to).filter(|at| *at <= latest);
        let from = after_result.max(after_next).unwrap_or(latest);
        let backward = Backward { from, to };
        call.backward = Some(backward);
        after = Some(backward);
    }
}

/// Returns the position right after an allocation was freed; [`Allocation::NEVER`] if it was not.
fn freed_at(input: Replayed<'_>, id: u32) -> u32 {
    input.replay.allocations.get(id).map_or(Allocation::NEVER, |of| freed(&of))
}

/// Returns the requested bytes of some allocations.
pub(crate) fn bytes(input: Replayed<'_>, ids: impl Iterator<Item = u32>) -> u64 {
    let requested = |id: u32| input.replay.allocations.requested.get(id as usize).unwrap_or_default();
    ids.map(requested).fold(0, u64::saturating_add)
}
