//! What a view is a window on: an axis, a part of it, and what its shapes stand for.

use serde::{Deserialize, Serialize};

/// What the x axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Axis {
    /// Microseconds since the trace begins: with its first event, or with statistics that were taken before it.
    Time,
    /// Positions. The default: a job waits more than it allocates, and what it waited for needs no room.
    #[default]
    Event,
}

/// A half-open range `[start, end)` of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Where it begins.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
}

impl Window {
    /// Its length.
    pub fn length(self) -> f64 {
        self.end - self.start
    }
}
