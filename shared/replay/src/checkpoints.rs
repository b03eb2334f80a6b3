//! Finds the allocations that are active at any position without walking the trace.
//!
//! Numbers are in order of `begin`, so the allocations made between a checkpoint and a position are one range of
//! numbers. A checkpoint keeps the numbers that are active there. The active ones at a later position are those of the
//! checkpoint and of the range that have not ended.

use super::allocations::Allocations;

/// The least number of allocations between two checkpoints.
const SPACING: u32 = 1 << 13;

#[derive(Debug, Default)]
struct Checkpoint {
    position: u32,
    /// The first number made after it.
    next: u32,
    active: Vec<u32>,
}

/// Checkpoints over all allocations. Each keeps at most as many numbers as lie between it and the checkpoint before, so
/// that all together keep no more numbers than there are allocations.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
}

impl Checkpoints {
    pub(super) fn build(allocations: &Allocations) -> Self {
        let mut new = Self { checkpoints: vec![Checkpoint::default()] };
        new.extend(allocations);
        new
    }

    /// Adds checkpoints for new allocations. Ends that are found later do not change existing checkpoints.
    pub(super) fn extend(&mut self, allocations: &Allocations) {
        let count = allocations.len() as u32;
        while let Some(last) = self.checkpoints.last() {
            let wanted = SPACING.max(last.active.len() as u32);
            let next = last.next.saturating_add(wanted);
            if next >= count {
                break;
            }
            let position = allocations.begin.get(next as usize - 1).unwrap_or_default();
            let active = self.active_at(allocations, position);
            self.checkpoints.push(Checkpoint { position, next: allocations.made_by(position), active });
        }
    }

    /// Returns the numbers of the active allocations at a position, in ascending order.
    pub(super) fn active_at(&self, allocations: &Allocations, position: u32) -> Vec<u32> {
        let i = self.checkpoints.partition_point(|c| c.position <= position).saturating_sub(1);
        let Some(from) = self.checkpoints.get(i) else { return Vec::new() };
        // The first checkpoint is before all allocations, including those of the start.
        let made = allocations.made_by(position);
        let is_active = |&n: &u32| allocations.end.get(n as usize).is_some_and(|end| end > position);
        from.active.iter().copied().chain(from.next..made).filter(is_active).collect()
    }
}
