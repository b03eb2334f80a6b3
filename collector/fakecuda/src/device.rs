//! A device: its capacity and its allocations (plain, of a pool, or unified).

use std::collections::{BTreeMap, BTreeSet};

use crate::arena::{Arena, GRANULE, granules};
use crate::code::{Code, Outcome};
use crate::ranges::Ranges;
use crate::settings::Settings;
use crate::system;

/// The addresses for a device's memory in bytes.
const MEMORY: u64 = 1 << 40;
/// The addresses for its reserved ranges. PyTorch's expandable segments are more than the whole device each.
const RANGES: u64 = 8 << 40;
/// All of a device's addresses. Eight devices have 72 TiB of the 128 TiB of a process.
pub(crate) const ADDRESSES: u64 = RANGES + MEMORY;

/// The start of device 0's memory, if it is free: the same in every run.
const BASE: u64 = 0x2000_0000_0000;

/// The kind of an allocation, which determines how it is freed and what it charges.
#[derive(Debug)]
pub(crate) enum Kind {
    Plain,
    /// Belongs to the pool with this handle.
    Pool(usize),
    /// Unified memory. The granules in the set are on the device and charged; the others are on the host.
    Managed(BTreeSet<u64>),
}

/// An allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// The accessible bytes.
    pub(crate) size: u64,
    pub(crate) kind: Kind,
}

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) capacity: u64,
    /// Used bytes, including those of other processes.
    pub(crate) used: u64,
    /// Used bytes of other processes.
    pub(crate) other: u64,
    /// How often its primary context is retained.
    pub(crate) contexts: u32,
    /// The error of failed work, which every later wait returns.
    pub(crate) broken: Option<Code>,
    /// Its first address.
    pub(crate) base: u64,
    /// How many requests for memory are still to be refused.
    pub(crate) refusals: u32,
    addresses: Arena,
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    pub(crate) ranges: Ranges,
}

impl Device {
    pub(crate) fn new(number: u64, settings: &Settings) -> Outcome<Self> {
        let (other, is_descending) = (settings.other_bytes, settings.is_descending);
        let reuses = settings.reuses_addresses;
        let base = system::reserve(BASE + number * ADDRESSES, ADDRESSES)?;
        // The system may have chosen other addresses, which are only aligned to pages.
        let base = base.next_multiple_of(GRANULE);
        Ok(Self {
            capacity: settings.capacity,
            used: other,
            other,
            contexts: 0,
            broken: None,
            base,
            refusals: 0,
            addresses: Arena::new(base + RANGES, MEMORY - GRANULE, is_descending).reusing(reuses),
            allocations: BTreeMap::new(),
            ranges: Ranges::new(Arena::new(base, RANGES, is_descending).reusing(reuses)),
        })
    }

    /// Returns the first address of its memory, which lies above the reserved ranges as on the simulated device of
    /// `vramscope replay`: the allocator prefers the lower of two addresses.
    pub(crate) fn memory_base(&self) -> u64 {
        self.base + RANGES
    }

    /// Charges bytes, if the capacity allows it.
    pub(crate) fn charge(&mut self, size: u64) -> Outcome {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(Code::OUT_OF_MEMORY);
        }
        let used = self.used.checked_add(size).filter(|used| *used <= self.capacity).ok_or(Code::OUT_OF_MEMORY)?;
        self.used = used;
        Ok(())
    }

    /// Allocates memory. Unified memory is charged when it is moved to the device, not here: CUDA allocates more of it
    /// than the device has.
    pub(crate) fn allocate(&mut self, size: u64, kind: Kind) -> Outcome<u64> {
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let whole = granules(size).ok_or(Code::OUT_OF_MEMORY)?;
        let charged = if matches!(kind, Kind::Managed(_)) { 0 } else { whole };
        self.charge(charged)?;
        let allocated = self.addresses.allocate(whole).ok_or(Code::OUT_OF_MEMORY);
        let opened = allocated.and_then(|address| system::open(address, whole).map(|()| address));
        if opened.is_err() {
            self.used -= charged;
        }
        self.allocations.insert(opened?, Allocation { size, kind });
        opened
    }

    /// Frees memory.
    pub(crate) fn free(&mut self, address: u64) -> Outcome<Allocation> {
        let allocation = self.allocations.remove(&address).ok_or(Code::INVALID_VALUE)?;
        let whole = self.addresses.free(address).ok_or(Code::UNKNOWN)?;
        system::close(address, whole)?;
        self.used -= match &allocation.kind {
            Kind::Managed(resident) => resident.len() as u64 * GRANULE,
            _ => whole,
        };
        Ok(allocation)
    }

    /// Moves unified memory to the device or to the host, in whole granules.
    pub(crate) fn prefetch(&mut self, address: u64, size: u64, to_device: bool) -> Outcome {
        let start = self.addresses.containing(address).ok_or(Code::INVALID_VALUE)?.0;
        let allocation = self.allocations.get_mut(&start).ok_or(Code::INVALID_VALUE)?;
        let Kind::Managed(resident) = &mut allocation.kind else { return Err(Code::INVALID_VALUE) };
        for granule in address / GRANULE..(address + size).div_ceil(GRANULE) {
            if to_device && !resident.contains(&granule) {
                if self.used + GRANULE > self.capacity {
                    return Err(Code::OUT_OF_MEMORY);
                }
                self.used += GRANULE;
                resident.insert(granule);
            } else if !to_device && resident.remove(&granule) {
                self.used -= GRANULE;
            }
        }
        Ok(())
    }

    /// Returns whether all of a range is unified memory.
    pub(crate) fn is_managed(&self, address: u64, size: u64) -> bool {
        self.allocations.range(..=address).next_back().is_some_and(|(start, allocation)| {
            matches!(allocation.kind, Kind::Managed(_))
                && address.checked_add(size).is_some_and(|end| end <= start + allocation.size)
        })
    }

    /// Returns whether all of a range is accessible.
    pub(crate) fn is_open(&self, address: u64, size: u64) -> bool {
        let Some(end) = address.checked_add(size) else { return false };
        let allocation = self.allocations.range(..=address).next_back();
        allocation.is_some_and(|(start, allocation)| end <= start + allocation.size)
            || self.ranges.is_open(address, end)
    }

    /// Returns the number of existing allocations, ranges, pages and contexts.
    pub(crate) fn leftovers(&self) -> usize {
        self.allocations.len() + self.ranges.leftovers() + self.contexts as usize
    }
}
