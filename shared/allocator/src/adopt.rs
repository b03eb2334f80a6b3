//! Adopts the segments and blocks that exist at the start of a trace.

use super::block::Block;
use super::device::{DeviceAllocator, LARGE, SMALL};
use super::driver::{Driver, DriverError};
use super::entry::TraceSink;
use super::expandable::ExpandableSegment;
use super::pool::PoolOptions;
use super::rounding::SMALL_BUFFER;
use super::slab::NONE;
use trace::units::Stream;
use trace::{BlockState, Segment};

/// The most memory that can be taken over, segments and blocks together: 4 TiB, more than any device has.
const MOST_ADOPTED: u64 = 1 << 42;

/// A segment, or the parts of an expandable one that have memory, while it is taken over.
struct Chain {
    free_list: u32,
    /// The expandable segment, or [`NONE`].
    expandable: u32,
    born: u32,
    /// The last block.
    last: u32,
    /// The first address after it.
    end: u64,
}

impl<D: Driver, S: TraceSink> DeviceAllocator<D, S> {
    /// Takes over segments, which the device must hold already, in ascending order of their addresses; their blocks must
    /// tile them. Blocks that wait for a stream wait for the one that `waits_for` returns for their address. Peaks and sums
    /// begin with what was taken over.
    ///
    /// A trace doesn't record how old segments are: they count as reserved in the order of their addresses. Nor does it
    /// record the addresses that an expandable segment reserved: it is taken to begin with its first page, and to reach
    /// as far as the settings and the next segment allow.
    ///
    /// # Errors
    /// The segments hold more memory than any device has, or the driver fails.
    pub fn adopt(&mut self, segments: &[Segment], waits_for: impl Fn(u64) -> Stream) -> Result<(), DriverError> {
        let blocks = segments.iter().flat_map(|segment| &segment.blocks).map(|block| block.size.max(block.requested));
        let bytes = segments.iter().map(|segment| segment.size).chain(blocks);
        if bytes.fold(0_u64, u64::saturating_add) > MOST_ADOPTED {
            let message = "the segments at the start hold more memory than any device has".to_owned();
            return Err(DriverError::Failed { call: "taking over segments", message });
        }
        let mut open: Option<Chain> = None;
        for (place, segment) in segments.iter().enumerate() {
            let pool = self.pool_of_segment(segment);
            let free_list = self.free_list(pool, segment.stream);
            let mut chain = match open.take() {
                Some(chain) if chain.expandable != NONE && chain.free_list == free_list => chain,
                before => {
                    self.end_chain(before, segment.address.0);
                    self.begin_chain(segment, free_list)
                }
            };
            self.add_reserved(pool, segment.size);
            if chain.expandable == NONE {
                self.stats.segment.increase(segment.is_small, 1);
                if self.is_oversize(segment.size) {
                    self.stats.oversize_segments.increase(1);
                }
            } else {
                self.link_unmapped(&mut chain, segment.address.0);
            }
            let first = chain.last;
            for found in &segment.blocks {
                let number = self.link(&mut chain, found.address.0, found.size, true);
                self.blocks[number].requested = found.requested;
            }
            let head = if first == NONE { self.first_of(chain.last) } else { self.blocks[first].next };
            if head != NONE {
                self.blocks[head].segment_stack = segment.stack;
            }
            open = Some(chain);
            if place + 1 == segments.len() {
                self.end_chain(open.take(), u64::MAX);
            }
        }
        // Whether a block is split is known when all are linked.
        let mut numbers: Vec<(u64, u32)> = self.blocks.iter().map(|(number, block)| (block.address, number)).collect();
        numbers.sort_unstable();
        let mut numbers = numbers.into_iter().peekable();
        for (segment, found) in
            segments.iter().flat_map(|segment| segment.blocks.iter().map(move |block| (segment, block)))
        {
            while numbers.next_if(|(address, _)| *address < found.address.0).is_some() {}
            let Some((_, number)) = numbers.next_if(|(address, _)| *address == found.address.0) else { continue };
            self.adopt_block(number, segment, found, &waits_for)?;
        }
        self.reset_peak_stats();
        self.reset_accumulated_stats();
        (self.stats.num_device_alloc, self.stats.num_device_free) = (0, 0);
        Ok(())
    }

