//! The requests of a trace as plain calls, for an allocator of any kind: CUDA's own, or none.

use super::requests::{Act, Requests};
use trace::units::{PoolId, Stream};

/// A call of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It asked for memory, and got it.
    Allocate {
        /// The number of the allocation, below [`Requests::numbers`].
        number: u32,
        /// Bytes.
        size: u64,
        /// The stream that it was for.
        stream: Stream,
        /// The private pool that it came from, or the default one.
        pool: PoolId,
    },
    /// It freed an allocation.
    Free {
        /// The number of the allocation.
        number: u32,
        /// Whether other streams still used it.
        is_used_elsewhere: bool,
    },
    /// It called `empty_cache`.
    EmptyCache,
}

impl Requests {
    /// Returns how many numbers allocations have.
    pub fn numbers(&self) -> usize {
        self.asked.len()
    }

    /// Returns how many requests failed when they were recorded. They are not among the [`calls`](Self::calls): what another
    /// allocator would have served changes what the program did next.
    pub fn failed(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.act, Act::Failed(_))).count()
    }

    /// Returns the allocations that were live before the first call.
    pub fn held_at_start(&self) -> impl Iterator<Item = Call> {
        self.live.iter().filter(|live| !live.is_waiting).filter_map(|live| self.allocate(live.number))
    }

    /// Returns the calls in their order. What the recorded allocator did by itself, and ends of private pools, are left out.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        self.steps.iter().filter_map(|step| match step.act {
            Act::Malloc(number) => self.allocate(number),
            Act::Free(number) => Some(Call::Free { number, is_used_elsewhere: false }),
            Act::FreeLater(number) => Some(Call::Free { number, is_used_elsewhere: true }),
            Act::EmptyCache => Some(Call::EmptyCache),
            Act::Failed(_) | Act::Settled(_) | Act::EndPool(_) | Act::LeavePool(_) | Act::Begin => None,
        })
    }

    /// Returns the most bytes that were requested at once: no allocator can do with less.
    pub fn peak_requested(&self) -> u64 {
        let (mut now, mut peak) = (0u64, 0u64);
        for call in self.held_at_start().chain(self.calls()) {
            match call {
                Call::Allocate { size, .. } => now = now.saturating_add(size),
                Call::Free { number, .. } => {
                    let size = self.asked.get(number as usize).map_or(0, |asked| asked.size);
                    now = now.saturating_sub(size);
                }
                Call::EmptyCache => {}
            }
            peak = peak.max(now);
        }
        peak
    }

    fn allocate(&self, number: u32) -> Option<Call> {
        let asked = self.asked.get(number as usize)?;
        let source = self.sources.get(asked.source as usize)?;
        Some(Call::Allocate { number, size: asked.size, stream: source.stream, pool: source.pool })
    }
}
