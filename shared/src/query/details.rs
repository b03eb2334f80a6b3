//! All that is known of one allocation or one call site.

use serde::{Deserialize, Serialize};

use super::Paint;
use crate::totals::Totals;
use crate::units::{Address, PoolId, Stream};

/// One frame of a stack, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameText {
    /// The function.
    pub name: String,
    /// The file.
    pub filename: String,
    /// The line; 0 when it is not known.
    pub line: u32,
    /// Whether it belongs to the interpreter or the dispatcher rather than to anybody's program: folded away at first.
    pub is_internal: bool,
}

/// All that is known of one allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationDetail {
    /// Its number.
    pub id: u32,
    /// Address and version: the second use of an address is `b7f…_1`, as PyTorch's viewer counts them.
    pub name: String,
    /// Where.
    pub address: Address,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes of its block.
    pub size: u64,
    /// Whether `size` is exact; if not, it follows from the allocator's rules.
    pub size_is_exact: bool,
    /// Its stream.
    pub stream: Stream,
    /// Its pool.
    pub pool: PoolId,
    /// Whether it lies in a small pool.
    pub is_small: bool,
    /// Compiled region and user metadata, where they say something.
    pub contexts: Vec<(String, String)>,
    /// The position right after it was made; none when it was there at the start.
    pub allocated_at: Option<u32>,
    /// The position right after `free` was called.
    pub free_requested_at: Option<u32>,
    /// The position right after its block went back.
    pub free_completed_at: Option<u32>,
    /// Microseconds since the trace's first event when it was made (0 when it was there at the start).
    pub start_us: f64,
    /// … and when its block went back, or the trace ended.
    pub end_us: f64,
    /// The sums right after it was made.
    pub totals_then: Totals,
    /// Its colour by call site.
    pub paint: Paint,
    /// Its call site.
    pub stack: u32,
    /// Who asked for it, innermost first.
    pub alloc_stack: Vec<FrameText>,
    /// Who freed it, where that was recorded and differs.
    pub free_stack: Vec<FrameText>,
}

/// All that is known of one call site. Unless it says so, a number counts one stack; others may have the same line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteDetail {
    /// Its stack's number.
    pub stack: u32,
    /// Its line.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// Allocations in the trace.
    pub count: u32,
    /// Their requested bytes, all added up.
    pub bytes: u64,
    /// The largest sum of theirs that was active at once, and the position.
    pub peak: (u64, u32),
    /// Bytes and number live at the position asked for.
    pub live: (u64, u32),
    /// The same of all stacks that have its line.
    pub line_live: (u64, u32),
    /// Allocations never freed in the trace: bytes and number.
    pub live_at_end: (u64, u32),
    /// The largest that are live at the position asked for: number and requested bytes.
    pub largest: Vec<(u32, u64)>,
    /// Its frames, innermost first.
    pub frames: Vec<FrameText>,
}
