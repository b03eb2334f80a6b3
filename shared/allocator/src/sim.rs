//! A simulated device: memory of a given size, addresses in a known order, and streams that can be held.

use std::collections::BTreeMap;

use super::driver::{Driver, DriverError, MemoryInfo};
use trace::units::{Address, Stream};

/// First address of plain segments. Expandable ones lie below, as on the devices that were compared.
pub const PLAIN_BASE: u64 = 0x7c00_0000_0000;
/// First address of the ranges for expandable segments.
pub const RANGE_BASE: u64 = 0x7400_0000_0000;
/// The end of all addresses: a process has 47 bits of them.
const END: u64 = 1 << 47;
/// The granule of memory and addresses: 2 MiB.
const GRANULE: u64 = 2 << 20;

/// Which addresses the device gives out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The lowest free ones.
    #[default]
    FirstFit,
    /// New ones each time.
    Bump,
}

/// Free addresses.
#[derive(Debug)]
struct Arena {
    free: BTreeMap<u64, u64>,
    placement: Placement,
}

impl Arena {
    fn new(base: u64, end: u64, placement: Placement) -> Self {
        Self { free: BTreeMap::from([(base, end - base)]), placement }
    }

    fn take(&mut self, size: u64) -> Option<u64> {
        let (&start, &length) = self.free.iter().find(|(_, length)| **length >= size)?;
        self.free.remove(&start);
        if length > size {
            self.free.insert(start + size, length - size);
        }
        Some(start)
    }

    fn give(&mut self, mut start: u64, mut size: u64) {
        if self.placement == Placement::Bump {
            return;
        }
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            (start, size) = (before, length + size);
        }
        if let Some(length) = self.free.remove(&(start + size)) {
            size += length;
        }
        self.free.insert(start, size);
    }
}

/// The work of one stream: how many events were recorded, and how many are done.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    set: u64,
    reached: u64,
    is_held: bool,
}

/// An event in a simulated stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimEvent {
    stream: Stream,
    mark: u64,
}

/// A simulated device. Work is done at once unless its stream is held.
#[derive(Debug)]
pub struct SimDriver {
    /// The capacity at the start.
    total: u64,
    capacity: u64,
    used: u64,
    plain: Arena,
    ranges: Arena,
    streams: BTreeMap<Stream, Work>,
    failures: u64,
}

impl SimDriver {
    /// Creates a device of `capacity` bytes.
    pub fn new(capacity: u64, placement: Placement) -> Self {
        Self {
            total: capacity,
            capacity,
            used: 0,
            plain: Arena::new(PLAIN_BASE, END, placement),
            ranges: Arena::new(RANGE_BASE, PLAIN_BASE, placement),
            streams: BTreeMap::new(),
            failures: 0,
        }
    }

    /// Sets the capacity in bytes; it may be less than what is in use.
    pub fn set_capacity(&mut self, bytes: u64) {
        self.capacity = bytes;
    }

    /// Makes the next `n` calls that allocate memory fail.
    pub fn fail_next(&mut self, n: u64) {
        self.failures = n;
    }

    /// Holds a stream; only waiting for it lets it proceed.
    pub fn hold(&mut self, stream: Stream) {
        self.streams.entry(stream).or_default().is_held = true;
    }

    /// Lets a stream proceed and catch up.
    pub fn release(&mut self, stream: Stream) {
        let work = self.streams.entry(stream).or_default();
        work.is_held = false;
        work.reached = work.set;
    }

    /// Waits for all streams (`cudaDeviceSynchronize`).
    pub fn synchronize(&mut self) {
        for work in self.streams.values_mut() {
            work.reached = work.set;
        }
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn charge(&mut self, size: u64) -> Result<(), DriverError> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(DriverError::OutOfMemory);
        }
        match self.used.checked_add(size).filter(|used| *used <= self.capacity) {
            Some(used) => {
                self.used = used;
                Ok(())
            }
            None => Err(DriverError::OutOfMemory),
        }
    }
}

fn granules(size: u64) -> Result<u64, DriverError> {
    size.max(1).checked_next_multiple_of(GRANULE).ok_or(DriverError::OutOfMemory)
}

impl Driver for SimDriver {
    type Event = SimEvent;

    fn total_memory(&self) -> u64 {
        self.total
    }

    fn memory_info(&mut self) -> Result<MemoryInfo, DriverError> {
        Ok(MemoryInfo { free: self.capacity.saturating_sub(self.used), total: self.capacity })
    }

    fn alloc(&mut self, size: u64) -> Result<Address, DriverError> {
        let size = granules(size)?;
        self.charge(size)?;
        let address = self.plain.take(size);
        if address.is_none() {
            self.used -= size;
        }
        address.map(Address).ok_or(DriverError::OutOfMemory)
    }

