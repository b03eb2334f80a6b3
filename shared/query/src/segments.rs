//! The segment map and single segments: query and answers.

use serde::{Deserialize, Serialize};

use super::{ColorBy, FrameText, MissingText, Pin, Quads, Question, Sealed, Window};
use crate::term::is_any_category;
use trace::totals::Totals;
use trace::units::{Address, PoolId, Stream};

/// Asks for the layout of the segments and their blocks at a position.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SegmentsQuery {
    /// The position.
    pub position: u32,
    /// The layout of the segments.
    pub layout: SegmentLayout,
    /// The order of the segments.
    pub order: SegmentOrder,
    /// What they are grouped by.
    pub group: SegmentGroup,
    /// Width of the view in pixels.
    pub width: f32,
    /// Height of the view in pixels.
    pub height: f32,
    /// The visible rows of pixels, `[start, end)`, from the top of the whole layout.
    pub visible: Window,
    /// The magnification, up to [`Self::MOST_ZOOM`]; at 1 the layout fits.
    pub zoom: f32,
    /// Colours of active blocks.
    pub color_by: ColorBy,
    /// Search terms. What does not match all of them is painted faint.
    pub filter: Vec<String>,
    /// A search term. What it does not match is painted faint.
    pub highlight: Option<String>,
    /// The number of a stack. The blocks of other lines are painted faint.
    pub line: Option<u32>,
}

impl SegmentsQuery {
    /// The largest magnification. Beyond it single-precision pixels become coarse.
    pub const MOST_ZOOM: f32 = 4096.0;
}

impl Question for SegmentsQuery {
    type Answer = Sealed<Segments>;

    fn needs_categories(&self) -> bool {
        self.color_by == ColorBy::Category || is_any_category(&self.filter, self.highlight.as_ref())
    }
}

/// Asks for the details of one segment. The answer is `None` if nothing is reserved there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentQuery {
    /// An address in it.
    pub address: Address,
    /// The position.
    pub position: u32,
}

impl Question for SegmentQuery {
    type Answer = Option<Box<SegmentDetail>>;
}

/// A layout of the segment map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SegmentLayout {
    /// All segments to one scale, side by side in the order of addresses, row after row.
    #[default]
    ToScale,
    /// One row for each segment, as wide as the view.
    Packed,
}

/// The order of the segments in the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SegmentOrder {
    /// By address, the lowest first.
    #[default]
    Address,
    /// By size, the largest first.
    Size,
    /// By stream, then by address.
    Stream,
    /// By the share that is in no active block, the largest first.
    Free,
}

/// What the segments under one heading have in common. The group with the most reserved bytes comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SegmentGroup {
    /// Nothing: there are no headings.
    #[default]
    None,
    /// Their pool, and whether they are small.
    Pool,
    /// Their stream.
    Stream,
    /// Both.
    PoolAndStream,
}

/// A label in a segment map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Left edge in pixels.
    pub x: f32,
    /// Top edge in pixels.
    pub y: f32,
    /// Available width in pixels.
    pub width: f32,
    /// The text.
    pub text: String,
}

/// The segment map of a position.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segments {
    /// The query.
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
    /// The headings of groups that are visible.
    pub headings: Vec<SegmentHeading>,
    /// The blocks that pin a mostly free segment; the id is the allocation's number.
    pub pins: Quads,
    /// Pixels per byte, if all segments have the same scale.
    pub per_byte: Option<f64>,
    /// The x coordinate at which rows begin, right of the labels.
    pub left: f32,
    /// The totals at the position.
    pub totals: Totals,
}

/// The heading of a group of segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentHeading {
    /// Top edge in pixels.
    pub y: f32,
    /// The pool, if the group has one.
    pub pool: Option<PoolId>,
    /// Whether its segments serve requests up to 1 MiB, if the group has a pool.
    pub is_small: bool,
    /// The stream, if the group has one.
    pub stream: Option<Stream>,
    /// The short names of both: `large pool`, `pool (0, 1), small · stream 3`.
    pub name: String,
    /// The number of its segments.
    pub segments: u32,
    /// The sum of their sizes in bytes.
    pub reserved: u64,
    /// Bytes in their active blocks.
    pub active: u64,
}

/// A segment in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRow {
    /// Its first address.
    pub address: Address,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes in their active blocks.
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

/// The details of one segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentDetail {
    /// Its row in lists.
    pub row: SegmentRow,
    /// The number of its active blocks.
    pub blocks: u32,
    /// The number of its gaps.
    pub gaps: u32,
    /// Its largest gap in bytes.
    pub largest_gap: u64,
    /// The position right after it was reserved; `None` if it was reserved at the start.
    pub since: Option<u32>,
    /// The stack whose request it was reserved for, innermost first.
    pub frames: Vec<FrameText>,
    /// Why there are none, if so.
    pub missing: Option<MissingText>,
    /// The active blocks that pin it, worst first; without gaps, nothing is pinned.
    pub pins: Vec<Pin>,
}
