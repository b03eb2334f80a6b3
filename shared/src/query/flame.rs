//! The flame graph: question and answer.

use serde::{Deserialize, Serialize};

use super::Paint;

/// See [`Query::Flame`](super::Query::Flame).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlameQuery {
    /// When.
    pub position: u32,
    /// From the innermost frame (who asked) rather than the outermost (where the program began).
    pub bottom_up: bool,
    /// Whether frames of the interpreter and the dispatcher are left out.
    pub hide_internal: bool,
    /// The boxes that were zoomed into, from the root on: frame numbers.
    pub zoom: Vec<u32>,
    /// Width of the view in pixels: what is narrower than one is summed.
    pub width: f32,
    /// Search terms that all must match.
    pub filter: Vec<String>,
    /// A search term; what it doesn't match is painted faint.
    pub highlight: Option<String>,
}

/// A box of a flame graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlameBox {
    /// Depth below the root box, which is 0.
    pub depth: u32,
    /// Left edge, as a share of the width.
    pub x0: f32,
    /// Right edge.
    pub x1: f32,
    /// The function; what it stands for where it is no frame.
    pub name: String,
    /// File and line.
    pub location: String,
    /// The frame's number, for zooming; [`Quads::NONE`](super::Quads::NONE) where it is no frame.
    pub frame: u32,
    /// Bytes requested below it.
    pub bytes: u64,
    /// Allocations below it.
    pub count: u32,
    /// The stack, where exactly one runs through it.
    pub stack: Option<u32>,
    /// Its colour.
    pub paint: Paint,
}

/// What is live at a position, by stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// What was asked.
    pub query: FlameQuery,
    /// The boxes, root first, by depth and then from left to right.
    pub boxes: Vec<FlameBox>,
    /// Bytes requested in all: exactly [`Totals::requested`](super::Totals::requested) when no filter is set.
    pub total: u64,
}
