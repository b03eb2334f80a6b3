//! The questions that a view asks of a trace, and the answers: plain data, so that they cross a worker's or a
//! socket's border. A question is bounded by the pixels it is asked for, never by the length of the trace.
//!
//! Coordinates of a window are in units of its [`Axis`]:
//! ```text
//! Axis::Event   position p is drawn on [p, p+1); the whole trace is [0, n+1)
//! Axis::Time    microseconds since the trace's first event; the state after event e lasts until event e+1
//! ```

mod axis;
mod details;
mod events;
mod flame;
mod packed;
mod paint;
mod quads;
mod search;
mod segments;
mod state;
mod summary;
pub mod term;
mod timeline;

pub use axis::{Axis, Window};
pub use details::{AllocationDetail, FrameText, SiteDetail};
pub use events::{EventFilter, EventRow, EventRows, LOST, ListRow, LossRow};
pub use flame::{Flame, FlameBox, FlameQuery};
pub use packed::Packed;
pub use paint::{ColorBy, Paint};
pub use quads::Quads;
pub use search::{Hit, SearchHelp, SearchResult};
pub use segments::{Label, SegmentDetail, SegmentLayout, SegmentRow, Segments, SegmentsQuery};
use serde::{Deserialize, Serialize};
pub use state::StateAt;
pub use summary::{DeviceSummary, Origin, Summary};
pub use timeline::{Class, Detail, LossSpan, Overview, SampleAt, Timeline, TimelineQuery};

use crate::units::Address;

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
