//! A device's events as columns, and its segments: the data that all analyses read.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::frames::{StackId, StrId, Symbols};
use crate::units::{Address, PoolId, Stream};
use crate::{Column, HostMemory, Marks, OutsideSample};

/// Attributes that many events share. Each distinct combination is stored once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The stream of the block or segment.
    pub stream: Stream,
    /// The pool, if it is recorded (torch 2.12 and later).
    pub pool: Option<PoolId>,
    /// The innermost compiled region; `N/A` and the empty string mean none.
    pub compile_context: StrId,
    /// The text set by `_set_memory_metadata`, or an annotation's text.
    pub user_metadata: StrId,
    /// For [`Action::Other`] only: the action's name as recorded.
    pub other_action: StrId,
}

/// A distinct [`Tag`] of a [`Snapshot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagId(pub u32);

/// The distinct tags of one file.
#[derive(Debug, Default)]
pub struct Tags {
    tags: Vec<Tag>,
    numbers: FxHashMap<Tag, TagId>,
}

impl Tags {
    /// Returns the number of a tag, and adds it if it is new.
    pub fn intern(&mut self, tag: Tag) -> TagId {
        *self.numbers.entry(tag).or_insert_with(|| {
            self.tags.push(tag);
            TagId(self.tags.len() as u32 - 1)
        })
    }

    /// Returns a tag; the default one for a number that is not in this table.
    pub fn get(&self, id: TagId) -> Tag {
        self.tags.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the approximate bytes of memory that they occupy: a list, and a table in which they are looked up.
    pub fn memory(&self) -> usize {
        let slots = (self.numbers.capacity() * 8).div_ceil(7).next_power_of_two();
        self.tags.capacity() * size_of::<Tag>() + slots * (size_of::<(Tag, TagId)>() + 1)
    }

    /// Returns the number of tags.
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Returns the tags by number.
    pub fn iter(&self) -> impl Iterator<Item = &Tag> {
        self.tags.iter()
    }
}

/// One allocator event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// The block's or range's address; for [`Action::Oom`] the free bytes of the device.
    pub address: Address,
    /// Bytes; see [`Action`] for which.
    pub size: u64,
    /// Microseconds since the epoch; 0 if times were not recorded. Times may fall; the order of events is decisive.
    pub time_us: i64,
    /// Stream, pool and contexts.
    pub tag: TagId,
    /// The stack that caused it; the empty stack if none was recorded.
    pub stack: StackId,
}

/// Events as columns: [`Self::BYTES_PER_EVENT`] each while they are new, about half once they are packed.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// [`Action`] codes.
    pub action: Column<u8>,
    /// Addresses.
    pub address: Column<u64>,
    /// Sizes in bytes.
    pub size: Column<u64>,
    /// Times in microseconds since the epoch.
    pub time_us: Column<i64>,
    /// [`TagId`] numbers.
    pub tag: Column<u32>,
    /// [`StackId`] numbers.
    pub stack: Column<u32>,
}

impl Events {
    /// Bytes of one event in all columns together.
    pub const BYTES_PER_EVENT: usize = 33;

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// Appends an event. Inlined, so that the parser's is not written to memory first.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        self.action.push(event.action as u8);
        self.address.push(event.address.0);
        self.size.push(event.size);
        self.time_us.push(event.time_us);
        self.tag.push(event.tag.0);
        self.stack.push(event.stack.0);
    }

    /// Returns event `i`, if there is one.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Event> {
        Some(Event {
            action: Action::from_code(self.action.get(i)?),
            address: Address(self.address.get(i)?),
            size: self.size.get(i)?,
            time_us: self.time_us.get(i)?,
            tag: TagId(self.tag.get(i)?),
            stack: StackId(self.stack.get(i)?),
        })
    }

    /// Replaces event `i`; does nothing if there is none.
    pub fn set(&mut self, i: usize, event: Event) {
        self.action.set(i, event.action as u8);
        self.address.set(i, event.address.0);
        self.size.set(i, event.size);
        self.time_us.set(i, event.time_us);
        self.tag.set(i, event.tag.0);
        self.stack.set(i, event.stack.0);
    }

    /// Returns the memory that the events take, in bytes.
    pub fn memory(&self) -> usize {
        self.action.memory()
            + self.address.memory()
            + self.size.memory()
            + self.time_us.memory()
            + self.tag.memory()
            + self.stack.memory()
    }

    /// Returns the events in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.iter_from(0)
    }

    /// Returns the events from `start` on.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = Event> + '_ {
        (start..self.len()).map_while(|i| self.get(i))
    }

    /// Splits the columns at `at`: keeps the events before, and returns the others.
    pub fn split_off(&mut self, at: usize) -> Self {
        Self {
            action: self.action.split_off(at),
            address: self.address.split_off(at),
            size: self.size.split_off(at),
            time_us: self.time_us.split_off(at),
            tag: self.tag.split_off(at),
            stack: self.stack.split_off(at),
        }
    }
}

/// What a block is used for, as the snapshot records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockState {
    /// In a live tensor (`active_allocated`).
    Allocated,
    /// Freed, and waiting for streams (`active_pending_free`; `active_awaiting_free` in the documentation means the
    /// same).
    Pending,
    /// Cached (`inactive`).
    Inactive,
}

