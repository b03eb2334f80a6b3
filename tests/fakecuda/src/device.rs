//! A device: its capacity, and the memory that is taken in one call (plain, of a pool, unified).

use std::collections::{BTreeMap, BTreeSet};

use crate::arena::{Arena, GRANULE, granules};
use crate::code::{Code, Outcome};
use crate::ranges::Ranges;
use crate::settings::Settings;
use crate::system;

/// Addresses for a device's memory, and as many for its reserved ranges.
pub(crate) const ADDRESSES: u64 = 1 << 40;

/// Where device 0's memory begins, if that is free: the same in every run.
const BASE: u64 = 0x2000_0000_0000;

/// Whose memory it is, which decides who may free it and what is charged.
#[derive(Debug)]
pub(crate) enum Kind {
    Plain,
    /// Of the pool with that handle.
    Pool(usize),
    /// Unified: the granules that are on the device are charged, the others are on the host.
    Managed(BTreeSet<u64>),
}

/// Memory that was taken in one call.
#[derive(Debug)]
pub(crate) struct Allocation {
    /// Bytes that may be touched.
    pub(crate) size: u64,
    pub(crate) kind: Kind,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) capacity: u64,
    /// Bytes charged, other processes' included.
    pub(crate) used: u64,
    /// Those of other processes.
    pub(crate) other: u64,
    /// How often its primary context is retained.
    pub(crate) contexts: u32,
    /// What work on it came to, once something failed.
    pub(crate) broken: Option<Code>,
    /// Where its addresses begin.
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
        let base = system::reserve(BASE + number * 2 * ADDRESSES, 2 * ADDRESSES)?;
        // The system may have chosen the addresses itself, and counts in pages.
        let base = base.next_multiple_of(GRANULE);
        Ok(Self {
            capacity: settings.capacity,
            used: other,
            other,
            contexts: 0,
            broken: None,
            base,
            refusals: 0,
            addresses: Arena::new(base + ADDRESSES, ADDRESSES - GRANULE, is_descending).reusing(reuses),
            allocations: BTreeMap::new(),
            ranges: Ranges::new(Arena::new(base, ADDRESSES, is_descending).reusing(reuses)),
        })
    }

    /// Returns where the addresses of its memory begin: above the ranges, which the simulated device of `vramscope replay`
    /// has in this order too. The allocator prefers the lower of two addresses.
    pub(crate) fn memory_base(&self) -> u64 {
        self.base + ADDRESSES
    }

    /// Charges bytes, if there are so many.
    pub(crate) fn charge(&mut self, size: u64) -> Outcome {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(Code::OUT_OF_MEMORY);
        }
        let used = self.used.checked_add(size).filter(|used| *used <= self.capacity).ok_or(Code::OUT_OF_MEMORY)?;
        self.used = used;
        Ok(())
    }

    /// Takes memory. Unified memory is charged when it comes to the device, not here: CUDA hands out more of it than
    /// there is.
    pub(crate) fn take(&mut self, size: u64, kind: Kind) -> Outcome<u64> {
        if size == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let whole = granules(size).ok_or(Code::OUT_OF_MEMORY)?;
        let charged = if matches!(kind, Kind::Managed(_)) { 0 } else { whole };
        self.charge(charged)?;
        let taken = self.addresses.take(whole).ok_or(Code::OUT_OF_MEMORY);
        let opened = taken.and_then(|address| system::open(address, whole).map(|()| address));
        if opened.is_err() {
            self.used -= charged;
        }
        self.allocations.insert(opened?, Allocation { size, kind });
        opened
    }

    /// Gives memory back.
    pub(crate) fn give(&mut self, address: u64) -> Outcome<Allocation> {
        let allocation = self.allocations.remove(&address).ok_or(Code::INVALID_VALUE)?;
        let whole = self.addresses.give(address).ok_or(Code::UNKNOWN)?;
        system::close(address, whole)?;
        self.used -= match &allocation.kind {
            Kind::Managed(resident) => resident.len() as u64 * GRANULE,
            _ => whole,
        };
        Ok(allocation)
    }

    /// Moves unified memory to the device or to the host, in whole granules.
    pub(crate) fn prefetch(&mut self, address: u64, size: u64, to_device: bool) -> Outcome {
        let start = self.addresses.piece(address).ok_or(Code::INVALID_VALUE)?.0;
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

    /// Whether a range is unified memory as a whole.
    pub(crate) fn is_managed(&self, address: u64, size: u64) -> bool {
        self.allocations.range(..=address).next_back().is_some_and(|(start, allocation)| {
            matches!(allocation.kind, Kind::Managed(_))
                && address.checked_add(size).is_some_and(|end| end <= start + allocation.size)
        })
    }

    /// Whether all of a range may be touched.
    pub(crate) fn is_open(&self, address: u64, size: u64) -> bool {
        let Some(end) = address.checked_add(size) else { return false };
        let allocation = self.allocations.range(..=address).next_back();
        allocation.is_some_and(|(start, allocation)| end <= start + allocation.size)
            || self.ranges.is_open(address, end)
    }

    /// What is not given back: allocations, ranges, pages, contexts.
    pub(crate) fn leftovers(&self) -> usize {
        self.allocations.len() + self.ranges.leftovers() + self.contexts as usize
    }
}
