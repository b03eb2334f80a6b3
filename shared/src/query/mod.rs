//! The questions that a view asks of a trace, and the answers: plain data, so that they cross a worker's or a
//! socket's border. A question is bounded by the pixels it is asked for, never by the length of the trace.
//!
//! Coordinates of a window are in units of its [`Axis`]:
//! ```text
//! Axis::Event   position p is drawn on [p, p+1); the whole trace is [0, n+1)
//! Axis::Time    microseconds since the trace's first event; the state after event e lasts until event e+1
//! ```

mod packed;
pub mod term;

pub use packed::Packed;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::units::{Address, PoolId, Stream};

/// What the x axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Axis {
    /// Microseconds since the first event.
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

/// What an allocation's colour stands for; allocations of one class lie together in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColorBy {
    /// The stack that asked for it: the largest call sites apart, the rest as one class.
    #[default]
    Site,
    /// Its requested size, in powers of four.
    Size,
    /// Its stream.
    Stream,
    /// Its pool: small, large, or a private one.
    Pool,
    /// How long it lived, in powers of ten, and those that outlived the trace.
    Lifetime,
}

/// What a shape is painted with: a code that each theme turns into a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
#[serde(transparent)]
pub struct Paint(pub u16);

impl Paint {
    /// Number of distinct colours for call sites, streams and pools.
    pub const SLOTS: u16 = 32;
    /// Number of steps of the ramp for ordered quantities.
    pub const RAMP: u16 = 16;
    /// Things too small to draw alone, or beyond the largest call sites.
    pub const OTHER: Self = Self(64);
    /// Allocated memory, not told apart further.
    pub const ALLOCATED: Self = Self(65);
    /// Freed and waiting for a stream.
    pub const PENDING: Self = Self(66);
    /// Reserved, in no active block.
    pub const CACHED: Self = Self(67);
    /// Lost to rounding.
    pub const ROUNDING: Self = Self(68);
    /// Address space without memory behind it.
    pub const UNMAPPED: Self = Self(69);
    /// Not matched by the search: drawn faint.
    pub const DIM: u16 = 1 << 8;
    /// In a private pool: drawn with a mark.
    pub const PRIVATE: u16 = 1 << 9;

    /// One of [`Self::SLOTS`] distinct colours.
    pub const fn slot(i: u16) -> Self {
        Self(i % Self::SLOTS)
    }

    /// Step `i` of the ramp, from small to large.
    pub const fn ramp(i: u16) -> Self {
        Self(32 + if i < Self::RAMP { i } else { Self::RAMP - 1 })
    }

    /// The code without its flags.
    pub const fn base(self) -> Self {
        Self(self.0 & 0xff)
    }

    /// Whether a flag is set.
    pub const fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// The same paint with a flag.
    #[must_use]
    pub const fn with(self, flag: u16) -> Self {
        Self(self.0 | flag)
    }
}

/// Axis-aligned rectangles as columns. The answer that holds them says what x and y count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quads {
    /// Left edges.
    pub x0: Packed<f32>,
    /// Right edges.
    pub x1: Packed<f32>,
    /// Lower edges (of the smaller y).
    pub y0: Packed<f32>,
    /// Upper edges.
    pub y1: Packed<f32>,
    /// Colours: [`Paint`] codes.
    pub paint: Packed<u16>,
    /// What each stands for; [`Quads::NONE`] for a sum of many things.
    pub id: Packed<u32>,
}

impl Quads {
    /// The id of a quad that stands for no single thing.
    pub const NONE: u32 = u32::MAX;

    /// Number of rectangles.
    pub fn len(&self) -> usize {
        self.x0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.x0.is_empty()
    }

    /// Appends a rectangle.
    #[inline]
    pub fn push(&mut self, x: (f32, f32), y: (f32, f32), paint: Paint, id: u32) {
        self.x0.push(x.0);
        self.x1.push(x.1);
        self.y0.push(y.0);
        self.y1.push(y.1);
        self.paint.push(paint.0);
        self.id.push(id);
    }
}

/// Sums over the allocator's state at one position, in bytes unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Requested by active allocations: what the program asked for.
    pub requested: u64,
    /// In allocated blocks.
    pub allocated: u64,
    /// In active blocks: allocated, or waiting for a stream.
    pub active: u64,
    /// In segments.
    pub reserved: u64,
    /// In gaps: reserved, and in no active block. What is reserved less what is active, unless trace and segments
    /// disagree.
    pub cached: u64,
    /// The largest gap: the largest request that cached memory can still serve.
    pub largest_gap: u64,
    /// Number of segments (mapped ranges of expandable ones).
    pub segments: u32,
    /// Number of active blocks.
    pub blocks: u32,
    /// Number of gaps.
    pub gaps: u32,
}

