//! Pools, and the free_lists in them where cached blocks lie.

use std::collections::BTreeSet;

use super::free_set::FreeSet;
use crate::units::{PoolId, Stream};

/// The cached blocks of one pool and one stream.
#[derive(Debug)]
pub(super) struct FreeList {
    /// The pool, by number.
    pub(super) pool: u32,
    /// The stream.
    pub(super) stream: Stream,
    /// Cached blocks with memory behind them.
    pub(super) blocks: FreeSet,
}

/// A small or a large pool (`BlockPool`).
#[derive(Debug)]
pub(super) struct Pool {
    /// Whether it serves requests up to 1 MiB.
    pub(super) is_small: bool,
    /// The private pool that it is a half of; the default id otherwise.
    pub(super) owner: PoolId,
    /// Its free_lists by stream, compared as PyTorch compares handles: unsigned.
    pub(super) free_lists: Vec<(u64, u32)>,
    /// Ranges of expandable segments without memory: stream, address, block.
    pub(super) unmapped: BTreeSet<(u64, u64, u32)>,
    /// Searches so far while garbage is collected, modulo 2^32: the clock of the blocks' ages.
    pub(super) searches: u32,
}

impl Pool {
    pub(super) fn new(is_small: bool, owner: PoolId) -> Self {
        Self { is_small, owner, free_lists: Vec::new(), unmapped: BTreeSet::new(), searches: 0 }
    }

    /// The free_list of a stream, if it has one.
    #[inline]
    pub(super) fn free_list(&self, stream: Stream) -> Option<u32> {
        let key = stream.0 as u64;
        self.free_lists.iter().find(|(other, _)| *other == key).map(|(_, free_list)| *free_list)
    }

    /// Puts a new free_list where it belongs in the order.
    pub(super) fn add_free_list(&mut self, stream: Stream, free_list: u32) {
        let key = stream.0 as u64;
        let at = self.free_lists.partition_point(|(other, _)| *other < key);
        self.free_lists.insert(at, (key, free_list));
    }
}

/// A pool of its own: a CUDA graph's, or a `MemPool` (`PrivatePool`).
#[derive(Debug)]
pub(super) struct PrivatePool {
    /// Who uses it: 1 for the one that made it, and 1 for each open route. At 0 its memory may go.
    pub(super) use_count: u32,
    /// Segments that it took (`cudaMalloc_count`).
    pub(super) segments: u32,
    /// Its halves, by number.
    pub(super) small: u32,
    pub(super) large: u32,
    /// What was asked for when it was made.
    pub(super) options: PoolOptions,
}

/// How a `MemPool` behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// Whether requests of the default pool may take cached blocks of this one before they fail.
    pub use_on_oom: bool,
    /// Whether its blocks are never split.
    pub no_split: bool,
    /// Whether its segments come from an allocator of its own, which never grow.
    pub has_allocator: bool,
}
