//! States that were built, kept for the next question about the same position: every view asks for the one at the
//! cursor.

use std::sync::Arc;

use crate::replay::{AllocatorState, Replay};

/// States kept for one device: the cursor's, the peak's, and where a selection begins.
const KEPT: usize = 4;

/// The states of one device, the one used last at the end.
#[derive(Debug, Default)]
pub struct States {
    kept: Vec<Arc<AllocatorState>>,
}

impl States {
    /// The state at a position (at the last one, when there are fewer).
    pub fn at(&mut self, replay: &Replay, position: u32) -> Arc<AllocatorState> {
        let position = position.min(replay.positions());
        let state = match self.kept.iter().position(|state| state.position == position) {
            Some(i) => self.kept.remove(i),
            None => Arc::new(replay.state_at(position)),
        };
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push(Arc::clone(&state));
        state
    }
}
