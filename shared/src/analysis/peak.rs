//! What is held at a position, by call site: the table that answers "what used it all".

use rustc_hash::FxHashMap;

use crate::frames::StackId;
use crate::replay::Replay;

/// What one call site holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The call site.
    pub stack: StackId,
    /// Requested bytes of its active allocations.
    pub bytes: u64,
    /// Their number.
    pub count: u32,
}

/// What each call site holds at a position, the most first.
pub fn held_at(replay: &Replay, position: u32) -> Vec<Held> {
    held(replay, replay.active_at(position).into_iter())
}

/// What each call site holds of some allocations, the most first; equals by stack number.
pub fn held(replay: &Replay, allocations: impl Iterator<Item = u32>) -> Vec<Held> {
    let mut sites: FxHashMap<u32, Held> = FxHashMap::default();
    for id in allocations {
        let stack = replay.allocations.stack.get(id as usize).unwrap_or(0);
        let site = sites.entry(stack).or_insert(Held { stack: StackId(stack), bytes: 0, count: 0 });
        site.bytes = site.bytes.saturating_add(replay.allocations.requested.get(id as usize).unwrap_or(0));
        site.count += 1;
    }
    let mut held: Vec<Held> = sites.into_values().collect();
    held.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.stack.cmp(&b.stack)));
    held
}
