//! The active memory at a position by call site.

use rustc_hash::FxHashMap;

use replay::Replay;
use trace::frames::StackId;
use trace::order::SortFew;

/// The active memory of one call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The call site.
    pub stack: StackId,
    /// Requested bytes of its active allocations.
    pub bytes: u64,
    /// The number of those allocations.
    pub count: u32,
}

/// Returns the active memory of each call site at a position, the largest first.
pub fn held_at(replay: &Replay, position: u32) -> Vec<Held> {
    held(replay, replay.active_at(position).into_iter())
}

/// Returns the memory of some allocations by call site, the largest first; equal ones by stack number.
pub fn held(replay: &Replay, allocations: impl Iterator<Item = u32>) -> Vec<Held> {
    let mut sites: FxHashMap<u32, Held> = FxHashMap::default();
    for id in allocations {
        let stack = replay.allocations.stack.get(id as usize).unwrap_or(0);
        let site = sites.entry(stack).or_insert(Held { stack: StackId(stack), bytes: 0, count: 0 });
        site.bytes = site.bytes.saturating_add(replay.allocations.requested.get(id as usize).unwrap_or(0));
        site.count += 1;
    }
    let mut held: Vec<Held> = sites.into_values().collect();
    held.sort_few_by(|a, b| b.bytes.cmp(&a.bytes).then(a.stack.cmp(&b.stack)));
    held
}