    fn free(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        let size = granules(size)?;
        self.used = self.used.saturating_sub(size);
        self.plain.give(address.0, size);
        Ok(())
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, DriverError> {
        self.ranges.take(granules(size)?).map(Address).ok_or(DriverError::OutOfMemory)
    }

    fn release_range(&mut self, address: Address, size: u64) -> Result<(), DriverError> {
        self.ranges.give(address.0, granules(size)?);
        Ok(())
    }

    fn map(&mut self, _: Address, size: u64, page: u64) -> Result<(), DriverError> {
        if page == 0 || !page.is_multiple_of(GRANULE) {
            return Err(DriverError::Failed { call: "cuMemCreate", message: "invalid argument".to_owned() });
        }
        // All pages at once: one by one, a request of an impossible size would take hours.
        self.charge(size.checked_next_multiple_of(page).ok_or(DriverError::OutOfMemory)?)
    }

    fn unmap(&mut self, _: Address, size: u64, _: u64) -> Result<(), DriverError> {
        self.used = self.used.saturating_sub(size);
        Ok(())
    }

    fn record_event(&mut self, stream: Stream) -> Result<SimEvent, DriverError> {
        let work = self.streams.entry(stream).or_default();
        work.set += 1;
        if !work.is_held {
            work.reached = work.set;
        }
        Ok(SimEvent { stream, mark: work.set })
    }

    fn is_event_done(&mut self, event: &SimEvent) -> Result<bool, DriverError> {
        Ok(self.streams.get(&event.stream).is_none_or(|work| work.reached >= event.mark))
    }

    fn wait_for_event(&mut self, event: &SimEvent) -> Result<(), DriverError> {
        self.synchronize_stream(event.stream)
    }

    fn recycle_event(&mut self, _: SimEvent) {}

    /// Returns a stream's number as PyTorch would: index, kind and origin in one number.
    fn stream_id(&self, stream: Stream) -> u64 {
        match stream.0 as u64 {
            0 => 0,
            n => ((n - 1) << 5) | 0b11,
        }
    }

    fn synchronize_stream(&mut self, stream: Stream) -> Result<(), DriverError> {
        if let Some(work) = self.streams.get_mut(&stream) {
            work.reached = work.set;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn addresses_are_the_lowest_that_are_free() {
        let cases = [(Placement::FirstFit, [0, 4, 0, 2]), (Placement::Bump, [0, 4, 14, 16])];
        for (placement, want) in cases {
            let mut device = SimDriver::new(64 * MIB, placement);
            let mut got = Vec::new();
            for size in [3, 10] {
                got.push(device.alloc(size * MIB).unwrap());
            }
            device.free(got[0], 3 * MIB).unwrap();
            for size in [1, 2] {
                got.push(device.alloc(size * MIB).unwrap());
            }
            assert_eq!(got.iter().map(|address| (address.0 - PLAIN_BASE) / MIB).collect::<Vec<_>>(), want);
        }
    }

    #[test]
    fn memory_runs_out_and_failures_occur_on_request() {
        let mut device = SimDriver::new(10 * MIB, Placement::FirstFit);
        assert_eq!(device.alloc(11 * MIB), Err(DriverError::OutOfMemory));
        device.fail_next(1);
        assert_eq!(device.alloc(MIB), Err(DriverError::OutOfMemory));
        let range = device.reserve_range(40 * MIB).unwrap();
        // The fifth page does not fit, so the four before it are unmapped again.
        assert_eq!(device.map(range, 12 * MIB, 2 * MIB), Err(DriverError::OutOfMemory));
        assert_eq!(device.memory_info().unwrap(), MemoryInfo { free: 10 * MIB, total: 10 * MIB });
        device.map(range, 10 * MIB, 2 * MIB).unwrap();
        device.unmap(range, 4 * MIB, 2 * MIB).unwrap();
        assert_eq!(device.memory_info().unwrap().free, 4 * MIB);
        assert_eq!(device.alloc(u64::MAX), Err(DriverError::OutOfMemory));
    }

    #[test]
    fn pages_of_an_impossible_size_are_mapped_at_once() {
        let mut device = SimDriver::new(1 << 62, Placement::FirstFit);
        // One by one they would take weeks.
        device.map(Address(RANGE_BASE), (1 << 61) - 1, 2 * MIB).unwrap();
        assert_eq!(device.memory_info().unwrap().free, 1 << 61);
        assert_eq!(device.map(Address(RANGE_BASE), u64::MAX, 2 * MIB), Err(DriverError::OutOfMemory));
        assert_eq!(device.memory_info().unwrap().free, 1 << 61);
    }

    #[test]
    fn a_held_stream_stands_still_until_it_is_waited_for() {
        let mut device = SimDriver::new(MIB, Placement::FirstFit);
        let stream = Stream(1);
        let before = device.record_event(stream).unwrap();
        device.hold(stream);
        let event = device.record_event(stream).unwrap();
        assert_eq!((device.is_event_done(&before), device.is_event_done(&event)), (Ok(true), Ok(false)));
        device.synchronize();
        assert_eq!(device.is_event_done(&event), Ok(true));
        let late = device.record_event(stream).unwrap();
        assert_eq!(device.is_event_done(&late), Ok(false));
        device.release(stream);
        assert_eq!(device.is_event_done(&late), Ok(true));
    }
}
