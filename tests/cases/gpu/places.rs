//! Places that do not depend on the driver's addresses: a segment, by order of creation, and an offset in it.

use std::collections::BTreeMap;

use allocator::TraceEntry;
use anyhow::{Context, Result};
use trace::event::Action;

/// A segment, or an address range that grows.
#[derive(Debug)]
struct Region {
    number: u64,
    /// Its size in addresses.
    span: u64,
    /// Its bytes with memory.
    mapped: u64,
}

/// The existing regions, by address.
#[derive(Debug)]
pub(crate) struct Places {
    regions: BTreeMap<u64, Region>,
    last_number: u64,
    /// The size of a growing region: nine eighths of the device's memory, rounded to a page.
    range: u64,
}

impl Places {
    pub(crate) fn new(total_memory: u64) -> Self {
        Self { regions: BTreeMap::new(), last_number: 0, range: total_memory + total_memory / 8 }
    }

    /// Returns the place of an entry's address. Entries about segments change the regions.
    pub(crate) fn of(&mut self, entry: &TraceEntry) -> Result<(u64, u64)> {
        let is_map = entry.action == Action::SegmentMap;
        // A range grows from its start.
        if entry.action == Action::SegmentAlloc || is_map && self.find(entry.address).is_none() {
            self.last_number += 1;
            let span = if is_map { self.range } else { entry.size };
            self.regions.insert(entry.address, Region { number: self.last_number, span, mapped: 0 });
        }
        let base = self.find(entry.address).with_context(|| format!("{entry:?} is in no segment"))?;
        let region = self.regions.get_mut(&base).context("a region that was just found")?;
        let place = (region.number, entry.address - base);
        match entry.action {
            Action::SegmentAlloc | Action::SegmentMap => region.mapped += entry.size,
            Action::SegmentFree | Action::SegmentUnmap => region.mapped -= entry.size,
            _ => {}
        }
        if region.mapped == 0 {
            self.regions.remove(&base);
        }
        Ok(place)
    }

    /// Returns the start of the region that contains an address.
    fn find(&self, address: u64) -> Option<u64> {
        let (base, region) = self.regions.range(..=address).next_back()?;
        (address - base < region.span).then_some(*base)
    }
}
