//! The flame graph: query and answer.

use serde::{Deserialize, Serialize};

use super::{Paint, Question, Sealed};
use crate::run_stacks::RunStacks;
use crate::term::is_any_category;

/// Asks for the active allocations at a position, by stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlameQuery {
    /// The position.
    pub position: u32,
    /// An earlier position: the growth since then is shown, of the stacks that grew.
    pub since: Option<u32>,
    /// Whether stacks that shrank since the earlier position are shown too, each as wide as the larger of both sums.
    pub differs: bool,
    /// The stacks of another run: the difference from it is shown, in place of that from an earlier position.
    pub base: Option<Sealed<RunStacks>>,
    /// Whether the innermost frame (the call site) comes first, rather than the outermost (the program's entry).
    pub bottom_up: bool,
    /// Whether runs of library frames are one box each.
    pub folds: bool,
    /// Whether the first level are categories.
    pub by_category: bool,
    /// The transforms of the stacks before they are laid out, applied in this order.
    pub transforms: Vec<Transform>,
    /// One half of a sandwich, after the transforms.
    pub sandwich: Option<Sandwich>,
    /// The frame numbers of the boxes that were zoomed into, from the root on.
    pub zoom: Vec<u32>,
    /// Width of the view in pixels. Boxes narrower than one are summed.
    pub width: f32,
    /// Search terms, all of which must match.
    pub filter: Vec<String>,
    /// A search term. What it does not match is painted faint.
    pub highlight: Option<String>,
}

impl Question for FlameQuery {
    type Answer = Sealed<Flame>;

    fn needs_categories(&self) -> bool {
        self.by_category || is_any_category(&self.filter, self.highlight.as_ref())
    }
}

/// A change of the stacks of a flame graph. A function is given by the number of any of its frames: those of one name
/// and file, whatever their line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Transform {
    /// Keeps the stacks with a function, without the frames outside its outermost call.
    FocusFunction(u32),
    /// Keeps the stacks that begin with a path of boxes, without the frames before its last box. The path is one as in
    /// [`FlameQuery::zoom`].
    FocusSubtree(Vec<u32>),
    /// Removes a function. Its bytes go to its caller.
    Merge(u32),
    /// Leaves out stacks with a function.
    Drop(u32),
    /// Removes everything that a function called. The bytes become its own.
    CollapseFunction(u32),
    /// Removes direct calls of a function by itself.
    CollapseDirect(u32),
    /// Removes the innermost call of a function, and everything between it and the outermost call.
    CollapseRecursion(u32),
    /// Shows each run of frames of a library as one box, which can't be opened. The library is given by one of its
    /// frames, or by the number of a folded run.
    CollapseLibrary(u32),
}

impl Transform {
    /// The letters of the kinds in links.
    const LETTERS: [char; 8] = ['f', 's', 'm', 'd', 'c', 'r', 'a', 'l'];

    /// Returns the index of the kind, and the frame that it changes: the last one of a path.
    pub fn parts(&self) -> (usize, u32) {
        match self {
            Self::FocusFunction(frame) => (0, *frame),
            Self::FocusSubtree(path) => (1, path.last().copied().unwrap_or(super::Quads::NONE)),
            Self::Merge(frame) => (2, *frame),
            Self::Drop(frame) => (3, *frame),
            Self::CollapseFunction(frame) => (4, *frame),
            Self::CollapseDirect(frame) => (5, *frame),
            Self::CollapseRecursion(frame) => (6, *frame),
            Self::CollapseLibrary(frame) => (7, *frame),
        }
    }

    /// Returns the transform of the kind with this index, for the last frame of a path. `None` if there is no such kind
    /// or the path is empty.
    pub fn of(kind: usize, path: &[u32]) -> Option<Self> {
        let frame = *path.last()?;
        Some(match kind {
            0 => Self::FocusFunction(frame),
            1 => Self::FocusSubtree(path.to_vec()),
            2 => Self::Merge(frame),
            3 => Self::Drop(frame),
            4 => Self::CollapseFunction(frame),
            5 => Self::CollapseDirect(frame),
            6 => Self::CollapseRecursion(frame),
            7 => Self::CollapseLibrary(frame),
            _ => return None,
        })
    }

