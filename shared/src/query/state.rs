//! The state at one position: sums, and the event that led to it.

use serde::{Deserialize, Serialize};

use super::EventRow;
use crate::totals::Totals;

/// Totals at a position, and the event that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateAt {
    /// The position.
    pub position: u32,
    /// Microseconds since the trace's first event.
    pub time_us: f64,
    /// Microseconds since the epoch; 0 where the layout has no times.
    pub wall_us: i64,
    /// The sums.
    pub totals: Totals,
    /// The event that led here; none at the start.
    pub event: Option<EventRow>,
}
