//! The device of a run that is repeated: memory as given, and streams that are done when the trace says so.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use allocator::sim::{Placement, SimDriver};
use allocator::{Driver, DriverError, MemoryInfo};
use trace::Segment;
use trace::units::{Address, Stream};

/// A simulated device whose streams are held until they are let go.
#[derive(Debug)]
pub(super) struct Device {
    memory: SimDriver,
    /// The bytes of the device, and those of them that other processes hold.
    capacity: u64,
    held_by_others: u64,
    /// The segments that the process had at the start: their sizes by address.
    adopted: FxHashMap<u64, u64>,
    adopted_bytes: u64,
    /// The streams that are held.
    held: FxHashSet<Stream>,
    /// For a run that is compared with its recording: what the device answers next.
    recorded: Option<Answers>,
    /// The bytes that were given at recorded addresses.
    given: u64,
    /// Where the next range of addresses without memory begins. A large device has more of them than a process uses.
    next_range: u64,
}

/// The device's answers to one request in the recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// The addresses at which it gave memory, and how many releases came before each. Until then it has none.
    pub(super) given: VecDeque<(u64, u32)>,
    /// Whether it had no more after that.
    pub(super) is_failing: bool,
    /// Where it reserved a range of addresses, if it gave no memory.
    pub(super) range: Option<u64>,
    /// The releases so far.
    released: u32,
}

/// The most bytes that are given at recorded addresses in one run: 1 PiB, which is a device of 100 GiB filled ten thousand
/// times. Expandable segments map it page by page, so that more than any job maps would take hours.
const MOST_GIVEN: u64 = 1 << 50;

/// The first address without memory, above all others.
const RANGES: u64 = 1 << 56;

impl Device {
    /// Creates a device of `capacity` bytes, of which others hold some, that chooses its addresses. The process has segments on
    /// it already.
    pub(super) fn simulated((capacity, held_by_others): (u64, u64), segments: &[Segment]) -> Self {
        let mut new = Self {
            memory: SimDriver::new(capacity, Placement::FirstFit),
            capacity,
            held_by_others,
            adopted: segments.iter().map(|segment| (segment.address.0, segment.size)).collect(),
            adopted_bytes: segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.size)),
            held: FxHashSet::default(),
            recorded: None,
            given: 0,
            next_range: RANGES,
        };
        new.make_room();
        new
    }

    /// Creates a device that answers as set by [`Self::answer_with`].
    pub(super) fn recorded(capacity: u64) -> Self {
        Self { recorded: Some(Answers::default()), ..Self::simulated((capacity, 0), &[]) }
    }

    /// Sets the answers to the next request.
    pub(super) fn answer_with(&mut self, answers: Answers) {
        self.recorded = Some(answers);
    }

    /// Holds a stream.
    pub(super) fn hold(&mut self, stream: Stream) {
        self.held.insert(stream);
    }

    /// Lets a stream go.
    pub(super) fn release(&mut self, stream: Stream) {
        self.held.remove(&stream);
    }

    /// Leaves to further segments what the adopted ones don't take.
    fn make_room(&mut self) {
        self.memory.set_capacity(self.capacity.saturating_sub(self.held_by_others).saturating_sub(self.adopted_bytes));
    }

    /// Returns the next recorded address, at which `size` bytes were given; `None` if there is none, and the device has to
    /// choose one.
    fn next_recorded(&mut self, size: u64) -> Result<Option<Address>, DriverError> {
        let Some(answers) = &mut self.recorded else { return Ok(None) };
        let released = answers.released;
        match answers.given.pop_front_if(|(_, after)| *after <= released) {
            Some((address, _)) => {
                self.given = self.given.saturating_add(size);
                let is_possible = self.given <= MOST_GIVEN && address.checked_add(size).is_some();
                if is_possible { Ok(Some(Address(address))) } else { Err(DriverError::OutOfMemory) }
            }
            None if answers.is_failing || !answers.given.is_empty() => Err(DriverError::OutOfMemory),
            None => Ok(None),
        }
    }

    /// Counts a release; returns whether the run is compared with its recording.
    fn count_release(&mut self) -> bool {
        if let Some(answers) = &mut self.recorded {
            answers.released += 1;
        }
        self.recorded.is_some()
    }
}

impl Driver for Device {
    type Event = Stream;

    fn total_memory(&self) -> u64 {
        self.capacity
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError> {
        Ok(MemoryInfo { total: self.capacity, ..self.memory.memory_info()? })
    }

    fn alloc(&mut self, size: u64) -> Result<Address, DriverError> {
        match self.next_recorded(size)? {
            Some(address) => Ok(address),
            None => self.memory.alloc(size),
        }
    }

    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        if self.count_release() {
            return Ok(());
        }
        match self.adopted.remove(&address.0) {
            Some(bytes) => {
                self.adopted_bytes = self.adopted_bytes.saturating_sub(bytes);
                self.make_room();
                Ok(())
            }
            None => self.memory.free(address, size),
        }
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError> {
        // The first page of a range is mapped at its first address. What was given only after a release may be in another range.
        let known = self.recorded.as_ref();
        let first = |answers: &Answers| {
            let now = answers.given.front().filter(|(_, after)| *after <= answers.released);
            now.map(|(first, _)| *first).or(answers.range)
        };
        if let Some(first) = known.and_then(first) {
            return first.checked_add(size).map(|_| Address(first)).ok_or(DriverError::OutOfMemory);
        }
        let address = self.next_range;
        self.next_range = address.checked_add(size).ok_or(DriverError::OutOfMemory)?;
        Ok(Address(address))
    }

    fn release_range(&mut self, _: Address, _: u64) -> Result<(), DriverError> {
        Ok(())
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        match self.next_recorded(size)? {
            Some(_) => Ok(()),
            None => self.memory.map(address, size, page),
        }
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64) -> Result<(), DriverError> {
        if self.count_release() { Ok(()) } else { self.memory.unmap(address, size, page) }
    }

    fn record_event(&mut self, stream: Stream) -> Result<Stream, DriverError> {
        Ok(stream)
    }

    fn is_event_done(&mut self, event: &Stream) -> Result<bool, DriverError> {
        Ok(!self.held.contains(event))
    }

    fn wait_for_event(&mut self, event: &Stream) -> Result<(), DriverError> {
        self.held.remove(event);
        Ok(())
    }

    fn recycle_event(&mut self, _: Stream) {}

    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError> {
        self.held.remove(&stream);
        Ok(())
    }
}
