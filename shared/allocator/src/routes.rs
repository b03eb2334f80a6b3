//! Private pools and the routes that lead requests to them: captures of CUDA graphs, and threads within a `MemPool`.

use std::fmt;

use super::device::{DeviceAllocator, Request};
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::error::MisuseError;
use super::pool::{Pool, PoolOptions, PrivatePool};
use super::profile::CaptureGuard;
use super::slot_table::SlotTable;
use trace::frames::StackId;
use trace::units::{PoolId, Stream};

/// Which requests a route accepts.
pub enum Filter {
    /// Those of one thread (`use_mem_pool`), as numbered in [`Request::thread`].
    Thread(u64),
    /// Those on a stream that is part of a capture, as the caller decides (`torch.cuda.graph`).
    Capture(Box<dyn Fn(Stream) -> bool + Send>),
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(thread) => write!(f, "Thread({thread})"),
            Self::Capture(_) => f.write_str("Capture"),
        }
    }
}

/// A route to a private pool.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) pool: PoolId,
    filter: Filter,
}

impl Route {
    fn takes(&self, request: &Request) -> bool {
        match &self.filter {
            Filter::Thread(thread) => *thread == request.thread,
            Filter::Capture(holds) => holds(request.stream),
        }
    }
}

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Creates a private pool, or counts another user of it (`createOrIncrefPool`). The options of the first call
    /// apply.
    pub fn create_pool(&mut self, id: PoolId, options: PoolOptions) {
        if let Some(private) = self.private.get_mut(&id) {
            private.use_count += 1;
            return;
        }
        let small = self.pools.insert(Pool::new(true, id));
        let large = self.pools.insert(Pool::new(false, id));
        self.private.insert(id, PrivatePool { use_count: 1, segments: 0, small, large, options });
        self.set_willing(id, options.use_on_oom);
    }

    /// Changes the options of a private pool; its segments stay.
    pub fn set_pool_options(&mut self, id: PoolId, options: PoolOptions) -> Result<(), MisuseError> {
        let private = self.private.get_mut(&id).ok_or(MisuseError::UnknownPool(id))?;
        private.options = options;
        self.set_willing(id, options.use_on_oom);
        Ok(())
    }

    fn set_willing(&mut self, id: PoolId, is_willing: bool) {
        if is_willing {
            self.willing.entry(id, || ());
        } else {
            self.willing.remove(id);
        }
    }

    /// Routes the requests that the filter accepts to a private pool, which is created if necessary
    /// (`beginAllocateToPool`). Each call needs a release of the pool.
    pub fn begin_allocate_to_pool(&mut self, id: PoolId, filter: Filter) -> Result<(), MisuseError> {
        if self.routes.iter().any(|route| route.pool == id) {
            return Err(MisuseError::AlreadyRouted(id));
        }
        self.create_pool(id, PoolOptions::default());
        self.routes.push(Route { pool: id, filter });
        Ok(())
    }

    /// Ends a route (`endAllocateToPool`).
    pub fn end_allocate_to_pool(&mut self, id: PoolId) -> Result<(), MisuseError> {
        let at = self.routes.iter().position(|route| route.pool == id).ok_or(MisuseError::NotRouted(id))?;
        self.routes.remove(at);
        if self.profile.settles_deferred_at_capture_end && self.config.graph_capture_record_stream_reuse {
            self.settle_deferred_of(id);
        }
        Ok(())
    }

    /// Counts a user of a private pool as gone (`releasePool`). Without users, its cached memory may be released.
    pub fn release_pool(&mut self, id: PoolId) -> Result<(), MisuseError> {
        if !self.private.contains_key(&id) {
            return Err(MisuseError::UnknownPool(id));
        }
        self.drop_user(id);
        Ok(())
    }

    /// Counts a user of a private pool as gone, if the pool exists.
    pub(super) fn drop_user(&mut self, id: PoolId) {
        let Some(private) = self.private.get_mut(&id) else { return };
        private.use_count = private.use_count.saturating_sub(1);
        if private.use_count == 0 {
            self.freeable.entry(id, || ());
            self.is_undefined |= self.profile.has_pool_contexts && self.pool_context == Some(id);
        }
    }

    /// Returns the number of users of a private pool; 0 if it does not exist.
    pub fn pool_use_count(&self, id: PoolId) -> u32 {
        self.private.get(&id).map_or(0, |private| private.use_count)
    }

    /// Returns the pool that a request is routed to.
    pub(super) fn route_of(&self, request: &Request) -> Option<PoolId> {
        let mut taking = self.routes.iter().filter(|route| route.takes(request));
        let route = if self.profile.newest_route_wins { taking.next_back() } else { taking.next() };
        route.map(|route| route.pool)
    }

    /// Returns whether a stream is part of a capture.
    pub(super) fn is_capturing(&self, stream: Stream) -> bool {
        self.routes.iter().any(|route| matches!(&route.filter, Filter::Capture(holds) if holds(stream)))
    }

    /// Defers a freed block that several streams used until captures end, or until reuse within one is known to be
    /// safe.
    pub(super) fn defer(&mut self, number: u32) {
        let markers =
            if self.config.graph_capture_record_stream_reuse { self.free_markers(number) } else { Vec::new() };
        self.deferred.push((number, markers));
    }

    /// Returns the position of the capture on every stream that uses a block; empty if one of them is not part of it.
    fn free_markers(&mut self, number: u32) -> Vec<u64> {
        let own = self.free_lists[self.blocks[number].free_list].stream;
        let mut markers = Vec::new();
        let others: Vec<Stream> = self.uses.get(&number).into_iter().flat_map(SlotTable::values).copied().collect();
        for stream in std::iter::once(own).chain(others) {
            let Some(terminals) = self.driver.capture_terminals(stream) else { return Vec::new() };
            markers.extend(terminals);
        }
        markers.sort_unstable();
        markers.dedup();
        markers
    }

    /// Caches the deferred blocks of a stream if the stream has passed their markers within the capture
    /// (`free_safe_blocks_in_capture`).
    pub(super) fn free_safe_deferred(&mut self, request: &Request) -> Result<(), DriverError> {
        let Some(terminals) = self.driver.capture_terminals(request.stream) else { return Ok(()) };
        let mut behind: Vec<u64> = Vec::new();
        let mut ahead = terminals;
        while let Some(node) = ahead.pop() {
            if !behind.contains(&node) {
                behind.push(node);
                ahead.extend(self.driver.capture_dependencies(node));
            }
        }
        let deferred = std::mem::take(&mut self.deferred);
        for (number, markers) in deferred {
            let is_here = self.free_lists[self.blocks[number].free_list].stream == request.stream;
            if is_here && !markers.is_empty() && markers.iter().all(|marker| behind.contains(marker)) {
                self.blocks[number].has_uses = false;
                self.uses.remove(&number);
                self.free_block_now(number, request.stack);
            } else {
                self.deferred.push((number, markers));
            }
        }
        Ok(())
    }

    /// Caches the deferred blocks of one pool that only streams of an ended capture used.
    fn settle_deferred_of(&mut self, id: PoolId) {
        for (number, markers) in std::mem::take(&mut self.deferred) {
            let captured = self.captured_uses.get(&number);
            let is_captured = |stream: &Stream| captured.is_some_and(|captured| captured.contains(stream));
            let is_done = self.uses.get(&number).is_none_or(|uses| uses.values().all(is_captured));
            if is_done && self.pool_of(&self.blocks[number]).owner == id {
                self.blocks[number].has_uses = false;
                self.uses.remove(&number);
                self.captured_uses.remove(&number);
                self.free_block_now(number, StackId(0));
            } else {
                self.deferred.push((number, markers));
            }
        }
    }

    /// Releases all cached memory that is not part of a segment in use (`empty_cache`). Within a capture, nothing of
    /// the default pools is released.
    pub fn empty_cache(&mut self, stack: StackId) -> Result<(), DriverError> {
        self.release_cached(PoolId::default(), stack)
    }

    /// Releases the cached memory of a private pool without users.
    pub fn empty_pool_cache(&mut self, id: PoolId, stack: StackId) -> Result<(), DriverError> {
        self.release_cached(id, stack)
    }

    /// Returns whether a call with this current stream may wait for streams and release memory of the default pools.
    #[inline]
    pub(super) fn is_open(&self, current: Stream) -> bool {
        match self.profile.capture_guard {
            CaptureGuard::AnyRoute => self.routes.is_empty(),
            CaptureGuard::Capture => !self.is_capturing(current),
        }
    }
}