impl Totals {
    /// Lost to rounding: what active blocks hold beyond what was requested.
    pub fn rounding(&self) -> u64 {
        self.active.saturating_sub(self.requested)
    }
}

/// One frame of a stack, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameText {
    /// The function.
    pub name: String,
    /// The file.
    pub filename: String,
    /// The line; 0 when it is not known.
    pub line: u32,
    /// Whether it belongs to the interpreter or the dispatcher rather than to anybody's program: folded away at first.
    pub is_internal: bool,
}

/// A question about one device of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Query {
    /// Totals over the whole run, peak by peak.
    Overview {
        /// The x axis.
        axis: Axis,
        /// Pixel columns.
        columns: u32,
    },
    /// The stacked allocations in a window.
    Timeline(TimelineQuery),
    /// Totals and the event at a position.
    State {
        /// Where.
        position: u32,
    },
    /// The segments and their blocks at a position, laid out.
    Segments(SegmentsQuery),
    /// Rows of the event list.
    Events {
        /// What to show; all of them must hold.
        filter: EventFilter,
        /// The first row among those that the filter lets through.
        first: u32,
        /// How many rows.
        count: u32,
        /// A position to find in the list: the answer says in which row its event is, or would be.
        locate: u32,
    },
    /// The nearest position whose event passes the filter, before or after another.
    StepEvent {
        /// What counts as a step.
        filter: EventFilter,
        /// From where.
        position: u32,
        /// Forward in time, or back.
        forward: bool,
    },
    /// What is live at a position, by stack.
    Flame(FlameQuery),
    /// How many allocations a search term matches.
    Search {
        /// The term; see [`SearchHelp`].
        term: String,
    },
    /// The next allocation that a term matches, in order of allocation.
    NextHit {
        /// The term.
        term: String,
        /// The allocation to go on from; the first (or last) hit when there is none.
        from: Option<u32>,
        /// Forward in time, or back.
        forward: bool,
    },
    /// All that is known of one allocation.
    Allocation {
        /// Its number.
        id: u32,
    },
    /// All that is known of one call site.
    Site {
        /// Its stack's number.
        stack: u32,
        /// Where to count what is live of it.
        position: u32,
    },
    /// All that is known of one segment.
    Segment {
        /// An address in it.
        address: Address,
        /// When.
        position: u32,
    },
    /// The position in force at a coordinate of an axis.
    PositionAt {
        /// The axis.
        axis: Axis,
        /// The coordinate.
        x: f64,
    },
}

/// What the search box understands; shown beside it.
pub struct SearchHelp;

impl SearchHelp {
    /// Each form of a term with what it finds.
    pub const FORMS: [(&'static str, &'static str); 7] = [
        ("attention", "frames whose function or file contains the text"),
        ("/self_?attn/", "frames that match a regular expression"),
        (">100MiB", "requests of more than a size; also <, >=, <=, ="),
        ("0x7f3a2c", "blocks that hold an address, or begin with its digits; also a name: b7f3a2c000000_1"),
        ("stream:7", "allocations of a stream"),
        ("pool:private", "allocations of a pool: small, large, private, or (0, 1)"),
        ("live:end", "allocations never freed in the trace; live:start, those from before it"),
    ];
}

/// See [`Query::Timeline`].
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

/// See [`Query::Segments`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentsQuery {
    /// When.
    pub position: u32,
    /// How segments are laid out.
    pub layout: SegmentLayout,
    /// Width of the view in pixels.
    pub width: f32,
    /// Height of the view in pixels.
    pub height: f32,
    /// The rows of pixels that are asked for, `[start, end)`, from the top of the whole layout.
    pub visible: Window,
    /// Magnification; 1 fits.
    pub zoom: f32,
    /// Colours of active blocks.
    pub color_by: ColorBy,
    /// Search terms; what doesn't match them all is painted faint.
    pub filter: Vec<String>,
    /// A search term; what it doesn't match is painted faint.
    pub highlight: Option<String>,
}

