//! Allocator events: the actions of trace entries, by PyTorch's names.

use serde::{Deserialize, Serialize};

use crate::units::Count;

/// The action of a trace entry. Names and meaning are those of PyTorch's `TraceEntry::Action`. Actions of later
/// versions become [`Action::Other`]; the trace keeps their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Action {
    /// A block was allocated. `size` is the requested size in bytes.
    Alloc = 0,
    /// `free` was called; the block may still wait for streams. `size` is the requested size.
    FreeRequested = 1,
    /// The block returned to its pool. `size` is the requested size.
    FreeCompleted = 2,
    /// A segment was reserved from the driver. `size` is the segment's size.
    SegmentAlloc = 3,
    /// A segment was released to the driver.
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
    /// An annotation made after the fact (`annotate`, torch 2.14 and later); the text is in the user metadata.
    Annotate = 10,
    /// Any other action; the trace keeps the name.
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

    /// Returns PyTorch's name; `other` for [`Action::Other`].
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

    /// Returns the action with PyTorch's name `name`; `None` if this build does not know it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| *a != Self::Other && a.name() == name)
    }

    /// Returns the action with this code (`self as u8`); [`Action::Other`] for any other code.
    pub const fn from_code(code: u8) -> Self {
        if (code as usize) < Self::ALL.len() { Self::ALL[code as usize] } else { Self::Other }
    }

    /// Whether the action changes the reserved memory.
    pub const fn is_segment(self) -> bool {
        matches!(self, Self::SegmentAlloc | Self::SegmentFree | Self::SegmentMap | Self::SegmentUnmap)
    }
}

/// Returns counts by [`Action`] code as text: `2 alloc, 1 oom`; empty when all counts are 0.
pub fn counts_in_words(by_action: &[u64; Action::ALL.len()]) -> String {
    let mut words = String::new();
    for (action, count) in Action::ALL.iter().zip(by_action).filter(|(_, count)| **count > 0) {
        if !words.is_empty() {
            words.push_str(", ");
        }
        words.push_str(&Count(*count).to_string());
        words.push(' ');
        words.push_str(action.name());
    }
    words
}
