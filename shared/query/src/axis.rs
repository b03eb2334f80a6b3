//! Axes, windows of them, and the question which position is at a coordinate.

use serde::{Deserialize, Serialize};

use super::Question;

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

/// Asks for the position at a coordinate of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionAtQuery {
    /// The axis.
    pub axis: Axis,
    /// The coordinate.
    pub x: f64,
}

impl Question for PositionAtQuery {
    type Answer = u32;
}
