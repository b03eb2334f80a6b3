//! Whether a run comes out as recorded.

use serde::{Deserialize, Serialize};

/// The first answer of the allocator that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The event of the trace.
    pub event: u32,
    /// What was recorded, and what came out.
    pub why: String,
}

/// How far the run comes out as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Requests for memory in the trace.
    pub requests: u64,
    /// Those that got the recorded address, and took from the driver what was recorded.
    pub equal: u64,
    /// The first one that did not; `None` if all came out as recorded.
    pub first_difference: Option<Difference>,
    /// Events of the run that the trace lacks: lost while recording, or to damage. Runs are of what was read.
    pub lost: u64,
}

impl SelfCheck {
    /// Whether the trace is whole, and everything came out as recorded.
    pub fn is_exact(&self) -> bool {
        self.first_difference.is_none() && self.lost == 0
    }
}
