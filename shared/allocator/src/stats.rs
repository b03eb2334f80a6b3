//! The allocator's counters: all of `torch.cuda.memory_stats()`.

use std::collections::BTreeMap;

use super::profile::Profile;
use trace::units::PoolId;

/// One quantity over time (`c10::CachingAllocator::Stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The current value.
    pub current: i64,
    /// The highest value since the start, or since the peaks were reset.
    pub peak: i64,
    /// The sum of all increases.
    pub allocated: i64,
    /// The sum of all decreases.
    pub freed: i64,
}

/// A quantity for all pools, for the small and for the large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatArray {
    /// All pools.
    pub all: Stat,
    /// Small pools.
    pub small_pool: Stat,
    /// Large pools.
    pub large_pool: Stat,
}

/// A [`Stat`] while it is counted. A decrease changes one number, since the sum of decreases follows from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counter {
    current: i64,
    peak: i64,
    allocated: i64,
    /// The value when the sums began.
    base: i64,
}

impl Counter {
    #[inline]
    pub(super) fn increase(&mut self, amount: i64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    #[inline]
    pub(super) fn decrease(&mut self, amount: i64) {
        self.current -= amount;
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        self.allocated = 0;
        self.base = self.current;
    }

    pub(super) fn stat(&self) -> Stat {
        let Self { current, peak, allocated, base } = *self;
        Stat { current, peak, allocated, freed: allocated + base - current }
    }
}

/// A [`StatArray`] while it is counted. Of all pools together only the peak has to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CounterArray {
    small_pool: Counter,
    large_pool: Counter,
    peak: i64,
}

impl CounterArray {
    #[inline]
    fn kind(&mut self, is_small: bool) -> &mut Counter {
        if is_small { &mut self.small_pool } else { &mut self.large_pool }
    }

    #[inline]
    pub(super) fn increase(&mut self, is_small: bool, amount: u64) {
        self.kind(is_small).increase(amount as i64);
        self.peak = self.peak.max(self.small_pool.current + self.large_pool.current);
    }

    #[inline]
    pub(super) fn decrease(&mut self, is_small: bool, amount: u64) {
        self.kind(is_small).decrease(amount as i64);
    }

    /// Adds `amount`, which may be negative.
    #[inline]
    pub(super) fn change(&mut self, is_small: bool, amount: i64) {
        if amount > 0 {
            self.increase(is_small, amount as u64);
        } else {
            self.kind(is_small).decrease(-amount);
        }
    }

    pub(super) fn reset_peak(&mut self) {
        self.small_pool.reset_peak();
        self.large_pool.reset_peak();
        self.peak = self.small_pool.current + self.large_pool.current;
    }

    pub(super) fn reset_accumulated(&mut self) {
        self.small_pool.reset_accumulated();
        self.large_pool.reset_accumulated();
    }

    pub(super) fn current(&self) -> i64 {
        self.small_pool.current + self.large_pool.current
    }

    pub(super) fn stats(&self) -> StatArray {
        let (small_pool, large_pool) = (self.small_pool.stat(), self.large_pool.stat());
        let all = Stat {
            current: small_pool.current + large_pool.current,
            peak: self.peak,
            allocated: small_pool.allocated + large_pool.allocated,
            freed: small_pool.freed + large_pool.freed,
        };
        StatArray { all, small_pool, large_pool }
    }
}

impl Counters {
    /// Returns the bytes of active blocks.
    pub(super) fn active_bytes(&self) -> i64 {
        self.active_bytes.current()
    }
}

/// [`Stats`] while they are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) allocation: CounterArray,
    pub(super) segment: CounterArray,
    pub(super) active: CounterArray,
    pub(super) inactive_split: CounterArray,
    pub(super) allocated_bytes: CounterArray,
    pub(super) reserved_bytes: CounterArray,
    pub(super) active_bytes: CounterArray,
    pub(super) inactive_split_bytes: CounterArray,
    pub(super) requested_bytes: CounterArray,
    pub(super) oversize_allocations: Counter,
    pub(super) oversize_segments: Counter,
    pub(super) num_alloc_retries: i64,
    pub(super) num_ooms: i64,
    pub(super) num_oom_rejections: i64,
    pub(super) num_sync_all_streams: i64,
    pub(super) num_device_alloc: i64,
    pub(super) num_device_free: i64,
    pub(super) max_split_size: i64,
}

