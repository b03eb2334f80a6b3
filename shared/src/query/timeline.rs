//! The overview and the stacked allocations: question and answers.

use serde::{Deserialize, Serialize};

use super::{Axis, ColorBy, Packed, Paint, Quads, Window};

/// See [`Query::Timeline`](super::Query::Timeline).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineQuery {
    /// The x axis.
    pub axis: Axis,
    /// What part of it.
    pub window: Window,
    /// Pixel columns that the window is cut into.
    pub columns: u32,
    /// What part of the stack's height, in bytes.
    pub bytes: Window,
    /// Pixel rows that the height is cut into: what is lower than one is summed.
    pub rows: u32,
    /// Colours and order.
    pub color_by: ColorBy,
    /// Search terms that all must match for an allocation to be stacked at all.
    pub filter: Vec<String>,
    /// A search term; what it doesn't match is painted faint.
    pub highlight: Option<String>,
}

/// Totals by pixel column, each the largest in its column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// What part of the axis the columns cover: all of it, as it was then.
    pub window: Window,
    /// Reserved bytes.
    pub reserved: Packed<u64>,
    /// Active bytes.
    pub active: Packed<u64>,
    /// Allocated bytes.
    pub allocated: Packed<u64>,
    /// Out-of-memory events: coordinate and position.
    pub ooms: Vec<(f64, u32)>,
    /// Annotated spans: coordinates, and their name.
    pub annotations: Vec<(Window, String)>,
    /// Where events are missing, from left to right.
    pub losses: Vec<LossSpan>,
}

/// Events that are missing between two events. What the allocator did in between is not known, and what is shown of it
/// is the state before, or what statistics say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossSpan {
    /// From the event before to the one after.
    pub span: Window,
    /// The position of the state before.
    pub position: u32,
    /// How many are missing.
    pub events: u64,
    /// How many of each action, in words; empty where that was not counted.
    pub kinds: String,
    /// What statistics say of the time in between, from left to right; on the axis of time only.
    pub samples: Vec<SampleAt>,
}

/// What statistics say of a moment: true until the next one, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleAt {
    /// Its coordinate.
    pub x: f64,
    /// Allocated bytes.
    pub allocated: u64,
    /// Active bytes.
    pub active: u64,
    /// Reserved bytes.
    pub reserved: u64,
}

/// How fine a [`Timeline`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Each quad is a class (a call site, say) in one or more columns; its id is an index into the classes.
    Classes,
    /// Each quad is an allocation (or part of its staircase); its id is the allocation's number.
    Allocations,
}

/// A class of allocations that lie together and share a colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// What it is: the call site's line, the stream, the range of sizes.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The call site, where the class is one.
    pub stack: Option<u32>,
    /// Its bytes at the trace's peak.
    pub peak_bytes: u64,
}

/// The stacked allocations of a window. In each column the stack is that of the instant in the column when most
/// bytes were requested, so no peak is lost at any zoom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What was asked, so that a late answer is drawn where it belongs.
    pub query: TimelineQuery,
    /// What the quads are.
    pub detail: Detail,
    /// x in columns from the window's start, y in bytes from `query.bytes.start`.
    pub quads: Quads,
    /// The classes, in stacking order from the bottom.
    pub classes: Vec<Class>,
    /// By column: the largest requested total (of what the filter lets through).
    pub top: Packed<u64>,
    /// By column: the position of that total.
    pub position: Packed<u32>,
    /// By column: bytes of active blocks at that position: of all, whatever the filter, rounding included.
    pub active: Packed<u64>,
    /// By column: the largest reserved total.
    pub reserved: Packed<u64>,
    /// Number of allocations in the window that the filter lets through.
    pub allocations: u32,
    /// When the last event in the window happened, in microseconds since the epoch; `None` where it shows no event, or
    /// events have no times.
    pub newest_us: Option<i64>,
}
