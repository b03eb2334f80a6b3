//! Serving a request, from the search among cached blocks to the block that is handed out.

use super::block::Block;
use super::device::{DeviceAllocator, LARGE, Request, SMALL};
use super::driver::{Driver, DriverError};
use super::entry::{TraceEntry, TraceSink};
use super::error::{AllocError, OutOfMemory};
use super::free_set::{Free, FreeSet};
use super::pool::PoolOptions;
use super::profile::Lending;
use super::rounding::{LARGE_REMAINDER, MIN_BLOCK, SMALL_SIZE, TOO_LARGE, round_size, segment_size};
use super::slab::{NONE, Slab};
use trace::event::Action;
use trace::units::{Address, PoolId};

/// A request while it is served (`AllocParams`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    pub(super) request: Request,
    /// The size of the block that serves it.
    pub(super) rounded: u64,
    /// The size of the segment that would be allocated for it.
    pub(super) segment_size: u64,
    /// The pool that serves it, by number.
    pub(super) pool: u32,
    /// Whether new memory for it comes from expandable segments.
    pub(super) expandable: bool,
}

/// The result of asking for new memory.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// A block that is in no free list.
    Block(u32),
    NoMemory,
    /// The settings forbid asking the device.
    Rejected,
}

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Allocates `request.size` bytes and returns their address. A request for 0 bytes gets the null address and
    /// changes nothing.
    pub fn malloc(&mut self, request: Request) -> Result<Address, AllocError> {
        if request.size == 0 {
            return Ok(Address(0));
        }
        if request.size >= TOO_LARGE {
            return Err(AllocError::TooLarge);
        }
        self.current_stream = request.stream;
        self.before_search(&request)?;
        let mut params = self.params(request);
        let found = match self.free_block(&params) {
            Some(block) => Some(block),
            None => self.more_memory(&mut params)?,
        };
        let Some(block) = found else { return Err(self.out_of_memory(&params)?) };
        Ok(self.hand_out(block, &params))
    }

    /// Returns what is known of a request before the search.
    #[inline]
    pub(super) fn params(&self, request: Request) -> Params {
        let rounded = round_size(&self.config.roundup_power2_divisions, request.size);
        let pool = self.pool_for(&request, rounded);
        let expandable = self.config.expandable_segments && !self.has_own_allocator(pool);
        let segment_size = segment_size(rounded, self.config.large_segment_size);
        Params { request, rounded, segment_size, pool, expandable }
    }

    /// Returns the pool that a request is routed to (`get_pool`).
    #[inline]
    fn pool_for(&self, request: &Request, rounded: u64) -> u32 {
        let is_small = rounded <= SMALL_SIZE;
        if !self.routes.is_empty()
            && let Some(private) = self.route_of(request).and_then(|id| self.private.get(&id))
        {
            return if is_small { private.small } else { private.large };
        }
        if is_small { SMALL } else { LARGE }
    }

    fn has_own_allocator(&self, pool: u32) -> bool {
        let owner = self.pools[pool].owner;
        owner.is_private() && self.private.get(&owner).is_some_and(|private| private.options.has_allocator)
    }

    /// Performs the steps that follow if no cached block fits, in PyTorch's order.
    fn more_memory(&mut self, params: &mut Params) -> Result<Option<u32>, AllocError> {
        if self.collects_garbage() {
            self.collect_garbage(params.request.stack)?;
        }
        match self.new_block(params, false)? {
            Attempt::Block(block) => return Ok(Some(block)),
            // Only at this step a rejection ends the request before anything is released.
            Attempt::Rejected => return Err(AllocError::Rejected(params.request.size)),
            Attempt::NoMemory => {}
        }
        let lending = self.profile.lending;
        if lending == Lending::BeforeRetries
            && let Some(block) = self.take_from_willing_pools(params)?
        {
            return Ok(Some(block));
        }
        let mut last = Attempt::NoMemory;
        if self.release_available(params)? {
            last = self.new_block(params, false)?;
        }
        if !matches!(last, Attempt::Block(_)) && self.is_open(params.request.stream) {
            self.release_cached(PoolId::default(), params.request.stack)?;
            last = self.new_block(params, true)?;
        }
        match last {
            Attempt::Block(block) => Ok(Some(block)),
            Attempt::NoMemory if lending == Lending::AfterRetries => Ok(self.take_from_willing_pools(params)?),
            Attempt::NoMemory => Ok(None),
            Attempt::Rejected => Err(AllocError::Rejected(params.request.size)),
        }
    }

    /// Returns whether the settings ask for a rejection before the device is asked, and the request does not fit
    /// together with the reserved bytes into the share of the device that the settings allow now. The limit in force
    /// was set earlier and may differ.
    fn is_rejected(&self, params: &Params) -> bool {
        let share = self.config.per_process_memory_fraction.unwrap_or(1.0);
        let allowed = || (share * self.driver.total_memory() as f64) as u64;
        self.config.throw_on_cudamalloc_oom && self.reserved.saturating_add(params.segment_size) > allowed()
    }

    /// Removes the best cached block for a request from its free list and returns it (`get_free_block`).
    #[inline]
    pub(super) fn free_block(&mut self, params: &Params) -> Option<u32> {
        if self.collects_garbage() {
            let pool = &mut self.pools[params.pool];
            pool.searches = pool.searches.wrapping_add(1);
        }
        let free_list = self.pools[params.pool].free_list(params.request.stream)?;
        let (blocks, config, rounded) = (&self.blocks, &self.config, params.rounded);
        // A block that is never split serves only requests close to its size.
        let is_near = |found: &Free| {
            if rounded < config.max_split_size {
                found.size < config.max_split_size
            } else {
                found.size < rounded.saturating_add(config.max_non_split_rounding)
            }
        };
        let free = &mut self.free_lists[free_list].blocks;
        let found = match self.expandable.is_empty() {
            true => free.take_first_fit(rounded, is_near)?,
            false => {
                let found = best_fit(free, blocks, params).filter(is_near)?;
                free.remove(&found);
                found
            }
        };
        Some(found.block)
    }

    /// Allocates a new block from the driver (`alloc_block`).
    fn new_block(&mut self, params: &Params, is_retry: bool) -> Result<Attempt, DriverError> {
        if is_retry {
            self.stats.num_alloc_retries += 1;
        }
        if self.limit.is_some_and(|limit| self.reserved + params.segment_size > limit) {
            return Ok(Attempt::NoMemory);
        }
        if self.is_rejected(params) {
            self.stats.num_oom_rejections += 1;
            return Ok(Attempt::Rejected);
        }
        let stays_native = self.profile.private_segments_are_native && self.pools[params.pool].owner.is_private();
        if params.expandable && !stays_native {
            if self.profile.contexts_refuse_expandable && self.pool_context.is_some() {
                return Err(DriverError::Failed {
                    call: "torch.cuda.MemPool",
                    message: "it does not support expandable_segments".to_owned(),
                });
            }
            let Some(block) = self.grow_expandable(params)? else { return Ok(Attempt::NoMemory) };
            self.count_private_segment(params.pool);
            return Ok(Attempt::Block(block));
        }
        let address = match self.driver.alloc(params.segment_size) {
            Ok(address) => address.0,
            Err(DriverError::OutOfMemory) => return Ok(Attempt::NoMemory),
            Err(error) => return Err(error),
        };
        self.count_private_segment(params.pool);
        let free_list = self.free_list(params.pool, params.request.stream);
        let born = self.birth();
        let stack = params.request.stack;
        let block = Block { born, segment_stack: stack, ..Block::new(address, params.segment_size, free_list) };
        let block = self.blocks.insert(block);
        self.add_reserved(params.pool, params.segment_size);
        self.stats.segment.increase(self.pools[params.pool].is_small, 1);
        if self.is_oversize(params.segment_size) {
            self.stats.oversize_segments.increase(1);
        }
        self.record(Action::SegmentAlloc, address, params.segment_size, free_list, stack);
        Ok(Attempt::Block(block))
    }

    fn count_private_segment(&mut self, pool: u32) {
        let owner = self.pools[pool].owner;
        if let Some(private) = self.private.get_mut(&owner) {
            private.segments += 1;
        }
    }

    /// Takes a cached block from a pool that lends its blocks before a request of the default pool fails.
    fn take_from_willing_pools(&mut self, params: &mut Params) -> Result<Option<u32>, DriverError> {
        if self.pools[params.pool].owner.is_private() {
            return Ok(None);
        }
        let keeps_willing = self.profile.lending == Lending::AfterRetries;
        let willing: Vec<PoolId> = self.willing.keys().collect();
        for id in willing {
            let Some(private) = self.private.get(&id) else {
                if keeps_willing {
                    // A pool that has ended stays willing there: it begins again, empty, and ends at once.
                    self.create_pool(id, PoolOptions { use_on_oom: true, ..PoolOptions::default() });
                    self.drop_user(id);
                }
                continue;
            };
            if keeps_willing && private.use_count == 0 {
                let message = format!("pool {id} has ended");
                return Err(DriverError::Failed { call: "it->second->use_count > 0", message });
            }
            let pool = if params.rounded <= SMALL_SIZE { private.small } else { private.large };
            let lent = Params { pool, expandable: params.expandable && self.profile.lends_expandable, ..*params };
            if let Some(block) = self.free_block(&lent) {
                *params = lent;
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Returns whether the rest of a block goes back to its pool (`should_split`).
    #[inline]
    fn should_split(&self, size: u64, params: &Params) -> bool {
        let pool = &self.pools[params.pool];
        if pool.owner.is_private() && self.private.get(&pool.owner).is_some_and(|private| private.options.no_split) {
            return false;
        }
        let rest = size - params.rounded;
        if pool.is_small || params.expandable {
            rest >= MIN_BLOCK
        } else {
            params.rounded < self.config.max_split_size && rest > LARGE_REMAINDER
        }
    }

    /// Hands out a block that was found (`alloc_found_block`).
    #[inline]
    fn hand_out(&mut self, found: u32, params: &Params) -> Address {
        let block = &self.blocks[found];
        let (was_split, is_expandable, size) = (block.is_split(), block.is_expandable(), block.size);
        let is_small = self.pools[params.pool].is_small;
        let number = if self.should_split(size, params) {
            let number = self.split(found, params.rounded);
            if !is_expandable {
                if was_split {
                    self.stats.inactive_split_bytes.decrease(is_small, params.rounded);
                } else {
                    self.stats.inactive_split_bytes.increase(is_small, size - params.rounded);
                    self.stats.inactive_split.increase(is_small, 1);
                }
            }
            number
        } else {
            if was_split && !is_expandable {
                self.stats.inactive_split_bytes.decrease(is_small, size);
                self.stats.inactive_split.decrease(is_small, 1);
            }
            found
        };
        let block = &mut self.blocks[number];
        block.allocated = true;
        block.requested = params.request.size;
        block.stack = params.request.stack;
        let (address, size, free_list) = (block.address, block.size, block.free_list);
        self.allocated.insert(address, number);
        self.record(Action::Alloc, address, params.request.size, free_list, params.request.stack);

        self.stats.allocation.increase(is_small, 1);
        self.stats.allocated_bytes.increase(is_small, size);
        self.stats.active.increase(is_small, 1);
        self.stats.active_bytes.increase(is_small, size);
        self.stats.requested_bytes.increase(is_small, params.request.size);
        if self.is_oversize(size) {
            self.stats.oversize_allocations.increase(1);
        }
        Address(address)
    }

    /// Splits the first `size` bytes off a block. They become a new block; the remainder keeps the old number and goes
    /// back into its free list.
    #[inline]
    fn split(&mut self, rest: u32, size: u64) -> u32 {
        let born = self.birth_of_part(self.blocks[rest].born);
        let old = &mut self.blocks[rest];
        let head = Block {
            prev: old.prev,
            next: rest,
            expandable: old.expandable,
            born,
            segment_stack: std::mem::take(&mut old.segment_stack),
            ..Block::new(old.address, size, old.free_list)
        };
        old.address += size;
        old.size -= size;
        let prev = head.prev;
        let head = self.blocks.insert(head);
        self.blocks[rest].prev = head;
        if prev != NONE {
            self.blocks[prev].next = head;
        }
        self.insert_free(rest);
        head
    }

    /// Records that a request failed, and returns everything that is known of it.
    #[cold]
    fn out_of_memory(&mut self, params: &Params) -> Result<AllocError, DriverError> {
        let info = self.driver.memory_info()?;
        let Params { request, rounded, segment_size, pool, .. } = *params;
        let total = self.driver.total_memory();
        let reserve = self.config.reserve(total);
        let is_short = self.config.expandable_segments && reserve < segment_size && segment_size <= total;
        self.sink.record(TraceEntry {
            action: Action::Oom,
            address: info.free,
            size: rounded,
            stream: request.stream,
            pool: self.pools[pool].owner,
            stack: request.stack,
        });
        self.stats.num_ooms += 1;
        let cached_blocks = |pool: u32| {
            self.pools[pool].free_lists.iter().flat_map(|(_, free_list)| self.free_lists[*free_list].blocks.iter())
        };
        let halves = self.private.values().flat_map(|private| [private.small, private.large]);
        let private_free = halves.flat_map(cached_blocks).map(|free| free.size).sum();
        Ok(AllocError::OutOfMemory(Box::new(OutOfMemory {
            segment_size,
            rounded,
            device_free: info.free,
            device_total: info.total,
            limit: self.limit.filter(|_| self.profile.names_limit),
            short_reserve: is_short.then_some(reserve),
            allocated: self.stats.allocated_bytes.stats().all.current.max(0) as u64,
            reserved: self.reserved,
            private_free,
        })))
    }
}

/// Returns the best block where some may be expandable: with `expandable_segments`, the one with the least room behind
/// it, as long as the room keeps shrinking; without, the first that is not expandable.
fn best_fit(free: &FreeSet, blocks: &Slab<Block>, params: &Params) -> Option<Free> {
    let mut found = free.first_fit(params.rounded)?;
    if params.expandable {
        let room = |number: u32| {
            let block = &blocks[number];
            let next = blocks.get(block.next).filter(|next| !next.mapped);
            block.size + next.map_or(0, |next| next.size)
        };
        while blocks[found.block].is_expandable()
            && let Some(next) = free.after(&found)
            && room(next.block) < room(found.block)
        {
            found = next;
        }
    } else {
        while blocks[found.block].is_expandable() {
            found = free.after(&found)?;
        }
    }
    Some(found)
}
