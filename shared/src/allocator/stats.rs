//! The allocator's counters: all of `torch.cuda.memory_stats()`, with its moments of change.

use std::collections::BTreeMap;

use crate::units::PoolId;

/// One quantity over time (`c10::CachingAllocator::Stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Now.
    pub current: i64,
    /// The highest since the start, or since the peaks were reset.
    pub peak: i64,
    /// Sum of all increases.
    pub allocated: i64,
    /// Sum of all decreases.
    pub freed: i64,
}

impl Stat {
    #[inline]
    pub(super) fn increase(&mut self, amount: i64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    #[inline]
    pub(super) fn decrease(&mut self, amount: i64) {
        self.current -= amount;
        self.freed += amount;
    }

    /// By the sign of `amount`; nothing for zero.
    #[inline]
    pub(super) fn change(&mut self, amount: i64) {
        if amount > 0 {
            self.increase(amount);
        } else if amount < 0 {
            self.decrease(-amount);
        }
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        (self.allocated, self.freed) = (0, 0);
    }
}

/// A quantity over all pools, over the small and over the large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatArray {
    /// All pools.
    pub all: Stat,
    /// Small pools.
    pub small_pool: Stat,
    /// Large pools.
    pub large_pool: Stat,
}

impl StatArray {
    pub(super) fn reset_peak(&mut self) {
        self.each(Stat::reset_peak);
    }

    pub(super) fn reset_accumulated(&mut self) {
        self.each(Stat::reset_accumulated);
    }

    fn each(&mut self, change: impl Fn(&mut Stat)) {
        change(&mut self.all);
        change(&mut self.small_pool);
        change(&mut self.large_pool);
    }

    #[inline]
    fn kind(&mut self, is_small: bool) -> &mut Stat {
        if is_small { &mut self.small_pool } else { &mut self.large_pool }
    }

    #[inline]
    pub(super) fn increase(&mut self, is_small: bool, amount: u64) {
        self.all.increase(amount as i64);
        self.kind(is_small).increase(amount as i64);
    }

    #[inline]
    pub(super) fn decrease(&mut self, is_small: bool, amount: u64) {
        self.all.decrease(amount as i64);
        self.kind(is_small).decrease(amount as i64);
    }

    #[inline]
    pub(super) fn change(&mut self, is_small: bool, amount: i64) {
        self.all.change(amount);
        self.kind(is_small).change(amount);
    }
}

/// Every counter of one device (`DeviceStats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Allocations that the program holds.
    pub allocation: StatArray,
    /// Segments, expandable ones not counted.
    pub segment: StatArray,
    /// Allocations held, or freed and waiting for streams.
    pub active: StatArray,
    /// Cached blocks that are part of a split segment; expandable ones not counted.
    pub inactive_split: StatArray,
    /// Bytes of `allocation`, rounded.
    pub allocated_bytes: StatArray,
    /// Bytes taken from the driver.
    pub reserved_bytes: StatArray,
    /// Bytes of `active`, rounded.
    pub active_bytes: StatArray,
    /// Bytes of `inactive_split`.
    pub inactive_split_bytes: StatArray,
    /// Bytes of `active` as requested.
    pub requested_bytes: StatArray,
    /// Allocations of blocks that `max_split_size_mb` keeps whole.
    pub oversize_allocations: Stat,
    /// Segments of that size.
    pub oversize_segments: Stat,
    /// Requests that gave cached memory back and asked the driver again.
    pub num_alloc_retries: i64,
    /// Requests that failed.
    pub num_ooms: i64,
    /// Requests refused before the driver was asked (torch 2.15).
    pub num_oom_rejections: i64,
    /// Times that all streams were waited for.
    pub num_sync_all_streams: i64,
    /// Calls that took memory from the driver and succeeded.
    pub num_device_alloc: i64,
    /// Calls that gave memory back.
    pub num_device_free: i64,
    /// `max_split_size_mb` in bytes when the allocator was made; -1 is unlimited.
    pub max_split_size: i64,
}

