//! States that were built. Every view asks for the one at the cursor.

use std::sync::Arc;

use super::caches::Cache;
use replay::index::RecentCache;
use replay::{AllocatorState, Replay};

/// States kept for one device: the cursor's, the peak's, where a selection begins, and those at the ends of a range.
const KEPT: usize = 6;

/// The states of one device by position.
#[derive(Debug, Default)]
pub(super) struct States {
    kept: RecentCache<u32, Arc<AllocatorState>, KEPT>,
}

impl States {
    /// Returns the state at a position (at the last one, if there are fewer).
    pub(super) fn at(&mut self, replay: &Replay, position: u32) -> Arc<AllocatorState> {
        let position = position.min(replay.positions());
        let state = self.kept.remove(&position).unwrap_or_else(|| Arc::new(replay.state_at(position)));
        Arc::clone(self.kept.insert(position, state))
    }
}

impl Cache for States {
    fn bytes(&self) -> usize {
        0
    }

    fn forget_categories(&mut self) {}
}
