//! The sums of pinned host memory, as reports and the page show them.

use serde::{Deserialize, Serialize};

/// The pinned host memory of a process when its snapshot was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMemory {
    /// Bytes of live tensors.
    pub allocated_bytes: u64,
    /// Bytes that were freed, and wait until the device has copied them.
    pub waiting_bytes: u64,
    /// Bytes of all segments: allocated, waiting and cached.
    pub reserved_bytes: u64,
    /// Number of segments.
    pub segments: u32,
    /// Number of blocks, including cached ones.
    pub blocks: u32,
    /// Number of events.
    pub events: u64,
    /// The most bytes allocated or waiting at once, as far back as the events go; `None` without events.
    pub peak_active_bytes: Option<u64>,
    /// The most bytes of all segments at once, as far back as the events go; `None` without events.
    pub peak_reserved_bytes: Option<u64>,
}
