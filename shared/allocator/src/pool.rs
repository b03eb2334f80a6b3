//! Pools, and the free lists of their cached blocks.

use std::collections::BTreeSet;

use super::free_set::FreeSet;
use trace::units::{PoolId, Stream};

/// The cached blocks of one pool and one stream.
#[derive(Debug)]
pub(super) struct FreeList {
    /// The number of the pool.
    pub(super) pool: u32,
    /// The stream.
    pub(super) stream: Stream,
    /// The cached blocks that have memory.
    pub(super) blocks: FreeSet,
}

/// A small or a large pool (`BlockPool`).
#[derive(Debug)]
pub(super) struct Pool {
    /// Whether it serves requests up to 1 MiB.
    pub(super) is_small: bool,
    /// The private pool that it is half of, or else the default id.
    pub(super) owner: PoolId,
    /// The numbers of its free lists by stream handle, which PyTorch compares unsigned.
    pub(super) free_lists: Vec<(u64, u32)>,
    /// Ranges of expandable segments without memory: stream, address, block.
    pub(super) unmapped: BTreeSet<(u64, u64, u32)>,
    /// Number of searches while garbage was collected, modulo 2^32: the clock of the blocks' ages.
    pub(super) searches: u32,
}

impl Pool {
    pub(super) fn new(is_small: bool, owner: PoolId) -> Self {
        Self { is_small, owner, free_lists: Vec::new(), unmapped: BTreeSet::new(), searches: 0 }
    }

    /// Returns the free list of a stream, if it exists.
    #[inline]
    pub(super) fn free_list(&self, stream: Stream) -> Option<u32> {
        let key = stream.0 as u64;
        self.free_lists.iter().find(|(other, _)| *other == key).map(|(_, free_list)| *free_list)
    }

    /// Adds a free list at its place in the order.
    pub(super) fn add_free_list(&mut self, stream: Stream, free_list: u32) {
        let key = stream.0 as u64;
        let at = self.free_lists.partition_point(|(other, _)| *other < key);
        self.free_lists.insert(at, (key, free_list));
    }
}

/// A private pool: a CUDA graph's, or a `MemPool` (`PrivatePool`).
#[derive(Debug)]
pub(super) struct PrivatePool {
    /// Number of users: its creator and each open route. At 0 its memory may be released.
    pub(super) use_count: u32,
    /// Number of segments that it allocated (`cudaMalloc_count`).
    pub(super) segments: u32,
    /// The numbers of its halves.
    pub(super) small: u32,
    pub(super) large: u32,
    /// The options it was created with.
    pub(super) options: PoolOptions,
}

/// The options of a `MemPool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Whether requests of the default pool may use its cached blocks before they fail.
    pub use_on_oom: bool,
    /// Whether its blocks are never split.
    pub no_split: bool,
    /// Whether its segments come from an allocator of its own. Such segments are never expandable.
    pub has_allocator: bool,
}
