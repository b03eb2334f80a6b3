//! The allocator of one device: its state and its public interface.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::block::Block;
use super::config::AllocatorConfig;
use super::driver::Driver;
use super::entry::{TraceEntry, TraceSink};
use super::error::{Fraction, MisuseError};
use super::events::Waiting;
use super::expandable::{ExpandableSegment, Handles};
use super::free_set::{Free, FreeSet};
use super::parse::{ConfigError, parse};
use super::pool::{FreeList, Pool, PrivatePool};
use super::profile::{Profile, TieBreak};
use super::routes::Route;
use super::slab::Slab;
use super::slot_table::{SlotTable, StreamKey};
use super::stats::{CounterArray, Counters, Stats};
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

/// A request for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Size in bytes.
    pub size: u64,
    /// The stream that will use the memory first.
    pub stream: Stream,
    /// The calling thread, numbered by the caller. It selects the route of a `MemPool`.
    pub thread: u64,
    /// The call site, numbered by the caller.
    pub stack: StackId,
}

/// The caching allocator of one device (`DeviceCachingAllocator`).
///
/// It decides as the PyTorch release of its [`Profile`] does. `D` is the device; `S` receives every event.
#[derive(Debug)]
pub struct DeviceAllocator<D: Driver, S> {
    pub(super) driver: D,
    pub(super) sink: S,
    pub(super) profile: &'static Profile,
    pub(super) config: AllocatorConfig,
    pub(super) stats: Counters,
    /// Reserved bytes of each private pool, by id.
    pub(super) private_reserved: BTreeMap<PoolId, CounterArray>,
    /// All blocks.
    pub(super) blocks: Slab<Block>,
    /// Allocated blocks by address.
    pub(super) allocated: FxHashMap<u64, u32>,
    /// Pools by number: the default small one is 0, the default large one 1.
    pub(super) pools: Slab<Pool>,
    pub(super) free_lists: Slab<FreeList>,
    pub(super) private: BTreeMap<PoolId, PrivatePool>,
    /// Private pools without a user, whose memory may be released.
    pub(super) freeable: SlotTable<PoolId, ()>,
    /// Private pools that lend their cached blocks before a request fails (`use_on_oom_pools`).
    pub(super) willing: SlotTable<PoolId, ()>,
    /// Whether PyTorch's own behaviour would be undefined by now.
    pub(super) is_undefined: bool,
    /// Whether a block whose streams a capture recorded no longer exists: PyTorch may attribute them to a later block.
    pub(super) has_stale_uses: bool,
    /// Open routes to private pools, oldest first (`captures_underway`).
    pub(super) routes: Vec<Route>,
    /// Freed blocks that wait for a capture to end, oldest first, each with the position of the capture on its streams.
    pub(super) deferred: Vec<(u32, Vec<u64>)>,
    /// The streams that used a block besides its own.
    pub(super) uses: FxHashMap<u32, SlotTable<StreamKey, Stream>>,
    /// Those that were recorded while a route was open (`block_to_cudagraph_stream_uses`).
    pub(super) captured_uses: FxHashMap<u32, Vec<Stream>>,
    /// Freed blocks that wait for events, by stream.
    pub(super) waiting: SlotTable<StreamKey, Waiting<D::Event>>,
    pub(super) expandable: Slab<ExpandableSegment>,
    /// What the first page showed about how pages can be created.
    pub(super) handles: Handles,
    /// Number of segments, or of blocks, created so far: the age rank of the next one.
    pub(super) births: u32,
    /// Bytes taken from the driver (`total_allocated_memory`).
    pub(super) reserved: u64,
    /// The most bytes that may be taken from the driver, if limited.
    pub(super) limit: Option<u64>,
    /// The current stream, for calls that name none.
    pub(super) current_stream: Stream,
    /// The `MemPool` that the program is in (`MemPoolContext`).
    pub(super) pool_context: Option<PoolId>,
}

