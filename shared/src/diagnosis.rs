//! The diagnosis of a device's trace: why memory ran out, and what else is wrong with it. Plain data, the same for the
//! page, the command line and programs; [`crate::doctor`] makes it.

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Remedy};
use crate::units::Address;

/// Why memory ran out. The names are stable: scripts match on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It did not run out.
    #[default]
    None,
    /// A line held more at every step. Without that, the request would have fitted.
    Leak,
    /// Live tensors left too little, even if all free memory had been in one piece.
    Full,
    /// Enough memory was free for the request, but in pieces too small for it.
    Fragmented,
    /// A free piece was large enough, but in another pool or on another stream.
    OutOfReach,
    /// The driver had enough; a limit of this process stood in the way.
    Limit,
    /// Memory of the device that other processes held was what was missing.
    OtherProcess,
    /// Memory rose for a moment above what the program uses otherwise, such as when a checkpoint is saved.
    Spike,
}

impl Cause {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Leak => "leak",
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::OutOfReach => "out_of_reach",
            Self::Limit => "limit",
            Self::OtherProcess => "other_process",
            Self::Spike => "spike",
        }
    }
}

/// The verdict on a trace, in one sentence. Its subject is the failure that matters most, if a request failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind.
    pub cause: Cause,
    /// One sentence for a person, with its numbers.
    pub sentence: String,
    /// The line of code that it is about, as call sites are written; `None` if it is about no single line.
    pub line: Option<String>,
    /// The number of a stack whose line that is.
    pub stack: Option<u32>,
    /// The position right after the failed request; `None` if none failed.
    pub position: Option<u32>,
    /// What to try, best first: at most three.
    pub remedies: Vec<Remedy>,
}

/// A request that failed, and the memory at that moment. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// The index of the out-of-memory event.
    pub event: u32,
    /// The request, rounded up as the allocator does. Traces don't record the size before rounding.
    pub requested: u64,
    /// What the driver was asked for: the segment or the pages that such a request needs.
    pub asked_of_driver: u64,
    /// What the driver had free, as recorded with the event.
    pub driver_free: u64,
    /// Reserved and in no active block.
    pub cached: u64,
    /// The largest request that could have been served from cached memory of the request's pool and stream.
    pub largest_servable: u64,
    /// The largest gap of the device, whatever its pool and stream.
    pub largest_gap: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// In live tensors.
    pub allocated: u64,
    /// In active blocks: in live tensors, or waiting for a stream.
    pub active: u64,
    /// Reserved from the driver.
    pub reserved: u64,
    /// Bytes of the device that the process could use, if known.
    pub capacity: Option<u64>,
    /// What other processes and CUDA itself held of the device, if known.
    pub held_by_others: Option<u64>,
    /// What the request lacked: bytes that had to be free beside what was, if all free memory had been in one piece;
    /// 0 if it would have fitted then.
    pub missing: u64,
    /// The cause, regardless of what led there.
    pub cause: Cause,
    /// One or two sentences about this failure.
    pub message: String,
    /// The number of the stack that made the request; 0 if none was recorded.
    pub stack: u32,
    /// The gap that came closest to the request: its address and size.
    pub nearest_gap: Option<(Address, u64)>,
}

/// The diagnosis of one device's trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The device's number.
    pub device: i64,
    /// The verdict.
    pub verdict: Verdict,
    /// Every request that failed, in order.
    pub ooms: Vec<FailedRequest>,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
}
