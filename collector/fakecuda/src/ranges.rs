//! Virtual memory: reserved addresses, physical memory by handle, and mappings between them.
//!
//! Physical memory is a part of a memory file, so it has the same contents wherever it is mapped. Addresses without a
//! mapping, and mappings without access, are not accessible: a wrong access ends the process.

use std::collections::BTreeMap;

use crate::arena::{Arena, GRANULE, granules};
use crate::code::{Code, Outcome};
use crate::system;

/// The memory file's size in bytes. It may exceed all capacities, because only written parts use memory.
const FILE: u64 = 1 << 42;

/// What the size of a reservation is a multiple of: a page of the host.
const PAGE: u64 = 4096;

/// Physical memory.
#[derive(Debug)]
struct Physical {
    size: u64,
    offset: u64,
    /// Whether its handle was not released.
    has_handle: bool,
    mappings: u32,
}

/// Physical memory mapped at an address.
#[derive(Debug)]
struct Mapping {
    size: u64,
    handle: u64,
    is_open: bool,
}

/// A device's virtual memory.
#[derive(Debug)]
pub(crate) struct Ranges {
    addresses: Arena,
    /// The memory file, created with the first handle.
    file: Option<i32>,
    offsets: Arena,
    physical: BTreeMap<u64, Physical>,
    mappings: BTreeMap<u64, Mapping>,
    last_handle: u64,
}

impl Ranges {
    /// Virtual memory at `addresses`.
    pub(crate) fn new(addresses: Arena) -> Self {
        Self {
            addresses,
            file: None,
            offsets: Arena::new(0, FILE, false),
            physical: BTreeMap::new(),
            mappings: BTreeMap::new(),
            last_handle: 0,
        }
    }

    /// Reserves addresses, rounded up to whole granules and to at least one.
    pub(crate) fn reserve(&mut self, size: u64) -> Outcome<u64> {
        if !size.is_multiple_of(PAGE) {
            return Err(Code::INVALID_VALUE);
        }
        granules(size).and_then(|size| self.addresses.allocate(size)).ok_or(Code::OUT_OF_MEMORY)
    }

    /// Releases reserved addresses, which must be a whole, unmapped range.
    pub(crate) fn release(&mut self, address: u64, size: u64) -> Outcome {
        let is_whole = granules(size).is_some_and(|size| self.addresses.containing(address) == Some((address, size)));
        if !is_whole || self.mappings.range(address..address + size).next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        self.addresses.free(address).map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    /// Creates physical memory, which the caller has charged.
    pub(crate) fn create(&mut self, size: u64) -> Outcome<u64> {
        if self.file.is_none() {
            self.file = Some(system::memory_file(FILE)?);
        }
        let offset = self.offsets.allocate(size).ok_or(Code::OUT_OF_MEMORY)?;
        self.last_handle += 1;
        self.physical.insert(self.last_handle, Physical { size, offset, has_handle: true, mappings: 0 });
        Ok(self.last_handle)
    }

    /// Releases a handle, and returns how many bytes that frees.
    pub(crate) fn drop_handle(&mut self, handle: u64) -> Outcome<u64> {
        let physical = self.physical.get_mut(&handle).filter(|physical| physical.has_handle);
        physical.ok_or(Code::INVALID_VALUE)?.has_handle = false;
        Ok(self.drop_unused(handle))
    }

    /// Maps all of a handle's physical memory, without access.
    pub(crate) fn map(&mut self, address: u64, size: u64, handle: u64) -> Outcome {
        let (start, reserved) = self.addresses.containing(address).ok_or(Code::INVALID_VALUE)?;
        let physical = self.physical.get_mut(&handle).filter(|physical| physical.has_handle && physical.size == size);
        let (physical, file) = physical.zip(self.file).ok_or(Code::INVALID_VALUE)?;
        let end = address + size;
        let before = self.mappings.range(..end).next_back();
        let is_free = before.is_none_or(|(at, mapping)| at + mapping.size <= address);
        if !address.is_multiple_of(GRANULE) || end > start + reserved || !is_free {
            return Err(Code::INVALID_VALUE);
        }
        system::map(address, size, file, physical.offset)?;
        physical.mappings += 1;
        self.mappings.insert(address, Mapping { size, handle, is_open: false });
        Ok(())
    }

    /// Makes whole mappings accessible.
    pub(crate) fn open(&mut self, address: u64, size: u64) -> Outcome {
        for start in self.whole(address, size)? {
            let mapping = self.mappings.get_mut(&start).ok_or(Code::UNKNOWN)?;
            mapping.is_open = true;
            system::open(start, mapping.size)?;
        }
        Ok(())
    }

    /// Unmaps whole mappings, and returns how many bytes that frees.
    pub(crate) fn unmap(&mut self, address: u64, size: u64) -> Outcome<u64> {
        let mut freed = 0;
        for start in self.whole(address, size)? {
            let mapping = self.mappings.remove(&start).ok_or(Code::UNKNOWN)?;
            system::close(start, mapping.size)?;
            if let Some(physical) = self.physical.get_mut(&mapping.handle) {
                physical.mappings -= 1;
            }
            freed += self.drop_unused(mapping.handle);
        }
        Ok(freed)
    }

    /// Returns whether accessible mappings cover everything from `address` to `end`.
    pub(crate) fn is_open(&self, address: u64, end: u64) -> bool {
        let mut reached = address;
        while reached < end {
            let mapping = self.mappings.range(..=reached).next_back();
            match mapping.map(|(start, mapping)| (start + mapping.size, mapping.is_open)) {
                Some((to, true)) if to > reached => reached = to,
                _ => return false,
            }
        }
        true
    }

    /// Returns the number of existing ranges, handles and mappings.
    pub(crate) fn leftovers(&self) -> usize {
        self.addresses.count() + self.physical.len() + self.mappings.len()
    }

    /// Returns the starts of the mappings that make up a range exactly.
    fn whole(&self, address: u64, size: u64) -> Outcome<Vec<u64>> {
        let end = address.checked_add(size).ok_or(Code::INVALID_VALUE)?;
        let (mut reached, mut starts) = (address, Vec::new());
        for (start, mapping) in self.mappings.range(address..end) {
            if *start == reached {
                reached += mapping.size;
                starts.push(*start);
            }
        }
        if reached == end && size > 0 { Ok(starts) } else { Err(Code::INVALID_VALUE) }
    }

    /// Frees physical memory without a handle and mappings, and returns its bytes.
    fn drop_unused(&mut self, handle: u64) -> u64 {
        let is_unused = |physical: &&Physical| !physical.has_handle && physical.mappings == 0;
        let Some(physical) = self.physical.get(&handle).filter(is_unused) else { return 0 };
        let (size, offset) = (physical.size, physical.offset);
        self.physical.remove(&handle);
        self.offsets.free(offset);
        if let Some(file) = self.file {
            system::forget(file, offset, size);
        }
        size
    }
}