/// How the segment map lays segments out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SegmentLayout {
    /// One scale of bytes for all, segments side by side in order of address, line after line.
    #[default]
    ToScale,
    /// One row a segment, each as wide as the view.
    Packed,
}

/// Which events a list shows. Empty means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EventFilter {
    /// Names of actions, as written.
    pub actions: Vec<String>,
    /// Search terms that the event's allocation must match.
    pub terms: Vec<String>,
}

/// See [`Query::Flame`].
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

/// What a [`Query`] is answered with; the variant of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Query::Overview`].
    Overview(Overview),
    /// To [`Query::Timeline`].
    Timeline(Timeline),
    /// To [`Query::State`].
    State(StateAt),
    /// To [`Query::Segments`].
    Segments(Segments),
    /// To [`Query::Events`].
    Events(EventRows),
    /// To [`Query::StepEvent`] and [`Query::PositionAt`]; `None` where there is no such position.
    Position(Option<u32>),
    /// To [`Query::Flame`].
    Flame(Flame),
    /// To [`Query::Search`].
    Search(SearchResult),
    /// To [`Query::NextHit`]; `None` when nothing matches.
    Hit(Option<Hit>),
    /// To [`Query::Allocation`].
    Allocation(Box<AllocationDetail>),
    /// To [`Query::Site`].
    Site(Box<SiteDetail>),
    /// To [`Query::Segment`]; `None` where nothing is reserved.
    Segment(Option<Box<SegmentDetail>>),
    /// The question makes no sense for this trace; a sentence for the person who asked.
    Refused(String),
}

/// Totals by pixel column, each the largest in its column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
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
    /// Number of allocations in the window.
    pub allocations: u32,
}

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

/// One row of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// The event's index in its device's trace, from 0. The position after it is one more.
    pub index: u32,
    /// Microseconds since the trace's first event.
    pub time_us: f64,
    /// The action, as written.
    pub action: String,
    /// The address; free bytes of the device for an out-of-memory event.
    pub address: Address,
    /// Bytes.
    pub size: u64,
    /// The stream.
    pub stream: Stream,
    /// The call site's line.
    pub site: String,
    /// The allocation that it begins or ends, if it does.
    pub allocation: Option<u32>,
    /// The allocation's colour.
    pub paint: Paint,
}

/// Part of the event list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRows {
    /// Rows in all that the filter lets through.
    pub total: u32,
    /// The number of the first row here.
    pub first: u32,
    /// The rows.
    pub rows: Vec<EventRow>,
    /// The row of the event that was to be located (or of the last one before it); none before the first row.
    pub located: Option<u32>,
}

/// A label in a laid-out map: where, and what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Left edge in pixels.
    pub x: f32,
    /// Top edge in pixels.
    pub y: f32,
    /// Room in pixels.
    pub width: f32,
    /// The text.
    pub text: String,
}

/// The segment map of a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segments {
    /// What was asked.
    pub query: SegmentsQuery,
    /// Height of the whole layout in pixels.
    pub height: f32,
    /// Blocks and gaps; x and y in pixels of the whole layout, y downwards. The id is the allocation's number.
    pub blocks: Quads,
    /// Outlines of segments; the id is an index into `segments`.
    pub outlines: Quads,
    /// The segments that are visible.
    pub segments: Vec<SegmentRow>,
    /// Their labels.
    pub labels: Vec<Label>,
    /// The sums at the position.
    pub totals: Totals,
}

/// A segment in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRow {
    /// Where it starts.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes in its active blocks.
    pub active: u64,
    /// Its stream.
    pub stream: Stream,
    /// Its pool.
    pub pool: PoolId,
    /// Whether it serves requests up to 1 MiB.
    pub is_small: bool,
    /// Whether it can grow.
    pub is_expandable: bool,
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
    /// The frame's number, for zooming; [`Quads::NONE`] where it is no frame.
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
    /// Bytes requested in all: exactly [`Totals::requested`] when no filter is set.
    pub total: u64,
}

/// How much a search term matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The term.
    pub term: String,
    /// Allocations that match.
    pub count: u32,
    /// Their requested bytes, all added up.
    pub bytes: u64,
    /// The largest sum of theirs that was active at once.
    pub peak_bytes: u64,
    /// Why the term can't be understood; nothing matches then.
    pub error: Option<String>,
}

/// One allocation found by a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The allocation.
    pub allocation: u32,
    /// The position right after it was made; 0 when it was there at the start.
    pub position: u32,
    /// Its place among the hits, from 1.
    pub number: u32,
    /// All hits.
    pub of: u32,
}

