//! The segment map and single segments: question and answers.

use serde::{Deserialize, Serialize};

use super::{ColorBy, FrameText, Quads, Window};
use crate::totals::Totals;
use crate::units::{Address, PoolId, Stream};

/// See [`Query::Segments`](super::Query::Segments).
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
