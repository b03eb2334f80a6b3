//! Segments and their blocks, in every layout from torch 1.13 on.

use super::error::Checked;
use super::fold::{Fold, entries};
use super::value::Value;
use super::words;
use crate::frames::StackId;
use crate::trace::{Block, BlockState, Segment};
use crate::units::{Address, PoolId, Stream};

/// A small pool's segments are of this size when nothing else is said (`kSmallBuffer`).
const SMALL_SEGMENT: u64 = 2 << 20;

/// Reads a segment, and the device that it belongs to. `None` for what is no segment.
pub(super) fn segment(fold: &mut Fold, value: Value) -> Checked<Option<(i64, Segment)>> {
    let Some(pairs) = fold.dict(value) else { return Ok(None) };
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
            words::DEVICE => device = value.int().unwrap_or(0),
            words::ADDRESS => segment.address = Address(fold.checked(value, value.address())),
            words::TOTAL_SIZE => size = value.size(),
            words::STREAM => segment.stream = Stream(fold.checked(value, value.address()) as i64),
            words::SEGMENT_TYPE => is_small = value.str().map(|text| text == words::SMALL),
            words::SEGMENT_POOL_ID => segment.pool = fold.checked(value, fold.pool(value)),
            words::IS_EXPANDABLE => segment.is_expandable = value.int() == Some(1),
            words::FRAMES => segment.stack = fold.stack(value)?,
            words::BLOCKS => blocks = value,
            _ => {}
        }
    }
    let Some(size) = size else { return Ok(None) };
    segment.size = size;
    segment.is_small = is_small.unwrap_or(size == SMALL_SEGMENT);
    // Before torch 2.1 a block has no address: it begins where the one before it ends.
    let mut next = segment.address.0;
    for value in fold.items(blocks) {
        match block(fold, value, next)? {
            Some(block) => {
                next = block.address.0.wrapping_add(block.size);
                segment.blocks.push(block);
            }
            None => fold.malformed += 1,
        }
    }
    segment.blocks.sort_by_key(|block| block.address);
    Ok(Some((device, segment)))
}

fn block(fold: &mut Fold, value: Value, address: u64) -> Checked<Option<Block>> {
    let Some(pairs) = fold.dict(value) else { return Ok(None) };
    let mut size = None;
    let mut requested = None;
    let mut history = Value::None;
    let mut block =
        Block { address: Address(address), size: 0, requested: 0, state: BlockState::Inactive, stack: StackId(0) };
    for (key, value) in entries(&pairs) {
        match key {
            words::ADDRESS | words::ADDR => block.address = Address(fold.checked(value, value.address())),
            words::SIZE => size = value.size(),
            words::REQUESTED_SIZE => requested = value.size(),
            words::STATE => block.state = state(fold, value),
            words::FRAMES => block.stack = fold.stack(value)?,
            words::HISTORY => history = value,
            _ => {}
        }
    }
    let Some(size) = size else { return Ok(None) };
    block.size = size;
    block.requested = requested.unwrap_or(size);
    // The newest entry is first: who asked for what is there now. Older ones are of blocks that were merged into it.
    if let Some(&newest) = fold.items(history).first() {
        block.stack = history_stack(fold, newest)?;
    }
    Ok(Some(block))
}

fn state(fold: &mut Fold, value: Value) -> BlockState {
    match value.str() {
        Some(words::INACTIVE) => BlockState::Inactive,
        Some(words::ACTIVE_ALLOCATED) => BlockState::Allocated,
        Some(words::ACTIVE_PENDING_FREE | words::ACTIVE_AWAITING_FREE) => BlockState::Pending,
        other => {
            fold.malformed += 1;
            let is_active = other.is_some_and(|id| fold.symbols.bytes(id).starts_with(b"active"));
            if is_active { BlockState::Pending } else { BlockState::Inactive }
        }
    }
}

/// The stack of an entry of `history` (torch 1.13 and 2.0), C++ frames on top.
fn history_stack(fold: &mut Fold, value: Value) -> Checked<StackId> {
    let Some(pairs) = fold.dict(value) else { return Ok(StackId(0)) };
    let mut stack = StackId(0);
    let mut cpp_stack = StackId(0);
    for (key, value) in entries(&pairs) {
        match key {
            words::FRAMES => stack = fold.stack(value)?,
            words::CPP_FRAMES => cpp_stack = fold.stack(value)?,
            _ => {}
        }
    }
    if cpp_stack == StackId(0) { Ok(stack) } else { fold.joined(cpp_stack, stack) }
}
