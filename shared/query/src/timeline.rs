//! The overview and the stacked allocations: query and answers.

use serde::{Deserialize, Serialize};

use super::{Axis, ColorBy, Packed, Paint, Quads, Question, Window};
use crate::term::is_any_category;

/// Asks for the stacked allocations in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineQuery {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis.
    pub window: Window,
    /// The number of pixel columns.
    pub columns: u32,
    /// The visible part of the stack's height, in bytes.
    pub bytes: Window,
    /// The number of pixel rows. Shapes lower than one are summed.
    pub rows: u32,
    /// Colours and order.
    pub color_by: ColorBy,
    /// Search terms, all of which an allocation must match to be shown.
    pub filter: Vec<String>,
    /// A search term. What it does not match is painted faint.
    pub highlight: Option<String>,
}

impl Question for TimelineQuery {
    type Answer = Timeline;

    fn needs_categories(&self) -> bool {
        self.color_by == ColorBy::Category || is_any_category(&self.filter, self.highlight.as_ref())
    }
}

/// Asks for the totals over the whole run, with all peaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverviewQuery {
    /// The x axis.
    pub axis: Axis,
    /// Pixel columns.
    pub columns: u32,
}

impl Question for OverviewQuery {
    type Answer = Overview;
}

/// The largest totals in each pixel column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// The part of the axis that the columns cover: its whole extent at the time of the answer.
    pub window: Window,
    /// Reserved bytes.
    pub reserved: Packed<u64>,
    /// Active bytes.
    pub active: Packed<u64>,
    /// Allocated bytes.
    pub allocated: Packed<u64>,
    /// The least allocated bytes.
    pub least: Packed<u64>,
    /// Out-of-memory events: coordinate and position.
    pub ooms: Vec<(f64, u32)>,
    /// Annotated spans: coordinates, and their name.
    pub annotations: Vec<(Window, String)>,
    /// The spans in which events are missing, from left to right.
    pub losses: Vec<LossSpan>,
    /// The memory beside the allocator; empty if it was not sampled.
    pub outside: Vec<OutsideCurve>,
}

/// A quantity of the memory beside the allocator over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutsideCurve {
    /// The quantity: `resident`, `pinned`, `outside` or `others`. See [`OutsideSample`](trace::OutsideSample).
    pub name: String,
    /// The largest value in each column.
    pub bytes: Packed<u64>,
}

/// A span in which events are missing. The states within are unknown; the state before is shown, or statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossSpan {
    /// The span from the event before to the event behind.
    pub span: Window,
    /// The position before it.
    pub position: u32,
    /// The number of missing events.
    pub events: u64,
    /// The number of missing events of each action, as text; empty if they were not counted.
    pub kinds: String,
    /// The statistics within the span, from left to right; on the time axis only.
    pub samples: Vec<SampleAt>,
}

/// Recorded statistics at one moment. They are shown until the next ones.
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

/// The detail of a [`Timeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Each quad is a class (a call site, say) in one or more columns; its id is an index into the classes.
    Classes,
    /// Each quad is an allocation (or part of its staircase); its id is the allocation's number.
    Allocations,
}

/// A class of allocations, which are adjacent and share a colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its label: the call site's line, the stream, the range of sizes.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// The first stack of its line, if the class is a line of call sites.
    pub stack: Option<u32>,
    /// Its bytes at the trace's peak.
    pub peak_bytes: u64,
}

/// The stacked allocations of a window. Each column shows the position in it with the most requested bytes, so that no
/// peak is lost at any zoom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The query, so that a late answer is drawn in the right place.
    pub query: TimelineQuery,
    /// What the quads represent.
    pub detail: Detail,
    /// x in columns from the window's start, y in bytes from `query.bytes.start`.
    pub quads: Quads,
    /// The classes, in stacking order from the bottom.
    pub classes: Vec<Class>,
    /// The largest requested total of each column (of the allocations that match the filter).
    pub top: Packed<u64>,
    /// The position of that total.
    pub position: Packed<u32>,
    /// The bytes of all active blocks at that position, including rounding and allocations that do not match the
    /// filter.
    pub active: Packed<u64>,
    /// The largest reserved total of each column.
    pub reserved: Packed<u64>,
    /// The number of allocations in the window that match the filter.
    pub allocations: u32,
    /// The time of the last event in the window, in microseconds since the epoch; `None` if it has no event, or times
    /// were not recorded.
    pub newest_us: Option<i64>,
}
