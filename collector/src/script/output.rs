//! The output of an executed script.

use allocator::TraceEntry;
use allocator::sim::{PLAIN_BASE, RANGE_BASE};
use serde::Serialize;
use serde_json::{Map, Value, json};
use trace::event::Action;
use trace::{BlockState, Segment};

use super::streams::Streams;

/// This bit tells addresses of expandable segments from others.
const RANGE: i64 = 1 << 44;

/// The output of a script.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The PyTorch release.
    pub torch: &'static str,
    /// The script without its operations.
    pub script: Map<String, Value>,
    /// Number of operations.
    pub n_ops: usize,
    /// The first operation after which PyTorch's own behaviour is undefined
    /// ([`is_undefined`](allocator::DeviceAllocator::is_undefined)), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined_from: Option<usize>,
    /// Operation and address of each request; null if it failed.
    pub malloc: Vec<(usize, Option<i64>)>,
    /// The errors by operation: type and text.
    pub errors: Map<String, Value>,
    /// The trace: operation, action, address, size, stream; for `oom` also the device's free bytes.
    pub trace: Vec<Value>,
    /// The state at each snapshot operation.
    pub snapshots: Vec<Value>,
    /// The state at the end.
    #[serde(rename = "final")]
    pub last: Value,
    /// The settings at the end, as in a snapshot file.
    pub settings: Map<String, Value>,
}

/// Returns an address as scripts print it: an offset from the base of its arena.
pub(super) fn relative(address: u64) -> i64 {
    if address >= PLAIN_BASE { (address - PLAIN_BASE) as i64 } else { address as i64 - RANGE_BASE as i64 + RANGE }
}

/// Returns an entry of the trace. `op` is -1 for releases that do not know the operation.
pub(super) fn entry(op: i64, entry: &TraceEntry, streams: &Streams) -> Value {
    let (name, size, stream) = (entry.action.name(), entry.size, streams.number(entry.stream));
    match entry.action {
        Action::Oom => json!([op, name, null, size, stream, entry.address]),
        _ if entry.address == 0 => json!([op, name, 0, size, stream]),
        _ => json!([op, name, relative(entry.address), size, stream]),
    }
}

/// Returns segments and statistics.
pub(super) fn state(segments: &[Segment], stats: Vec<(String, i64)>, streams: &Streams) -> Value {
    let segments: Vec<Value> = segments.iter().map(|one| segment(one, streams)).collect();
    let stats: Map<String, Value> = stats.into_iter().map(|(name, value)| (name, value.into())).collect();
    json!({ "segments": segments, "stats": stats })
}

fn segment(segment: &Segment, streams: &Streams) -> Value {
    let sum = |states: &[BlockState], bytes: fn(&trace::Block) -> u64| -> u64 {
        segment.blocks.iter().filter(|block| states.contains(&block.state)).map(bytes).sum()
    };
    let active = [BlockState::Allocated, BlockState::Pending];
    let blocks: Vec<Value> = segment
        .blocks
        .iter()
        .map(|block| json!([relative(block.address.0), block.size, block.requested, state_name(block.state)]))
        .collect();
    json!({
        "address": relative(segment.address.0),
        "total_size": segment.size,
        "stream": streams.number(segment.stream),
        "segment_type": if segment.is_small { "small" } else { "large" },
        "allocated_size": sum(&active[..1], |block| block.size),
        "active_size": sum(&active, |block| block.size),
        "requested_size": sum(&active, |block| block.requested),
        "pool": [segment.pool.0, segment.pool.1],
        "is_expandable": segment.is_expandable,
        "blocks": blocks,
    })
}

fn state_name(state: BlockState) -> &'static str {
    match state {
        BlockState::Allocated => "active_allocated",
        BlockState::Pending => "active_pending_free",
        BlockState::Inactive => "inactive",
    }
}
