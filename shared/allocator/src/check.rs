//! The invariant walker for tests and fuzzing: checks that the allocator's tables agree with each other.

use super::block::Block;
use super::device::DeviceAllocator;
use super::driver::Driver;
use super::entry::TraceSink;
use super::profile::TieBreak;
use super::slab::NONE;
use super::stats::{Stat, StatArray};

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Checks that blocks tile their segments, links go both ways, every cached block is in its free list and in no
    /// other, no two neighbours should have been merged, and the counters equal the sums that they stand for. Returns
    /// the first violation as an error.
    pub fn check(&self) -> Result<(), String> {
        for (number, block) in self.blocks.iter() {
            self.check_links(number, block)?;
            self.check_place(number, block)?;
        }
        self.check_sets()?;
        self.check_ranges()?;
        self.check_counters()
    }

    fn check_links(&self, number: u32, block: &Block) -> Result<(), String> {
        // A range that was created while the device had no memory has no addresses either.
        if (block.size == 0 && block.mapped) || !block.size.is_multiple_of(512) {
            return Err(format!("block {number} has {} bytes", block.size));
        }
        if block.next == NONE {
            return Ok(());
        }
        let Some(next) = self.blocks.get(block.next) else { return Err(format!("{number} links to nothing")) };
        let has_own_age = self.profile.tie_break == TieBreak::BlockAge;
        let is_apart = next.free_list != block.free_list
            || next.expandable != block.expandable
            || (next.born != block.born && !has_own_age);
        if next.prev != number || block.address + block.size != next.address || is_apart {
            return Err(format!("blocks {number} and {} are not neighbours", block.next));
        }
        if block.is_idle() && next.is_idle() && block.mapped == next.mapped {
            return Err(format!("blocks {number} and {} are idle but not merged", block.next));
        }
        Ok(())
    }

    fn check_place(&self, number: u32, block: &Block) -> Result<(), String> {
        let free_list = &self.free_lists[block.free_list];
        let key = self.key(number);
        let is_cached = free_list.blocks.contains(&key);
        if is_cached != (block.mapped && block.is_idle()) {
            return Err(format!("block {number} is wrongly in or missing from its free list"));
        }
        let place = (free_list.stream.0 as u64, block.address, number);
        if self.pools[free_list.pool].unmapped.contains(&place) == block.mapped {
            return Err(format!("block {number} is wrongly among or missing from the unmapped ranges"));
        }
        if block.allocated != (self.allocated.get(&block.address) == Some(&number)) {
            return Err(format!("block {number} is wrongly among or missing from the allocated addresses"));
        }
        if block.allocated && (block.event_count > 0 || !block.mapped) {
            return Err(format!("block {number} is allocated, but waits or has no memory"));
        }
        if block.has_uses != self.uses.get(&number).is_some_and(|uses| !uses.is_empty()) {
            return Err(format!("block {number} disagrees with the table of stream uses"));
        }
        Ok(())
    }

    fn check_sets(&self) -> Result<(), String> {
        let count = |test: &dyn Fn(&Block) -> bool| self.blocks.iter().filter(|(_, block)| test(block)).count();
        let cached_blocks: usize = self.free_lists.iter().map(|(_, free_list)| free_list.blocks.len()).sum();
        let unmapped: usize = self.pools.iter().map(|(_, pool)| pool.unmapped.len()).sum();
        let sets = [
            ("free_lists", cached_blocks, count(&|block| block.mapped && block.is_idle())),
            ("unmapped ranges", unmapped, count(&|block| !block.mapped)),
            ("addresses", self.allocated.len(), count(&|block| block.allocated)),
        ];
        match sets.into_iter().find(|(_, has, wants)| has != wants) {
            Some((set, has, wants)) => Err(format!("{set}: {has} entries for {wants} blocks")),
            None => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), String> {
        let mut sizes = vec![0; self.expandable.iter().last().map_or(0, |(number, _)| number as usize + 1)];
        for (_, block) in self.blocks.iter().filter(|(_, block)| block.is_expandable()) {
            sizes[block.expandable as usize] += block.size;
        }
        match self.expandable.iter().find(|(number, segment)| sizes[*number as usize] != segment.size) {
            Some((number, segment)) => {
                Err(format!("range {number} has {} of {} bytes in blocks", sizes[number as usize], segment.size))
            }
            None => Ok(()),
        }
    }

    fn check_counters(&self) -> Result<(), String> {
        let sum = |value: &dyn Fn(&Block) -> i64| {
            let mut array = [0; 2];
            for (_, block) in self.blocks.iter().filter(|(_, block)| block.mapped) {
                array[usize::from(self.pool_of(block).is_small)] += value(block);
            }
            (array[1], array[0])
        };
        let if_so = |is: bool, value: u64| if is { value as i64 } else { 0 };
        let split = |block: &Block| block.is_idle() && block.is_split() && !block.is_expandable();
        let stats = &self.stats();
        let arrays: [(&str, &StatArray, (i64, i64)); 9] = [
            ("allocation", &stats.allocation, sum(&|block| if_so(block.allocated, 1))),
            ("allocated_bytes", &stats.allocated_bytes, sum(&|block| if_so(block.allocated, block.size))),
            ("active", &stats.active, sum(&|block| if_so(!block.is_idle(), 1))),
            ("active_bytes", &stats.active_bytes, sum(&|block| if_so(!block.is_idle(), block.size))),
            ("requested_bytes", &stats.requested_bytes, sum(&|block| if_so(!block.is_idle(), block.requested))),
            ("reserved_bytes", &stats.reserved_bytes, sum(&|block| block.size as i64)),
            ("inactive_split", &stats.inactive_split, sum(&|block| if_so(split(block), 1))),
            ("inactive_split_bytes", &stats.inactive_split_bytes, sum(&|block| if_so(split(block), block.size))),
            ("segment", &stats.segment, sum(&|block| if_so(block.prev == NONE && !block.is_expandable(), 1))),
        ];
        for (name, array, (small, large)) in arrays {
            let StatArray { all, small_pool, large_pool } = array;
            if (small_pool.current, large_pool.current, all.current) != (small, large, small + large) {
                return Err(format!("{name} is {array:?}, but the sums are {small} small, {large} large"));
            }
            for Stat { current, peak, allocated, freed } in [all, small_pool, large_pool] {
                if current > peak || *current < 0 || *allocated < 0 || *freed < 0 {
                    return Err(format!("{name} is {array:?}"));
                }
            }
        }
        if self.reserved as i64 != stats.reserved_bytes.all.current {
            return Err(format!(
                "{} bytes are reserved, but the counter is {:?}",
                self.reserved, stats.reserved_bytes.all
            ));
        }
        Ok(())
    }
}
