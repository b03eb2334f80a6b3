//! Blocks that several streams use: once freed, they wait for events in those streams before they are cached again.

use std::collections::VecDeque;

use super::device::{DeviceAllocator, Request};
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::error::MisuseError;
use super::slot_table::{SlotTable, StreamKey};
use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};

/// The events of one stream, oldest first, each with the block that waits for it.
pub(super) type Waiting<E> = VecDeque<(E, u32)>;

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Records that a stream uses an allocation (`Tensor.record_stream`): once freed, it is not reused before that
    /// stream has reached this point. For the allocation's own stream this does nothing.
    pub fn record_stream(&mut self, address: Address, stream: Stream) -> Result<(), MisuseError> {
        if address.0 == 0 {
            return Ok(());
        }
        let Some(&number) = self.allocated.get(&address.0) else { return Err(self.misuse_at(address)) };
        if self.free_lists[self.blocks[number].free_list].stream == stream {
            return Ok(());
        }
        self.blocks[number].has_uses = true;
        let key = self.stream_key(stream);
        self.uses.entry(number).or_default().entry(key, || stream);
        if self.must_defer() {
            self.captured_uses.entry(number).or_default().push(stream);
        }
        Ok(())
    }

    /// Prepares a request: blocks whose streams have reached their events are cached again.
    #[inline]
    pub(super) fn before_search(&mut self, request: &Request) -> Result<(), DriverError> {
        if self.deferred.is_empty() && self.waiting.is_empty() && !self.profile.reuse_needs_capture {
            return Ok(());
        }
        if self.is_open(request.stream) {
            self.process_events(request.stack)
        } else if self.config.graph_capture_record_stream_reuse {
            if self.profile.reuse_needs_capture && !self.is_capturing(request.stream) {
                return Err(DriverError::Failed {
                    call: "status == cudaStreamCaptureStatusActive",
                    message: "Invalid stream capture status".to_owned(),
                });
            }
            self.free_safe_deferred(request)
        } else {
            Ok(())
        }
    }

    /// Returns whether a block that several streams use must wait for captures to end when it is freed now.
    pub(super) fn must_defer(&self) -> bool {
        !self.is_open(self.current_stream)
    }

    pub(super) fn stream_key(&self, stream: Stream) -> StreamKey {
        StreamKey(self.driver.stream_id(stream))
    }

    /// Records events in the streams that use a block; it waits for all of them (`insert_events`).
    pub(super) fn wait_for_uses(&mut self, number: u32) -> Result<(), DriverError> {
        self.blocks[number].has_uses = false;
        for stream in self.uses.remove(&number).into_iter().flat_map(SlotTable::into_values) {
            let event = self.driver.record_event(stream)?;
            self.blocks[number].event_count += 1;
            let key = self.stream_key(stream);
            self.waiting.entry(key, VecDeque::new).push_back((event, number));
        }
        Ok(())
    }

    /// Forgets the streams of a block that is gone. PyTorch keeps what captures recorded of them.
    #[inline]
    pub(super) fn forget_captured_uses(&mut self, number: u32) {
        if !self.captured_uses.is_empty() && self.captured_uses.remove(&number).is_some() {
            self.has_stale_uses = true;
        }
    }

    /// Makes the blocks that waited for captures to end wait for the work before the captures
    /// (`insert_events_deferred_until_no_capture`).
    fn release_deferred(&mut self, stack: StackId) -> Result<(), DriverError> {
        for (number, _) in std::mem::take(&mut self.deferred) {
            // Uses that were recorded within a capture ended with it.
            if let Some(captured) = self.captured_uses.remove(&number)
                && let Some(uses) = self.uses.get_mut(&number)
            {
                let kept = std::mem::take(uses).into_values().filter(|stream| !captured.contains(stream));
                let kept: Vec<Stream> = kept.collect();
                let mut uses = SlotTable::default();
                for stream in kept {
                    uses.entry(self.stream_key(stream), || stream);
                }
                self.uses.insert(number, uses);
            }
            self.is_undefined |= self.has_stale_uses && self.uses.get(&number).is_some_and(|uses| !uses.is_empty());
            self.wait_for_uses(number)?;
            if self.blocks[number].event_count == 0 {
                self.free_block_now(number, stack);
            }
        }
        Ok(())
    }

    /// Caches the blocks whose streams have reached their events, as the next request would.
    pub fn settle(&mut self) -> Result<(), DriverError> {
        self.process_events(StackId(0))
    }

    /// Caches the blocks whose streams have reached their events: in each stream up to the first event that is not done
    /// (`process_events`).
    pub(super) fn process_events(&mut self, stack: StackId) -> Result<(), DriverError> {
        self.release_deferred(stack)?;
        let mut place = 0;
        while let Some(at) = self.waiting.next(place) {
            place = at + 1;
            while let Some((event, number)) = self.waiting.at(at).and_then(VecDeque::pop_front) {
                if !self.driver.is_event_done(&event)? {
                    if let Some(queue) = self.waiting.at(at) {
                        queue.push_front((event, number));
                    }
                    break;
                }
                self.driver.recycle_event(event);
                self.one_event_less(number, stack);
            }
            place = self.drop_if_empty(at, place);
        }
        Ok(())
    }

    /// Waits for all events, or for those of one pool's blocks (`synchronize_and_free_events`).
    pub(super) fn synchronize_and_free_events(
        &mut self,
        only: Option<PoolId>,
        stack: StackId,
    ) -> Result<(), DriverError> {
        self.stats.num_sync_all_streams += 1;
        if self.profile.refuses_to_wait_in_capture && !self.routes.is_empty() {
            return Err(DriverError::Failed {
                call: "captures_underway.empty()",
                message: "cannot wait for all streams during a capture".to_owned(),
            });
        }
        self.release_deferred(stack)?;
        let mut place = 0;
        while let Some(at) = self.waiting.next(place) {
            place = at + 1;
            for (event, number) in self.waiting.at(at).map(std::mem::take).unwrap_or_default() {
                if only.is_some_and(|pool| self.pool_of(&self.blocks[number]).owner != pool) {
                    if let Some(queue) = self.waiting.at(at) {
                        queue.push_back((event, number));
                    }
                    continue;
                }
                self.driver.wait_for_event(&event)?;
                self.driver.recycle_event(event);
                self.one_event_less(number, stack);
            }
            place = self.drop_if_empty(at, place);
        }
        Ok(())
    }

    /// Removes a stream's queue if it is empty; returns the place to continue from.
    fn drop_if_empty(&mut self, at: usize, next: usize) -> usize {
        if self.waiting.at(at).is_some_and(|queue| queue.is_empty()) {
            self.waiting.remove_at(at);
            return at;
        }
        next
    }

    fn one_event_less(&mut self, number: u32, stack: StackId) {
        let block = &mut self.blocks[number];
        block.event_count -= 1;
        if block.event_count == 0 {
            self.free_block_now(number, stack);
        }
    }
}