impl Counters {
    fn arrays(&mut self) -> [&mut CounterArray; 9] {
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

    /// Sets the peaks to the current values (`reset_peak_memory_stats`).
    pub(super) fn reset_peak(&mut self) {
        self.arrays().into_iter().for_each(CounterArray::reset_peak);
        self.oversize_allocations.reset_peak();
        self.oversize_segments.reset_peak();
    }

    /// Sets sums and event counts to zero (`reset_accumulated_memory_stats`).
    pub(super) fn reset_accumulated(&mut self) {
        self.arrays().into_iter().for_each(CounterArray::reset_accumulated);
        self.oversize_allocations.reset_accumulated();
        self.oversize_segments.reset_accumulated();
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_oom_rejections = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            allocation: self.allocation.stats(),
            segment: self.segment.stats(),
            active: self.active.stats(),
            inactive_split: self.inactive_split.stats(),
            allocated_bytes: self.allocated_bytes.stats(),
            reserved_bytes: self.reserved_bytes.stats(),
            active_bytes: self.active_bytes.stats(),
            inactive_split_bytes: self.inactive_split_bytes.stats(),
            requested_bytes: self.requested_bytes.stats(),
            oversize_allocations: self.oversize_allocations.stat(),
            oversize_segments: self.oversize_segments.stat(),
            num_alloc_retries: self.num_alloc_retries,
            num_ooms: self.num_ooms,
            num_oom_rejections: self.num_oom_rejections,
            num_sync_all_streams: self.num_sync_all_streams,
            num_device_alloc: self.num_device_alloc,
            num_device_free: self.num_device_free,
            max_split_size: self.max_split_size,
        }
    }
}

/// All counters of a device (`DeviceStats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Allocations that the program holds.
    pub allocation: StatArray,
    /// Segments, without expandable ones.
    pub segment: StatArray,
    /// Allocations that are held, or freed and waiting for streams.
    pub active: StatArray,
    /// Cached blocks that are part of a split segment, without expandable ones.
    pub inactive_split: StatArray,
    /// Rounded bytes of `allocation`.
    pub allocated_bytes: StatArray,
    /// Bytes taken from the driver.
    pub reserved_bytes: StatArray,
    /// Rounded bytes of `active`.
    pub active_bytes: StatArray,
    /// Bytes of `inactive_split`.
    pub inactive_split_bytes: StatArray,
    /// Requested bytes of `active`.
    pub requested_bytes: StatArray,
    /// Allocations of blocks that `max_split_size_mb` keeps from being split.
    pub oversize_allocations: Stat,
    /// Segments of that size.
    pub oversize_segments: Stat,
    /// Requests that released cached memory and asked the driver again.
    pub num_alloc_retries: i64,
    /// Requests that failed.
    pub num_ooms: i64,
    /// Requests that were rejected before the driver was asked (torch 2.12 and later).
    pub num_oom_rejections: i64,
    /// How often the allocator waited for all streams.
    pub num_sync_all_streams: i64,
    /// Successful calls that took memory from the driver.
    pub num_device_alloc: i64,
    /// Calls that returned memory to the driver.
    pub num_device_free: i64,
    /// `max_split_size_mb` in bytes when the allocator was created; -1 is unlimited.
    pub max_split_size: i64,
}

impl Stats {
    /// Returns the flat names of `torch.cuda.memory_stats()` with their values, sorted by name: those that the release
    /// has. `private_pools` is the reserve of each private pool.
    pub fn entries(&self, profile: &Profile, private_pools: &BTreeMap<PoolId, StatArray>) -> Vec<(String, i64)> {
        let arrays = [
            ("allocation", &self.allocation),
            ("segment", &self.segment),
            ("active", &self.active),
            ("inactive_split", &self.inactive_split),
            ("allocated_bytes", &self.allocated_bytes),
            ("reserved_bytes", &self.reserved_bytes),
            ("active_bytes", &self.active_bytes),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("requested_bytes", &self.requested_bytes),
        ];
        let mut entries = Vec::with_capacity(140);
        for (name, array) in arrays {
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
        if profile.counts_rejections {
            entries.push(("num_oom_rejections".to_owned(), self.num_oom_rejections));
        }
        if profile.counts_private_reserve {
            for (pool, array) in private_pools {
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
    use super::super::profile::{TORCH_2_11, TORCH_2_12, TORCH_2_15};
    use super::*;

    #[test]
    fn a_stat_keeps_peak_and_sums() {
        let mut counter = Counter::default();
        counter.increase(5);
        counter.decrease(3);
        counter.increase(1);
        assert_eq!(counter.stat(), Stat { current: 3, peak: 5, allocated: 6, freed: 3 });
        counter.reset_peak();
        counter.reset_accumulated();
        counter.decrease(2);
        assert_eq!(counter.stat(), Stat { current: 1, peak: 3, allocated: 0, freed: 2 });
    }

    #[test]
    fn the_peak_of_all_pools_is_no_sum_of_peaks() {
        let mut array = CounterArray::default();
        array.increase(true, 5);
        array.change(true, -4);
        array.change(false, 3);
        array.change(false, 0);
        let StatArray { all, small_pool, large_pool } = array.stats();
        assert_eq!((all.current, all.peak, all.allocated, all.freed), (4, 5, 8, 4));
        assert_eq!((small_pool.peak, large_pool.peak), (5, 3));
    }

    #[test]
    fn the_names_are_those_of_memory_stats() {
        let stats = Stats::default();
        let pools = BTreeMap::from([(PoolId(0, 1), StatArray::default())]);
        let count = |profile| stats.entries(profile, &pools).len();
        assert_eq!([&TORCH_2_11, &TORCH_2_12, &TORCH_2_15].map(count), [122, 122 + 1, 122 + 1 + 12]);
        let all = stats.entries(&TORCH_2_15, &pools);
        assert!(all.is_sorted());
        assert!(all.iter().any(|(name, _)| name == "inactive_split_bytes.large_pool.freed"));
    }
}