impl Stats {
    fn arrays(&mut self) -> [&mut StatArray; 9] {
        [
            &mut self.allocation,
            &mut self.segment,
            &mut self.active,
            &mut self.inactive_split,
            &mut self.allocated_bytes,
            &mut self.reserved_bytes,
            &mut self.active_bytes,
            &mut self.inactive_split_bytes,
            &mut self.requested_bytes,
        ]
    }

    fn each(&mut self, change: impl Fn(&mut Stat)) {
        for array in self.arrays() {
            array.each(&change);
        }
        change(&mut self.oversize_allocations);
        change(&mut self.oversize_segments);
    }

    /// Peaks become what is now (`reset_peak_memory_stats`).
    pub fn reset_peak(&mut self) {
        self.each(Stat::reset_peak);
    }

    /// Sums and event counts begin again at zero (`reset_accumulated_memory_stats`).
    pub fn reset_accumulated(&mut self) {
        self.each(Stat::reset_accumulated);
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_oom_rejections = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
    }

    /// The flat names of `torch.cuda.memory_stats()` with their values, sorted by name. With `private_pools` also the
    /// counters that torch 2.15 added: rejections, and the reserve of each private pool.
    pub fn entries(&self, private_pools: Option<&BTreeMap<PoolId, StatArray>>) -> Vec<(String, i64)> {
        let names = [
            "allocation",
            "segment",
            "active",
            "inactive_split",
            "allocated_bytes",
            "reserved_bytes",
            "active_bytes",
            "inactive_split_bytes",
            "requested_bytes",
        ];
        let mut entries = Vec::with_capacity(140);
        let mut copy = *self;
        for (name, array) in names.into_iter().zip(copy.arrays()) {
            push_array(&mut entries, name, array);
        }
        push_stat(&mut entries, "oversize_allocations", self.oversize_allocations);
        push_stat(&mut entries, "oversize_segments", self.oversize_segments);
        let scalars = [
            ("max_split_size", self.max_split_size),
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
            ("num_ooms", self.num_ooms),
            ("num_sync_all_streams", self.num_sync_all_streams),
        ];
        entries.extend(scalars.map(|(name, value)| (name.to_owned(), value)));
        if let Some(pools) = private_pools {
            entries.push(("num_oom_rejections".to_owned(), self.num_oom_rejections));
            for (pool, array) in pools {
                push_array(&mut entries, &format!("reserved_bytes_by_private_pools.{}_{}", pool.0, pool.1), array);
            }
        }
        entries.sort();
        entries
    }
}

fn push_array(entries: &mut Vec<(String, i64)>, name: &str, array: &StatArray) {
    let pools = [("all", array.all), ("small_pool", array.small_pool), ("large_pool", array.large_pool)];
    for (pool, stat) in pools {
        push_stat(entries, &format!("{name}.{pool}"), stat);
    }
}

fn push_stat(entries: &mut Vec<(String, i64)>, name: &str, stat: Stat) {
    let values = [("allocated", stat.allocated), ("current", stat.current), ("freed", stat.freed), ("peak", stat.peak)];
    entries.extend(values.map(|(field, value)| (format!("{name}.{field}"), value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_keeps_peak_and_sums() {
        let mut stat = Stat::default();
        stat.increase(5);
        stat.change(-3);
        stat.change(1);
        stat.change(0);
        assert_eq!(stat, Stat { current: 3, peak: 5, allocated: 6, freed: 3 });
        stat.reset_peak();
        stat.reset_accumulated();
        assert_eq!(stat, Stat { current: 3, peak: 3, allocated: 0, freed: 0 });
    }

    #[test]
    fn the_names_are_those_of_memory_stats() {
        let stats = Stats::default();
        assert_eq!(stats.entries(None).len(), 122);
        let pools = BTreeMap::from([(PoolId(0, 1), StatArray::default())]);
        let all = stats.entries(Some(&pools));
        assert_eq!(all.len(), 122 + 1 + 12);
        assert!(all.is_sorted());
        assert!(all.iter().any(|(name, _)| name == "inactive_split_bytes.large_pool.freed"));
    }
}
