//! The state at the end of a trace, from its segments alone.

use serde::Serialize;

use trace::{BlockState, DeviceTrace, Segment};

/// The state at the end according to the segments. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndReport {
    /// Bytes in allocated blocks.
    pub allocated_bytes: u64,
    /// Bytes in active blocks.
    pub active_bytes: u64,
    /// Bytes in segments.
    pub reserved_bytes: u64,
    /// Bytes requested by active blocks; a block's size if the layout has no requested sizes.
    pub requested_bytes: u64,
    /// Number of segments.
    pub segments: u32,
    /// Number of blocks, including inactive ones.
    pub blocks: u32,
    /// Segments for requests up to 1 MiB.
    pub small: PoolReport,
    /// Segments for larger requests.
    pub large: PoolReport,
}

/// The segments of one kind of pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolReport {
    /// Number of segments.
    pub segments: u32,
    /// How many of them can grow.
    pub expandable_segments: u32,
    /// How many of them belong to a private pool.
    pub private_segments: u32,
    /// Bytes in segments.
    pub reserved_bytes: u64,
    /// Number of allocated blocks.
    pub allocated_blocks: u32,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Number of blocks that were freed and wait for streams.
    pub pending_blocks: u32,
    /// Their bytes.
    pub pending_bytes: u64,
    /// Number of cached blocks in segments in use.
    pub cached_split_blocks: u32,
    /// Their bytes.
    pub cached_split_bytes: u64,
    /// Number of segments without an active block.
    pub cached_whole_segments: u32,
    /// Their bytes.
    pub cached_whole_bytes: u64,
}

impl EndReport {
    pub(super) fn of(trace: &DeviceTrace) -> Self {
        let mut end = Self { segments: trace.segments.len() as u32, ..Self::default() };
        for segment in &trace.segments {
            end.reserved_bytes = end.reserved_bytes.saturating_add(segment.size);
            end.blocks = end.blocks.saturating_add(segment.blocks.len() as u32);
            for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
                end.active_bytes = end.active_bytes.saturating_add(block.size);
                end.requested_bytes = end.requested_bytes.saturating_add(block.requested);
                if block.state == BlockState::Allocated {
                    end.allocated_bytes = end.allocated_bytes.saturating_add(block.size);
                }
            }
            let pool = if segment.is_small { &mut end.small } else { &mut end.large };
            pool.add(segment);
        }
        end
    }
}

impl PoolReport {
    fn add(&mut self, segment: &Segment) {
        self.segments += 1;
        self.expandable_segments += u32::from(segment.is_expandable);
        self.private_segments += u32::from(segment.pool.is_private());
        self.reserved_bytes = self.reserved_bytes.saturating_add(segment.size);
        let is_whole = segment.blocks.iter().all(|block| block.state == BlockState::Inactive);
        if is_whole {
            self.cached_whole_segments += 1;
            self.cached_whole_bytes = self.cached_whole_bytes.saturating_add(segment.size);
            return;
        }
        for block in &segment.blocks {
            let (count, bytes) = match block.state {
                BlockState::Allocated => (&mut self.allocated_blocks, &mut self.allocated_bytes),
                BlockState::Pending => (&mut self.pending_blocks, &mut self.pending_bytes),
                BlockState::Inactive => (&mut self.cached_split_blocks, &mut self.cached_split_bytes),
            };
            (*count, *bytes) = (count.saturating_add(1), bytes.saturating_add(block.size));
        }
    }
}
