//! Arrays that a C caller lends for the length of a call.

use std::slice;

use trace::frames::StackId;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, Segment};

/// Events as columns of equal length. A null column reads as zeros.
#[repr(C)]
pub struct EventPointers {
    /// Codes of [`trace::event::Action`].
    pub action: *const u8,
    /// Addresses; for an out-of-memory event, the device's free bytes.
    pub address: *const u64,
    /// Sizes in bytes.
    pub size: *const u64,
    /// Streams.
    pub stream: *const i64,
    /// The first halves of pool IDs.
    pub pool0: *const u64,
    /// The second halves of pool IDs.
    pub pool1: *const u64,
    /// Numbers of stacks.
    pub stack: *const u32,
    /// Microseconds since the epoch; 0 means now.
    pub time_us: *const i64,
}

/// Segments and their blocks as columns. A null column reads as zeros.
#[repr(C)]
pub struct SegmentPointers {
    /// The number of segments.
    pub segments: usize,
    /// Start addresses of the segments.
    pub address: *const u64,
    /// Their sizes in bytes.
    pub size: *const u64,
    /// Their streams.
    pub stream: *const i64,
    /// Flags: 1 for the small pool, 2 for expandable.
    pub flags: *const u8,
    /// The first halves of their pool IDs.
    pub pool0: *const u64,
    /// The second halves of their pool IDs.
    pub pool1: *const u64,
    /// Their stacks.
    pub stack: *const u32,
    /// How many of the blocks belong to each segment, in order.
    pub blocks_each: *const u32,
    /// The number of blocks of all segments.
    pub blocks: usize,
    /// Start addresses of the blocks.
    pub block_address: *const u64,
    /// Their sizes in bytes.
    pub block_size: *const u64,
    /// The bytes requested.
    pub block_requested: *const u64,
    /// Their states: 0 allocated, 1 waiting for streams, 2 free.
    pub block_state: *const u8,
    /// Their stacks.
    pub block_stack: *const u32,
}

/// A borrowed column. A missing value reads as zero.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a, T>(&'a [T]);

impl<'a, T: Copy + Default> Column<'a, T> {
    /// # Safety
    /// `start` is null, or points to `count` initialised values that do not change during `'a`.
    pub(crate) unsafe fn new(start: *const T, count: usize) -> Self {
        if start.is_null() || !start.is_aligned() {
            return Self(&[]);
        }
        // SAFETY: as the caller promises; `start` is aligned.
        Self(unsafe { slice::from_raw_parts(start, count) })
    }

    pub(crate) fn at(&self, i: usize) -> T {
        self.0.get(i).copied().unwrap_or_default()
    }
}

/// Copies segments out of columns.
///
/// # Safety
/// Every column is null, or holds as many values as the counts say, which do not change during the call.
pub unsafe fn segments(from: &SegmentPointers) -> Vec<Segment> {
    let (n, m) = (from.segments, from.blocks);
    // SAFETY: as the caller promises, each column has the count of its kind.
    let (address, size, stream, flags) = unsafe {
        (
            Column::new(from.address, n),
            Column::new(from.size, n),
            Column::new(from.stream, n),
            Column::new(from.flags, n),
        )
    };
    // SAFETY: as above.
    let (pool0, pool1, stack, each) = unsafe {
        (
            Column::new(from.pool0, n),
            Column::new(from.pool1, n),
            Column::new(from.stack, n),
            Column::new(from.blocks_each, n),
        )
    };
    // SAFETY: as above.
    let (start, bytes, requested) = unsafe {
        (Column::new(from.block_address, m), Column::new(from.block_size, m), Column::new(from.block_requested, m))
    };
    // SAFETY: as above.
    let (state, block_stack) = unsafe { (Column::new(from.block_state, m), Column::new(from.block_stack, m)) };
    let block = |i| Block {
        address: Address(start.at(i)),
        size: bytes.at(i),
        requested: requested.at(i),
        state: match state.at(i) {
            0 => BlockState::Allocated,
            1 => BlockState::Pending,
            _ => BlockState::Inactive,
        },
        stack: StackId(block_stack.at(i)),
    };
    let mut next = 0_usize;
    (0..n)
        .map(|i| {
            let end = next.saturating_add(each.at(i) as usize).min(m);
            let blocks = (next..end).map(block).collect();
            next = end;
            Segment {
                address: Address(address.at(i)),
                size: size.at(i),
                stream: Stream(stream.at(i)),
                is_small: flags.at(i) & 1 != 0,
                is_expandable: flags.at(i) & 2 != 0,
                pool: PoolId(pool0.at(i), pool1.at(i)),
                stack: StackId(stack.at(i)),
                blocks,
            }
        })
        .collect()
}
