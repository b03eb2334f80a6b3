//! The transforms of a flame graph. Each maps a stack to a stack, or to `None` to leave the stack out.
//!
//! A graph is the sum of its stacks, so changing each stack changes the graph. Only a focus and a drop leave stacks
//! out; all other transforms keep the sum of all bytes.

use std::borrow::Cow;

use super::step::Steps;
use query::category::Category;
use query::{FlameBox, Sandwich, Transform};
use trace::frames::FrameId;

/// A stack while transforms are applied to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<'a> {
    /// Its frames, innermost first.
    pub(super) frames: Cow<'a, [FrameId]>,
    /// Indices of frames that are never folded: the one that represents the stack, and the one at which the stack was
    /// cut; `usize::MAX` for none.
    pub(super) shown: [usize; 2],
}

impl<'a> Row<'a> {
    /// Creates the row of a recorded stack. Consecutive native frames of one library without symbols become one frame.
    pub(super) fn new(steps: &Steps<'_>, frames: &'a [FrameId]) -> Self {
        let best = steps.best;
        let mut row = Self { frames: Cow::Borrowed(frames), shown: [usize::MAX; 2] };
        if best.has_nameless() {
            let is_run = |pair: &[FrameId]| is_nameless_run(steps, pair[0], pair[1]);
            if frames.iter().any(|frame| best.is_nameless(*frame)) {
                let mut kept: Vec<FrameId> = Vec::with_capacity(frames.len());
                for frame in frames {
                    // All frames of a library without a symbol are one box, whatever their offset.
                    let frame = if best.is_nameless(*frame) { best.function(*frame) } else { *frame };
                    if !kept.last().is_some_and(|last| is_run(&[*last, frame])) {
                        kept.push(frame);
                    }
                }
                row.frames = Cow::Owned(kept);
            }
        }
        row.shown[0] = best.index(&row.frames).unwrap_or(usize::MAX);
        row
    }

    /// Keeps only the frames `from..to`.
    fn cut(&mut self, from: usize, to: usize) {
        let part = self.frames.get(from..to).unwrap_or_default();
        self.frames = Cow::Owned(part.to_vec());
    }
}

fn is_nameless_run(steps: &Steps<'_>, last: FrameId, next: FrameId) -> bool {
    steps.best.is_nameless(last) && last == next
}

/// Applies a transform to a stack. `None` leaves it out.
pub(super) fn apply<'a>(
    steps: &Steps<'_>,
    mut row: Row<'a>,
    category: Option<Category>,
    transform: &Transform,
) -> Option<Row<'a>> {
    let best = steps.best;
    let (_, target) = transform.parts();
    let target = best.function(FrameId(target));
    let is_it = |frame: &FrameId| best.function(*frame) == target;
    let innermost = || row.frames.iter().position(is_it);
    let outermost = || row.frames.iter().rposition(is_it);
    // Which end was cut, if any: true for the outer one. The frame at that end is never folded.
    let mut is_cut_outside = None;
    match transform {
        Transform::FocusFunction(_) => {
            let at = outermost()?;
            row.cut(0, at + 1);
            is_cut_outside = Some(true);
        }
        Transform::FocusSubtree(path) => {
            let above = steps.along(&row.frames, row.shown, category, path)?;
            let length = row.frames.len();
            if steps.bottom_up {
                row.cut(above, length);
            } else {
                row.cut(0, length - above.min(length));
            }
            is_cut_outside = Some(!steps.bottom_up);
        }
        Transform::Drop(_) => {
            if innermost().is_some() {
                return None;
            }
        }
        Transform::CollapseFunction(_) => {
            if let Some(at) = outermost() {
                let length = row.frames.len();
                row.cut(at, length);
                is_cut_outside = Some(false);
            }
        }
        Transform::CollapseRecursion(_) => {
            if let (Some(inner), Some(outer)) = (innermost(), outermost())
                && inner < outer
            {
                row.frames.to_mut().drain(inner..outer);
            }
        }
        Transform::Merge(_) => {
            if innermost().is_some() {
                row.frames.to_mut().retain(|frame| !is_it(frame));
            }
        }
        Transform::CollapseDirect(_) => {
            if innermost().is_some() {
                // The outermost call of each run stays.
                collapse(&mut row, |frame| is_it(&frame).then_some(frame));
            }
        }
        Transform::CollapseLibrary(frame) => {
            // The number of a folded run contains that of its library.
            let of_run = frame.checked_sub(FlameBox::FOLDED);
            let library = of_run.unwrap_or_else(|| best.library(FrameId(*frame)));
            let is_in_library = |frame| best.library(frame) == library && frame.0 < FlameBox::FOLDED;
            if library < FlameBox::FOLDED >> 1 && row.frames.iter().any(|frame| is_in_library(*frame)) {
                collapse(&mut row, |frame| is_in_library(frame).then_some(FrameId(FlameBox::COLLAPSED + library)));
            }
        }
    }
    Some(settled(steps, row, is_cut_outside))
}

