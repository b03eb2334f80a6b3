//! Which allocations are active at any position, found without walking the trace.
//!
//! Numbers are in order of `begin`, so what was made between a checkpoint and a position is one run of numbers. A
//! checkpoint keeps the numbers that are active there; what is active later is what of both has not ended.

use super::allocations::Allocations;

/// Fewest allocations between two checkpoints.
const SPACING: u32 = 1 << 13;

#[derive(Debug, Default)]
struct Checkpoint {
    position: u32,
    /// The first number made after it.
    next: u32,
    active: Vec<u32>,
}

/// Checkpoints over all allocations. Each holds at most as many numbers as lie between it and the one before it, so
/// all together hold no more than there are allocations.
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

    /// Lays checkpoints over the allocations that came since. What ends later does not matter to any that is laid.
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

    /// Numbers of the active allocations at a position, rising.
    pub(super) fn active_at(&self, allocations: &Allocations, position: u32) -> Vec<u32> {
        let i = self.checkpoints.partition_point(|c| c.position <= position).saturating_sub(1);
        let Some(from) = self.checkpoints.get(i) else { return Vec::new() };
        // The first checkpoint stands before everything, those of the start included.
        let made = allocations.made_by(position);
        let is_active = |&n: &u32| allocations.end.get(n as usize).is_some_and(|end| end > position);
        from.active.iter().copied().chain(from.next..made).filter(is_active).collect()
    }
}