    fn begin_chain(&mut self, segment: &Segment, free_list: u32) -> Chain {
        let born = self.birth();
        let mut expandable = NONE;
        if segment.is_expandable {
            let page = if segment.is_small { SMALL_BUFFER } else { self.config.large_segment_size };
            // Its size is set when its last page is known.
            expandable = self.expandable.insert(ExpandableSegment { address: segment.address.0, size: 0, page });
        }
        Chain { free_list, expandable, born, last: NONE, end: segment.address.0 }
    }

    /// Ends a chain before the address at which the next one begins.
    fn end_chain(&mut self, chain: Option<Chain>, next: u64) {
        let Some(mut chain) = chain.filter(|chain| chain.expandable != NONE) else { return };
        let ExpandableSegment { address, page, .. } = self.expandable[chain.expandable];
        let used = chain.end.saturating_sub(address);
        let wanted = self.config.reserve(self.driver.total_memory()).max(used).div_ceil(page).saturating_mul(page);
        let end = address.saturating_add(wanted).min(next).max(chain.end);
        self.expandable[chain.expandable].size = end.saturating_sub(address);
        self.link_unmapped(&mut chain, end);
    }

    /// Adds a block at the end of a chain.
    fn link(&mut self, chain: &mut Chain, address: u64, size: u64, mapped: bool) -> u32 {
        let Chain { free_list, expandable, born, last, .. } = *chain;
        let block = Block { prev: last, expandable, born, mapped, ..Block::new(address, size, free_list) };
        let number = self.blocks.insert(block);
        if last != NONE {
            self.blocks[last].next = number;
        }
        (chain.last, chain.end) = (number, address.saturating_add(size));
        number
    }

    /// Adds the addresses without memory up to `until`.
    fn link_unmapped(&mut self, chain: &mut Chain, until: u64) {
        let (from, missing) = (chain.end, until.saturating_sub(chain.end));
        if missing > 0 {
            let number = self.link(chain, from, missing, false);
            self.insert_unmapped(number);
        }
    }

    fn first_of(&self, mut number: u32) -> u32 {
        while let Some(block) = self.blocks.get(number).filter(|block| block.prev != NONE) {
            number = block.prev;
        }
        number
    }

    /// Gives a block the state in which it was found.
    fn adopt_block(
        &mut self,
        number: u32,
        segment: &Segment,
        found: &trace::Block,
        waits_for: &impl Fn(u64) -> Stream,
    ) -> Result<(), DriverError> {
        let is_small = segment.is_small;
        match found.state {
            BlockState::Inactive => {
                self.insert_free(number);
                let block = &self.blocks[number];
                if block.is_split() && !block.is_expandable() {
                    self.stats.inactive_split.increase(is_small, 1);
                    self.stats.inactive_split_bytes.increase(is_small, found.size);
                }
                return Ok(());
            }
            BlockState::Pending => {
                let stream = waits_for(found.address.0);
                let key = self.stream_key(stream);
                self.uses.entry(number).or_default().entry(key, || stream);
                self.wait_for_uses(number)?;
            }
            BlockState::Allocated => {
                self.blocks[number].allocated = true;
                self.blocks[number].stack = found.stack;
                self.allocated.insert(found.address.0, number);
                self.stats.allocation.increase(is_small, 1);
                self.stats.allocated_bytes.increase(is_small, found.size);
                if self.is_oversize(found.size) {
                    self.stats.oversize_allocations.increase(1);
                }
            }
        }
        self.stats.active.increase(is_small, 1);
        self.stats.active_bytes.increase(is_small, found.size);
        self.stats.requested_bytes.increase(is_small, found.requested);
        Ok(())
    }

    /// Returns the pool of a segment. A private one that doesn't exist yet is created, with one user.
    fn pool_of_segment(&mut self, segment: &Segment) -> u32 {
        let (id, is_small) = (segment.pool, segment.is_small);
        if id.is_private() && !self.private.contains_key(&id) {
            self.create_pool(id, PoolOptions::default());
        }
        let halves = self.private.get_mut(&id).filter(|_| id.is_private()).map(|private| {
            private.segments += 1;
            (private.small, private.large)
        });
        let (small, large) = halves.unwrap_or((SMALL, LARGE));
        if is_small { small } else { large }
    }
}
