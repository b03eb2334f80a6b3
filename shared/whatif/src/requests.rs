//! The requests of a program, in order.

use query::encoding::{decode, encode};
use serde::{Deserialize, Serialize};

use trace::Segment;
use trace::event::Action;
use trace::units::{Address, PoolId, Stream};

/// One act of the program, or one event that concerns it. The numbers are those of [`Requests::asked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Act {
    /// It asked for memory and got it.
    Malloc(u32),
    /// It asked for memory and got none.
    Failed(u32),
    /// It freed an allocation, which no other stream used.
    Free(u32),
    /// It freed an allocation that other streams still used.
    FreeLater(u32),
    /// Those streams were done with the allocation.
    Settled(u32),
    /// It called `empty_cache`.
    EmptyCache,
    /// It gave up a private pool, whose cached memory went at once (`MemPool`): an index into [`Requests::sources`].
    EndPool(u32),
    /// It gave up a private pool, whose cached memory goes when the cache is released (`CUDAGraph`): an index into
    /// [`Requests::sources`].
    LeavePool(u32),
    /// It begins with nothing cached: what was reserved and is not in use by now is released, and doesn't count.
    Begin,
}

impl Act {
    /// Whether the recording has an answer of the allocator to compare with.
    pub(super) fn is_answered(self) -> bool {
        self.is_request() || matches!(self, Self::EmptyCache | Self::EndPool(_))
    }

    /// Whether it asks for memory.
    pub(super) fn is_request(self) -> bool {
        matches!(self, Self::Malloc(_) | Self::Failed(_))
    }
}

/// An act at an event of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestStep {
    /// The event.
    pub(super) event: u32,
    pub(super) act: Act,
}

/// The pool and stream that a request is served from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) stream: Stream,
    pub(super) pool: PoolId,
}

/// The size and source of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Bytes.
    pub(super) size: u64,
    /// An index into [`Requests::sources`].
    pub(super) source: u32,
}

/// An allocation that was active at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LiveAtStart {
    pub(super) number: u32,
    pub(super) address: Address,
    /// Whether it was freed already, and waited for a stream.
    pub(super) is_waiting: bool,
}

/// The allocator's answers when the trace was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// The number of entries of each step that [`Act::is_answered`], in their order.
    pub(super) lengths: Vec<u32>,
    /// Action, address and bytes.
    pub(super) entries: Vec<(Action, u64, u64)>,
    /// For requests that the device had no room for, in order of their numbers: the address of the range that may have been
    /// reserved for them.
    pub(super) ranges: Vec<(u32, u64)>,
}

impl Recorded {
    /// Whether entries of an action are part of it.
    pub(super) fn has(action: Action) -> bool {
        use Action::{Alloc, SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap};
        matches!(action, Alloc | SegmentAlloc | SegmentFree | SegmentMap | SegmentUnmap)
    }
}

/// The requests of a program to the allocator of one device, and the state that it began with. It is detached from its
/// trace, and serializes, so that another worker can run it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// The segments at the start.
    pub(super) start: Vec<Segment>,
    /// The allocations in them.
    pub(super) live: Vec<LiveAtStart>,
    pub(super) steps: Vec<RequestStep>,
    /// What was asked for, by number: all allocations of the trace, then the requests that failed.
    pub(super) asked: Vec<Asked>,
    pub(super) sources: Vec<Source>,
    pub(super) recorded: Recorded,
    /// The memory that the process could have, if the trace shows it.
    pub(super) capacity: Option<u64>,
    /// Events of the run that the trace lacks.
    pub(super) lost: u64,
}

impl Requests {
    /// Returns the number of requests for memory, with those that failed.
    pub fn len(&self) -> usize {
        self.steps.iter().filter(|step| step.act.is_request()).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.steps.iter().any(|step| step.act.is_request())
    }

    /// Returns the memory that the process could have in bytes, if the trace shows it: what it had reserved when a
    /// request failed, and what the device had free then.
    pub fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// Returns the bytes that were reserved before the first event. How they came about is not known, so every run begins with
    /// them.
    pub fn reserved_at_start(&self) -> u64 {
        self.start.iter().fold(0, |sum, segment| sum.saturating_add(segment.size))
    }

    /// Returns the bytes without which a run can't begin. Of one that begins with nothing cached, [`Act::Begin`] tells.
    pub(super) fn needed_at_start(&self) -> u64 {
        let mut first = self.steps.iter().take_while(|step| step.event == 0);
        if first.any(|step| step.act == Act::Begin) { 0 } else { self.needed(self.reserved_at_start()) }
    }

    /// Returns the bytes that a run needs if so many are reserved where it begins. What the recorded device had was enough, whatever
    /// others took of it later.
    pub(super) fn needed(&self, reserved: u64) -> u64 {
        reserved.min(self.capacity.unwrap_or(u64::MAX))
    }

    /// Returns the requests as bytes, for another worker.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Returns the requests that [`Self::to_bytes`] wrote; `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }

    /// Returns the approximate bytes of memory that the requests occupy.
    pub fn memory(&self) -> usize {
        size_of_val(self.steps.as_slice())
            + size_of_val(self.asked.as_slice())
            + size_of_val(self.recorded.lengths.as_slice())
            + size_of_val(self.recorded.entries.as_slice())
            + size_of_val(self.live.as_slice())
            + Segment::memory_of(&self.start)
    }
}
