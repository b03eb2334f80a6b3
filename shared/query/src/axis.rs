//! Axes, and windows of them.

use serde::{Deserialize, Serialize};

/// The unit of the x axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Axis {
    /// Microseconds since the trace begins: since its first event, or earlier statistics.
    Time,
    /// Positions. This is the default: a job waits longer than it allocates, and waiting takes no width.
    #[default]
    Event,
}

/// A half-open range `[start, end)` of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The first coordinate.
    pub start: f64,
    /// The coordinate behind the last one.
    pub end: f64,
}

impl Window {
    /// Returns its length.
    pub fn length(self) -> f64 {
        self.end - self.start
    }
}
