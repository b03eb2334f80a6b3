//! The actions of allocator events, by PyTorch's names.

use serde::{Deserialize, Serialize};

/// What an event records. Names and meaning are those of PyTorch's `TraceEntry::Action`. Actions that this build does
/// not know are [`Action::Other`], with their name in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Action {
    /// A block was allocated. `size` is the requested size in bytes.
    Alloc = 0,
    /// `free` was called; the block may still wait for streams. `size` is the requested size.
    FreeRequested = 1,
    /// The block was returned to its pool. `size` is the requested size.
    FreeCompleted = 2,
    /// A segment was taken from the driver. `size` is the segment's size.
    SegmentAlloc = 3,
    /// A segment was given back to the driver.
    SegmentFree = 4,
    /// Pages were mapped into an expandable segment: address and size of the new range only.
    SegmentMap = 5,
    /// Pages of an expandable segment were unmapped.
    SegmentUnmap = 6,
    /// A request failed. `address` holds the free bytes of the device, `size` the rounded request.
    Oom = 7,
    /// A snapshot was taken. `size` is the active total in bytes.
    Snapshot = 8,
    /// A user annotation (`user_defined`, torch 2.5).
    UserDefined = 9,
    /// An annotation added later (`annotate`, torch 2.14 and later); the text is in the user metadata.
    Annotate = 10,
    /// Any other action; its name is in the event's tag.
    Other = 11,
}

impl Action {
    /// Every action, in the order of its code.
    pub const ALL: [Self; 12] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Oom,
        Self::Snapshot,
        Self::UserDefined,
        Self::Annotate,
        Self::Other,
    ];

    /// Returns the name that PyTorch uses; `other` for [`Action::Other`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Oom => "oom",
            Self::Snapshot => "snapshot",
            Self::UserDefined => "user_defined",
            Self::Annotate => "annotate",
            Self::Other => "other",
        }
    }

    /// Returns the action that PyTorch calls `name`; `None` if this build does not know it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| *a != Self::Other && a.name() == name)
    }

    /// Returns the action with this code (`self as u8`); [`Action::Other`] for any other code.
    pub const fn from_code(code: u8) -> Self {
        if (code as usize) < Self::ALL.len() { Self::ALL[code as usize] } else { Self::Other }
    }

    /// Returns whether events of this action change the reserved ranges.
    pub const fn is_segment(self) -> bool {
        matches!(self, Self::SegmentAlloc | Self::SegmentFree | Self::SegmentMap | Self::SegmentUnmap)
    }
}
