//! What is reserved, at any position.

use crate::frames::StackId;
use crate::units::{Address, PoolId, Stream};

/// A range taken from the driver: a native segment, or a contiguous mapped range of an expandable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it starts.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// Its stream.
    pub stream: Stream,
    /// Its pool, as far as it is known.
    pub pool: PoolId,
    /// Whether it serves requests up to 1 MiB.
    pub is_small: bool,
    /// Whether it can grow.
    pub is_expandable: bool,
    /// The position right after it (or its newest part) was taken; 0 when it was there at the start.
    pub since: u32,
    /// Who made the allocator take it.
    pub stack: StackId,
}

impl Range {
    /// The first address after it.
    pub const fn end(&self) -> u64 {
        self.address.0.saturating_add(self.size)
    }
}