/// Applies one half of a sandwich to a stack.
pub(super) fn halve<'a>(steps: &Steps<'_>, mut row: Row<'a>, sandwich: Sandwich) -> Option<Row<'a>> {
    let key = |frame: FrameId| if sandwich.is_line { frame } else { steps.best.function(frame) };
    let target = key(FrameId(sandwich.frame));
    let at = row.frames.iter().rposition(|frame| key(*frame) == target)?;
    let length = row.frames.len();
    if sandwich.is_callers {
        row.cut(at, length);
    } else {
        row.cut(0, at + 1);
    }
    Some(settled(steps, row, Some(!sandwich.is_callers)))
}

/// Replaces each run of frames for which `becomes` returns a frame by what it returns for the outermost one.
fn collapse(row: &mut Row<'_>, becomes: impl Fn(FrameId) -> Option<FrameId>) {
    let mut kept: Vec<FrameId> = Vec::with_capacity(row.frames.len());
    let mut is_in_run = false;
    for frame in row.frames.iter() {
        let replaced = becomes(*frame);
        if let (true, Some(replaced), Some(last)) = (is_in_run, replaced, kept.last_mut()) {
            *last = replaced;
        } else {
            kept.push(replaced.unwrap_or(*frame));
        }
        is_in_run = replaced.is_some();
    }
    row.frames = Cow::Owned(kept);
}

