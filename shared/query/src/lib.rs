//! Queries of a trace and their answers: plain data that can be sent to a worker or over a socket. The size of an
//! answer is bounded by the pixels that it is for, not by the length of the trace.
//!
//! Coordinates of a window are in units of its [`Axis`]:
//! ```text
//! Axis::Event   position p is drawn on [p, p+1); the whole trace is [0, n+1)
//! Axis::Time    microseconds since the trace's first event; the state after event e lasts until event e+1
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod axis;
pub mod category;
mod category_rules;
mod compare_steps;
pub mod copy;
mod curves;
mod details;
pub mod diagnosis;
mod events;
pub mod finding;
mod flame;
pub mod folding;
pub mod heatmap;
mod host_memory;
mod lines;
pub mod link;
mod names;
pub mod own_rules;
mod packed;
mod paint;
mod quads;
mod range;
pub mod redaction;
mod search;
mod segments;
pub mod setting;
mod sizes;
mod state;
mod steps;
mod summary;
pub mod sweep;
pub mod term;
mod timeline;
pub mod whatif;
mod words;

pub use axis::{Axis, Window};
pub use category_rules::{CategoryRule, CategoryRules};
pub use compare_steps::{
    CompareStepsQuery, ComparedLine, ComparedStep, StepComparison, StepMemory, step_growth, step_mark,
};
pub use curves::{Curve, Curves, CurvesQuery, Measure};
pub use details::{AllocationDetail, FrameText, MissingText, SiteDetail};
pub use events::{
    EventColumn, EventFilter, EventOrder, EventRow, EventRows, LOST, ListRow, LossRow, Related, SortedQuery,
};
pub use flame::{Flame, FlameBox, FlameQuery, Sandwich, Transform};
pub use heatmap::{
    AddressCell, Heatmap, HeatmapCell, HeatmapCellQuery, HeatmapFailure, HeatmapFailureQuery, HeatmapGroup,
    HeatmapNeed, HeatmapPart, HeatmapQuery, HeatmapRow, HeatmapRows, HeatmapThing, Pin, SizeCell,
};
pub use host_memory::HostMemory;
pub use lines::{
    Classes, ClassesQuery, LineDetail, LineQuery, LineRow, LineStep, LineStepQuery, Lines, LinesQuery, Memory, Moments,
    StackRow,
};
pub use names::{pool_name, stream_name};
pub use packed::Packed;
pub use paint::{ColorBy, Paint};
pub use quads::Quads;
pub use range::{RangeAmounts, RangeLine, RangeOrder, RangeQuery, RangeSums, Waits};
pub use search::{FindQuery, Found, FoundAllocation, FoundLine, FoundMark, Hit, ListStart, SearchHelp, SearchResult};
pub use segments::{
    Label, SegmentDetail, SegmentGroup, SegmentHeading, SegmentLayout, SegmentOrder, SegmentRow, Segments,
    SegmentsQuery,
};
use serde::{Deserialize, Serialize};
pub use sizes::parse_bytes;
pub use state::StateAt;
pub use steps::{StepList, StepSpan};
pub use summary::{DeviceSummary, Origin, Summary};
pub use timeline::{Class, Detail, LossSpan, OutsideCurve, Overview, SampleAt, Timeline, TimelineQuery};

pub use crate::category::Category;
use crate::diagnosis::Diagnosis;
use trace::units::Address;