/// The number of the default small pool.
pub(super) const SMALL: u32 = 0;
/// The number of the default large pool.
pub(super) const LARGE: u32 = 1;

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Creates an allocator that holds nothing.
    pub fn new(driver: D, sink: S, profile: &'static Profile, config: AllocatorConfig) -> Self {
        let mut pools = Slab::default();
        pools.insert(Pool::new(true, PoolId::default()));
        pools.insert(Pool::new(false, PoolId::default()));
        // PyTorch casts it to a signed number: unlimited is -1.
        let max_split_size = config.max_split_size as i64;
        let mut new = Self {
            driver,
            sink,
            profile,
            stats: Counters { max_split_size, ..Counters::default() },
            private_reserved: BTreeMap::new(),
            blocks: Slab::default(),
            allocated: FxHashMap::default(),
            pools,
            free_lists: Slab::default(),
            private: BTreeMap::new(),
            freeable: SlotTable::default(),
            willing: SlotTable::default(),
            is_undefined: false,
            has_stale_uses: false,
            routes: Vec::new(),
            deferred: Vec::new(),
            uses: FxHashMap::default(),
            captured_uses: FxHashMap::default(),
            waiting: SlotTable::default(),
            expandable: Slab::default(),
            handles: Handles::default(),
            births: 0,
            reserved: 0,
            limit: None,
            current_stream: Stream(0),
            pool_context: None,
            config,
        };
        if let Some(fraction) = new.config.per_process_memory_fraction {
            new.limit_to(fraction);
        }
        new
    }

    /// Returns the device.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// Returns the device mutably.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Returns the sink that receives every event.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the sink mutably.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Returns the current settings.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    /// Returns the PyTorch release whose decisions it makes.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }

    /// Returns `torch.cuda.memory_stats()` as this release names it: flat names and values, sorted by name.
    pub fn memory_stats(&self) -> Vec<(String, i64)> {
        let pools = self.private_reserved.iter().map(|(pool, array)| (*pool, array.stats())).collect();
        self.stats().entries(self.profile, &pools)
    }

    /// Returns the bytes taken from the driver.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Returns the bytes in allocations that are live or wait for a stream.
    pub fn active(&self) -> u64 {
        self.stats.active_bytes.current().max(0) as u64
    }

    /// Returns the most bytes that may be taken from the driver, if limited.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Sets the current stream, for calls that name none. A request makes its own stream current.
    pub fn set_current_stream(&mut self, stream: Stream) {
        self.current_stream = stream;
    }

    /// Sets the `MemPool` that the program is in and returns the one before. Only releases before 2.8 use it.
    pub fn set_pool_context(&mut self, pool: Option<PoolId>) -> Option<PoolId> {
        let is_gone = pool.is_some_and(|id| self.pool_use_count(id) == 0);
        self.is_undefined |= self.profile.has_pool_contexts && is_gone;
        std::mem::replace(&mut self.pool_context, pool)
    }

    /// Changes the settings at run time, as a later `PYTORCH_CUDA_ALLOC_CONF` would. Settings that the text does not
    /// name are reset or kept as PyTorch does. On an error, the settings before the mistake are in force.
    pub fn set_config(&mut self, conf: &str) -> Result<(), ConfigError> {
        let parsed = parse(conf, self.profile, &mut self.config);
        self.is_undefined |= parsed.as_ref().is_err_and(ConfigError::is_undefined);
        parsed
    }

    /// Limits the bytes that may be taken from the driver to a share of all memory (`set_per_process_memory_fraction`).
    pub fn set_memory_fraction(&mut self, fraction: f64) -> Result<(), MisuseError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(MisuseError::Fraction(Fraction(fraction)));
        }
        self.limit_to(fraction);
        Ok(())
    }

    fn limit_to(&mut self, fraction: f64) {
        let is_limit = fraction < 1.0 || self.profile.full_fraction_limits;
        let total = match self.profile.fraction_of_present_memory {
            true => self.driver.memory_info().map_or(0, |info| info.total),
            false => self.driver.total_memory(),
        };
        let limit = fraction * total as f64;
        self.limit = is_limit.then_some(if self.profile.rounds_limit { limit.round() } else { limit } as u64);
    }

    /// Sets all peaks to the current values.
    pub fn reset_peak_stats(&mut self) {
        self.stats.reset_peak();
        self.private_reserved.values_mut().for_each(CounterArray::reset_peak);
    }

    /// Sets sums and event counts to zero.
    pub fn reset_accumulated_stats(&mut self) {
        self.stats.reset_accumulated();
        self.private_reserved.values_mut().for_each(CounterArray::reset_accumulated);
    }

    /// Returns the bytes of memory that the allocator itself uses for its blocks, cached ones included.
    pub fn overhead(&self) -> usize {
        self.blocks.bytes() + self.allocated.capacity() * size_of::<(u64, u32)>()
    }

    // --- helpers for all parts of the allocator -------------------------------------------------------------------

    /// Returns whether blocks of this size are never split and are counted.
    #[inline]
    pub(super) fn is_oversize(&self, size: u64) -> bool {
        size >= self.config.max_split_size
    }

    /// Reports an event at a block or range to the sink.
    #[inline]
    pub(super) fn record(&mut self, action: Action, address: u64, size: u64, free_list: u32, stack: StackId) {
        if S::LISTENS {
            let entry = self.entry(action, address, size, free_list, stack);
            self.sink.record(entry);
        }
    }

    /// Reports to the sink a free that is completed at once.
    #[inline]
    pub(super) fn record_freed(&mut self, address: u64, size: u64, free_list: u32, stack: StackId) {
        if S::LISTENS {
            let entry = self.entry(Action::FreeRequested, address, size, free_list, stack);
            self.sink.record_freed(entry);
        }
    }

    #[inline]
    fn entry(&self, action: Action, address: u64, size: u64, free_list: u32, stack: StackId) -> TraceEntry {
        let free_list = &self.free_lists[free_list];
        let pool = self.pools[free_list.pool].owner;
        TraceEntry { action, address, size, stream: free_list.stream, pool, stack }
    }

    /// Returns the pool of a block.
    #[inline]
    pub(super) fn pool_of(&self, block: &Block) -> &Pool {
        &self.pools[self.free_lists[block.free_list].pool]
    }

    /// Returns the free list of a pool and stream, and creates it if it doesn't exist.
    #[inline]
    pub(super) fn free_list(&mut self, pool: u32, stream: Stream) -> u32 {
        if let Some(free_list) = self.pools[pool].free_list(stream) {
            return free_list;
        }
        let free_list = self.free_lists.insert(FreeList { pool, stream, blocks: FreeSet::default() });
        self.pools[pool].add_free_list(stream, free_list);
        free_list
    }

    /// Returns a block's entry in its free list.
    #[inline]
    pub(super) fn key(&self, number: u32) -> Free {
        let block = &self.blocks[number];
        let order = match self.profile.tie_break {
            TieBreak::Address => 0,
            TieBreak::BlockAge | TieBreak::SegmentAge => block.born,
        };
        Free { size: block.size, order, address: block.address, block: number }
    }

    /// Puts a mapped block into its free list. Its age counts from now.
    #[inline]
    pub(super) fn insert_free(&mut self, number: u32) {
        let key = self.key(number);
        let block = &mut self.blocks[number];
        let free_list = &mut self.free_lists[block.free_list];
        block.gc_base = self.pools[free_list.pool].searches;
        free_list.blocks.insert(key);
    }

    /// Removes a block from its free list, or from the unmapped ranges of its pool.
    #[inline]
    pub(super) fn remove_free(&mut self, number: u32) {
        let key = self.key(number);
        let block = &self.blocks[number];
        let free_list = &mut self.free_lists[block.free_list];
        if block.mapped {
            free_list.blocks.remove(&key);
        } else {
            let place = (free_list.stream.0 as u64, block.address, number);
            self.pools[free_list.pool].unmapped.remove(&place);
        }
    }

    /// Adds an unmapped range to those of its pool.
    pub(super) fn insert_unmapped(&mut self, number: u32) {
        let block = &self.blocks[number];
        let free_list = &self.free_lists[block.free_list];
        let place = (free_list.stream.0 as u64, block.address, number);
        self.pools[free_list.pool].unmapped.insert(place);
    }

    /// Returns the age rank of a new segment.
    pub(super) fn birth(&mut self) -> u32 {
        self.births = self.births.saturating_add(1);
        self.births
    }

    /// Returns the age rank of a part of a block with this rank.
    #[inline]
    pub(super) fn birth_of_part(&mut self, whole: u32) -> u32 {
        if self.profile.tie_break == TieBreak::BlockAge { self.birth() } else { whole }
    }

    /// Counts bytes that were taken from the driver for a pool.
    pub(super) fn add_reserved(&mut self, pool: u32, bytes: u64) {
        let (is_small, owner) = (self.pools[pool].is_small, self.pools[pool].owner);
        self.reserved += bytes;
        self.stats.reserved_bytes.increase(is_small, bytes);
        self.stats.num_device_alloc += 1;
        if owner.is_private() {
            self.private_reserved.entry(owner).or_default().increase(is_small, bytes);
        }
    }

    /// Counts bytes that were returned to the driver.
    pub(super) fn subtract_reserved(&mut self, pool: u32, bytes: u64) {
        let (is_small, owner) = (self.pools[pool].is_small, self.pools[pool].owner);
        self.reserved = self.reserved.saturating_sub(bytes);
        self.stats.reserved_bytes.decrease(is_small, bytes);
        if let Some(private) = self.private_reserved.get_mut(&owner) {
            private.decrease(is_small, bytes);
        }
    }

    /// Returns the error for an address at which no allocation starts.
    pub(super) fn misuse_at(&self, address: Address) -> MisuseError {
        let holds =
            |block: &Block| (block.address..block.address + block.size).contains(&address.0) && !block.allocated;
        if self.blocks.iter().any(|(_, block)| block.mapped && holds(block)) {
            MisuseError::DoubleFree(address)
        } else {
            MisuseError::UnknownAddress(address)
        }
    }
}
