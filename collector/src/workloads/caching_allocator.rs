//! A small caching allocator that keeps its own history, for traces made without a GPU.
//!
//! It follows PyTorch's rules for ordinary segments: sizes rounded to 512 bytes, a pool for requests up to 1 MiB and
//! one for larger, best fit within pool and stream, splitting, merging, and giving all unused segments back before
//! a request fails. It has no settings and no expandable segments.

use std::collections::{BTreeMap, BTreeSet};

/// Every block's size is a multiple of this.
const QUANTUM: u64 = 512;
/// Largest block of the small pool.
const SMALL: u64 = 1 << 20;
/// Segments of the small pool.
const SMALL_SEGMENT: u64 = 2 << 20;
/// Segments for large blocks below [`OWN_SEGMENT`].
const LARGE_SEGMENT: u64 = 20 << 20;
/// Blocks from this size on get a segment of their own.
const OWN_SEGMENT: u64 = 10 << 20;
/// Such segments are a multiple of this.
const OWN_SEGMENT_STEP: u64 = 2 << 20;
/// A remainder of a large block is split off only above this size.
const LARGE_REMAINDER: u64 = 1 << 20;
/// Where the driver's addresses begin.
const FIRST_ADDRESS: u64 = 0x7f3a_4000_0000;

/// A pool's id as PyTorch writes it; `(0, 0)` is the default one.
pub type PoolId = (u64, u64);

/// The number of a stack, given by whoever keeps the stacks.
pub type Stack = usize;

/// The request could not be met. The history holds the `oom` entry.
#[derive(Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// One entry of the history.
#[derive(Clone, Debug)]
pub struct Entry {
    /// PyTorch's name of the action.
    pub action: &'static str,
    /// The block's or segment's address; for `oom` the device's free bytes.
    pub address: u64,
    /// Bytes: requested for blocks, whole for segments, rounded for `oom`.
    pub size: u64,
    /// The stream that the block belongs to.
    pub stream: i64,
    /// The pool.
    pub pool: PoolId,
    /// Microseconds since the epoch.
    pub time_us: i64,
    /// Who asked.
    pub stack: Stack,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// In use.
    Allocated,
    /// Freed, and waiting for a stream until this time.
    Pending(i64),
    /// Cached.
    Inactive,
}

/// A piece of a segment.
#[derive(Clone, Debug)]
pub struct Block {
    /// Rounded size in bytes.
    pub size: u64,
    /// Requested size in bytes.
    pub requested: u64,
    /// What it is used for.
    pub state: BlockState,
    /// Who asked for it.
    pub stack: Stack,
    /// Address of its segment.
    segment: u64,
}

/// A range taken from the driver.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Size in bytes.
    pub size: u64,
    /// Its stream.
    pub stream: i64,
    /// Its pool.
    pub pool: PoolId,
    /// Whether it serves blocks up to 1 MiB.
    pub is_small: bool,
    /// Who made the allocator take it.
    pub stack: Stack,
}

/// Cached blocks in the order of the search: within pool, kind and stream by size, then address.
type FreeKey = (PoolId, bool, i64, u64, u64);

/// The allocator of one device.
#[derive(Debug)]
pub struct CachingAllocator {
    /// The time that entries get, in microseconds since the epoch; the workload moves it on.
    pub now_us: i64,
    capacity: u64,
    reserved: u64,
    next_address: u64,
    segments: BTreeMap<u64, Segment>,
    blocks: BTreeMap<u64, Block>,
    free: BTreeSet<FreeKey>,
    /// Addresses of pending blocks, oldest first.
    pending: Vec<u64>,
    history: Vec<Entry>,
}