/// Updates which frames are never folded.
fn settled<'a>(steps: &Steps<'_>, mut row: Row<'a>, is_cut_outside: Option<bool>) -> Row<'a> {
    if matches!(row.frames, Cow::Owned(_)) {
        row.shown[0] = steps.best.index(&row.frames).unwrap_or(usize::MAX);
    }
    match is_cut_outside {
        Some(true) => row.shown[1] = row.frames.len().saturating_sub(1),
        Some(false) => row.shown[1] = 0,
        None if row.shown[1] != usize::MAX && row.shown[1] != 0 => row.shown[1] = row.frames.len().saturating_sub(1),
        None => {}
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::best_frames::BestFrames;
    use replay::index::Index;
    use trace::frames::Symbols;
    use trace::testing::stack;

    /// Functions `a` to `d`, two lines of each, and two of a library.
    const FRAMES: [&str; 10] = [
        "a@m.py:1",
        "a@m.py:2",
        "b@m.py:3",
        "b@m.py:4",
        "c@m.py:5",
        "c@m.py:6",
        "d@n.py:7",
        "d@n.py:8",
        "mm@/x/site-packages/torch/a.py:1",
        "add@/x/site-packages/torch/b.py:2",
    ];

    fn best() -> BestFrames {
        let mut symbols = Symbols::default();
        stack(&mut symbols, &FRAMES);
        BestFrames::build(&symbols)
    }

    /// Applies transforms to stacks, each a text with a letter for a frame, innermost first: `abc`, where a capital is
    /// the second line of a function, and `x` and `y` are the frames of the library. `*` is a collapsed library.
    fn check(transforms: &[Transform], cases: &[(&str, Option<&str>)]) {
        let best = best();
        let steps = Steps { best: &best, bottom_up: false, folds: false };
        let letters = ['a', 'A', 'b', 'B', 'c', 'C', 'd', 'D', 'x', 'y'];
        for (before, after) in cases {
            let frames: Vec<FrameId> =
                before.chars().map(|c| FrameId(letters.iter().position(|l| *l == c).unwrap() as u32)).collect();
            let mut row = Some(Row::new(&steps, &frames));
            for transform in transforms {
                row = row.and_then(|row| apply(&steps, row, None, transform));
            }
            let letter = |frame: &FrameId| letters.get(frame.0 as usize).copied().unwrap_or('*');
            let got = row.map(|row| row.frames.iter().map(letter).collect::<String>());
            assert_eq!(got.as_deref(), *after, "{before} after {transforms:?}");
        }
    }

    #[test]
    fn each_transform_changes_a_stack() {
        use Transform::*;
        // `a` is 0 and 1, `b` is 2 and 3, `c` is 4 and 5.
        check(&[FocusFunction(3)], &[("abc", Some("ab")), ("aBcbd", Some("aBcb")), ("ac", None), ("", None)]);
        check(&[FocusSubtree(vec![4, 2])], &[("abc", Some("ab")), ("abC", None), ("abcc", None), ("c", None)]);
        check(&[Merge(2)], &[("abBcbd", Some("acd")), ("b", Some("")), ("ac", Some("ac"))]);
        check(&[Drop(2)], &[("aBc", None), ("ac", Some("ac")), ("", Some(""))]);
        check(&[CollapseFunction(4)], &[("abcd", Some("cd")), ("acbCd", Some("Cd")), ("ab", Some("ab"))]);
        check(&[CollapseDirect(2)], &[("abBbcbd", Some("abcbd")), ("bB", Some("B")), ("ac", Some("ac"))]);
        check(&[CollapseRecursion(2)], &[("abBcBd", Some("aBd")), ("abc", Some("abc")), ("ac", Some("ac"))]);
        check(&[CollapseLibrary(8)], &[("xyaxb", Some("*a*b")), ("ab", Some("ab"))]);
        check(&[CollapseLibrary(0)], &[("xyab", Some("xy*"))]);
        check(&[CollapseLibrary(FlameBox::FOLDED + 1)], &[("xyab", Some("*ab"))]);
        check(&[CollapseLibrary(9), Merge(FlameBox::COLLAPSED + 1)], &[("xyaxb", Some("ab"))]);
        check(&[Merge(2), FocusFunction(0), CollapseDirect(0)], &[("dabac", Some("da")), ("bc", None)]);
    }

    #[test]
    fn both_halves_of_a_sandwich_meet_in_its_outermost_call() {
        let best = best();
        let steps = Steps { best: &best, bottom_up: false, folds: false };
        let frames: Vec<FrameId> = [0, 2, 4, 3, 6].map(FrameId).to_vec();
        let half = |is_line, is_callers| {
            let sandwich = Sandwich { frame: 2, is_line, is_callers };
            let row = halve(&steps, Row::new(&steps, &frames), sandwich).unwrap();
            row.frames.iter().map(|frame| frame.0).collect::<Vec<_>>()
        };
        assert_eq!((half(false, true), half(false, false)), (vec![3, 6], vec![0, 2, 4, 3]));
        assert_eq!((half(true, true), half(true, false)), (vec![2, 4, 3, 6], vec![0, 2]));
    }

    #[test]
    fn frames_without_a_symbol_are_one_for_each_run_of_a_library() {
        let mut symbols = Symbols::default();
        let all =
            ["??@/l/libtorch_cpu.so:7", "??@/l/libtorch_cpu.so:9", "f@m.py:1", "??@/l/libc.so.6:3", "?@/l/libc.so.6:4"];
        let id = stack(&mut symbols, &all);
        let best = BestFrames::build(&symbols);
        let steps = Steps { best: &best, bottom_up: false, folds: false };
        let frames = symbols.stack(id);
        let row = Row::new(&steps, frames);
        assert_eq!(row.frames.as_ref(), [frames[0], frames[2], frames[3], frames[4]]);
        assert_eq!(row.shown[0], 1);
    }

    fn transforms() -> impl Strategy<Value = Transform> {
        (0..8_usize, prop::collection::vec(0..10_u32, 1..4))
            .prop_map(|(kind, path)| Transform::of(kind, &path).unwrap())
    }

    proptest! {
        #[test]
        fn only_focus_and_drop_leave_stacks_out(
            frames in prop::collection::vec(0..10_u32, 0..12),
            list in prop::collection::vec(transforms(), 0..5),
            folds: bool,
            bottom_up: bool,
        ) {
            let best = best();
            let steps = Steps { best: &best, bottom_up, folds };
            let frames: Vec<FrameId> = frames.into_iter().map(FrameId).collect();
            let mut row = Row::new(&steps, &frames);
            for transform in &list {
                let can_leave_out = matches!(transform, Transform::FocusFunction(_) | Transform::FocusSubtree(_) | Transform::Drop(_));
                let Some(after) = apply(&steps, row.clone(), None, transform) else {
                    prop_assert!(can_leave_out, "{transform:?}");
                    return Ok(());
                };
                prop_assert!(after.frames.len() <= row.frames.len());
                // Applying it again changes nothing. (A path begins at the root, so a second focus continues from
                // there.)
                if !matches!(transform, Transform::FocusSubtree(_)) {
                    let again = apply(&steps, after.clone(), None, transform);
                    prop_assert_eq!(again.as_ref().map(|row| &row.frames), Some(&after.frames), "{:?}", transform);
                }
                row = after;
            }
        }

        #[test]
        fn the_root_is_in_focus_already(frames in prop::collection::vec(0..10_u32, 1..12), folds: bool) {
            let best = best();
            let steps = Steps { best: &best, bottom_up: false, folds };
            let frames: Vec<FrameId> = frames.into_iter().map(FrameId).collect();
            let row = Row::new(&steps, &frames);
            // The outermost frame is the first box, and the empty path is that of the root.
            let first = frames.last().unwrap().0;
            for transform in [Transform::FocusFunction(first), Transform::FocusSubtree(Vec::new())] {
                let after = apply(&steps, row.clone(), None, &transform).unwrap();
                prop_assert_eq!(&after.frames, &row.frames);
            }
        }
    }
}
