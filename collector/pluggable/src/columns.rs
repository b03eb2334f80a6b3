//! Columns that a caller lends for the length of a call.

use std::slice;

use shared::frames::StackId;
use shared::trace::{Block, BlockState, Segment};
use shared::units::{Address, PoolId, Stream};

/// Events, as columns of `count` numbers each. A null column is all zeros.
#[repr(C)]
pub struct EventPointers {
    /// Codes of [`shared::event::Action`].
    pub action: *const u8,
    /// Addresses; for an out-of-memory the device's free bytes.
    pub address: *const u64,
    /// Bytes.
    pub size: *const u64,
    /// Streams.
    pub stream: *const i64,
    /// First numbers of the pools.
    pub pool0: *const u64,
    /// Second numbers of the pools.
    pub pool1: *const u64,
    /// Stacks, as they were numbered.
    pub stack: *const u32,
    /// Microseconds since the epoch; 0 is now.
    pub time_us: *const i64,
}

/// Segments with their blocks, as columns. A null column is all zeros.
#[repr(C)]
pub struct SegmentPointers {
    /// How many segments.
    pub segments: usize,
    /// Where each starts.
    pub address: *const u64,
    /// Its bytes.
    pub size: *const u64,
    /// Its stream.
    pub stream: *const i64,
    /// 1: of the small pool; 2: expandable.
    pub flags: *const u8,
    /// Its pool's first number.
    pub pool0: *const u64,
    /// Its pool's second number.
    pub pool1: *const u64,
    /// Its stack.
    pub stack: *const u32,
    /// How many of the blocks are its own; those of all segments follow each other.
    pub blocks_each: *const u32,
    /// How many blocks.
    pub blocks: usize,
    /// Where each starts.
    pub block_address: *const u64,
    /// Its bytes.
    pub block_size: *const u64,
    /// What was asked for.
    pub block_requested: *const u64,
    /// 0 allocated, 1 waiting for streams, 2 free.
    pub block_state: *const u8,
    /// Its stack.
    pub block_stack: *const u32,
}

/// A column that was lent, or nothing, which reads as zeros.
#[derive(Clone, Copy)]
pub(crate) struct Lent<'a, T>(&'a [T]);

impl<'a, T: Copy + Default> Lent<'a, T> {
    /// # Safety
    /// `start` is null, or points to `count` values that are there and don't change for `'a`.
    pub(crate) unsafe fn new(start: *const T, count: usize) -> Self {
        if start.is_null() || !start.is_aligned() {
            return Self(&[]);
        }
        // SAFETY: as the caller promises; it is aligned.
        Self(unsafe { slice::from_raw_parts(start, count) })
    }

    pub(crate) fn at(&self, i: usize) -> T {
        self.0.get(i).copied().unwrap_or_default()
    }
}

/// Copies segments out of columns.
///
/// # Safety
/// Every column is null or holds as many values as the counts say, which don't change meanwhile.
pub unsafe fn segments(from: &SegmentPointers) -> Vec<Segment> {
    let (n, m) = (from.segments, from.blocks);
    // SAFETY: as the caller promises, each column has the count of its kind.
    let (address, size, stream, flags) = unsafe {
        (Lent::new(from.address, n), Lent::new(from.size, n), Lent::new(from.stream, n), Lent::new(from.flags, n))
    };
    // SAFETY: as above.
    let (pool0, pool1, stack, each) = unsafe {
        (Lent::new(from.pool0, n), Lent::new(from.pool1, n), Lent::new(from.stack, n), Lent::new(from.blocks_each, n))
    };
    // SAFETY: as above.
    let (at, bytes, requested) = unsafe {
        (Lent::new(from.block_address, m), Lent::new(from.block_size, m), Lent::new(from.block_requested, m))
    };
    // SAFETY: as above.
    let (state, who) = unsafe { (Lent::new(from.block_state, m), Lent::new(from.block_stack, m)) };
    let block = |i| Block {
        address: Address(at.at(i)),
        size: bytes.at(i),
        requested: requested.at(i),
        state: match state.at(i) {
            0 => BlockState::Allocated,
            1 => BlockState::Pending,
            _ => BlockState::Inactive,
        },
        stack: StackId(who.at(i)),
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
