//! The allocator's reports: one entry for each event, in PyTorch's order.

use serde::{Deserialize, Serialize};

use trace::event::Action;
use trace::frames::StackId;
use trace::units::{PoolId, Stream};

/// An event of the allocator (`TraceEntry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEntry {
    /// The kind of event.
    pub action: Action,
    /// The address of the block or range; for [`Action::Oom`], the device's free bytes.
    pub address: u64,
    /// Size in bytes; [`Action`] says of what.
    pub size: u64,
    /// The stream of the block or segment; 0 for a snapshot.
    pub stream: Stream,
    /// The pool of the block or segment.
    pub pool: PoolId,
    /// The call site, as the caller numbered it; 0 if unknown.
    pub stack: StackId,
}

/// Receives entries. It is called in the middle of the allocator's work, so it must be quick and must not call back.
pub trait TraceSink {
    /// Whether entries are created at all.
    const LISTENS: bool = true;

    /// Receives an entry.
    fn record(&mut self, entry: TraceEntry);

    /// Receives two entries at once: the request for a free, and its completion right after it, which differs in nothing but
    /// its action. Most frees are of this kind, so a sink can save work here.
    #[inline]
    fn record_freed(&mut self, requested: TraceEntry) {
        self.record(requested);
        self.record(requested.completed());
    }
}

impl TraceEntry {
    /// Returns the completion of a free that was requested by this entry.
    #[must_use]
    pub fn completed(self) -> Self {
        Self { action: Action::FreeCompleted, ..self }
    }
}

/// Discards all entries, which are not even created.
impl TraceSink for () {
    const LISTENS: bool = false;

    #[inline]
    fn record(&mut self, _: TraceEntry) {}
}

/// Keeps all entries.
impl TraceSink for Vec<TraceEntry> {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        self.push(entry);
    }
}
