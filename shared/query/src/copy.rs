//! Where a view of a trace is in a copy of it.

use serde::{Deserialize, Serialize};

/// What a view names by its number in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The device, by its index.
    pub device: u32,
    /// The selected allocation.
    pub allocation: Option<u32>,
    /// The selected stack.
    pub stack: Option<u32>,
}

/// What a view of the original has to become for the copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// The device, allocation and stack as the copy numbers them; `None` for those that the copy leaves out.
    pub named: Named,
    /// Positions are lower by this number of events.
    pub events: u32,
    /// Times from the start are lower by this number of microseconds.
    pub us: f64,
}