/// A query about one device of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Query {
    /// Totals over the whole run, with all peaks.
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
        /// The position.
        position: u32,
    },
    /// The layout of the segments and their blocks at a position.
    Segments(SegmentsQuery),
    /// Rows of the event list.
    Events {
        /// The events to show; all of its conditions must hold.
        filter: EventFilter,
        /// The first row, among those that match the filter.
        first: u32,
        /// The number of rows.
        count: u32,
        /// A position to find in the list: the answer has the row of its event.
        locate: u32,
    },
    /// The nearest position before or after another whose event matches the filter.
    StepEvent {
        /// The events to step over.
        filter: EventFilter,
        /// The position to start from.
        position: u32,
        /// Whether to search forward in time, or backward.
        forward: bool,
    },
    /// The active allocations at a position, by stack.
    Flame(FlameQuery),
    /// The allocations that a search term matches.
    Search {
        /// The term: see [`SearchHelp`].
        term: String,
    },
    /// The next allocation that a term matches, in the order in which allocations were made.
    NextHit {
        /// The term.
        term: String,
        /// The allocation to start from; `None` finds the match nearest to `position`.
        from: Option<u32>,
        /// Without an allocation, where to begin: forward finds the first match made after this position, backward the last
        /// one made up to it; where there is none in that direction, the nearest in the other.
        position: u32,
        /// Whether to search forward in time, or backward.
        forward: bool,
    },
    /// The details of one allocation.
    Allocation {
        /// Its number.
        id: u32,
    },
    /// The details of one call site.
    Site {
        /// The number of its stack.
        stack: u32,
        /// The position at which its active allocations are counted.
        position: u32,
    },
    /// The active memory by line at a position, or its growth between two.
    Lines(LinesQuery),
    /// The details of one line of call sites.
    Line(LineQuery),
    /// The classes of a colouring with their memory at a position, or its growth between two.
    Classes(ClassesQuery),
    /// The sums over a range of positions, and those of its lines.
    Range(RangeQuery),
    /// The details of one segment.
    Segment {
        /// An address in it.
        address: Address,
        /// The position.
        position: u32,
    },
    /// The curves of measures of fragmentation in a window.
    Curves(CurvesQuery),
    /// The position at a coordinate of an axis.
    PositionAt {
        /// The axis.
        axis: Axis,
        /// The coordinate.
        x: f64,
    },
    /// Why memory ran out, and what else is wrong with the trace.
    Diagnosis,
    /// The fragmentation of memory over time.
    Heatmap(HeatmapQuery),
    /// What is in a cell of a heatmap.
    HeatmapCell(HeatmapCellQuery),
    /// Where a failed request goes on a heatmap.
    HeatmapFailure(HeatmapFailureQuery),
    /// The steps of the job.
    Steps {
        /// The x axis.
        axis: Axis,
    },
    /// The rules that tell categories, and what they decided at the peak.
    CategoryRules,
    /// One step over another, line by line.
    CompareSteps(CompareStepsQuery),
    /// Why the request right before a position failed, as of that moment.
    FailureDiagnosis {
        /// The position right after the out-of-memory event.
        position: u32,
    },
    /// The next allocation of a line of call sites, in the order in which allocations were made.
    LineStep(LineStepQuery),
    /// A list of what a search term finds.
    Find(FindQuery),
    /// Rows of the event list in another order.
    SortedEvents(SortedQuery),
    /// The position after the free that belongs to the `alloc` before a position, or after the `alloc` that belongs to the
    /// free before it.
    Partner {
        /// The position.
        position: u32,
    },
    /// An event as text, with all of its numbers and its stack.
    EventText {
        /// The event's index.
        index: u32,
    },
}

/// The answer to a [`Query`]: the variant with its name, unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Answers [`Query::Overview`].
    Overview(Overview),
    /// Answers [`Query::Timeline`].
    Timeline(Timeline),
    /// Answers [`Query::State`].
    State(StateAt),
    /// Answers [`Query::Segments`].
    Segments(Box<Segments>),
    /// Answers [`Query::Events`] and [`Query::SortedEvents`].
    Events(EventRows),
    /// Answers [`Query::StepEvent`], [`Query::PositionAt`] and [`Query::Partner`]; `None` if there is no such position.
    Position(Option<u32>),
    /// Answers [`Query::Flame`].
    Flame(Flame),
    /// Answers [`Query::Search`].
    Search(SearchResult),
    /// Answers [`Query::NextHit`]; `None` if nothing matches.
    Hit(Option<Hit>),
    /// Answers [`Query::Allocation`].
    Allocation(Box<AllocationDetail>),
    /// Answers [`Query::Site`].
    Site(Box<SiteDetail>),
    /// Answers [`Query::Lines`].
    Lines(Lines),
    /// Answers [`Query::Line`].
    Line(Box<LineDetail>),
    /// Answers [`Query::Classes`].
    Classes(Classes),
    /// Answers [`Query::Range`].
    Range(Box<RangeSums>),
    /// Answers [`Query::Segment`]; `None` if nothing is reserved there.
    Segment(Option<Box<SegmentDetail>>),
    /// Answers [`Query::Diagnosis`] and [`Query::FailureDiagnosis`].
    Diagnosis(Box<Diagnosis>),
    /// Answers [`Query::Heatmap`].
    Heatmap(Heatmap),
    /// Answers [`Query::HeatmapCell`]; `None` outside of the trace.
    HeatmapCell(Option<HeatmapCell>),
    /// Answers [`Query::HeatmapFailure`]; `None` if the part has no memory for such a request.
    HeatmapFailure(Option<HeatmapFailure>),
    /// Answers [`Query::Steps`].
    Steps(StepList),
    /// Answers [`Query::Curves`].
    Curves(Curves),
    /// Answers [`Query::CategoryRules`].
    CategoryRules(CategoryRules),
    /// Answers [`Query::CompareSteps`].
    StepComparison(Box<StepComparison>),
    /// The query can't be answered for this trace: a sentence for the user.
    Refused(String),
    /// Answers [`Query::LineStep`]; `None` if the line has no allocation.
    LineStep(Option<LineStep>),
    /// Answers [`Query::Find`].
    Found(Box<Found>),
    /// Answers [`Query::EventText`]; `None` if there is no such event.
    Text(Option<String>),
}
