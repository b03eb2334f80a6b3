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

mod allocations;
mod axis;
pub mod category;
mod category_rules;
pub mod copy;
mod curves;
mod details;
pub mod diagnosis;
pub mod encoding;
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
mod question;
mod range;
pub mod redaction;
pub mod run_comparison;
pub mod run_profile;
pub mod run_stacks;
mod sealed;
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

pub use allocations::{AllocationOrder, AllocationRow, AllocationRows, AllocationsQuery, FreedBy};
pub use axis::{Axis, PositionAtQuery, Window};
pub use category_rules::{CategoryRule, CategoryRules, CategoryRulesQuery};
pub use curves::{Curve, Curves, CurvesQuery, Measure};
pub use details::{AllocationDetail, AllocationQuery, FrameText, MissingText, SiteDetail, SiteQuery};
pub use events::{
    EventColumn, EventFilter, EventOrder, EventRow, EventRows, EventTextQuery, EventsQuery, LOST, ListRow, LossRow,
    PartnerQuery, Related, StepEventQuery,
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
pub use names::{
    FROM_BEFORE, LOST_STACK, NO_STACK, function_of, line_in_sentence, location_of, pool_name, stream_name,
};
pub use packed::Packed;
pub use paint::{ColorBy, LineColors, Paint};
pub use quads::Quads;
pub use question::{Question, Registered};
pub use range::{RangeAmounts, RangeLine, RangeOrder, RangeQuery, RangeSums, Waits};
pub use run_comparison::{ComparedAxis, ComparedMoment, ComparedOrder, ComparedView};
pub use sealed::Sealed;
pub use search::{
    FindQuery, Found, FoundAllocation, FoundLine, FoundMark, Hit, ListStart, NextHitQuery, SearchHelp, SearchQuery,
    SearchResult,
};
pub use segments::{
    Label, SegmentDetail, SegmentGroup, SegmentHeading, SegmentLayout, SegmentOrder, SegmentQuery, SegmentRow,
    Segments, SegmentsQuery,
};
use serde::{Deserialize, Serialize};
pub use sizes::parse_bytes;
pub use state::{StateAt, StateQuery};
pub use steps::{FROM_PATTERN, StepList, StepSpan, StepsQuery};
pub use summary::{DeviceSummary, Origin, Summary};
pub use timeline::{Class, Detail, LossSpan, OutsideCurve, Overview, OverviewQuery, SampleAt, Timeline, TimelineQuery};

pub use crate::category::Category;
use crate::question::define_questions;

/// Calls a macro with the table of all questions: for each its documentation, its name in [`Query`] and [`Answer`], and its
/// type. The order is that of the encoding: new rows go to the end.
#[macro_export]
macro_rules! for_each_question {
    ($callback:ident) => {
        $callback! {
            /// Totals over the whole run, with all peaks.
            Overview($crate::OverviewQuery),
            /// The stacked allocations in a window.
            Timeline($crate::TimelineQuery),
            /// Totals and the event at a position.
            State($crate::StateQuery),
            /// The layout of the segments and their blocks at a position.
            Segments($crate::SegmentsQuery),
            /// Rows of the event list.
            Events($crate::EventsQuery),
            /// The nearest position before or after another whose event matches a filter.
            StepEvent($crate::StepEventQuery),
            /// The active allocations at a position, by stack.
            Flame($crate::FlameQuery),
            /// The allocations that a search term matches.
            Search($crate::SearchQuery),
            /// The next allocation that a term matches.
            NextHit($crate::NextHitQuery),
            /// A list of what a search term finds.
            Find($crate::FindQuery),
            /// The details of one allocation.
            Allocation($crate::AllocationQuery),
            /// The details of one call site.
            Site($crate::SiteQuery),
            /// The active memory by line at a position, or its growth between two.
            Lines($crate::LinesQuery),
            /// The details of one line of call sites.
            Line($crate::LineQuery),
            /// The next allocation of a line of call sites.
            LineStep($crate::LineStepQuery),
            /// The classes of a colouring with their memory at a position, or its growth between two.
            Classes($crate::ClassesQuery),
            /// The sums over a range of positions, and those of its lines.
            Range($crate::RangeQuery),
            /// The details of one segment.
            Segment($crate::SegmentQuery),
            /// The curves of measures of fragmentation in a window.
            Curves($crate::CurvesQuery),
            /// The position at a coordinate of an axis.
            PositionAt($crate::PositionAtQuery),
            /// Why memory ran out, and what else is wrong with the trace.
            Diagnosis($crate::diagnosis::DiagnosisQuery),
            /// Why the request right before a position failed, as of that moment.
            FailureDiagnosis($crate::diagnosis::FailureDiagnosisQuery),
            /// The fragmentation of memory over time.
            Heatmap($crate::HeatmapQuery),
            /// What is in a cell of a heatmap.
            HeatmapCell($crate::HeatmapCellQuery),
            /// Where a failed request goes on a heatmap.
            HeatmapFailure($crate::HeatmapFailureQuery),
            /// The steps of the job.
            Steps($crate::StepsQuery),
            /// The rules that tell categories, and what they decided at the peak.
            CategoryRules($crate::CategoryRulesQuery),
            /// The other end of the allocation that an event begins or ends.
            Partner($crate::PartnerQuery),
            /// An event as text, with all of its numbers and its stack.
            EventText($crate::EventTextQuery),
            /// Rows of the table of allocations.
            Allocations($crate::AllocationsQuery),
            /// A run at one moment, in brief.
            RunProfile($crate::run_profile::RunProfileQuery),
            /// The active memory of a run by stack, for the flame graph of another.
            RunStacks($crate::run_stacks::RunStacksQuery),
            /// What changed from one run to another.
            CompareRuns($crate::run_comparison::CompareRunsQuery),
        }
    };
}

for_each_question!(define_questions);
