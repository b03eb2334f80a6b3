//! What the allocator tells while it works: one entry for each thing that happens, in PyTorch's order.

use crate::event::Action;
use crate::frames::StackId;
use crate::units::{PoolId, Stream};

/// One step of the allocator (`TraceEntry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// What happened.
    pub action: Action,
    /// The block's or range's address; for [`Action::Oom`] the device's free bytes.
    pub address: u64,
    /// Bytes; see [`Action`] for which.
    pub size: u64,
    /// The stream of the block or segment; 0 for a snapshot.
    pub stream: Stream,
    /// The pool that it belongs to.
    pub pool: PoolId,
    /// Who asked, as the caller numbered it; 0 when nobody said.
    pub stack: StackId,
}

/// Where entries go. Called in the middle of the allocator's work: it must be quick, and must not call back.
pub trait TraceSink {
    /// Whether entries are made at all.
    const LISTENS: bool = true;

    /// Takes one entry.
    fn record(&mut self, entry: TraceEntry);
}

/// Nobody listens.
impl TraceSink for () {
    const LISTENS: bool = false;

    #[inline]
    fn record(&mut self, _: TraceEntry) {}
}

/// Everything is kept.
impl TraceSink for Vec<TraceEntry> {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        self.push(entry);
    }
}
