//! Measures of fragmentation over time: which there are, and their curves in a window.

use serde::{Deserialize, Serialize};

/// A measure of fragmentation. [`crate::query`] only names them; `measures::Measures` has their definitions.
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
