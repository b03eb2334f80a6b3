//! Classifies allocations that are older than the recording and have no stack, by comparing their sizes with those of
//! gradients.

use rustc_hash::FxHashMap;

use super::Rule;
use super::phase::Phases;
use replay::Allocations;

/// Finds parameters and optimizer state among the allocations before the recording that no rule fits.
///
/// Each parameter has a gradient of its size, and an optimizer keeps one or two more tensors of that size. The
/// parameters were made first, so they have the lower addresses.
pub(super) fn classify(allocations: &Allocations, rules: &mut [u8], phases: &Phases) {
    let early = allocations.made_by(0);
    let is_early = |id: u32| {
        let is_unknown = rules.get(id as usize) == Some(&(Rule::Unknown as u8));
        let gone = allocations.get(id).map_or(0, |a| a.freed.min(a.end));
        is_unknown && phases.outlives_first_step(gone)
    };
    let unknown: Vec<u32> = (0..early).filter(|id| is_early(*id)).collect();
    if unknown.is_empty() || phases.is_inference {
        return;
    }
    let gradients = most_at_once(allocations, rules);
    let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
    // Allocations at the start are in the order of addresses.
    for id in unknown {
        let bytes = allocations.requested.get(id as usize).unwrap_or(0);
        let Some(&count) = gradients.get(&bytes) else { continue };
        let earlier = seen.entry(bytes).or_insert(0);
        let rule = match *earlier < count {
            true => Rule::EarlyParameter,
            // Further gradients of that size may have been lost.
            false if phases.has_lost => Rule::Unknown,
            false => Rule::EarlyState,
        };
        *earlier += 1;
        if let Some(slot) = rules.get_mut(id as usize) {
            *slot = rule as u8;
        }
    }
}

/// Returns for each size how many gradients of it were live at once.
fn most_at_once(allocations: &Allocations, rules: &[u8]) -> FxHashMap<u64, u32> {
    let is_gradient = |id: &u32| rules.get(*id as usize) == Some(&(Rule::BackwardKept as u8));
    let mut changes: Vec<(u32, bool, u64)> = Vec::new();
    for a in (0..rules.len() as u32).filter(is_gradient).filter_map(|id| allocations.get(id)) {
        changes.push((a.begin, true, a.requested));
        changes.push((a.freed.min(a.end), false, a.requested));
    }
    changes.sort_unstable();
    let (mut live, mut most): (FxHashMap<u64, u32>, FxHashMap<u64, u32>) = Default::default();
    for (_, begins, bytes) in changes {
        let now = live.entry(bytes).or_insert(0);
        *now = if begins { *now + 1 } else { now.saturating_sub(1) };
        let most = most.entry(bytes).or_insert(0);
        *most = (*most).max(*now);
    }
    most
}
