//! The details of one allocation or one call site.

use serde::{Deserialize, Serialize};

use super::{Paint, Question};
use trace::totals::Totals;
use trace::units::{Address, PoolId, Stream};

/// One frame of a stack, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameText {
    /// The function.
    pub name: String,
    /// The file.
    pub filename: String,
    /// The line; 0 if it is unknown.
    pub line: u32,
    /// The library that it belongs to, such as `torch`; empty for the user's own code. Frames of libraries are folded
    /// at first.
    pub library: String,
    /// Whether it is the frame that represents its stack.
    pub is_call_site: bool,
}

/// Why there is no stack, and how to get one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingText {
    /// The reason, as sentences.
    pub reason: String,
    /// What to do, as sentences.
    pub remedy: String,
}

/// Asks for the details of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationQuery {
    /// Its number.
    pub id: u32,
}

impl Question for AllocationQuery {
    type Answer = Box<AllocationDetail>;

    fn needs_categories(&self) -> bool {
        true
    }
}

/// The details of one allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationDetail {
    /// Its number.
    pub id: u32,
    /// Address and version: the second use of an address is `b7f…_1`, as in PyTorch's viewer.
    pub name: String,
    /// The address of its block.
    pub address: Address,
    /// Requested bytes.
    pub requested: u64,
    /// The size of its block in bytes.
    pub size: u64,
    /// Whether `size` was recorded; otherwise it is derived from the allocator's rules.
    pub size_is_exact: bool,
    /// Its stream.
    pub stream: Stream,
    /// Its pool.
    pub pool: PoolId,
    /// Whether it lies in a small pool.
    pub is_small: bool,
    /// Category, compiled region and user metadata, if they are known and not empty: name and text.
    pub contexts: Vec<(String, String)>,
    /// The position right after it was made; `None` if it was active at the start.
    pub allocated_at: Option<u32>,
    /// The position right after `free` was called.
    pub free_requested_at: Option<u32>,
    /// The position right after its block became free.
    pub free_completed_at: Option<u32>,
    /// When it was made, in microseconds since the trace begins; 0 if it was active at the start.
    pub start_us: f64,
    /// When its block became free, or the trace ended, in microseconds since the trace begins.
    pub end_us: f64,
    /// The totals right after it was made.
    pub totals_then: Totals,
    /// Its colour by call site.
    pub paint: Paint,
    /// Its call site.
    pub stack: u32,
    /// The stack that requested it, innermost first.
    pub alloc_stack: Vec<FrameText>,
    /// Why there is no such stack, if there is none.
    pub missing: Option<MissingText>,
    /// The stack that freed it, if it was recorded and differs.
    pub free_stack: Vec<FrameText>,
}

/// Asks for the details of one call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteQuery {
    /// The number of its stack.
    pub stack: u32,
    /// The position at which its active allocations are counted.
    pub position: u32,
}

impl Question for SiteQuery {
    type Answer = Box<SiteDetail>;
}

/// The details of one call site. A number is that of one stack, unless it says otherwise; others may have the same
/// line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteDetail {
    /// The number of its stack.
    pub stack: u32,
    /// Its line.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The number of allocations in the trace.
    pub count: u32,
    /// The sum of their requested bytes.
    pub bytes: u64,
    /// The largest sum of their requested bytes that was active at once, and its position.
    pub peak: (u64, u32),
    /// Bytes and number of the allocations that are active at the position.
    pub live: (u64, u32),
    /// Bytes and number of the active allocations of all stacks that have its line.
    pub line_live: (u64, u32),
    /// Bytes and number of the allocations that are never freed in the trace.
    pub live_at_end: (u64, u32),
    /// The largest allocations that are active at the position: number and requested bytes.
    pub largest: Vec<(u32, u64)>,
    /// Its frames, innermost first.
    pub frames: Vec<FrameText>,
    /// Why there are none, if so: the reason that holds for the most bytes at the position.
    pub missing: Option<MissingText>,
}