/// All that is known of one allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationDetail {
    /// Its number.
    pub id: u32,
    /// Address and version: the second use of an address is `b7f…_1`, as PyTorch's viewer counts them.
    pub name: String,
    /// Where.
    pub address: Address,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes of its block.
    pub size: u64,
    /// Whether `size` is exact; if not, it follows from the allocator's rules.
    pub size_is_exact: bool,
    /// Its stream.
    pub stream: Stream,
    /// Its pool.
    pub pool: PoolId,
    /// Whether it lies in a small pool.
    pub is_small: bool,
    /// Compiled region and user metadata, where they say something.
    pub contexts: Vec<(String, String)>,
    /// The position right after it was made; none when it was there at the start.
    pub allocated_at: Option<u32>,
    /// The position right after `free` was called.
    pub free_requested_at: Option<u32>,
    /// The position right after its block went back.
    pub free_completed_at: Option<u32>,
    /// Microseconds since the trace's first event when it was made (0 when it was there at the start).
    pub start_us: f64,
    /// … and when its block went back, or the trace ended.
    pub end_us: f64,
    /// The sums right after it was made.
    pub totals_then: Totals,
    /// Its colour by call site.
    pub paint: Paint,
    /// Its call site.
    pub stack: u32,
    /// Who asked for it, innermost first.
    pub alloc_stack: Vec<FrameText>,
    /// Who freed it, where that was recorded and differs.
    pub free_stack: Vec<FrameText>,
}

/// All that is known of one call site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteDetail {
    /// Its stack's number.
    pub stack: u32,
    /// Its line.
    pub label: String,
    /// Its colour.
    pub paint: Paint,
    /// Allocations in the trace.
    pub count: u32,
    /// Their requested bytes, all added up.
    pub bytes: u64,
    /// The largest sum of theirs that was active at once, and the position.
    pub peak: (u64, u32),
    /// Bytes and number live at the position asked for.
    pub live: (u64, u32),
    /// Allocations never freed in the trace: bytes and number.
    pub live_at_end: (u64, u32),
    /// The largest that are live at the position asked for: number and requested bytes.
    pub largest: Vec<(u32, u64)>,
    /// Its frames, innermost first.
    pub frames: Vec<FrameText>,
}

/// All that is known of one segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentDetail {
    /// What a list says of it.
    pub row: SegmentRow,
    /// Its active blocks.
    pub blocks: u32,
    /// Its gaps.
    pub gaps: u32,
    /// Its largest gap in bytes.
    pub largest_gap: u64,
    /// The position right after it was taken from the driver; none when it was there at the start.
    pub since: Option<u32>,
    /// Who made the allocator take it, innermost first.
    pub frames: Vec<FrameText>,
}

/// What a file holds: sent once when it has been read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Encoding, in words: `pickle (protocol 4)`, `JSON, gzip`.
    pub format: String,
    /// What is wrong with it, or worth knowing.
    pub findings: Vec<Finding>,
    /// Its devices.
    pub devices: Vec<DeviceSummary>,
    /// The allocator's settings as written.
    pub settings: Vec<(String, String)>,
}

/// What a device's trace holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// The device's number.
    pub device: i64,
    /// Number of events; the last position.
    pub events: u32,
    /// Events by action as written.
    pub actions: Vec<(String, u32)>,
    /// Allocations, those from before the trace included.
    pub allocations: u32,
    /// Whether events have times.
    pub has_times: bool,
    /// Microseconds since the epoch of the first event.
    pub start_us: i64,
    /// The whole trace on the time axis.
    pub time: Window,
    /// The whole trace on the event axis.
    pub event: Window,
    /// The sums at the start.
    pub start: Totals,
    /// The sums at the end.
    pub end: Totals,
    /// The position of the largest requested total.
    pub peak_position: u32,
    /// The sums there.
    pub peak: Totals,
    /// The largest reserved total of the run.
    pub peak_reserved: u64,
    /// Positions right after out-of-memory events: position and rounded bytes that could not be had.
    pub ooms: Vec<(u32, u64)>,
    /// Annotations, starts and ends counted apart.
    pub annotations: u32,
    /// Streams, in order of first use.
    pub streams: Vec<Stream>,
    /// Private pools.
    pub pools: Vec<PoolId>,
    /// Distinct stacks.
    pub stacks: u32,
}
