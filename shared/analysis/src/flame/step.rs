//! The meaning of boxes, and the steps from box to box along a stack.

use crate::best_frames::BestFrames;
use query::FlameBox;
use query::category::Category;
use trace::frames::FrameId;

/// The meaning of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Frame(FrameId),
    /// A run of library frames, by the number of the library that the frame above it called.
    Folded(u32),
    /// A run of frames of a library that was collapsed, by the number of the library.
    Library(u32),
    /// Allocations without a stack.
    NoStack,
    /// Allocations whose stack was lost to damage.
    LostStack,
    /// The allocations of a category: the first level.
    Category(Category),
}

impl Key {
    /// Returns what a number of a zoom path represents.
    pub(super) fn of(number: u32) -> Self {
        let category = number.checked_sub(FlameBox::CATEGORY).and_then(|i| Category::ALL.get(i as usize));
        if let Some(category) = category {
            return Self::Category(*category);
        }
        match (number.checked_sub(FlameBox::COLLAPSED), number.checked_sub(FlameBox::FOLDED)) {
            (Some(library), _) => Self::Library(library),
            (None, Some(library)) => Self::Folded(library),
            (None, None) => Self::Frame(FrameId(number)),
        }
    }
}

/// How the graph steps along stacks, whose frames are innermost first. A collapsed library is a frame with the number
/// of its box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps<'a> {
    pub(super) best: &'a BestFrames,
    /// Whether the innermost frame comes first, rather than the outermost.
    pub(super) bottom_up: bool,
    /// Whether runs of library frames are one box each.
    pub(super) folds: bool,
}

/// A step along a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackStep {
    pub(super) key: Key,
    /// The number of frames above the box.
    pub(super) from: usize,
    /// The number of frames above the boxes below it.
    pub(super) at: usize,
}

impl Steps<'_> {
    /// Returns what is below `at` frames of a stack: the next frame, or a folded run. Runs in which a program starts are
    /// omitted, and so are those at the inner end if the call site comes first. `shown` are the indices of frames that
    /// are never folded, `open_until` the end of the run that is open.
    pub(super) fn next(
        &self,
        frames: &[FrameId],
        shown: [usize; 2],
        at: usize,
        open_until: usize,
    ) -> Option<StackStep> {
        let frame = |at: usize| {
            let i = if self.bottom_up { Some(at) } else { frames.len().checked_sub(at + 1) }?;
            frames.get(i).map(|id| (i, *id))
        };
        let is_shown = |at: usize| {
            let is_own = |(i, id)| self.best.is_own(id) || shown.contains(&i) || id.0 >= FlameBox::COLLAPSED;
            frame(at).is_none_or(is_own)
        };
        let mut from = at;
        loop {
            let (_, first) = frame(from)?;
            if !self.folds || from < open_until || is_shown(from) {
                return Some(StackStep { key: Key::of(first.0), from, at: from + 1 });
            }
            let mut end = from;
            while !is_shown(end) {
                end += 1;
            }
            if from == 0 {
                from = end;
                continue;
            }
            if self.bottom_up && end >= frames.len() {
                return None;
            }
            // The frame next to the outer end was called by the frames around the run.
            let (_, outermost) = if self.bottom_up { frame(end - 1)? } else { (from, first) };
            return Some(StackStep { key: Key::Folded(self.best.library(outermost)), from, at: end });
        }
    }

    /// Returns the number of frames above the last box of a path, or `None` if the stack does not follow the path.
    pub(super) fn along(
        &self,
        frames: &[FrameId],
        shown: [usize; 2],
        category: Option<Category>,
        path: &[u32],
    ) -> Option<usize> {
        let (mut from, mut at, mut open_until) = (0, 0, 0);
        for (i, number) in path.iter().enumerate() {
            let key = Key::of(*number);
            if let Key::Category(wanted) = key {
                if category != Some(wanted) {
                    return None;
                }
                continue;
            }
            let step = self.next(frames, shown, at, open_until).filter(|step| step.key == key)?;
            (from, at) = (step.from, step.at);
            // A folded run is open if the path goes on in it, not after it.
            if let (Key::Folded(_), Some(next)) = (key, path.get(i + 1)) {
                let behind = self.next(frames, shown, at, open_until).map(|step| step.key);
                if behind != Some(Key::of(*next)) {
                    (open_until, at) = (at, from);
                }
            }
        }
        Some(from)
    }
}
