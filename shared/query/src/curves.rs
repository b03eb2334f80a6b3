//! Measures of fragmentation over time: which there are, and their curves in a window.

use serde::{Deserialize, Serialize};

use super::{Axis, Packed, Question, Window};

/// A measure of fragmentation. [`crate`] only names them; `measures::Measures` has their definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Measure {
    /// Bytes requested by active allocations.
    Requested,
    /// Bytes in allocated blocks.
    Allocated,
    /// Bytes in active blocks.
    Active,
    /// Bytes in segments.
    Reserved,
    /// Reserved less allocated bytes.
    Unallocated,
    /// Bytes in gaps.
    Cached,
    /// Bytes in gaps of segments that also hold an active block.
    InactiveSplit,
    /// Bytes of segments without an active block.
    CachedWhole,
    /// Active less requested bytes.
    Rounding,
    /// Bytes of the largest gap.
    LargestGap,
    /// The largest request, in bytes, that a small pool can serve without the driver.
    LargestServableSmall,
    /// The largest request, in bytes, that a large pool can serve without the driver.
    LargestServableLarge,
    /// Number of gaps.
    Gaps,
    /// The share of free memory that the largest possible request cannot use.
    UnusableShare,
    /// 1 - Σ gap² / (Σ gap)².
    FragmentationIndex,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 15] = [
        Self::Requested,
        Self::Allocated,
        Self::Active,
        Self::Reserved,
        Self::Unallocated,
        Self::Cached,
        Self::InactiveSplit,
        Self::CachedWhole,
        Self::Rounding,
        Self::LargestGap,
        Self::LargestServableSmall,
        Self::LargestServableLarge,
        Self::Gaps,
        Self::UnusableShare,
        Self::FragmentationIndex,
    ];
}

/// Asks for the curves of measures of fragmentation in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvesQuery {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis.
    pub window: Window,
    /// The number of pixel columns.
    pub columns: u32,
    /// The measures to draw.
    pub measures: Vec<Measure>,
}

impl Question for CurvesQuery {
    type Answer = Curves;
}

/// The curves of some measures in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The query, so that a late answer is drawn in the right place.
    pub query: CurvesQuery,
    /// A curve for each of its measures, in their order.
    pub curves: Vec<Curve>,
}

/// The extremes of a measure in each pixel column, over all positions whose states are current somewhere in it. Both are
/// exact; they are not numbers outside the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The measure.
    pub measure: Measure,
    /// The smallest values.
    pub least: Packed<f64>,
    /// The largest values.
    pub most: Packed<f64>,
}
