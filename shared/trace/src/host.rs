//! Pinned host memory: what PyTorch's allocator of page-locked memory holds besides device memory.

use super::{Events, Segment};

/// The pinned host memory of a process. Snapshots of torch 2.14 and later have it.
#[derive(Debug, Default)]
pub struct HostMemory {
    /// Its segments when the snapshot was taken, by address. Each has one block.
    pub segments: Vec<Segment>,
    /// Its events, oldest first; empty if the history was not recorded.
    pub events: Events,
}

impl HostMemory {
    /// Returns whether the file says nothing about pinned host memory.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.events.is_empty()
    }
}
