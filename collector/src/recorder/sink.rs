//! The allocator's end of the queue.

use std::sync::Arc;

use rtrb::{Producer, PushError};
use shared::allocator::{TraceEntry, TraceSink};
use shared::event::Action;
use shared::frames::StackId;

use super::clock::Clock;
use super::lane::Lane;

/// Counts by [`Action`].
pub(super) type Counts = [u32; Action::ALL.len()];

/// What goes through the queue: 56 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// An event, and when it happened.
    Event { entry: TraceEntry, time_us: i64 },
    /// Events that did not find room, by action.
    Lost(Counts),
}

/// What happens to an event that finds the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is counted as lost: whoever allocates never waits. The only choice in a training job.
    #[default]
    Count,
    /// It waits until there is room. For simulations, where nobody waits for the memory and every event is wanted.
    Wait,
}

/// Takes a device's events in the middle of the allocator's work. It never allocates, takes a lock or calls the system;
/// unless it is told to ([`WhenFull::Wait`]), it never waits.
pub struct RecorderSink {
    queue: Producer<Item>,
    clock: Arc<dyn Clock>,
    lane: Arc<Lane>,
    when_full: WhenFull,
    keeps_stacks: bool,
    /// What was lost since the last event that found room.
    lost: Counts,
    is_losing: bool,
}

impl RecorderSink {
    pub(super) fn new(
        queue: Producer<Item>,
        clock: Arc<dyn Clock>,
        lane: Arc<Lane>,
        when_full: WhenFull,
        keeps_stacks: bool,
    ) -> Self {
        let lost = Counts::default();
        Self { queue, clock, lane, when_full, keeps_stacks, lost, is_losing: false }
    }

    /// Tells of what was lost, once there is room again. Not at the first free place: a queue that just isn't empty
    /// enough would make a gap of every other event.
    fn resume(&mut self) -> bool {
        if self.queue.slots() < self.queue.buffer().capacity() / 8 + 2 {
            return false;
        }
        let told = self.queue.push(Item::Lost(self.lost)).is_ok();
        if told {
            (self.lost, self.is_losing) = (Counts::default(), false);
        }
        told
    }

    #[cold]
    fn full(&mut self, mut item: Item, action: Action) {
        while self.when_full == WhenFull::Wait && !self.queue.is_abandoned() {
            self.lane.wake();
            std::thread::yield_now();
            match self.queue.push(item) {
                Ok(()) => return,
                Err(PushError::Full(back)) => item = back,
            }
        }
        self.lose(action);
    }

    /// Records an event of another time than now: microseconds since the epoch. For who hears of events later.
    #[inline]
    pub fn record_at(&mut self, mut entry: TraceEntry, time_us: i64) {
        if self.is_losing && !self.resume() {
            return self.lose(entry.action);
        }
        if !self.keeps_stacks {
            entry.stack = StackId(0);
        }
        let item = Item::Event { entry, time_us };
        if let Err(PushError::Full(item)) = self.queue.push(item) {
            self.full(item, entry.action);
        }
    }

    #[cold]
    fn lose(&mut self, action: Action) {
        if let Some(count) = self.lost.get_mut(action as usize) {
            *count = count.saturating_add(1);
        }
        self.is_losing = true;
        self.lane.count_lost(action);
    }
}

impl TraceSink for RecorderSink {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        self.record_at(entry, self.clock.now_us());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_item_fits_a_cache_line() {
        assert!(size_of::<super::Item>() <= 64, "{}", size_of::<super::Item>());
    }
}
