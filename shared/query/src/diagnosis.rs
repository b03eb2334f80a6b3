//! The diagnosis of a device's trace: why memory ran out, and what else is wrong with it. Plain data, the same for the
//! page, the command line and programs; [`doctor`] makes it.

use serde::{Deserialize, Serialize};

use crate::Question;
use crate::category::Category;
use crate::finding::{Finding, Remedy};
use trace::units::{Address, PoolId, Stream};

/// Why memory ran out. The names are stable: scripts match on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It did not run out.
    #[default]
    None,
    /// A line held more at every step. Without that, the request would have fitted.
    Leak,
    /// Live tensors left too little: all free memory in one piece would not have been enough. A verdict also says so if
    /// live tensors held 90 % of the memory and were still rising to a new high: all that was left would have held this
    /// request in one piece, but the program had not yet shown how much more it needed.
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

/// The verdict on a trace. Its subject is the failure that matters most, if a request failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind.
    pub cause: Cause,
    /// What happened, in one line with its numbers and without a full stop: `Fragmented: 512 MiB asked, 592 MiB free in 40
    /// gaps, the largest 337 MiB`. Empty if there is nothing to say.
    pub headline: String,
    /// One or two sentences that say what happened, with its numbers and the lines of code.
    pub sentence: String,
    /// The line of code that it is about, as call sites are written; `None` if it is about no single line.
    pub line: Option<String>,
    /// The number of a stack whose line that is.
    pub stack: Option<u32>,
    /// Whether other lines have more than three times as much of what stood in the way.
    pub is_one_of_many: bool,
    /// The position right after the failed request; `None` if none failed.
    pub position: Option<u32>,
    /// Whether memory grows: a line holds more at every step, though no request has failed, or the steps before the failure
    /// needed more and more.
    pub is_growing: bool,
    /// What to try, best first: at most three.
    pub remedies: Vec<Remedy>,
}

impl Verdict {
    /// Returns what happened in one line: the headline, or the sentence where there is none.
    pub fn in_brief(&self) -> &str {
        if self.headline.is_empty() { &self.sentence } else { &self.headline }
    }

    /// Whether its advice can be checked by running the trace under other settings: it is about a failed request, and names a
    /// setting, or one may help.
    pub fn can_be_proven(&self) -> bool {
        let names_setting = self.remedies.iter().any(|remedy| remedy.setting().is_some());
        self.position.is_some() && (names_setting || self.cause == Cause::Fragmented)
    }
}

/// How the pool of a request is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolBasis {
    /// The trace records it.
    #[default]
    Recorded,
    /// The device has no other pool.
    Only,
    /// The allocations right before it, of its stream, were in that pool.
    Neighbours,
    /// It is not known: the default pool is assumed.
    Unknown,
}

/// A request that failed, and the memory at that moment. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// The index of the out-of-memory event.
    pub event: u32,
    /// The request, rounded up as the allocator does. Traces don't record the size before rounding.
    pub requested: u64,
    /// What the driver was asked for: the segment or the pages that such a request needs. Pages may be less than the
    /// request, since free memory right before them in the expandable segment serves a part of it.
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
    /// The line of that stack; empty if none was recorded.
    pub line: String,
    /// Why none was recorded, in a few words; empty if one was.
    pub no_stack: String,
    /// The stream that the request was for.
    pub stream: Stream,
    /// The pool that the request was for.
    pub pool: PoolId,
    /// How the pool is known: traces record it since torch 2.12.
    pub pool_basis: PoolBasis,
    /// Whether small segments serve such a request.
    pub is_small: bool,
    /// Whether new memory for it would have come from an expandable segment.
    pub is_expandable: bool,
    /// The part of `cached` in segments of the request's pool and stream.
    pub cached_in_reach: u64,
    /// The gap that came closest to the request: its address and size.
    pub nearest_gap: Option<(Address, u64)>,
    /// The block before that gap, and the one behind it, in its segment.
    pub beside_gap: [Option<HeldBlock>; 2],
    /// The place that came closest to room for the request, and what stood in the way there.
    pub obstacle: Option<Obstacle>,
    /// The lines that held most, the largest first.
    pub lines: Vec<HeldLine>,
    /// What the memory was used for, the largest first.
    pub categories: Vec<HeldCategory>,
}

impl FailedRequest {
    /// Returns the position right after the event.
    pub const fn position(&self) -> u32 {
        self.event.saturating_add(1)
    }

    /// Returns whether the request would have fitted if all free memory had been in one piece.
    pub const fn fits_if_packed(&self) -> bool {
        self.missing == 0
    }

    /// Returns the bytes that live tensors, cached memory and the driver's free memory make up together.
    pub const fn reachable(&self) -> u64 {
        self.active.saturating_add(self.cached).saturating_add(self.driver_free)
    }

    /// Returns the bytes that the process could use: the capacity, or what it reached if that is not known.
    pub fn whole(&self) -> u64 {
        self.capacity.unwrap_or_else(|| self.reachable())
    }
}

/// A block in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBlock {
    /// The number of its allocation.
    pub allocation: u32,
    /// Its first address.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// The number of the stack that requested it.
    pub stack: u32,
    /// The line of that stack.
    pub line: String,
    /// The position right after it was allocated; 0 if that was before the trace.
    pub since: u32,
}

/// A place in a segment that would hold the request, if it were not for a few blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// The first address of the place. It is as long as the request.
    pub address: Address,
    /// The number of blocks in it.
    pub blocks: u32,
    /// Their bytes.
    pub bytes: u64,
    /// The largest of them, the largest first.
    pub largest: Vec<HeldBlock>,
}

/// What one line held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLine {
    /// The line, as call sites are written.
    pub line: String,
    /// The number of a stack whose line that is: of those, the one that held most.
    pub stack: u32,
    /// Requested bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u32,
}

/// A line of the user's own code that held most of the memory, and the lines of libraries that it called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerLines {
    /// The line.
    pub line: String,
    /// What it called, the largest first.
    pub lines: Vec<HeldLine>,
}

/// What the allocations of one category held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCategory {
    /// The category.
    pub category: Category,
    /// Requested bytes.
    pub bytes: u64,
    /// The number of allocations.
    pub count: u32,
}

/// The diagnosis of one device's trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The device's number.
    pub device: i64,
    /// The verdict.
    pub verdict: Verdict,
    /// The number of requests that failed.
    pub failed: u32,
    /// Those requests, in order: at most [`EXPLAINED_FAILURES`](trace::limits::EXPLAINED_FAILURES).
    pub ooms: Vec<FailedRequest>,
    /// What the line called that held most when the request failed that the verdict is about, or else at the peak; `None` if no
    /// line held more than 60 % of the memory, or it called nothing that has a name.
    pub inner_lines: Option<InnerLines>,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
    /// What was looked for, as a list for a sentence: `leaks, growth, …`.
    pub looked_for: String,
}

/// Asks why memory ran out, and what else is wrong with the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosisQuery;

impl Question for DiagnosisQuery {
    type Answer = Box<Diagnosis>;
}

/// Asks why the request right before a position failed, as of that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDiagnosisQuery {
    /// The position right after the out-of-memory event.
    pub position: u32,
}

impl Question for FailureDiagnosisQuery {
    type Answer = Box<Diagnosis>;
}