    /// Returns the transform as it stands in a link: `m12`, or `s3.4.12` for a path.
    pub fn name(&self) -> String {
        let (kind, frame) = self.parts();
        let mut name = Self::LETTERS.get(kind).map_or_else(String::new, char::to_string);
        let path = match self {
            Self::FocusSubtree(path) => path.as_slice(),
            _ => &[frame],
        };
        for (i, number) in path.iter().enumerate() {
            if i > 0 {
                name.push('.');
            }
            name.push_str(&number.to_string());
        }
        name
    }

    /// Parses the name of a transform. `None` if it is invalid, or its path has more than `most` boxes.
    pub fn by_name(name: &str, most: usize) -> Option<Self> {
        let letter = name.chars().next()?;
        let kind = Self::LETTERS.iter().position(|known| *known == letter)?;
        let mut path: Vec<u32> = Vec::new();
        for number in name.get(letter.len_utf8()..)?.split('.') {
            if path.len() == most {
                return None;
            }
            path.push(number.parse().ok()?);
        }
        (kind == 1 || path.len() == 1).then(|| Self::of(kind, &path))?
    }
}

/// One half of a sandwich: the callers or the callees of a function, or of one of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sandwich {
    /// The number of its frame.
    pub frame: u32,
    /// Whether only this line of the function counts.
    pub is_line: bool,
    /// Whether the callers of the outermost call remain (for [`FlameQuery::bottom_up`]), rather than its callees.
    pub is_callers: bool,
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
    /// The number of its frame, of a folded run from [`FlameBox::FOLDED`] on, of a library from [`FlameBox::COLLAPSED`]
    /// on, or of a category from [`FlameBox::CATEGORY`] on, for zooming; [`Quads::NONE`](super::Quads::NONE) if it
    /// represents none of them.
    pub frame: u32,
    /// Requested bytes below it.
    pub bytes: u64,
    /// Requested bytes below it at the earlier position or in the other run, if [`FlameQuery::differs`].
    pub before: u64,
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
    /// The first number of a library whose frames were collapsed.
    pub const COLLAPSED: u32 = 3 << 30;
    /// The first number of a category.
    pub const CATEGORY: u32 = u32::MAX - 255;

    /// Returns whether it represents a category.
    pub fn is_category(&self) -> bool {
        (Self::CATEGORY..super::Quads::NONE).contains(&self.frame)
    }

    /// Returns whether it represents a folded run of library frames.
    pub fn is_folded(&self) -> bool {
        (Self::FOLDED..Self::COLLAPSED).contains(&self.frame)
    }

    /// Returns whether it represents a frame, which belongs to a function.
    pub const fn is_function(&self) -> bool {
        self.frame < Self::FOLDED
    }
}

/// The active allocations at a position, or their growth, by stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// The query, without the stacks of another run.
    pub query: FlameQuery,
    /// The boxes, root first, by depth and then from left to right.
    pub boxes: Vec<FlameBox>,
    /// The total of requested bytes: exactly [`Totals::requested`](trace::totals::Totals::requested) without a filter and
    /// without an earlier position. With [`FlameQuery::differs`], the total of the larger sums.
    pub total: u64,
    /// The bytes of the graph that the highlighted term matches, each counted once.
    pub matched: Option<u64>,
    /// The function, file or library that each transform changes, and then that of the sandwich.
    pub names: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_is_read_as_it_is_written() {
        for kind in 0..Transform::LETTERS.len() {
            let transform = Transform::of(kind, &[3, 4, 12]).unwrap();
            assert_eq!(Transform::by_name(&transform.name(), 3), Some(transform));
        }
        assert_eq!(Transform::of(8, &[1]), None);
        assert_eq!(Transform::of(0, &[]), None);
        assert_eq!(Transform::FocusSubtree(vec![3, 4]).name(), "s3.4");
        for wrong in ["", "f", "é", "x1", "f1.2", "s1..2", "s1.2.3.4", "f-1", "f4294967296"] {
            assert_eq!(Transform::by_name(wrong, 3), None, "{wrong}");
        }
    }
}