/// A block of a segment when the snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its first address.
    pub address: Address,
    /// Its size in bytes, rounded.
    pub size: u64,
    /// Requested bytes; the block's size if they were not recorded (before torch 2.1).
    pub requested: u64,
    /// What it is used for.
    pub state: BlockState,
    /// Its call site.
    pub stack: StackId,
}

/// A segment when the snapshot was taken: for an expandable one, a contiguous mapped range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first address.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// The stream it belongs to.
    pub stream: Stream,
    /// Whether it serves the small pool (requests up to 1 MiB).
    pub is_small: bool,
    /// Whether it can grow (`expandable_segments:True`).
    pub is_expandable: bool,
    /// The pool it belongs to; the default one if it was not recorded.
    pub pool: PoolId,
    /// The call site whose request it was reserved for.
    pub stack: StackId,
    /// Its blocks by address; they tile it.
    pub blocks: Vec<Block>,
}

impl Segment {
    /// Returns the bytes of memory that a list of segments with their blocks occupies.
    pub fn memory_of(segments: &[Self]) -> usize {
        let blocks = segments.iter().map(|segment| segment.blocks.capacity() * size_of::<Block>());
        size_of_val(segments) + blocks.sum::<usize>()
    }
}

/// One end of a named span of time (`record_function`, `external_annotations`), or a named instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its name.
    pub name: StrId,
    /// Start or end of the span.
    pub stage: Stage,
    /// Microseconds since the epoch.
    pub time_us: i64,
}

/// Which end of a span an [`Annotation`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Where it begins (`START`).
    Start,
    /// Where it ends (`END`).
    End,
    /// An instant.
    Instant,
}

/// Events that are missing between two events of a trace: the recorder dropped them, or their part of the file is
/// damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The number of events of the trace before the loss.
    pub position: u32,
    /// The number of missing events.
    pub events: u64,
    /// The number of missing events of each [`Action`], by its code, as far as they were counted.
    pub by_action: [u64; Action::ALL.len()],
}

/// One device of a snapshot.
#[derive(Debug, Default)]
pub struct DeviceTrace {
    /// The device's number as the file gives it.
    pub device: i64,
    /// Its events, oldest first.
    pub events: Events,
    /// Its segments at the end, by address.
    pub segments: Vec<Segment>,
    /// Its annotations, in the file's order.
    pub annotations: Vec<Annotation>,
    /// Where events are missing: by position, at most one at each position.
    pub losses: Vec<Loss>,
    /// The allocator's own statistics, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Memory outside the allocator, in the order in which it was sampled.
    pub outside: Vec<OutsideSample>,
}

impl DeviceTrace {
    /// Returns when the trace begins, in microseconds since the epoch: the earlier time of its first event and its
    /// first sample; 0 if it has neither. Times on the axis count from here.
    pub fn start_us(&self) -> i64 {
        let event = self.events.time_us.get(0);
        let sample = self.samples.first().map(|sample| sample.time_us);
        event.into_iter().chain(sample).min().unwrap_or(0)
    }
}

/// A device's memory use at one moment, from the allocator's own statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The time in microseconds since the epoch.
    pub time_us: i64,
    /// Bytes in live tensors, rounding included (`allocated_bytes.all.current`).
    pub allocated: u64,
    /// Bytes in live tensors and in blocks that wait for a stream (`active_bytes.all.current`).
    pub active: u64,
    /// Bytes taken from the driver (`reserved_bytes.all.current`).
    pub reserved: u64,
}

impl Sample {
    /// Returns allocated, active and reserved bytes, in this order.
    pub fn sums(&self) -> [u64; 3] {
        [self.allocated, self.active, self.reserved]
    }

    /// Merges samples: the time of the first one, and the largest of each sum. `None` for no samples.
    pub fn largest(some: &[Self]) -> Option<Self> {
        some.iter().copied().reduce(|a, b| Self {
            time_us: a.time_us,
            allocated: a.allocated.max(b.allocated),
            active: a.active.max(b.active),
            reserved: a.reserved.max(b.reserved),
        })
    }
}

/// `roundup_power2_divisions` for requests below 2 MiB, from 2 MiB, from 4 MiB, … from 32 GiB; 0 and 1 are off.
pub type Divisions = [u64; 16];

/// The allocator's settings as recorded; PyTorch's default for settings that were not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The settings string that was set last (`PYTORCH_CUDA_ALLOC_CONF`).
    pub conf: String,
    /// The size in bytes from which on blocks are never split; `None` is unlimited.
    pub max_split_size: Option<u64>,
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `garbage_collection_threshold`; 0 is off.
    pub garbage_collection_threshold: f64,
    /// `roundup_power2_divisions` for requests below 2 MiB, from 2 MiB, from 4 MiB, … from 32 GiB; 0 and 1 are off.
    pub roundup_power2_divisions: Divisions,
    /// Every setting's name and value as recorded, in the file's order, for display.
    pub as_written: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            conf: String::new(),
            max_split_size: None,
            expandable_segments: false,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: [0; 16],
            as_written: Vec::new(),
        }
    }
}

/// The contents of one file: its devices, and the tables that they share.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The devices that have segments or events, by number.
    pub devices: Vec<DeviceTrace>,
    /// Strings, frames and stacks.
    pub symbols: Symbols,
    /// Tags.
    pub tags: Tags,
    /// The allocator's settings.
    pub settings: Settings,
    /// Pinned host memory, which belongs to no device.
    pub host: HostMemory,
    /// Which optional parts the file has; none for a recording, which names its release.
    pub marks: Marks,
}
