//! The state at one position: its totals, and the event that leads to it.

use serde::{Deserialize, Serialize};

use super::{EventRow, Question};
use trace::totals::Totals;

/// Asks for the totals at a position, and the event that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateQuery {
    /// The position.
    pub position: u32,
}

impl Question for StateQuery {
    type Answer = StateAt;
}

/// The totals at a position, and the event that leads to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateAt {
    /// The position.
    pub position: u32,
    /// Microseconds since the trace begins.
    pub time_us: f64,
    /// Microseconds since the epoch; 0 if times were not recorded.
    pub wall_us: i64,
    /// The totals.
    pub totals: Totals,
    /// The event that leads to the position; `None` at the start.
    pub event: Option<EventRow>,
}
