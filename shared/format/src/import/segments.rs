//! Reads segments and their blocks, in every layout from torch 1.13 on.

use crate::values::Value;
use crate::values::keywords;
use crate::values::{SnapshotBuilder, entries};
use trace::error::Checked;
use trace::frames::StackId;
use trace::order::SortFew;
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, Segment};

/// The segment size of the small pool (`kSmallBuffer`), which identifies it where the layout doesn't name the pool.
const SMALL_SEGMENT: u64 = 2 << 20;

/// Reads a segment and its device; `None` if the value is not a segment.
pub(super) fn segment(builder: &mut SnapshotBuilder, value: Value) -> Checked<Option<(i64, Segment)>> {
    let Some(pairs) = builder.dict(value) else { return Ok(None) };
    let mut device = 0;
    let mut size = None;
    let mut is_small = None;
    let mut blocks = Value::None;
    let mut segment = Segment {
        address: Address(0),
        size: 0,
        stream: Stream(0),
        is_small: false,
        is_expandable: false,
        pool: PoolId::default(),
        stack: StackId(0),
        blocks: Vec::new(),
    };
    for (key, value) in entries(&pairs) {
        match key {
            keywords::DEVICE => device = value.int().unwrap_or(0),
            keywords::ADDRESS => segment.address = Address(builder.checked(value, value.address())),
            keywords::TOTAL_SIZE => size = value.size(),
            keywords::STREAM => segment.stream = Stream(builder.checked(value, value.address()) as i64),
            keywords::SEGMENT_TYPE => is_small = value.str().map(|text| text == keywords::SMALL),
            keywords::SEGMENT_POOL_ID => segment.pool = builder.checked(value, builder.pool(value)),
            keywords::IS_EXPANDABLE => segment.is_expandable = value.int() == Some(1),
            keywords::FRAMES => segment.stack = builder.stack(value)?,
            keywords::BLOCKS => blocks = value,
            _ => {}
        }
    }
    let Some(size) = size else { return Ok(None) };
    segment.size = size;
    segment.is_small = is_small.unwrap_or(size == SMALL_SEGMENT);
    // Before torch 2.1 a block has no address: it begins where the previous one ends.
    let mut next = segment.address.0;
    for value in builder.items(blocks) {
        match block(builder, value, next)? {
            Some(block) => {
                next = block.address.0.wrapping_add(block.size);
                segment.blocks.push(block);
            }
            None => builder.malformed += 1,
        }
    }
    segment.blocks.sort_few_by_key(|block| block.address);
    Ok(Some((device, segment)))
}

fn block(builder: &mut SnapshotBuilder, value: Value, address: u64) -> Checked<Option<Block>> {
    let Some(pairs) = builder.dict(value) else { return Ok(None) };
    let mut size = None;
    let mut requested = None;
    let mut history = Value::None;
    let mut block =
        Block { address: Address(address), size: 0, requested: 0, state: BlockState::Inactive, stack: StackId(0) };
    for (key, value) in entries(&pairs) {
        match key {
            keywords::ADDRESS | keywords::ADDR => block.address = Address(builder.checked(value, value.address())),
            keywords::SIZE => size = value.size(),
            keywords::REQUESTED_SIZE => requested = value.size(),
            keywords::STATE => block.state = state(builder, value),
            keywords::FRAMES => block.stack = builder.stack(value)?,
            keywords::HISTORY => history = value,
            _ => {}
        }
    }
    let Some(size) = size else { return Ok(None) };
    block.size = size;
    block.requested = requested.unwrap_or(size);
    // The newest entry is first and belongs to the current allocation; older ones belong to blocks that were merged
    // into it.
    if let Some(&newest) = builder.items(history).first() {
        block.stack = history_stack(builder, newest)?;
    }
    Ok(Some(block))
}

fn state(builder: &mut SnapshotBuilder, value: Value) -> BlockState {
    match value.str() {
        Some(keywords::INACTIVE) => BlockState::Inactive,
        Some(keywords::ACTIVE_ALLOCATED) => BlockState::Allocated,
        Some(keywords::ACTIVE_PENDING_FREE | keywords::ACTIVE_AWAITING_FREE) => BlockState::Pending,
        other => {
            builder.malformed += 1;
            let is_active = other.is_some_and(|id| builder.symbols.bytes(id).starts_with(b"active"));
            if is_active { BlockState::Pending } else { BlockState::Inactive }
        }
    }
}

/// Returns the stack of a `history` entry (torch 1.13 and 2.0), with C++ frames on top.
fn history_stack(builder: &mut SnapshotBuilder, value: Value) -> Checked<StackId> {
    let Some(pairs) = builder.dict(value) else { return Ok(StackId(0)) };
    let mut stack = StackId(0);
    let mut cpp_stack = StackId(0);
    for (key, value) in entries(&pairs) {
        match key {
            keywords::FRAMES => stack = builder.stack(value)?,
            keywords::CPP_FRAMES => cpp_stack = builder.stack(value)?,
            _ => {}
        }
    }
    if cpp_stack == StackId(0) { Ok(stack) } else { builder.joined(cpp_stack, stack) }
}