impl CachingAllocator {
    /// For a device with `capacity` bytes.
    pub fn new(capacity: u64, now_us: i64) -> Self {
        Self {
            now_us,
            capacity,
            reserved: 0,
            next_address: FIRST_ADDRESS,
            segments: BTreeMap::new(),
            blocks: BTreeMap::new(),
            free: BTreeSet::new(),
            pending: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Bytes taken from the driver.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Everything that happened.
    pub fn history(&self) -> &[Entry] {
        &self.history
    }

    /// All segments by address, each with its blocks by address.
    pub fn segments(&self) -> impl Iterator<Item = (u64, &Segment, Vec<(u64, &Block)>)> {
        self.segments.iter().map(|(&address, segment)| {
            let blocks = self.blocks.range(address..address + segment.size).map(|(&at, block)| (at, block)).collect();
            (address, segment, blocks)
        })
    }

    /// Hands out `size` bytes and gives their address.
    pub fn allocate(&mut self, size: u64, stream: i64, pool: PoolId, stack: Stack) -> Result<u64, OutOfMemory> {
        self.complete(|due, now| due <= now);
        let rounded = size.max(1).next_multiple_of(QUANTUM);
        let is_small = rounded <= SMALL;
        let found = self.best_fit(rounded, is_small, stream, pool);
        let found = found.or_else(|| self.take_segment(rounded, is_small, stream, pool, stack));
        let found = found.or_else(|| {
            self.release_cached();
            self.take_segment(rounded, is_small, stream, pool, stack)
        });
        let Some(address) = found else {
            let free = self.capacity - self.reserved;
            self.record("oom", free, rounded, stream, pool, stack);
            return Err(OutOfMemory);
        };

        let block = &self.blocks[&address];
        self.free.remove(&(pool, is_small, stream, block.size, address));
        let (segment, remainder) = (block.segment, block.size - rounded);
        let split = if is_small { remainder >= QUANTUM } else { remainder > LARGE_REMAINDER };
        let block_size = if split { rounded } else { rounded + remainder };
        if split {
            let rest = Block { size: remainder, requested: 0, state: BlockState::Inactive, stack, segment };
            self.blocks.insert(address + rounded, rest);
            self.free.insert((pool, is_small, stream, remainder, address + rounded));
        }
        self.blocks
            .insert(address, Block { size: block_size, requested: size, state: BlockState::Allocated, stack, segment });
        self.record("alloc", address, size, stream, pool, stack);
        Ok(address)
    }

    /// Gives a block back. One that another stream used stays pending for `pending_us`, and goes back to its pool with
    /// the first request after that.
    pub fn free(&mut self, address: u64, pending_us: Option<i64>, stack: Stack) {
        let now = self.now_us;
        let Some(block) = self.blocks.get_mut(&address).filter(|block| block.state == BlockState::Allocated) else {
            return;
        };
        let requested = block.requested;
        block.state = BlockState::Pending(now + pending_us.unwrap_or(0));
        let segment = &self.segments[&block.segment];
        let (stream, pool) = (segment.stream, segment.pool);
        self.record("free_requested", address, requested, stream, pool, stack);
        if pending_us.is_some() {
            self.pending.push(address);
        } else {
            self.back_to_pool(address, stack);
        }
    }

    /// The smallest cached block that holds `size`.
    fn best_fit(&self, size: u64, is_small: bool, stream: i64, pool: PoolId) -> Option<u64> {
        let &(p, small, s, _, address) = self.free.range((pool, is_small, stream, size, 0)..).next()?;
        (p == pool && small == is_small && s == stream).then_some(address)
    }

    /// Takes a segment for a block of `size` from the driver, if the device has room.
    fn take_segment(&mut self, size: u64, is_small: bool, stream: i64, pool: PoolId, stack: Stack) -> Option<u64> {
        let segment_size = match size {
            _ if is_small => SMALL_SEGMENT,
            ..OWN_SEGMENT => LARGE_SEGMENT,
            _ => size.next_multiple_of(OWN_SEGMENT_STEP),
        };
        if self.reserved + segment_size > self.capacity {
            return None;
        }
        let address = self.next_address;
        self.next_address += segment_size;
        self.reserved += segment_size;
        self.segments.insert(address, Segment { size: segment_size, stream, pool, is_small, stack });
        let whole = Block { size: segment_size, requested: 0, state: BlockState::Inactive, stack, segment: address };
        self.blocks.insert(address, whole);
        self.free.insert((pool, is_small, stream, segment_size, address));
        self.record("segment_alloc", address, segment_size, stream, pool, stack);
        Some(address)
    }

    /// Waits for all streams, then gives every segment of the default pool that is not in use back to the driver.
    fn release_cached(&mut self) {
        self.complete(|_, _| true);
        let unused: Vec<u64> = self
            .segments
            .iter()
            .filter(|(address, segment)| {
                let block = &self.blocks[address];
                segment.pool == (0, 0) && block.state == BlockState::Inactive && block.size == segment.size
            })
            .map(|(&address, _)| address)
            .collect();
        for address in unused {
            self.blocks.remove(&address);
            if let Some(Segment { size, stream, pool, is_small, stack }) = self.segments.remove(&address) {
                self.free.remove(&(pool, is_small, stream, size, address));
                self.reserved -= size;
                self.record("segment_free", address, size, stream, pool, stack);
            }
        }
    }

    /// Ends the waiting of those pending blocks of whose due time and the present time `is_done` holds.
    fn complete(&mut self, is_done: impl Fn(i64, i64) -> bool) {
        let now = self.now_us;
        let blocks = &self.blocks;
        let (done, waiting) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|address| matches!(blocks[address].state, BlockState::Pending(due) if is_done(due, now)));
        self.pending = waiting;
        let done: Vec<u64> = done;
        for address in done {
            self.back_to_pool(address, self.blocks[&address].stack);
        }
    }

    /// Puts a block that nothing uses any more into its pool, merged with its inactive neighbours.
    fn back_to_pool(&mut self, mut address: u64, stack: Stack) {
        let Some(mut block) = self.blocks.remove(&address) else { return };
        let segment = self.segments[&block.segment].clone();
        self.record("free_completed", address, block.requested, segment.stream, segment.pool, stack);
        let key = |size, at| (segment.pool, segment.is_small, segment.stream, size, at);
        let mergeable = |other: &Block| other.state == BlockState::Inactive && other.segment == block.segment;

        let before = self.blocks.range(..address).next_back().filter(|(_, other)| mergeable(other));
        let before = before.map(|(&at, other)| (at, other.size));
        let after = self.blocks.get(&(address + block.size)).filter(|other| mergeable(other)).map(|other| other.size);
        if let Some(size) = after {
            self.blocks.remove(&(address + block.size));
            self.free.remove(&key(size, address + block.size));
            block.size += size;
        }
        if let Some((at, size)) = before {
            self.blocks.remove(&at);
            self.free.remove(&key(size, at));
            (address, block.size) = (at, block.size + size);
        }
        block.state = BlockState::Inactive;
        block.requested = 0;
        self.free.insert(key(block.size, address));
        self.blocks.insert(address, block);
    }

    fn record(&mut self, action: &'static str, address: u64, size: u64, stream: i64, pool: PoolId, stack: Stack) {
        self.history.push(Entry { action, address, size, stream, pool, time_us: self.now_us, stack });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The names of all actions so far.
    fn actions(allocator: &CachingAllocator) -> Vec<&str> {
        allocator.history().iter().map(|entry| entry.action).collect()
    }

    #[test]
    fn blocks_are_split_and_merged() {
        let mut a = CachingAllocator::new(64 * MIB, 0);
        let first = a.allocate(3 * MIB, 0, (0, 0), 0).unwrap();
        let second = a.allocate(5 * MIB, 0, (0, 0), 0).unwrap();
        assert_eq!((second - first, a.reserved()), (3 * MIB, 20 * MIB));
        a.free(first, None, 0);
        assert_eq!(a.allocate(2 * MIB, 0, (0, 0), 0), Ok(first));
        a.free(first, None, 0);
        a.free(second, None, 0);
        let blocks: Vec<_> = a.segments().flat_map(|(_, _, blocks)| blocks).map(|(_, block)| block.size).collect();
        assert_eq!(blocks, [20 * MIB]);
    }

    #[test]
    fn a_pending_block_is_not_used_again_before_its_time() {
        let mut a = CachingAllocator::new(64 * MIB, 0);
        let first = a.allocate(1, 0, (0, 0), 0).unwrap();
        a.free(first, Some(100), 0);
        assert_ne!(a.allocate(1, 0, (0, 0), 0), Ok(first));
        a.now_us = 100;
        assert_eq!(a.allocate(1, 0, (0, 0), 0), Ok(first));
    }

    #[test]
    fn unused_segments_go_back_before_a_request_fails() {
        let mut a = CachingAllocator::new(64 * MIB, 0);
        let first = a.allocate(40 * MIB, 0, (0, 0), 0).unwrap();
        a.free(first, None, 0);
        a.allocate(50 * MIB, 0, (0, 0), 0).unwrap();
        assert_eq!(a.allocate(20 * MIB, 0, (0, 0), 0), Err(OutOfMemory));
        let tail = ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "segment_alloc"];
        assert_eq!(actions(&a)[..6], tail);
        assert_eq!(actions(&a)[6..], ["alloc", "oom"]);
    }
}
