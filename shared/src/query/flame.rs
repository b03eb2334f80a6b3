//! The flame graph: query and answer.

use serde::{Deserialize, Serialize};

use super::Paint;

/// The parameters of [`Query::Flame`](super::Query::Flame).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlameQuery {
    /// The position.
    pub position: u32,
    /// An earlier position: the growth since then is shown, of the stacks that grew.
    pub since: Option<u32>,
    /// Whether the innermost frame (the call site) comes first, rather than the outermost (the program's entry).
    pub bottom_up: bool,
    /// Whether runs of library frames are one box each.
    pub folds: bool,
    /// Whether the first level are categories.
    pub by_category: bool,
    /// The frame numbers of the boxes that were zoomed into, from the root on.
    pub zoom: Vec<u32>,
    /// Width of the view in pixels. Boxes narrower than one are summed.
    pub width: f32,
    /// Search terms, all of which must match.
    pub filter: Vec<String>,
    /// A search term. What it does not match is painted faint.
    pub highlight: Option<String>,
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
    /// The function, or a description if it represents no frame.
    pub name: String,
    /// File and line.
    pub location: String,
    /// The number of its frame, of a folded run from [`FlameBox::FOLDED`] on, or of a category from
    /// [`FlameBox::CATEGORY`] on, for zooming; [`Quads::NONE`](super::Quads::NONE) if it represents none of them.
    pub frame: u32,
    /// Requested bytes below it.
    pub bytes: u64,
    /// Allocations below it.
    pub count: u32,
    /// The stack, if exactly one runs through it.
    pub stack: Option<u32>,
    /// Its colour.
    pub paint: Paint,
}

impl FlameBox {
    /// The first number of a folded run of library frames.
    pub const FOLDED: u32 = 1 << 31;
    /// The first number of a category.
    pub const CATEGORY: u32 = u32::MAX - 255;

    /// Returns whether it represents a category.
    pub fn is_category(&self) -> bool {
        (Self::CATEGORY..super::Quads::NONE).contains(&self.frame)
    }

    /// Returns whether it represents a folded run of library frames.
    pub fn is_folded(&self) -> bool {
        (Self::FOLDED..Self::CATEGORY).contains(&self.frame)
    }
}

/// The active allocations at a position, or their growth, by stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// The query.
    pub query: FlameQuery,
    /// The boxes, root first, by depth and then from left to right.
    pub boxes: Vec<FlameBox>,
    /// The total of requested bytes: exactly [`Totals::requested`](crate::totals::Totals::requested) without a filter and
    /// without an earlier position.
    pub total: u64,
}
