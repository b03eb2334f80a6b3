//! The allocator's end of the queue.

use std::sync::Arc;

use allocator::{TraceEntry, TraceSink};
use rtrb::{Producer, PushError};
use trace::Segment;
use trace::event::Action;
use trace::frames::{StackId, StrId};

use super::clock::Clock;
use super::event_clock::EventClock;
use super::side_channel::SideChannel;

/// Counts by [`Action`].
pub(super) type Counts = [u32; Action::ALL.len()];

/// An entry of the queue: 56 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// An event and its time.
    Event { entry: TraceEntry, time_us: i64 },
    /// Two events of one time: a request for a free, and its completion.
    Freed { requested: TraceEntry, time_us: i64 },
    /// Events that were lost before this place, by action.
    Lost(Counts),
    /// The device's segments at this place: the next list of the side channel.
    Segments,
    /// The text that the job attaches to the events from this place on.
    Metadata(StrId),
}

/// The treatment of events when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is counted as lost, and the allocating thread never waits. The only choice in a training job.
    #[default]
    Count,
    /// The allocating thread waits for room. For simulations, where nothing depends on the time.
    Wait,
}

/// Records a device's events from inside the allocator. It never allocates, locks or makes a system call for an event,
/// and never waits, except with [`WhenFull::Wait`].
pub struct RecorderSink {
    queue: Producer<Item>,
    clock: EventClock,
    side: Arc<SideChannel>,
    when_full: WhenFull,
    keeps_stacks: bool,
    /// The text that the job attaches to events now.
    metadata: StrId,
    /// The text of the latest event in the queue.
    queued_metadata: StrId,
    /// Events lost since the last one that was queued.
    lost: Counts,
    is_losing: bool,
}

impl RecorderSink {
    pub(super) fn new(
        queue: Producer<Item>,
        clock: Arc<dyn Clock>,
        side: Arc<SideChannel>,
        when_full: WhenFull,
        keeps_stacks: bool,
    ) -> Self {
        let (lost, clock) = (Counts::default(), EventClock::new(clock));
        let (metadata, queued_metadata) = (StrId::default(), StrId::default());
        Self { queue, clock, side, when_full, keeps_stacks, metadata, queued_metadata, lost, is_losing: false }
    }

    /// Queues the loss, once an eighth of the queue is free. With one free slot alone, a queue that is nearly full would
    /// record every other event as a loss.
    fn resume(&mut self) -> bool {
        if self.queue.slots() < self.queue.buffer().capacity() / 8 + 3 {
            return false;
        }
        let is_queued = self.queue.push(Item::Lost(self.lost)).is_ok();
        if is_queued {
            (self.lost, self.is_losing) = (Counts::default(), false);
        }
        is_queued
    }

    /// Adds an item to the queue. Returns false if the queue is full.
    #[inline]
    fn push(&mut self, item: Item) -> bool {
        match self.queue.push(item) {
            Ok(()) => true,
            Err(PushError::Full(item)) => self.push_later(item),
        }
    }

    #[cold]
    fn push_later(&mut self, mut item: Item) -> bool {
        while self.when_full == WhenFull::Wait && !self.queue.is_abandoned() {
            self.side.wake();
            std::thread::yield_now();
            match self.queue.push(item) {
                Ok(()) => return true,
                Err(PushError::Full(back)) => item = back,
            }
        }
        false
    }

    #[cold]
    fn push_metadata(&mut self) -> bool {
        let is_queued = self.push(Item::Metadata(self.metadata));
        if is_queued {
            self.queued_metadata = self.metadata;
        }
        is_queued
    }

    /// Sets the text that the job attaches to later events, as numbered by [`Stacks::text`](super::Stacks::text).
    pub fn set_metadata(&mut self, text: StrId) {
        self.metadata = text;
    }

    /// Records an event with its time in microseconds since the epoch, for callers that learn of events later.
    #[inline]
    pub fn record_at(&mut self, mut entry: TraceEntry, time_us: i64) {
        if !self.keeps_stacks {
            entry.stack = StackId(0);
        }
        self.queue(Item::Event { entry, time_us }, &[entry.action]);
    }

    /// Queues an item that represents events with these actions.
    #[inline]
    fn queue(&mut self, item: Item, actions: &[Action]) {
        if self.is_losing && !self.resume() {
            return self.lose(actions);
        }
        let is_queued = (self.metadata == self.queued_metadata || self.push_metadata()) && self.push(item);
        if !is_queued {
            self.lose(actions);
        }
    }

    /// Records that `count` events were lost before they reached this sink, after the latest event.
    pub fn lost(&mut self, action: Action, count: u32) {
        if let Some(sum) = self.lost.get_mut(action as usize) {
            *sum = sum.saturating_add(count);
        }
        self.is_losing = true;
        self.side.add_lost(action, count.into());
    }

    /// Records the device's segments as they are after the latest event. Returns false if the queue is full.
    pub fn segments(&mut self, segments: Vec<Segment>) -> bool {
        if self.is_losing && !self.resume() || self.queue.is_full() {
            return false;
        }
        self.side.push_segments(segments);
        self.queue.push(Item::Segments).is_ok()
    }

    #[cold]
    fn lose(&mut self, actions: &[Action]) {
        for &action in actions {
            if let Some(count) = self.lost.get_mut(action as usize) {
                *count = count.saturating_add(1);
            }
            self.side.add_lost(action, 1);
        }
        self.is_losing = true;
    }
}

impl TraceSink for RecorderSink {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        let time_us = self.clock.now_us();
        self.record_at(entry, time_us);
    }

    #[inline]
    fn record_freed(&mut self, mut requested: TraceEntry) {
        if !self.keeps_stacks {
            requested.stack = StackId(0);
        }
        let item = Item::Freed { requested, time_us: self.clock.now_us() };
        self.queue(item, &[Action::FreeRequested, Action::FreeCompleted]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_item_fits_in_a_cache_line() {
        assert!(size_of::<super::Item>() <= 64, "{}", size_of::<super::Item>());
    }
}
